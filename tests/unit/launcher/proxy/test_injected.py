"""The proxy adds a credential that its client does not have: to one host, over TLS that was checked, and says nothing of it back."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_sandbox.launcher.proxy.chunks import Chunks
from tests.machines import authority, upstream
from tests.machines.upstream import Host
from tests.unit.launcher.proxy.world import Proxy, listening, read_all, read_head, running

SECRET = "sk-test-0123456789/abc+def"
SITE = authority.make("the site's CA")
OURS = authority.make("localhost", SITE, ca=False)
GET = "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: placeholder\r\n{more}Connection: close\r\n\r\n"


def wired(host: Host, name: str = "api", *, where: str = "localhost", path: str = "", secret: str = SECRET) -> tuple[object, ...]:
    return (name, where, host.port, path, "x-api-key", "", "", secret, "" if secret else "the variable KEY is not set")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with upstream.wanting(tmp_path_factory.mktemp("host"), OURS) as found:
        yield found


@pytest.fixture(scope="module")
def proxy(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    credentials = (
        wired(host), wired(host, "below", path="/v1"), wired(host, "other", where="wrong.test"), wired(host, "none", secret=""),
        ("bearer", "localhost", host.port, "", "Authorization", "Bearer ", "", SECRET, ""),
        ("joined", "localhost", host.port, "", "X_Site_Key", "", "", SECRET, ""),
    )  # fmt: skip
    names = {"localhost": ["127.0.0.1"], "wrong.test": ["127.0.0.1"]}
    with running(tmp_path_factory.mktemp("proxy"), names=names, credentials=credentials, roots=SITE.pem, blocked=("closed.test",)) as found:
        yield found


def ask(proxy: Proxy, path: str, more: str = "") -> tuple[bytes, bytes]:
    """The answer's head, and its body without a frame."""
    said = proxy.say(GET.format(path=path, more=more).encode())
    head, _, body = said.partition(b"\r\n\r\n")
    body = Chunks(bare=True).feed(body) if b"Transfer-Encoding: chunked" in head else body
    assert SECRET.encode() not in head + body
    return head, body


def test_the_real_field_goes_there_and_the_placeholder_does_not(proxy: Proxy, host: Host) -> None:
    more = "Authorization: Bearer mine\r\nX_Api_Key: twice\r\nContent_Length: 9\r\nTransfer_Encoding: chunked\r\nAccept-Charset: utf-16\r\n"
    more += "Cookie: a=b\r\nRange: bytes=0-3\r\nAccept-Encoding: gzip\r\nX-Kept: yes\r\n"
    head, body = ask(proxy, "/api/first?a=b%20c", more)
    assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 200 OK", b"0 bytes came\n")
    assert host.seen("/first?a=b%20c").fields == [
        ("host", f"localhost:{host.port}"), ("x-kept", "yes"), ("accept-encoding", "identity"), ("x-api-key", SECRET),
    ]  # fmt: skip
    assert host.names[-1] == "localhost"


def test_text_around_the_secret_goes_along(proxy: Proxy, host: Host) -> None:
    ask(proxy, "/bearer/text")
    assert host.seen("/text").values("authorization") == [f"Bearer {SECRET}"]
    assert host.seen("/text").values("x-api-key") == []


def test_a_field_with_an_underscore_is_there_once(proxy: Proxy, host: Host) -> None:
    ask(proxy, "/joined/once", "X_Site_Key: mine\r\nX-Site-Key: mine\r\nx-site_key: mine\r\n")
    assert [one for one in host.seen("/once").fields if "site" in one[0]] == [("x_site_key", SECRET)]


def test_the_path_of_the_entry_comes_first(proxy: Proxy, host: Host) -> None:
    for said, path in (("/below/models", "/v1/models"), ("/below", "/v1"), ("/below/", "/v1/"), ("/below?x=1", "/v1?x=1")):
        assert ask(proxy, said)[0].startswith(b"HTTP/1.1 200")
        assert host.requests[-1].path == path


OUT = (
    "/below/../admin", "/below/%2e%2E/admin", "/below/a/..%2f..%2fadmin", "/below/..%5cadmin", "/below/./x", "/below/a#b",
    "/below/%252e%252e/x", "/below/..;/x", "/below/%25252e%25252e/x", "/below/%2525252525252e./x", "/below/%c0%ae%c0%ae/x", "/below/%u002e%u002e/x",
    "/below/%" + "25" * 9000, "/below/..%00/x", "/below/..%20/x", "/below/%0d%0aX-More:%201/x",
)  # fmt: skip


