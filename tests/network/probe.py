"""What is tried, from inside a jail and from outside: attempts by name become outcomes, one line of JSON. A program without imports of ours.

"yes": it was reached. Else the name of the error, or what the proxy answered. All are tried at once, each in a thread of its own; one that
takes long says so, as a refusal must come at once.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time

LONGEST, LONG = 12.0, 6.0  # seconds for an attempt; from where on it is said to be slow
QUESTION = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x03org\x00\x00\x01\x00\x01"
MPTCP, PACKET, ALL_PACKETS = 262, 17, 3


class Refused(Exception):
    """In words, without an error of the kernel's."""


def stream(host, protocol=0):
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, protocol)
    sock.settimeout(LONGEST)
    return sock


def address_of(host, port):
    """With the number of the device, where the address has one."""
    name, _, device = host.partition("%")
    return (name, int(port), 0, int(device)) if device else (host, int(port))


def expect(truth, otherwise):
    if not truth:
        raise Refused(otherwise)


# Without the proxy


def tcp(host, port, protocol="0"):
    """Whoever speaks first: a greeting, or an answer to half a request."""
    with stream(host, int(protocol)) as sock:
        sock.connect(address_of(host, port))
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        expect(sock.recv(5), "silent")


def at_the_proxys_port(host, usual):
    """Landlock knows ports alone."""
    tcp(host, os.environ.get("http_proxy", usual).rpartition(":")[2])


def named(host, port):
    with socket.create_connection((host, int(port)), LONGEST) as sock:
        expect(sock.fileno() >= 0, "none")


def fast(host, port):
    """TCP fast open: sendto() connects."""
    with stream(host) as sock:
        sock.settimeout(None)  # one that waits is told of the error at once
        sock.sendto(b"GET / HTTP/1.0\r\n\r\n", socket.MSG_FASTOPEN, (host, int(port)))
        expect(sock.recv(5), "silent")


def tls(host, port):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with stream(host) as sock:
        sock.connect((host, int(port)))
        with context.wrap_socket(sock) as wrapped:
            wrapped.sendall(b"GET / HTTP/1.0\r\n\r\n")
            expect(wrapped.recv(5), "silent")


def udp(host, port, data="hello"):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(LONGEST)
        if data == "unconnected":
            sock.sendto(b"hello", (host, int(port)))
        else:
            sock.connect((host, int(port)))
            sock.send(QUESTION if data == "question" else data.encode())
        expect(sock.recv(512), "silent")


def asks_by_tcp(host, port):
    with stream(host) as sock:
        sock.connect((host, int(port)))
        sock.sendall(struct.pack("!H", len(QUESTION)) + QUESTION)
        expect(len(sock.recv(512)) > 2, "silent")


def looks_up(name):
    socket.getaddrinfo(name, 80)


def pings(host, kind):
    """kind: dgram, which everybody may; raw, which takes a capability."""
    six = ":" in host
    echo = struct.pack("!BBHHH", 128 if six else 8, 0, 0, 1, 1)
    if not six:
        total = sum(struct.unpack("!4H", echo))
        echo = struct.pack("!BBHHH", 8, 0, ~(total + (total >> 16)) & 0xFFFF, 1, 1)
    family, protocol = (socket.AF_INET6, 58) if six else (socket.AF_INET, 1)
    with socket.socket(family, socket.SOCK_RAW if kind == "raw" else socket.SOCK_DGRAM, protocol) as sock:
        sock.settimeout(LONGEST)
        sock.sendto(echo, (host, 0))
        expect(sock.recv(512), "silent")


def opens(family, kind, protocol):
    socket.socket(int(family), int(kind), int(protocol)).close()


def connects(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(LONGEST)
        sock.connect(path.replace("@", "\0"))
        expect(sock.recv(5) == b"hello", "silent")


def sends(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"hello", path.replace("@", "\0"))


def whose_proxy(port, marker):
    """Which proxy serves us there: one that refuses the marker is the other jail's."""
    with stream("127.0.0.1") as sock:
        sock.connect(("127.0.0.1", int(port)))
        said = ask_connect(sock, marker, 443)
    raise Refused("the other's" if marker in said else "our own" if said.startswith("200") else said or "silent")


# Through it


def to_proxy():
    if "http_proxy" not in os.environ:
        raise Refused("no proxy")
    host, _, port = os.environ["http_proxy"].removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), LONGEST)


def bracketed(host):
    return f"[{host}]" if ":" in host else host


def ask_connect(sock, host, port):
    target = f"{bracketed(host)}:{port}"
    sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    return read_answer(sock)


def read_answer(sock):
    """The status, and the rule that a refusal names."""
    try:
        said = sock.recv(4096)
        while b"\r\n\r\n" not in said or (b" 403 " in said[:16] and b"rule: " not in said):
            more = sock.recv(4096)
            if not more:
                break
            said += more
    except ConnectionResetError:
        return "reset"
    status = said.split(b" ", 2)[1].decode() if b" " in said else ""
    rule = re.search(rb"rule: ([^(\r\n]*)", said)
    return f"{status} {rule[1].decode().strip()}" if rule and status == "403" else status


def connect(host, port):
    with to_proxy() as sock:
        return ask_connect(sock, host, port)


def plain(host, port):
    with to_proxy() as sock:
        target = f"{bracketed(host)}:{port}"
        sock.sendall(f"GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n".encode())
        return read_answer(sock)


def socks(host, port):
    """A name, or an address in its own form."""
    with to_proxy() as sock:
        sock.sendall(b"\x05\x01\x00")
        expect(sock.recv(2) == b"\x05\x00", "no socks")
        sock.sendall(b"\x05\x01\x00" + packed(host) + struct.pack("!H", int(port)))
        answer = sock.recv(10)
        return "200" if answer[1:2] == b"\0" else f"socks {answer[1]}" if len(answer) > 1 else "silent"


def packed(host):
    for kind, family in ((b"\x01", socket.AF_INET), (b"\x04", socket.AF_INET6)):
        try:
            return kind + socket.inet_pton(family, host)
        except OSError:
            pass
    return b"\x03" + bytes([len(host)]) + host.encode()


# How an attempt becomes an outcome


def outcome(act, *arguments):
    began = time.monotonic()
    try:
        found = globals()[act](*arguments) or "yes"
    except Refused as error:
        found = str(error)
    except socket.gaierror:
        found = "no such name"
    except TimeoutError as error:
        found = errno.errorcode[error.errno] if error.errno else "silent"
    except ssl.SSLError as error:
        found = error.reason or "tls"
    except OSError as error:
        found = errno.errorcode.get(error.errno or 0, type(error).__name__)
    except Exception as error:
        found = f"broken: {error!r}"
    return found + (" slow" if time.monotonic() - began > LONG else "")


def try_all(attempts):
    found = [""] * len(attempts)

    def work(at):
        found[at] = outcome(*attempts[at])

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(attempts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


if __name__ == "__main__":
    print(json.dumps(try_all(json.loads(sys.argv[1]))), flush=True)
