"""A proxy in a process of its own, servers on the loopback, and clients that speak raw bytes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]
PROGRAM = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1] + "/src")
from agent_sandbox.launcher.proxy.judge import Verdict
from agent_sandbox.launcher.proxy.limits import Limits
from agent_sandbox.launcher.proxy.parts import Upstream
from agent_sandbox.launcher.proxy.server import Server
given = json.loads(sys.argv[3])
names = given["names"]

class Judge:
    def name(self, host, port):
        if host == "broken.test":
            raise RuntimeError("a bug")
        return Verdict(allowed=host not in given["blocked"], rule=f"block {host}", origin="config.toml:3", why="it is a test")
    def address(self, host, port, address):
        return Verdict(allowed=address not in given["blocked"], rule=f"address {address}")

def look_up(host):
    if host == "slow.test":
        time.sleep(3600)
    if host not in names:
        raise OSError(-2, "Name or service not known")
    return tuple(names[host] if host != "turns.test" else [names[host].pop(0)])  # another answer each time

def note(entry):
    with open(given["log"], "a") as log:
        log.write(json.dumps(entry.__dict__) + "\\n")

upstream = given["upstream"] and Upstream(
    host=given["upstream"][0], port=given["upstream"][1], direct=lambda host, address: host in given["direct"], names=given["by_name"])
credentials = []
if given["credentials"]:
    from agent_sandbox.launcher.proxy.credential import credential_of
    credentials = [credential_of(one) for one in given["credentials"]]
server = Server(
    int(sys.argv[2]), Judge(), note, Limits(**given["limits"]), upstream=upstream or None, look_up=look_up, credentials=credentials,
    roots=given["roots"], page=lambda: "".join(open(given["log"])) if os.path.exists(given["log"]) else "")
server.run(0)
"""


@dataclass
class Proxy:
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def entries(self, count: int) -> list[dict[str, object]]:
        """So many lines of the log, when they are there."""
        for _ in range(500):
            lines = self.log.read_text().splitlines() if self.log.exists() else []
            if len(lines) >= count:
                return [json.loads(line) for line in lines]
            time.sleep(0.02)
        raise AssertionError(lines)

    def resident(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def say(self, raw: bytes, *, shut: bool = False) -> bytes:
        """Everything that is answered until the proxy ends the connection."""
        with self.connect() as sock:
            sock.sendall(raw)
            if shut:
                sock.shutdown(socket.SHUT_WR)
            return read_all(sock)


def read_all(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def read_head(sock: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = sock.recv(1)
        if not part:
            raise ConnectionError(head)
        head += part
    return head


@contextlib.contextmanager
def running(
    tmp: Path, *, names: dict[str, list[str]] | None = None, blocked: tuple[str, ...] = (), upstream: tuple[str, int] | None = None,
    direct: tuple[str, ...] = (), by_name: bool = False, credentials: tuple[tuple[object, ...], ...] = (), roots: str = "", **limits: float | None,
) -> Iterator[Proxy]:  # fmt: skip
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    log = tmp / f"log.{listener.getsockname()[1]}"
    given = {
        "names": names or {}, "blocked": blocked, "log": str(log), "limits": limits, "upstream": upstream, "direct": direct, "by_name": by_name,
        "credentials": credentials, "roots": roots,
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", PROGRAM, str(TOP), str(listener.fileno()), json.dumps(given)],
        stdin=subprocess.PIPE, pass_fds=[listener.fileno()],
    )  # fmt: skip
    port = listener.getsockname()[1]
    listener.close()
    try:
        yield Proxy(port, process, log)
        assert process.poll() is None or process.returncode == -9, "the proxy died"
    finally:
        assert process.stdin
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None], host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A server that gives each connection to `serve`, in a thread."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=1024)
    ending = threading.Event()

    def one(sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            serve(sock)

    def accept() -> None:
        while not ending.is_set():
            if select.select([listener], [], [], 0.1)[0]:
                threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ending.set()
        thread.join()
        listener.close()


def echo(sock: socket.socket) -> None:
    while part := sock.recv(1 << 16):
        sock.sendall(part)
    sock.shutdown(socket.SHUT_WR)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    connections = 0
    seen: list[tuple[str, str, dict[str, str]]]

    def setup(self) -> None:
        type(self).connections += 1
        super().setup()

    def do_GET(self) -> None:
        self.seen.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
        body = b"x" * int(self.path.rpartition("/")[2] or 5)
        self.send_response(200)
        if "chunked" in self.path:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for at in range(0, len(body), 70_000):
                part = body[at : at + 70_000]
                self.wfile.write(b"%X;note=1\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\nChecked: yes\r\n\r\n")
        elif "until-end" in self.path:
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
        answer = b"%d %d" % (len(body), sum(body))
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@dataclass
class Web:
    port: int
    handler: type[Handler]


@contextlib.contextmanager
def web() -> Iterator[Web]:
    handler = type("Fresh", (Handler,), {"seen": [], "connections": 0})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield Web(server.server_address[1], handler)
        server.shutdown()
