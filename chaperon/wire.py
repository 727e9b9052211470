"""Bytes from a stub become a Request; a Reply becomes bytes for it. Every byte from a stub is hostile. Pure.

A stream is made of frames: one byte that says what it is, four that say how long it is, and that many more. The first frame of
a request names the version and how long the rest is, so that what is too long is refused before it is read. After it the frames
stand in one order, each at most once; what is unknown, missing, too long or in another place is refused. docs/chaperon-protocol.md.
"""

from __future__ import annotations

from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 1
HEAD = 5  # bytes before the content of a frame
OPENING = HEAD + 6  # bytes of the first frame
MOST_WORD = (128 << 10) - 1  # bytes of one argument or variable: the kernel's own limit
MOST_WORDS = 16384
MOST_PIECE = 64 << 10  # bytes of output in one frame

VERSION_KIND, NAME, WORDS, DIRECTORY, VARIABLES, UMASK, PATH, SCRIPT, END = b"V", b"N", b"A", b"D", b"B", b"U", b"P", b"S", b"E"
OUT, ERR, CODE, WANT = b"O", b"R", b"X", b"W"
RESERVED = (b"I", b"K", b"Z", b"T")  # input, a signal, a window's size, a terminal: for commands that live longer than their answer

# In the order in which they come, with the most bytes that each may have.
FIELDS = {
    NAME: 32, WORDS: 1 << 20, DIRECTORY: 4096, VARIABLES: 1 << 20, UMASK: 2, PATH: 4096, SCRIPT: 4 << 20, END: 0,
}  # fmt: skip
OPTIONAL = (PATH, SCRIPT)
CALLED = {
    NAME: "the name of the command", WORDS: "the arguments", DIRECTORY: "the working directory", VARIABLES: "the environment",
    UMASK: "the umask", PATH: "the path of the script", SCRIPT: "the script", END: "the end",
}  # fmt: skip
NOT_DONE = (("verdict", "refuse"),)  # for the audit log
MOST_REQUEST = sum(FIELDS.values()) + HEAD * len(FIELDS)


class WireError(Exception):
    """What came is no request, in words for who sent it."""


@record
class Script:
    path: str  # as the stub was asked for it, or as it guessed; "" = its standard input
    content: bytes


@record
class Request:
    command: str
    words: tuple[str, ...]
    cwd: str
    environment: dict[str, str]
    umask: int = 0o022
    script: Script | None = None


@record
class Reply:
    """An answer that is whole. `facts` go to the audit log, not to the stub."""

    code: int = 0
    out: bytes = b""
    err: bytes = b""
    facts: tuple[tuple[str, str | int], ...] = ()


@record
class Want:
    """The answer `ask again, with this file`: only the stub can read as the jail reads. An empty path is its standard input."""

    path: str
    typed: str = ""  # the name, where it is not the path: to be looked for on PATH, and here


def refused(command: str, *lines: str) -> Reply:
    """As Slurm's own errors look."""
    err = "".join(f"{command}: error: {line}\n" for line in lines).encode("utf-8", "surrogateescape")
    return Reply(code=1, err=err, facts=NOT_DONE)


