"""What is not allowed is refused at once, in words; what could be read in two ways is not read at all."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.launcher.proxy.world import Proxy, Web, listening, read_all, read_head, running, web

NAMES = {"site.test": ["127.0.0.1"], "both.test": ["127.0.0.7", "127.0.0.1"], "inner.test": ["127.0.0.7"], "evil.test": ["127.0.0.1"]}


@pytest.fixture(scope="module")
def site() -> Iterator[Web]:
    with web() as server:
        yield server


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("proxy"), names=NAMES, blocked=("evil.test", "127.0.0.7")) as one:
        yield one


RULES = {
    "evil.test": "block evil.test (config.toml:3)", "inner.test": "address 127.0.0.7", "127.0.0.7": "block 127.0.0.7", "broken.test": "error",
}  # fmt: skip


@pytest.mark.parametrize(("host", "rule"), RULES.items())
def test_a_refusal_names_the_rule_and_what_to_do(proxy: Proxy, site: Web, host: str, rule: str) -> None:
    before = len(site.handler.seen)
    where = f"{host}:{site.port}"
    connect = proxy.say(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode()).decode()
    plain = proxy.say(f"POST http://{where}/1 HTTP/1.1\r\nHost: {where}\r\nContent-Length: 20000000\r\n\r\n".encode() + b"x" * 20_000_000).decode()
    for answer in (connect, plain):
        head, _, body = answer.partition("\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 403 agent-sandbox refuses {where}: ")
        assert f"refuses {where}\nrule: {rule}" in body
        assert f"`agent-sandbox explain host {where}`" in body
    name = host.encode()
    said = proxy.say(b"\5\1\0" + b"\5\1\0\3" + bytes([len(name)]) + name + site.port.to_bytes(2, "big"))
    assert said[:4] == b"\5\0" + b"\5\2"
    assert len(site.handler.seen) == before


def test_curl_shows_the_refusal(proxy: Proxy, site: Web) -> None:
    words = ["curl", "-q", "-sS", "--noproxy", "", "-x", f"http://{proxy.url}"]
    good, bad = (subprocess.run([*words, f"http://{host}:{site.port}/3"], capture_output=True, text=True) for host in ("site.test", "evil.test"))
    assert (good.stdout, bad.stdout.splitlines()[0]) == ("xxx", f"agent-sandbox: the network policy refuses evil.test:{site.port}")
    assert subprocess.run([*words[:-2], "--socks5-hostname", proxy.url, f"http://evil.test:{site.port}/"], capture_output=True).returncode == 97


def test_of_several_addresses_only_an_allowed_one_is_dialled(proxy: Proxy, site: Web) -> None:
    answer = proxy.say(f"GET http://both.test:{site.port}/2 HTTP/1.1\r\nHost: both.test:{site.port}\r\nConnection: close\r\n\r\n".encode())
    assert answer.endswith(b"\r\n\r\nxx")
    entry = next(entry for entry in proxy.entries(1) if entry["host"] == "both.test")
    assert (entry["address"], entry["rule"], entry["verdict"]) == ("127.0.0.1", "address 127.0.0.1", "allow")


def test_a_name_that_means_something_else_the_second_time_is_looked_up_once_and_judged_each_time(tmp_path: Path) -> None:
    """What stands behind the forbidden address answers too, and is never reached, neither by a connection that was judged before nor by the next."""
    met: list[str] = []

    def serve(where: str) -> Callable[[socket.socket], None]:
        def answer(sock: socket.socket) -> None:
            met.append(where)
            read_head(sock)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")

        return answer

    names = {"turns.test": ["127.0.0.1", "127.0.0.7", "127.0.0.1", "127.0.0.7"]}
    with (
        listening(serve("good")) as port, listening(serve("bad"), "127.0.0.7", port),
        running(tmp_path, names=names, blocked=("127.0.0.7",)) as proxy,
    ):  # fmt: skip
        with socket.create_connection(("127.0.0.7", port)) as control:
            control.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert read_all(control).endswith(b"hi")
        request = f"GET http://turns.test:{port}/ HTTP/1.1\r\nHost: turns.test:{port}\r\nConnection: close\r\n\r\n".encode()
        assert [proxy.say(request)[:12] for _ in range(4)] == [b"HTTP/1.1 200", b"HTTP/1.1 403"] * 2
        assert met == ["bad", "good", "good"]  # the first was the control
        assert [entry["address"] for entry in proxy.entries(4)] == names["turns.test"]


def test_a_redirect_to_a_forbidden_host_leads_nowhere(proxy: Proxy, site: Web) -> None:
    """It is the client's to follow, and what it asks for then is judged as anything."""

    def send_on(sock: socket.socket) -> None:
        read_head(sock)
        sock.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://%s:%d/3\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % (where, site.port))

    before = len(site.handler.seen)
    words = ["curl", "-q", "-sS", "-L", "-o", "/dev/null", "-w", "%{http_code} %{num_redirects} %{url_effective}", "--noproxy", ""]
    for where, code in ((b"site.test", "200"), (b"evil.test", "403"), (b"inner.test", "403"), (b"127.0.0.7", "403")):
        with listening(send_on) as port:
            for way in (["-x", f"http://{proxy.url}"], ["-p", "-x", f"http://{proxy.url}"]):
                got = subprocess.run([*words, *way, f"http://site.test:{port}/"], capture_output=True, text=True)
                tunnel = "-p" in way and code == "403"  # curl shows no status where no tunnel came about
                assert got.stdout == f"{'000' if tunnel else code} 1 http://{where.decode()}:{site.port}/3", got
    assert len(site.handler.seen) == before + 2  # the control


