"""The head of an HTTP message becomes a record, or is refused: nothing in it may be read in two ways. Pure.

A message's length is where smuggling lives: two lengths, a length and chunks, a coding we do not know, a field that `Connection`
would take away – each is an error and none is repaired.
"""

from __future__ import annotations

from agent_sandbox.config.record import record
from agent_sandbox.launcher.proxy.target import Malformed

TOKEN = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
CONTROL = bytes(range(9)) + bytes(range(10, 32)) + b"\x7f"
VISIBLE = bytes(range(0x21, 0x7F))
HOP = frozenset((
    b"connection", b"proxy-connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-authorization",
    b"proxy-authenticate", b"proxy-authentication-info",
))  # fmt: skip
NEVER_HOP = frozenset((b"host", b"content-length", b"transfer-encoding", b"expect", b"authorization", b"cookie"))
VERSIONS = {b"HTTP/1.0": 0, b"HTTP/1.1": 1}
LONGEST = 15  # digits of a length

Fields = list[tuple[bytes, bytes, bytes]]  # the name in lower case, as it was written, the value


@record
class Request:
    method: bytes
    target: bytes
    minor: int
    fields: Fields
    length: int  # of the body
    chunked: bool
    lasting: bool  # the connection is to be kept


@record
class Response:
    minor: int
    status: int
    reason: bytes
    fields: Fields
    length: int | None  # None = not said
    chunked: bool
    lasting: bool


def parse_request(raw: bytes, most: int) -> Request:
    """`raw` is everything before the empty line."""
    lines = _lines(raw, most)
    words = lines[0].split(b" ")
    if len(words) != 3 or not _is_token(words[0]) or not words[1] or words[1].translate(None, VISIBLE) or words[2] not in VERSIONS:
        raise Malformed("the request line is malformed")
    method, target, version = words
    fields = _fields(lines)
    length, chunked = _framing(fields, VERSIONS[version])
    if any(value.lower() != b"100-continue" for name, _, value in fields if name == b"expect"):
        raise Malformed("the field Expect asks for something unknown")
    lasting = VERSIONS[version] == 1 and b"close" not in _options(fields)
    return Request(
        method=method, target=target, minor=VERSIONS[version], fields=fields, length=length or 0, chunked=chunked, lasting=lasting,
    )  # fmt: skip


def parse_response(raw: bytes, most: int) -> Response:
    lines = _lines(raw, most)
    version, _, rest = lines[0].partition(b" ")
    status, _, reason = rest.partition(b" ")
    if version not in VERSIONS or len(status) != 3 or not status.isdigit() or status < b"100":
        raise Malformed("the status line is malformed")
    fields = _fields(lines)
    length, chunked = _framing(fields, VERSIONS[version])
    return Response(
        minor=VERSIONS[version], status=int(status), reason=reason, fields=fields, length=length, chunked=chunked,
        lasting=VERSIONS[version] == 1 and b"close" not in _options(fields),
    )  # fmt: skip


def end_to_end(fields: Fields, *, but: bytes = b"") -> list[bytes]:
    """The lines that go on to the other side, without `but`."""
    dropped = HOP | _options(fields) | {but}
    return [b"%s: %s" % (written, value) for name, written, value in fields if name not in dropped]


def one_value(fields: Fields, name: bytes) -> bytes | None:
    values = [value for known, _, value in fields if known == name]
    if len(values) > 1:
        raise Malformed(f"the field {name.decode()} is there more than once")
    return values[0] if values else None


def _lines(raw: bytes, most: int) -> list[bytes]:
    lines = raw.split(b"\r\n")
    if len(lines) - 1 > most:
        raise Malformed("there are too many fields")
    if sum(map(len, lines)) != len(b"".join(lines).translate(None, CONTROL)):
        raise Malformed("there is a control character in the head")
    return lines


def _fields(lines: list[bytes]) -> Fields:
    found: Fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not _is_token(name):
            raise Malformed("a field is malformed")
        found.append((name.lower(), name, value.strip(b" \t")))
    if _options(found) & NEVER_HOP:
        raise Malformed("the field Connection names a field that must stay")
    return found


def _options(fields: Fields) -> frozenset[bytes]:
    """What `Connection` (and what old clients call `Proxy-Connection`) lists."""
    values = [value for name, _, value in fields if name in (b"connection", b"proxy-connection")]
    return frozenset(part.strip(b" \t").lower() for value in values for part in value.split(b","))


def _framing(fields: Fields, minor: int) -> tuple[int | None, bool]:
    coding, length = one_value(fields, b"transfer-encoding"), one_value(fields, b"content-length")
    if coding is not None:
        if length is not None or coding.lower() != b"chunked" or minor == 0:
            raise Malformed("the body's length is said in more than one way, or in an unknown one")
        return None, True
    if length is None:
        return None, False
    if not length.isdigit() or len(length) > LONGEST:
        raise Malformed("the field Content-Length is malformed")
    return int(length), False


def _is_token(text: bytes) -> bool:
    return bool(text) and not text.translate(None, TOKEN)
