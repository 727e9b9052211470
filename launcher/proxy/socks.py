"""The bytes of SOCKS 5 become a target; an outcome becomes a reply. Pure.

Without authentication, since only the jail can reach the port; CONNECT alone, since the others open ports outside.
"""

from __future__ import annotations

from agent_sandbox.config.record import record
from agent_sandbox.launcher.proxy.target import Malformed, Target, target_of

VERSION = 5
DONE, TROUBLE, REFUSED, UNREACHABLE, REJECTED, BAD_COMMAND, BAD_KIND = 0, 1, 2, 4, 5, 7, 8
WELCOME, NO_METHOD = b"\x05\x00", b"\x05\xff"
NAME, KINDS = 3, {1: 4, 4: 16}


class Unsupported(Malformed):
    def __init__(self, code: int, problem: str) -> None:
        super().__init__(problem)
        self.code = code


@record
class Asked:
    target: Target
    size: int  # of the message


def parse_greeting(raw: bytes | bytearray) -> tuple[int, bool] | None:
    """Its size and whether it offers to do without authentication; None = more is to come."""
    if len(raw) < 2 or len(raw) < 2 + raw[1]:
        return None
    return 2 + raw[1], 0 in raw[2 : 2 + raw[1]]


def parse_asked(raw: bytes | bytearray) -> Asked | None:
    if len(raw) < 5:
        return None
    version, command, reserved, kind = raw[:4]
    if version != VERSION or reserved != 0:
        raise Malformed("the SOCKS request is malformed")
    if command != 1:
        raise Unsupported(BAD_COMMAND, "of SOCKS only CONNECT is spoken here")
    if kind != NAME and kind not in KINDS:
        raise Unsupported(BAD_KIND, "the kind of address is unknown")
    begin, length = (5, raw[4]) if kind == NAME else (4, KINDS[kind])
    size = begin + length + 2
    if len(raw) < size:
        return None
    host = bytes(raw[begin : begin + length])
    port = int.from_bytes(raw[size - 2 : size], "big")
    if not port:
        raise Malformed("the port is missing")
    return Asked(target=target_of(_text_of(kind, host), port), size=size)


def _text_of(kind: int, host: bytes) -> str:
    if kind == NAME:
        return host.decode("latin-1")
    if kind == 1:
        return ".".join(map(str, host))
    return ":".join(host[at : at + 2].hex() for at in range(0, 16, 2))


def reply(code: int) -> bytes:
    return bytes((VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0))