HEAD = b"POST http://site.test:PORT/ HTTP/1.1\r\nHost: site.test:PORT\r\n"
MALFORMED = {
    "two lengths": HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "the same length twice": HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "a list of lengths": HEAD + b"Content-Length: 3, 3\r\n\r\nabc",
    "a signed length": HEAD + b"Content-Length: +3\r\n\r\nabc",
    "a length in hex": HEAD + b"Content-Length: 0x3\r\n\r\nabc",
    "a huge length": HEAD + b"Content-Length: 99999999999999999999\r\n\r\nabc",
    "an empty length": HEAD + b"Content-Length:\r\n\r\n",
    "a length and chunks": HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "chunks twice": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another coding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "identity": HEAD + b"Transfer-Encoding: identity\r\n\r\n",
    "chunks in the old version": HEAD.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded field": HEAD + b"X: 1\r\n Transfer-Encoding: chunked\r\n\r\n",
    "a tab in front": HEAD + b"\tContent-Length: 3\r\n\r\nabc",
    "a bare newline": HEAD + b"X: 1\nContent-Length: 3\r\n\r\nabc",
    "a bare return": HEAD + b"X: 1\rContent-Length: 3\r\n\r\nabc",
    "a NUL": HEAD + b"X: a\0b\r\n\r\n",
    "a field without a name": HEAD + b": 1\r\n\r\n",
    "a line without a colon": HEAD + b"Hello\r\n\r\n",
    "Connection takes the length away": HEAD + b"Connection: content-length\r\nContent-Length: 3\r\n\r\nabc",
    "Connection takes the host away": HEAD + b"Connection: close, Host\r\n\r\n",
    "two hosts": HEAD + b"Host: site.test:PORT\r\n\r\n",
    "another host": b"GET http://site.test:PORT/ HTTP/1.1\r\nHost: evil.test:PORT\r\n\r\n",
    "another port": b"GET http://site.test:PORT/ HTTP/1.1\r\nHost: site.test:81\r\n\r\n",
    "no host": b"GET http://site.test:PORT/ HTTP/1.1\r\n\r\n",
    "a user": b"GET http://site.test@evil.test:PORT/ HTTP/1.1\r\nHost: evil.test:PORT\r\n\r\n",
    "a backslash": b"GET http://site.test\\@evil.test:PORT/ HTTP/1.1\r\nHost: site.test:PORT\r\n\r\n",
    "a fragment": b"GET http://site.test:PORT/#a HTTP/1.1\r\nHost: site.test:PORT\r\n\r\n",
    "another scheme": b"GET https://site.test:PORT/ HTTP/1.1\r\nHost: site.test:PORT\r\n\r\n",
    "no scheme": b"GET / HTTP/1.1\r\nHost: site.test:PORT\r\n\r\n",
    "another version": b"GET http://site.test:PORT/ HTTP/2.0\r\nHost: site.test:PORT\r\n\r\n",
    "the oldest version": b"GET http://site.test:PORT/\r\n\r\n",
    "a space too many": b"GET  http://site.test:PORT/ HTTP/1.1\r\nHost: site.test:PORT\r\n\r\n",
    "a space in the path": b"GET http://site.test:PORT/a b HTTP/1.1\r\nHost: site.test:PORT\r\n\r\n",
    "an empty line first": b"\r\nGET http://site.test:PORT/ HTTP/1.1\r\nHost: site.test:PORT\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "CONNECT elsewhere than Host": b"CONNECT site.test:PORT HTTP/1.1\r\nHost: evil.test:PORT\r\n\r\n",
    "CONNECT with a body": b"CONNECT site.test:PORT HTTP/1.1\r\nHost: site.test:PORT\r\nContent-Length: 3\r\n\r\nabc",
    "CONNECT without a port": b"CONNECT site.test HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "CONNECT to port 0": b"CONNECT site.test:0 HTTP/1.1\r\n\r\n",
    "CONNECT to a high port": b"CONNECT site.test:65536 HTTP/1.1\r\n\r\n",
    "CONNECT to a URL": b"CONNECT http://site.test:PORT/ HTTP/1.1\r\n\r\n",
    "another expectation": HEAD + b"Expect: miracles\r\nContent-Length: 3\r\n\r\nabc",
    "too many fields": HEAD + b"X: 1\r\n" * 250 + b"\r\n",
}
HOSTS = (
    "127.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.01", "1.2.3.4.5", "[::1%25lo]", "[127.0.0.1]", "::1", "a..b",
    "-a.test", "a-.test", "site.test%00.evil.test", "site.test,evil.test", "s\u00efte.test", "*.test", "a" * 64 + ".test", "site.test..", ".", "",
)  # fmt: skip


