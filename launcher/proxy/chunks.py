"""A chunked body becomes the same body, its frame written anew: no extension, no trailer, one spelling of each length. Pure."""

from __future__ import annotations

from agent_sandbox.launcher.proxy.head import CONTROL, TOKEN
from agent_sandbox.launcher.proxy.target import Malformed

HEX = b"0123456789abcdefABCDEF"
LONGEST_LINE = 1024
TRAILERS = 64


class Chunks:
    """`bare` gives the data alone, for who does not know chunks."""

    def __init__(self, *, bare: bool = False) -> None:
        self._bare = bare
        self._left = 0  # of the chunk's data
        self._line = b""  # begun
        self._await = self._size
        self._trailers = 0
        self.done = False
        self.rest = b""  # after the end

    def feed(self, piece: bytes) -> bytes:
        out: list[bytes] = []
        at = 0
        while at < len(piece) and not self.done:
            if self._left:
                data = piece[at : at + self._left]
                at += len(data)
                self._left -= len(data)
                out.append(data)
                continue
            end = piece.find(b"\n", at) + 1
            self._line += piece[at : end or len(piece)]
            at = end or len(piece)
            if len(self._line) > LONGEST_LINE:
                raise Malformed("a line between chunks is too long")
            if end:
                line, self._line = self._line, b""
                out.append(self._await(_text_of(line)))
        self.rest = piece[at:]
        return b"".join(out)

    def _size(self, line: bytes) -> bytes:
        digits = line.partition(b";")[0].rstrip(b" \t")
        if not digits or len(digits) > 12 or digits.translate(None, HEX):
            raise Malformed("the length of a chunk is malformed")
        self._left = int(digits, 16)
        self._await = self._gap if self._left else self._trailer
        return b"" if self._bare or not self._left else b"%x\r\n" % self._left

    def _gap(self, line: bytes) -> bytes:
        if line:
            raise Malformed("a chunk is longer than it said")
        self._await = self._size
        return b"" if self._bare else b"\r\n"

    def _trailer(self, line: bytes) -> bytes:
        if line:
            self._trailers += 1
            name, colon, _ = line.partition(b":")
            if self._trailers > TRAILERS or not name or not colon or name.translate(None, TOKEN):
                raise Malformed("there are too many trailers, or one is malformed")
            return b""
        self.done = True
        return b"" if self._bare else b"0\r\n\r\n"


def _text_of(line: bytes) -> bytes:
    if not line.endswith(b"\r\n") or line[:-2].translate(None, CONTROL) != line[:-2]:
        raise Malformed("a line between chunks is malformed")
    return line[:-2]
