"""A body becomes the same body with a secret blanked, in the frame that it goes on in: also where the secret comes in pieces. Pure.

As many stars as it had characters, so that lengths stay true. What is held back until more comes depends on the secret's length alone, and
never on what it is: a client that chooses what a host sends it could else find out its beginning, letter by letter. A secret is one line, so
the end of a line is never held back: events of a stream pass as they come.
"""

from __future__ import annotations

from functools import lru_cache

from agent_sandbox.launcher.proxy.chunks import Chunks

PLAIN = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._~"
SIGNS = bytes(set(range(32, 127)) - set(PLAIN))
LAST_CHUNK = b"0\r\n\r\n"
SLASH = {ord("/"): b"\\/"}
JSON = {ord("\\"): b"\\\\", ord('"'): b'\\"'}
NUMBERED = (b"<>&", b"<>&='", b"<>&'\"+`", SIGNS)  # which one writer or another of JSON gives by their numbers
LEFT = (b"", b"/", b"!'()*", b";,/?:@&=+$!*'()#")  # which one or another of URLs leaves as they are
HTML = {ord("&"): b"&amp;", ord("<"): b"&lt;", ord(">"): b"&gt;", ord('"'): b"&quot;"}


def blank(text: bytes, secret: bytes) -> bytes:
    for form in forms(secret):
        text = text.replace(form, b"*" * len(form))
    return text


@lru_cache(64)
def forms(secret: bytes) -> tuple[bytes, ...]:
    """As it is, with two bytes to a character, and as it is written in JSON, in URLs and in pages."""
    wide = [secret.decode("ascii").encode(code) for code in ("utf-16-le", "utf-16-be")]
    found = [secret, *wide, *(b"".join([table.get(byte, b"%c" % byte) for byte in secret]) for table in TABLES)]
    return tuple(sorted(dict.fromkeys(found), key=len, reverse=True))


def _numbers(signs: bytes, form: bytes) -> dict[int, bytes]:
    return {byte: form % byte for byte in signs}


def _tables() -> list[dict[int, bytes]]:
    """How a sign may be written, by each that writes it so."""
    numbered = [{}, *(_numbers(signs, form) for signs in NUMBERED for form in (b"\\u%04x", b"\\u%04X"))]
    json = [JSON | slash | numbers for slash in ({}, SLASH) for numbers in numbered]
    urls = [_numbers(SIGNS.translate(None, left), form) for left in LEFT for form in (b"%%%02x", b"%%%02X")]
    pages = [HTML, *(HTML | _numbers(signs, form) for signs in (b"'", b"\"'") for form in (b"&#%d;", b"&#x%x;"))]
    return [*json, *urls, *(table | {ord(" "): b"+"} for table in urls), *pages]


TABLES = _tables()


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
