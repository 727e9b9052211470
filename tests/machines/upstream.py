"""A host that wants a credential: an HTTPS server on loopback that remembers what it was sent, and answers by the path in every way it can.

    /echo…       the request's fields in the body: of a length, in chunks that split it, until the end, compressed, and in a field of the head
    /redirect    to the place in the query
    /bytes       about as many as the query says, in one line
    /events      three events, with a moment between them
"""

from __future__ import annotations

import contextlib
import gzip
import http.server
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.machines.authority import Pair

BETWEEN = 0.3  # seconds between two events


@dataclass
class Seen:
    method: str
    path: str
    fields: list[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        return [value for known, value in self.fields if known == name]


@dataclass
class Host:
    port: int
    requests: list[Seen] = field(default_factory=list)
    connections: int = 0
    names: list[str | None] = field(default_factory=list)  # that clients said they wanted

    def seen(self, path: str) -> Seen:
        (found,) = [one for one in self.requests if one.path == path]
        return found


class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the kernel puts together what is meant to come in pieces
    host: Host

    def setup(self) -> None:
        self.host.connections += 1
        super().setup()

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def answer(self) -> None:
        body = self._read_body()
        fields = [(name.lower(), value) for name, value in self.headers.items()]
        self.host.requests.append(Seen(self.command, self.path, fields, body))
        path, _, query = self.path.partition("?")
        echoed = "".join(f"{name}: {value}\n" for name, value in fields).encode()
        if path.endswith("/redirect"):
            self._say(b"", {"Location": urllib.parse.unquote(query)}, 302)
        elif path.endswith("/bytes"):
            self._say(bytes(range(32, 127)) * (int(query) // 95))
        elif path.endswith("/events"):
            self._say_events()
        elif path.endswith("/echo-chunks"):
            self._say_chunks(echoed)
        elif path.endswith("/echo-until-end"):
            self._say_until_end(echoed)
        elif path.endswith("/echo-gzip"):
            self._say(gzip.compress(echoed), {"Content-Encoding": "gzip"})
        elif path.endswith("/echo-head"):
            lines = {f"X-Said-{name}": value for name, value in fields}
            self._say(b"see above", {**lines, "Set-Cookie": "session=as-good-as-the-key"}, reason=f"OK {dict(fields).get('x-api-key', '')}")
        elif path.endswith("/echo"):
            self._say(echoed)
        else:
            self._say(b"%d bytes came\n" % len(body))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_HEAD = answer

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _say(self, body: bytes, fields: dict[str, str] | None = None, status: int = 200, reason: str | None = None) -> None:
        self.send_response(status, reason)
        for name, value in (fields or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _say_events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(3):
            event = b"data: %d\n\n" % number
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
            time.sleep(BETWEEN)
        self.wfile.write(b"0\r\n\r\n")

    def _say_chunks(self, body: bytes) -> None:
        """Byte by byte, each in a record of its own, with a moment in between often enough to split whatever is in there."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at, byte in enumerate(body):
            self.wfile.write(b"1\r\n%c\r\n" % byte)
            self.wfile.flush()
            time.sleep(0.002 if at % 7 == 0 else 0)
        self.wfile.write(b"0\r\n\r\n")

    def _say_until_end(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        for at in range(0, len(body), 7):
            self.wfile.write(body[at : at + 7])
            self.wfile.flush()
        self.close_connection = True
        assert isinstance(self.connection, ssl.SSLSocket)
        with contextlib.suppress(OSError):
            self.connection.unwrap()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def wanting(directory: Path, pair: Pair, address: str = "127.0.0.1") -> Iterator[Host]:
    chain = directory / f"host-{id(pair)}.pem"
    chain.write_text(pair.pem + pair.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    chain.unlink()
    host = Host(0)
    context.sni_callback = lambda sock, name, context: host.names.append(name)
    handler = type("Handler", (Answering,), {"host": host})
    server = http.server.ThreadingHTTPServer((address, 0), handler)
    host.port = server.server_port
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
