"""Real servers, in the network namespace that this program is started in: HTTP, HTTPS, git, SMTP, DNS, UDP. They end when its input does.

    python -m tests.machines.internet.servers internet|host DIRECTORY

`DIRECTORY/www` is served; `mail` gets what was delivered; `server.pem` has certificate and key; `names` is for the name server.
"""

from __future__ import annotations

import http.server
import os
import selectors
import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP as Session
from aiosmtpd.smtp import Envelope

from tests.machines.internet.pages import Pages
from tests.machines.internet.places import (
    ABSTRACT,
    ADDRESSES,
    DNS,
    GREETING_PORTS,
    HTTP,
    HTTP_ELSEWHERE,
    HTTPS,
    PROXY_PORTS,
    SMTP,
    SMTPS,
    SUBMISSION,
    UDP_ECHO,
)  # fmt: skip

GREETING = b"hello\r\n"


class Web(http.server.ThreadingHTTPServer):
    """IPv4 as well."""

    address_family = socket.AF_INET6
    daemon_threads = True
    request_queue_size = 128


class Greeting(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(GREETING)


class Echoing(socketserver.ThreadingUDPServer):
    """One for each address: the answer must come from the one that was asked."""

    daemon_threads = True

    def __init__(self, address: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), Echo)


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        data, server = self.request
        if self.client_address:
            server.sendto(data, self.client_address)


class Mailbox:
    """Each message becomes a file."""

    numbers = count()

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def handle_DATA(self, server: Session, session: object, envelope: Envelope) -> str:
        content = envelope.content if isinstance(envelope.content, bytes) else str(envelope.content).encode()
        part = self._directory / f".{os.getpid()}-{next(self.numbers)}"
        part.write_bytes(f"for {', '.join(map(str, envelope.rcpt_tos))}\n".encode() + content)
        part.rename(self._directory / part.name[1:])
        return "250 kept"


def main(role: str, directory: Path) -> None:
    path = f"/run/lock/agent-sandbox-test-{directory.name}"
    serve_web(directory / "www", HTTP_ELSEWHERE)
    serve_mail(directory / "mail", SMTP)
    end = be_internet(directory) if role == "internet" else be_host(path)
    print("ready", path, flush=True)
    sys.stdin.read()
    end()
    shutil.rmtree(directory, ignore_errors=True)  # whoever made it may have been killed
    os._exit(0)


def be_internet(directory: Path) -> Callable[[], None]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "server.pem")
    serve_web(directory / "www", HTTP)
    serve_web(directory / "www", HTTPS, tls)
    serve_mail(directory / "mail", SUBMISSION)
    serve_mail(directory / "mail", SMTPS, tls)
    serve_echo(ADDRESSES)
    serve_greeting((*GREETING_PORTS, *PROXY_PORTS))
    return serve_names(directory / "names").kill


def be_host(path: str) -> Callable[[], None]:
    serve_echo(("127.0.0.1", "::1"))
    serve_on(path, ABSTRACT)
    return partial(os.unlink, path)


def serve(server: socketserver.BaseServer) -> None:
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()


def serve_echo(addresses: Iterable[str]) -> None:
    for address in addresses:
        serve(Echoing(address, UDP_ECHO))


def serve_greeting(ports: Iterable[int]) -> None:
    """At many ports, in one thread."""
    ears = selectors.DefaultSelector()
    for port in ports:
        ears.register(socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True), selectors.EVENT_READ)
    threading.Thread(target=greet, args=(ears,), daemon=True).start()


def greet(ears: selectors.BaseSelector) -> None:
    while True:
        for key, _ in ears.select():
            assert isinstance(key.fileobj, socket.socket)
            with key.fileobj.accept()[0] as peer:
                peer.sendall(GREETING)


def serve_on(path: str, abstract: str) -> None:
    """Sockets that are no network: a file of the host's that everybody may use, and names that belong to a network namespace."""
    for address in (path, f"\0{abstract}"):
        serve(socketserver.ThreadingUnixStreamServer(address, Greeting))
    Path(path).chmod(0o777)
    serve(socketserver.ThreadingUnixDatagramServer(f"\0{abstract}-packets", Echo))


def serve_web(directory: Path, port: int, tls: ssl.SSLContext | None = None) -> None:
    server = Web(("::", port), partial(Pages, directory=str(directory)))
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    serve(server)


def serve_mail(directory: Path, port: int, tls: ssl.SSLContext | None = None) -> None:
    Controller(Mailbox(directory), hostname="", port=port, ssl_context=tls, server_hostname="mail.example.org", ready_timeout=30).start()


def serve_names(file: Path) -> subprocess.Popen[bytes]:
    words = ("--keep-in-foreground", "--no-resolv", "--no-hosts", "--bind-interfaces", "--pid-file=", "--user=root")
    server = ["dnsmasq", *words, f"--conf-file={file}", f"--port={DNS}"]
    return subprocess.Popen(server, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(sys.argv[1], Path(sys.argv[2]))