def test_what_could_smuggle_is_refused_and_nothing_goes_on(proxy: Proxy, site: Web) -> None:
    """One connection each; the control is that the same head with nothing wrong is served."""
    before = len(site.handler.seen)
    found = {name: proxy.say(raw.replace(b"PORT", str(site.port).encode())).partition(b"\r\n")[0] for name, raw in MALFORMED.items()}
    assert found == dict.fromkeys(MALFORMED, b"HTTP/1.1 400 Bad Request")
    assert len(site.handler.seen) == before
    good = proxy.say(HEAD.replace(b"PORT", str(site.port).encode()) + b"Content-Length: 3\r\nConnection: close\r\n\r\nabc")
    assert good.endswith(b"3 294")


def test_a_host_that_two_readers_could_read_differently_is_refused(proxy: Proxy, site: Web) -> None:
    heads = {host: f"CONNECT {host}:{site.port} HTTP/1.1\r\n\r\n".encode("latin-1") for host in HOSTS}
    assert {host: proxy.say(raw)[:12] for host, raw in heads.items()} == dict.fromkeys(HOSTS, b"HTTP/1.1 400")
    names = {host: host.encode("latin-1") for host in (*HOSTS, "site.test\0.evil.test", "site.test\r\nX: 1")}
    said = {host: proxy.say(b"\5\1\0\5\1\0\3" + bytes([len(raw)]) + raw + b"\0\x50")[:4] for host, raw in names.items() if host != "::1"}
    assert set(said.values()) == {b"\5\0\5\1"}
    for same in ("127.0.0.7", "[::ffff:127.0.0.7]", "EVIL.test", "evil.test."):
        assert proxy.say(f"CONNECT {same}:{site.port} HTTP/1.1\r\n\r\n".encode())[:12] == b"HTTP/1.1 403"