@pytest.mark.parametrize("path", OUT, ids=lambda path: path[:30])
def test_no_path_leads_out_of_it(proxy: Proxy, host: Host, path: str) -> None:
    before = len(host.requests)
    assert ask(proxy, path)[0].startswith(b"HTTP/1.1 400")
    assert len(host.requests) == before


@pytest.mark.parametrize("kind", ["echo", "echo-chunks", "echo-until-end", "echo-head"])
def test_a_host_that_says_it_back_is_not_heard(proxy: Proxy, host: Host, kind: str) -> None:
    """In whatever frame, and however it is cut."""
    head, body = ask(proxy, f"/api/{kind}")
    assert host.requests[-1].values("x-api-key") == [SECRET]
    assert head.startswith(b"HTTP/1.1 200") and b"*" * len(SECRET) in head + body
    assert b"as-good-as-the-key" not in head


def test_what_cannot_be_read_is_not_passed_on(proxy: Proxy) -> None:
    head, body = ask(proxy, "/api/echo-gzip")
    assert head.startswith(b"HTTP/1.1 502")
    assert b"an encoding that was not asked for" in body


def test_an_answer_of_a_length_keeps_it(proxy: Proxy) -> None:
    head, body = ask(proxy, "/api/echo")
    assert f"Content-Length: {len(body)}".encode() in head


def test_events_pass_as_they_come(proxy: Proxy) -> None:
    with proxy.connect() as sock:
        sock.sendall(GET.format(path="/api/events", more="").encode())
        assert read_head(sock).startswith(b"HTTP/1.1 200")
        began, moments = time.monotonic(), []
        for _ in range(3):
            while b"data" not in sock.recv(100):
                pass
            moments.append(time.monotonic() - began)
        assert read_all(sock).endswith(b"0\r\n\r\n")
    assert moments[2] - moments[0] > upstream.BETWEEN  # the first was here long before the last


