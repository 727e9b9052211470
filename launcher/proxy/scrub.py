"""A body becomes the same body with a secret blanked, in the frame that it goes on in: also where the secret comes in pieces. Pure.

As many stars as it had characters, so that lengths stay true. What is held back until more comes depends on the secret's length alone, and
never on what it is: a client that chooses what a host sends it could else find out its beginning, letter by letter. A secret is one line, so
the end of a line is never held back: events of a stream pass as they come.
"""

from __future__ import annotations

from agent_sandbox.launcher.proxy.chunks import Chunks

PLAIN = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._~"
LAST_CHUNK = b"0\r\n\r\n"


def blank(text: bytes, secret: bytes) -> bytes:
    for form in forms(secret):
        text = text.replace(form, b"*" * len(form))
    return text


def forms(secret: bytes) -> tuple[bytes, ...]:
    """As it is, as JSON may write it, and as a URL does."""
    if not secret.translate(None, PLAIN):
        return (secret,)
    quoted = b"".join(b"%c" % byte if byte in PLAIN else b"%%%02X" % byte for byte in secret)
    escaped = secret.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    found = (secret, escaped, escaped.replace(b"/", b"\\/"), quoted, _lower_hex(quoted), quoted.replace(b"%20", b"+"))
    return tuple(sorted(dict.fromkeys(found), key=len, reverse=True))


def _lower_hex(quoted: bytes) -> bytes:
    first, *rest = quoted.split(b"%")
    return b"%".join([first, *(part[:2].lower() + part[2:] for part in rest)])


class Scrub:
    def __init__(self, secret: bytes) -> None:
        self._secret, self._most = secret, max(map(len, forms(secret))) - 1
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        text = blank(self._held + piece, self._secret)
        cut = max(len(text) - self._most, text.rfind(b"\n") + 1)
        self._held = text[cut:]
        return text[:cut]

    def end(self) -> bytes:
        held, self._held = self._held, b""
        return held


class Scrubbed(Chunks):
    """In the place of `Chunks`, for every kind of body: of a length, in chunks, or until the end. `framed` = it goes on in chunks."""

    def __init__(self, secret: bytes, *, length: int | None, chunked: bool, framed: bool) -> None:
        super().__init__(bare=True)
        self._scrub, self._length, self._chunked, self._framed = Scrub(secret), length, chunked, framed

    def feed(self, piece: bytes) -> bytes:
        if self._chunked:
            piece = super().feed(piece)
        elif self._length is not None:
            self.rest, piece = piece[self._length :], piece[: self._length]
            self._length -= len(piece)
            self.done = not self._length
        else:
            self.done = not piece
        out = self._scrub.feed(piece)
        return self._frame(out + self._scrub.end() if self.done else out)

    def _frame(self, out: bytes) -> bytes:
        if not self._framed:
            return out
        return (b"%x\r\n%s\r\n" % (len(out), out) if out else b"") + (LAST_CHUNK if self.done else b"")
