"""Run in a jail: many connections to the proxy that never come to a request, and a few that do. Says how many there were, and the
seconds that each of the few took.

    crowd.py PORT silent|heads HOW-MANY        PORT: of a server that the proxy may reach
    crowd.py PORT row HOW-MANY                 one after the other, and each asks: says when a few and when all have been there
"""

import json
import os
import resource
import socket
import sys
import threading
import time

SERVER, KIND, MANY = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
PROXY = ("127.0.0.1", int(os.environ["http_proxy"].rpartition(":")[2]))
REQUEST = f"GET http://127.0.0.1:{SERVER}/ HTTP/1.1\r\nHost: 127.0.0.1:{SERVER}\r\nConnection: close\r\n\r\n".encode()


def come(crowd):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(PROXY)
    crowd.append(one)


def trickle(crowd):
    """A head that goes on for ever, a byte at a time."""
    while True:
        for one in crowd:
            try:
                one.send(b"G")
            except OSError:
                pass
        time.sleep(0.2)


def fetch():
    began = time.monotonic()
    with socket.create_connection(PROXY, timeout=60) as sock:
        sock.sendall(REQUEST)
        said = b""
        while part := sock.recv(4096):
            said += part
    assert said.endswith(b"hello\n"), said
    return round(time.monotonic() - began, 3)


def walk_through():
    for count in (300, MANY):
        for _ in range(count):
            fetch()
        print(count, flush=True)
        time.sleep(1)  # somebody looks


def main():
    if KIND == "row":
        walk_through()
        return
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    alone, crowd = fetch(), []
    for _ in range(min(MANY, hard - 100)):
        come(crowd)
    if KIND == "heads":
        threading.Thread(target=trickle, args=(crowd,), daemon=True).start()
    print("standing", flush=True)
    print(json.dumps({"crowd": len(crowd), "alone": alone, "within": [fetch() for _ in range(5)]}), flush=True)
    time.sleep(0.5)
    os._exit(0)


main()
