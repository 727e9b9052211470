"""Real clients through the proxy: what works without it works with it."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.unit.launcher.proxy.world import Handler, Proxy, Web, running, web

NAMES = {"site.test": ["127.0.0.1"], "here.test": ["127.0.0.1"], "gone.test": ["127.0.0.9"]}


@pytest.fixture
def site() -> Iterator[Web]:
    with web() as server:
        yield server


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with running(tmp_path, names=NAMES) as one:
        yield one


def curl(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["curl", "-q", "-sS", "--max-time", "60", "--noproxy", "", *words], capture_output=True)


@contextlib.contextmanager
def secure(tmp: Path) -> Iterator[int]:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp / "key", "-out", tmp / "cert",
         "-subj", "/CN=site.test", "-addext", "subjectAltName=DNS:site.test"], check=True, capture_output=True,
    )  # fmt: skip
    handler = type("Secure", (Handler,), {"seen": []})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp / "cert", tmp / "key")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize("path", ["/5", "/chunked/300000", "/until-end/300000", "/20000000"])
def test_curl_gets_the_same_bytes_in_every_way(proxy: Proxy, site: Web, path: str) -> None:
    url = f"http://site.test:{site.port}{path}"
    expected = b"x" * int(path.rpartition("/")[2])
    ways = (("-x", f"http://{proxy.url}"), ("-p", "-x", f"http://{proxy.url}"), ("--socks5-hostname", proxy.url))
    got = [curl(*way, url) for way in ways]
    assert [(one.returncode, one.stderr, one.stdout == expected) for one in got] == [(0, b"", True)] * 3
    numeric = curl("--socks5", proxy.url, f"http://127.0.0.1:{site.port}{path}")
    assert (numeric.returncode, numeric.stdout == expected) == (0, True)


def test_curl_over_tls_checks_the_certificate_of_the_destination(proxy: Proxy, tmp_path: Path) -> None:
    with secure(tmp_path) as port:
        for way in ("-x", f"http://{proxy.url}"), ("--socks5-hostname", proxy.url):
            good = curl(*way, "--cacert", str(tmp_path / "cert"), f"https://site.test:{port}/1000000")
            assert (good.returncode, good.stderr, len(good.stdout)) == (0, b"", 1_000_000)
            wrong = curl(*way, "--cacert", str(tmp_path / "cert"), f"https://here.test:{port}/5")
            assert wrong.returncode == 60  # the name does not fit


def test_plain_requests_keep_both_connections(proxy: Proxy, site: Web) -> None:
    client = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    for count in (1, 2, 0, 70_000, 3):
        client.request("GET", f"http://site.test:{site.port}/chunked/{count}", headers={"Host": f"site.test:{site.port}"})
        assert len(client.getresponse().read()) == count
    sock = client.sock
    client.request("HEAD", f"http://site.test:{site.port}/7", headers={"Host": f"site.test:{site.port}"})
    assert client.getresponse().read() == b""
    client.request("POST", f"http://site.test:{site.port}/", body=b"abc", headers={"Host": f"site.test:{site.port}"})
    assert client.getresponse().read() == b"3 294"
    assert (client.sock is sock, site.handler.connections) == (True, 1)
    client.request("GET", f"http://here.test:{site.port}/4", headers={"Host": f"here.test:{site.port}"})
    assert (client.getresponse().read(), client.sock is sock, site.handler.connections) == (b"xxxx", True, 2)
    client.close()
    hosts = [(entry["host"], entry["verdict"]) for entry in proxy.entries(2)]
    assert hosts == [("site.test", "allow"), ("here.test", "allow")]  # one line for each connection that was made


def test_a_body_goes_up_whole_with_a_length_and_in_chunks(proxy: Proxy, site: Web, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(bytes(range(256)) * 40_000)
    expected = f"{big.stat().st_size} {sum(range(256)) * 40_000}".encode()
    url = f"http://site.test:{site.port}/"
    for extra in (), ("-H", "Transfer-Encoding: chunked"), ("-H", "Expect: 100-continue"):
        got = curl("-x", f"http://{proxy.url}", *extra, "--data-binary", f"@{big}", url)
        assert (got.returncode, got.stderr, got.stdout) == (0, b"", expected)
    entry = proxy.entries(3)[0]
    assert isinstance(entry["sent"], int)
    assert big.stat().st_size < entry["sent"] < big.stat().st_size + 1000


def test_what_is_between_two_parties_only_goes_no_further(proxy: Proxy, site: Web) -> None:
    words = (
        "Proxy-Authorization: Basic eA==", "Connection: X-Mine, Keep-Alive", "X-Mine: 1", "Keep-Alive: 5", "TE: trailers", "Upgrade: h2c",
        "X-Other: 2",
    )  # fmt: skip
    fields = [part for word in words for part in ("-H", word)]
    got = curl("-x", f"http://{proxy.url}", *fields, "-H", "User-Agent: u", f"http://site.test:{site.port}/5?q=1/2")
    assert (got.returncode, got.stdout) == (0, b"xx")
    assert site.handler.seen == [("GET", "/5?q=1/2", {"host": f"site.test:{site.port}", "user-agent": "u", "accept": "*/*", "x-other": "2"})]


def test_what_cannot_be_reached_is_told_at_once(proxy: Proxy) -> None:
    for host in ("gone.test", "unknown.test"):
        got = curl("-x", f"http://{proxy.url}", "-w", "%{http_code}", f"http://{host}:9/")
        assert got.stdout.endswith(b"502")
        assert host.encode() in got.stdout
        assert curl("--socks5-hostname", proxy.url, f"http://{host}:9/").returncode == 97
    assert {entry["verdict"] for entry in proxy.entries(4)} == {"fail"}