def test_bad_chunks_end_the_connection_before_what_follows_them_goes_on(proxy: Proxy, site: Web) -> None:
    before = len(site.handler.seen)
    head = HEAD.replace(b"PORT", str(site.port).encode()) + b"Transfer-Encoding: chunked\r\n\r\n"
    smuggled = b"GET http://site.test/smuggled HTTP/1.1\r\n\r\n"
    sizes = (
        b"2\r\nabc\r\n", b"0x3\r\nabc\r\n", b"-1\r\n", b"3\nabc\n", b"fffffffffffffffff\r\n",
        b" 3\r\nabc\r\n", b"3;\r\r\nabc\r\n", b"\r\n", b"3\0\r\nabc\r\n",
    )  # fmt: skip
    for bad in (size + b"0\r\n\r\n" for size in sizes):
        with proxy.connect() as sock:
            sock.sendall(head + bad + smuggled)
            try:
                assert read_all(sock) == b""
            except ConnectionResetError:
                pass
    assert len(site.handler.seen) == before
    good = proxy.say(head + b"3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n" + b"GET nonsense\r\n\r\n")
    assert b"\r\n\r\n3 294HTTP/1.1 400" in good


def test_of_socks_only_what_is_needed_is_spoken(proxy: Proxy) -> None:
    assert proxy.say(b"\5\1\2") == b"\5\xff"
    for request, code in ((b"\5\2\0\1", 7), (b"\5\3\0\1", 7), (b"\5\1\0\2", 8), (b"\5\1\1\1", 1)):
        assert proxy.say(b"\5\1\0" + request + b"\x7f\0\0\1\0\x50")[:4] == b"\5\0\5" + bytes([code])


def test_a_huge_head_is_refused(proxy: Proxy) -> None:
    assert proxy.say(b"GET http://site.test/ HTTP/1.1\r\nX: " + b"x" * 100_000)[:12] == b"HTTP/1.1 431"


def test_answers_are_read_as_strictly(proxy: Proxy) -> None:
    """A server that answers in two ways at once, or before it was asked, cannot poison the next request."""
    answers = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, b"HTTP/1.1 101 Switching\r\n\r\n", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, b"",
    )  # fmt: skip
    for answer in answers:

        def serve(sock: socket.socket, answer: bytes = answer) -> None:
            read_head(sock)
            sock.sendall(answer)
            sock.shutdown(socket.SHUT_WR)
            sock.recv(1)

        with listening(serve) as port:
            got = proxy.say(f"GET http://site.test:{port}/ HTTP/1.1\r\nHost: site.test:{port}\r\n\r\n".encode())
            assert got.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")[:12] == b"HTTP/1.1 502", answer
    asked: list[bytes] = []

    def eager(sock: socket.socket) -> None:
        asked.append(read_head(sock))
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
        sock.recv(1)

    with listening(eager) as port, proxy.connect() as sock:
        for _ in range(3):
            sock.sendall(f"GET http://site.test:{port}/ HTTP/1.1\r\nHost: site.test:{port}\r\n\r\n".encode())
            assert b"Content-Length: 1" in read_head(sock)
            assert sock.recv(1) == b"a"
    assert len(asked) == 3  # each on a connection of its own


def test_malformed_requests_are_noted_up_to_a_bound(tmp_path: Path) -> None:
    with running(tmp_path, names=NAMES) as proxy:
        for _ in range(220):
            assert proxy.say(b"nonsense\r\n\r\n")[:12] == b"HTTP/1.1 400"
        assert {entry["verdict"] for entry in proxy.entries(200)} == {"malformed"}
        assert len(proxy.entries(200)) == 200