def frame(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(4) + content


def encode_request(request: Request) -> bytes:
    variables = [f"{name}={value}" for name, value in request.environment.items()]
    parts = [
        frame(NAME, _bytes(request.command)), frame(WORDS, _listed(request.words)), frame(DIRECTORY, _bytes(request.cwd)),
        frame(VARIABLES, _listed(variables)), frame(UMASK, request.umask.to_bytes(2)),
    ]  # fmt: skip
    if request.script:
        parts += [frame(PATH, _bytes(request.script.path)), frame(SCRIPT, request.script.content)]
    body = b"".join(parts) + frame(END, b"")
    return frame(VERSION_KIND, VERSION.to_bytes(2) + len(body).to_bytes(4)) + body


def encode_output(kind: bytes, content: bytes) -> bytes:
    """In pieces, so that a stub can pass them on as they come."""
    return b"".join([frame(kind, content[at : at + MOST_PIECE]) for at in range(0, len(content), MOST_PIECE)])


def encode_reply(reply: Reply) -> bytes:
    return encode_output(OUT, reply.out) + encode_output(ERR, reply.err) + frame(CODE, (reply.code & 0xFF).to_bytes(1))


def encode_want(want: Want) -> bytes:
    return frame(WANT, _bytes(want.path) + (b"\0" + _bytes(want.typed) if want.typed else b""))


class Incoming:
    """What has come of one request so far."""

    def __init__(self) -> None:
        self._held = bytearray()
        self.size = 0  # of the whole; 0 = not known yet

    def feed(self, data: bytes) -> Request | None:
        """The request, once it is whole. Nothing may follow it."""
        self._held += data
        if not self.size and len(self._held) >= OPENING:
            self.size = OPENING + size_of_rest(bytes(self._held[:OPENING]))
        if self.size and len(self._held) > self.size:
            raise WireError("something follows the end of the request")
        return decode_request(bytes(self._held)) if self.size and len(self._held) == self.size else None

    @property
    def begun(self) -> bool:
        return bool(self._held)


def size_of_rest(opening: bytes) -> int:
    """What the first frame announces."""
    if opening[:HEAD] != frame(VERSION_KIND, bytes(6))[:HEAD]:
        raise WireError("this is not the chaperon's protocol")
    version, size = int.from_bytes(opening[5:7]), int.from_bytes(opening[7:11])
    if version != VERSION:
        raise WireError(f"the stub speaks version {version} of the protocol, the chaperon version {VERSION}")
    if size > MOST_REQUEST:
        raise WireError(f"the request has {size} bytes, {MOST_REQUEST} are allowed")
    return size


def decode_request(data: bytes) -> Request:
    """A whole request, the first frame included."""
    if len(data) < OPENING or len(data) != OPENING + size_of_rest(data[:OPENING]):
        raise WireError("the request is not as long as it says")
    found = _fields(data)
    script = Script(path=_text(found[PATH]), content=found[SCRIPT]) if SCRIPT in found else None
    return Request(
        command=_name(found[NAME]), words=_strings(WORDS, found[WORDS]), cwd=_directory(found[DIRECTORY]),
        environment=_variables(found[VARIABLES]), umask=_umask(found[UMASK]), script=script,
    )  # fmt: skip


def _fields(data: bytes) -> dict[bytes, bytes]:
    """The frames after the first, in their order, none too long, none missing, none twice."""
    found: dict[bytes, bytes] = {}
    order = iter(FIELDS)
    for kind, content in _frames(data, OPENING):
        if kind not in order:  # consumes the iterator up to it: a frame in another place is not found any more
            raise WireError(f"a frame of kind {kind!r} is unknown, or stands in the wrong place")
        if len(content) > FIELDS[kind]:
            raise WireError(f"{CALLED[kind]}: {len(content)} bytes, {FIELDS[kind]} are allowed")
        found[kind] = content
    missing = [CALLED[kind] for kind in FIELDS if kind not in found and kind not in OPTIONAL]
    if missing or (PATH in found) != (SCRIPT in found):
        raise WireError(f"the request lacks {missing[0] if missing else 'a part of the script'}")
    return found


def _frames(data: bytes, at: int) -> Iterator[tuple[bytes, bytes]]:
    while at < len(data):
        start = at + HEAD
        end = start + int.from_bytes(data[at + 1 : start])
        if start > len(data) or end > len(data):
            raise WireError("a frame is not whole")
        yield data[at : at + 1], data[start:end]
        at = end


def _listed(words: tuple[str, ...] | list[str]) -> bytes:
    """Each word with a NUL after it, as the kernel keeps them."""
    return b"".join([_bytes(word) + b"\0" for word in words])


def _strings(kind: bytes, content: bytes) -> tuple[str, ...]:
    if content and not content.endswith(b"\0"):
        raise WireError(f"{CALLED[kind]} cannot be read: no end")
    count = content.count(b"\0")
    if count > MOST_WORDS:
        raise WireError(f"{CALLED[kind]}: {count} of them, {MOST_WORDS} are allowed")
    words = content.split(b"\0")[:-1]
    if words and max(map(len, words)) > MOST_WORD:
        raise WireError(f"{CALLED[kind]}: one has {max(map(len, words))} bytes, {MOST_WORD} are allowed")
    return tuple([word.decode("utf-8", "surrogateescape") for word in words])


def _variables(content: bytes) -> dict[str, str]:
    """As programs read them: the first of a name counts; what is no variable is dropped, as a shell drops it."""
    found: dict[str, str] = {}
    for word in _strings(VARIABLES, content):
        name, equals, value = word.partition("=")
        if name and equals:
            found.setdefault(name, value)
    return found


def _name(content: bytes) -> str:
    if not content.isalpha() or not content.islower():
        raise WireError("the name of the command cannot be read")
    return content.decode("ascii")


def _directory(content: bytes) -> str:
    if not content.startswith(b"/") or b"\0" in content:
        raise WireError("the working directory is no absolute path")
    return _text(content)


def _umask(content: bytes) -> int:
    if len(content) != 2 or int.from_bytes(content) > 0o777:
        raise WireError("the umask cannot be read")
    return int.from_bytes(content)


def _text(content: bytes) -> str:
    if b"\0" in content:
        raise WireError("a path holds a NUL")
    return content.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