def test_bodies_go_there_in_both_frames_and_the_connection_is_kept(proxy: Proxy, host: Host) -> None:
    before = host.connections
    with proxy.connect() as sock:
        for path, raw in (
            ("/api/long", b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000),
            ("/api/chunks", b"Transfer-Encoding: chunked\r\n\r\n" + b"ffff;a=b\r\n" + b"y" * 65535 + b"\r\n0\r\n\r\n"),
        ):
            sock.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\n".encode() + raw)
            length = int(read_head(sock).lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            assert sock.recv(length) in (b"300000 bytes came\n", b"65535 bytes came\n")
    assert (host.seen("/long").body, host.seen("/chunks").body) == (b"x" * 300_000, b"y" * 65535)
    assert host.connections == before + 1


def test_much_goes_both_ways_unchanged_and_not_faster_than_it_is_taken(proxy: Proxy, host: Host) -> None:
    size = 12_000_000
    with proxy.connect() as sock:
        sock.sendall(f"POST /api/much HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n".encode())
        sock.sendall(b"z" * size)
        assert read_all(sock).endswith(b"%d bytes came\n" % size)
    with proxy.connect() as sock:
        sock.sendall(GET.format(path=f"/api/bytes?{size}", more="").encode())
        time.sleep(0.5)  # who does not read holds nothing up but itself
        assert proxy.resident() < 100 << 20
        _, _, body = read_all(sock).partition(b"\r\n\r\n")
    assert body == bytes(range(32, 127)) * (size // 95)


def test_a_connection_to_a_host_serves_one_credential(proxy: Proxy, host: Host) -> None:
    before = host.connections
    with proxy.connect() as sock:
        for name in ("api", "bearer", "api"):
            sock.sendall(f"GET /{name}/in-turn?{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            read_head(sock)
            assert sock.recv(100) == b"0 bytes came\n"
    seen = [(one.values("x-api-key"), one.values("authorization")) for one in host.requests[-3:]]
    assert seen == [([SECRET], []), ([], [f"Bearer {SECRET}"]), ([SECRET], [])]
    assert host.connections == before + 3


def test_a_plain_request_never_gets_the_connection_of_a_credential(proxy: Proxy, host: Host) -> None:
    """The same client, the same host and port: what it is sent there is not TLS, and has no credential."""
    with proxy.connect() as sock:
        sock.sendall(b"GET /api/mixed HTTP/1.1\r\nHost: x\r\n\r\n")
        read_head(sock)
        sock.recv(100)
        sock.sendall(f"GET http://localhost:{host.port}/mixed-plain HTTP/1.1\r\nHost: localhost:{host.port}\r\n\r\n".encode())
        answer = read_all(sock)
    assert b"502" in answer.split(b"\r\n")[0]
    assert host.seen("/mixed").values("x-api-key") == [SECRET]
    assert not [one for one in host.requests if one.path == "/mixed-plain"]


def test_a_redirect_is_an_answer(proxy: Proxy, host: Host, tmp_path: Path) -> None:
    with upstream.wanting(tmp_path, OURS) as elsewhere:
        head, _ = ask(proxy, f"/api/redirect?https://localhost:{elsewhere.port}/taken")
        assert head.startswith(b"HTTP/1.1 302")
        assert f"Location: https://localhost:{elsewhere.port}/taken".encode() in head
        time.sleep(0.3)
        assert (elsewhere.connections, elsewhere.requests) == (0, [])


def test_a_host_that_is_not_who_it_should_be_gets_nothing(proxy: Proxy, host: Host, tmp_path: Path) -> None:
    """By its name in the certificate, and by who vouches for it."""
    before = len(host.requests)
    head, body = ask(proxy, "/other/x")
    assert head.startswith(b"HTTP/1.1 502") and b"not believed: Hostname mismatch" in body
    stranger = authority.make("localhost", authority.make("the site's CA"), ca=False)
    with upstream.wanting(tmp_path, stranger) as false, running(
        tmp_path, names={"localhost": ["127.0.0.1"]}, credentials=(wired(false),), roots=SITE.pem
    ) as other:
        head, body = ask(other, "/api/x")
        assert head.startswith(b"HTTP/1.1 502") and b"a certificate that is not believed" in body
        (line,) = other.entries(1)
        assert (line["protocol"], line["verdict"], line["inject"]) == ("inject", "fail", "api")
        assert false.requests == []
    assert len(host.requests) == before


def test_a_host_that_speaks_no_tls_gets_nothing(proxy: Proxy, tmp_path: Path) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as plain:
        credential = ("api", "localhost", plain.getsockname()[1], "", "x-api-key", "", "", SECRET, "")
        with running(tmp_path, names={"localhost": ["127.0.0.1"]}, credentials=(credential,), roots=SITE.pem) as other, other.connect() as sock:
            sock.sendall(GET.format(path="/api/x", more="").encode())
            peer, _ = plain.accept()
            heard.append(peer.recv(10_000))
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            answer = read_all(sock)
            peer.close()
    assert answer.startswith(b"HTTP/1.1 502") and b"does not speak TLS" in answer
    assert heard[0][0] == 0x16 and SECRET.encode() not in heard[0]


def test_a_host_that_never_begins_to_speak_holds_nobody_up(tmp_path: Path) -> None:
    """Nor does a client that goes away meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        credential = ("api", "localhost", silent.getsockname()[1], "", "x-api-key", "", "", SECRET, "")
        with running(tmp_path, names={"localhost": ["127.0.0.1"]}, credentials=(credential,), roots=SITE.pem, dial_seconds=0.5) as other:
            with other.connect() as gone:
                gone.sendall(GET.format(path="/api/x", more="").encode())
                time.sleep(0.1)
            head, body = ask(other, "/api/x")
            assert head.startswith(b"HTTP/1.1 502") and b"said nothing for too long" in body


def test_an_answer_that_somebody_cut_off_is_no_whole_answer(tmp_path: Path) -> None:
    """Of a host that ends the connection without a word: whoever is between may have done so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "pair.pem").write_text(OURS.pem + OURS.key_pem)
    context.load_cert_chain(tmp_path / "pair.pem")
    for words, is_whole in ((True, True), (False, False)):

        def serve(sock: socket.socket, words: bool = words) -> None:
            with context.wrap_socket(sock, server_side=True) as secure:
                secure.recv(10_000)
                secure.sendall(b"HTTP/1.1 200 OK\r\n\r\npart of it")
                if words:
                    secure.unwrap()

        with listening(serve) as port:
            credential = ("api", "localhost", port, "", "x-api-key", "", "", SECRET, "")
            with running(tmp_path, names={"localhost": ["127.0.0.1"]}, credentials=(credential,), roots=SITE.pem) as other:
                try:
                    said = ask(other, "/api/x")[1]
                except ConnectionResetError:
                    said = b""
        assert (said == b"part of it") is is_whole


def test_a_host_that_the_lists_refuse_is_refused(host: Host, tmp_path: Path) -> None:
    with running(tmp_path, names={"localhost": ["127.0.0.1"]}, blocked=("localhost",), credentials=(wired(host),), roots=SITE.pem) as other:
        head, body = ask(other, "/api/x")
        assert head.startswith(b"HTTP/1.1 403") and b"rule: block localhost" in body


def test_through_another_proxy_the_host_is_checked_as_well(host: Host, tmp_path: Path) -> None:
    with running(tmp_path) as way, running(
        tmp_path, names={"localhost": ["127.0.0.1"]}, upstream=("127.0.0.1", way.port), credentials=(wired(host),), roots=SITE.pem
    ) as other:
        assert ask(other, "/api/through")[0].startswith(b"HTTP/1.1 200")
        assert host.seen("/through").values("x-api-key") == [SECRET]
        (line,) = way.entries(1)
        assert (line["protocol"], line["port"]) == ("connect", host.port)


@pytest.mark.parametrize("method", ["TRACE", "TRACK", "DEBUG", "FOO"])
def test_methods_that_have_a_host_say_the_request_back_do_not_go_on(proxy: Proxy, host: Host, method: str) -> None:
    before = len(host.requests)
    assert proxy.say(f"{method} /api/x HTTP/1.1\r\nHost: x\r\n\r\n".encode()).startswith(b"HTTP/1.1 400")
    assert len(host.requests) == before


def test_a_credential_that_is_not_there_is_said_to_be_missing(proxy: Proxy) -> None:
    head, body = ask(proxy, "/none/x")
    assert head.startswith(b"HTTP/1.1 503")
    assert b"the credential none for localhost" in body and b"the variable KEY is not set. Ask the user." in body


def test_what_is_no_base_url_is_told_which_there_are(proxy: Proxy, host: Host) -> None:
    for path in ("/", "/nothing/x", "/API/x", "/%61pi/x", "//api/x", "/agent-sandbox/other"):
        head, body = ask(proxy, path)
        assert head.startswith(b"HTTP/1.1 400"), path
        assert f"base URLs here are /api (for localhost:{host.port}), /below".encode() in body


def test_a_client_that_knows_no_exception_gets_there_through_the_proxy(proxy: Proxy, host: Host) -> None:
    own = f"127.0.0.1:{proxy.port}"
    said = proxy.say(f"GET http://{own}/api/absolute HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n".encode())
    assert said.startswith(b"HTTP/1.1 200") and host.seen("/absolute").values("x-api-key") == [SECRET]
    opening = f"CONNECT {own} HTTP/1.1\r\nHost: {own}\r\n\r\n"
    said = proxy.say((opening + GET.format(path="/api/tunnelled", more="")).encode())
    assert said.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
    assert host.seen("/tunnelled").values("x-api-key") == [SECRET]
    before = len(host.requests)
    again = proxy.say((opening * 300).encode())
    assert again.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 400") and b"this is the proxy already" in again
    assert proxy.say(f"GET http://{own}/nothing HTTP/1.1\r\nHost: {own}\r\n\r\n".encode()).startswith(b"HTTP/1.1 400")
    assert len(host.requests) == before


def test_one_line_of_the_log_names_the_entry(host: Host, tmp_path: Path) -> None:
    with running(tmp_path, names={"localhost": ["127.0.0.1"]}, credentials=(wired(host),), roots=SITE.pem) as other:
        ask(other, "/api/logged")
        (line,) = other.entries(1)
        told = {name: line[name] for name in ("protocol", "inject", "host", "port", "verdict", "address")}
        expected = {"protocol": "inject", "inject": "api", "host": "localhost", "port": host.port, "verdict": "allow", "address": "127.0.0.1"}
        assert told == expected
        head, page = ask(other, "/agent-sandbox/log")
        assert head.startswith(b"HTTP/1.1 200")
        assert [json.loads(text)["inject"] for text in page.splitlines()] == ["api"]
        assert SECRET not in other.log.read_text()


def test_the_page_is_empty_where_nothing_was_asked_for(tmp_path: Path) -> None:
    with running(tmp_path) as other:
        assert ask(other, "/agent-sandbox/log")[1] == b""
