"""A connection becomes one that is encrypted, with a host whose certificate was checked. Imported when it is first needed: it loads OpenSSL.

What was decrypted and nobody has asked for yet waits in `early`: the kernel cannot tell that it is there.
"""

from __future__ import annotations

import os
import ssl

from agent_sandbox.launcher.proxy.side import PIECE, Side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.poller import Poller


def make_context(roots: str, files: tuple[str, ...]) -> ssl.SSLContext:
    """`roots` in PEM, if anything is in it, else the first of `files` that can be read; none = nobody is believed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks the certificate, and the host's name in it
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # which Python sets: an end that nobody announced would be one
    context.set_alpn_protocols(["http/1.1"])
    file = next((path for path in files if os.access(path, os.R_OK)), None)
    if roots:
        context.load_verify_locations(cadata=roots)
    elif file:
        context.load_verify_locations(cafile=file)
    return context


class Secure(Side):
    def __init__(self, plain: Side, poller: Poller, failed: Callable[[Exception], None], context: ssl.SSLContext, host: str) -> None:
        """`plain` is used up."""
        sock, early = plain.give_away()
        super().__init__(sock, poller, failed)
        self.plain = False
        self._coming, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._coming, self._going, server_hostname=host)
        self._coming.write(early)
        self._shaken: Callable[[str], None] | None = None
        self._left = b""  # encrypted, and not yet taken
        self._owed = 0  # of a text, encrypted already
        self._ended = False

    # The beginning

    def shake(self, shaken: Callable[[str], None]) -> None:
        """`shaken` is told once: "" = it is who it should be."""
        self._shaken = shaken
        self._go_on()

    def _on_more(self) -> None:
        try:
            piece = os.read(self.fd, PIECE)
        except BlockingIOError:
            return
        except OSError as error:
            self._tell_shaken(f"ended the connection: {error.strerror}")
            return
        self._coming.write(piece) if piece else self._coming.write_eof()
        self._go_on()

    def _go_on(self) -> None:
        try:
            self._tls.do_handshake()
            problem = ""
        except ssl.SSLWantReadError:
            self._push()
            self.on_read(self._on_more)
            return
        except ssl.SSLCertVerificationError as error:
            problem = f"has a certificate that is not believed: {error.verify_message}"
        except OSError as error:
            problem = f"does not speak TLS as it should: {getattr(error, 'reason', None) or error.strerror}"
        self._push()
        self._tell_shaken(problem)

    def _tell_shaken(self, problem: str) -> None:
        self.on_read(None)
        if self._shaken:
            shaken, self._shaken = self._shaken, None
            shaken(problem)

    def _push(self) -> None:
        """What does not go now goes when it can."""
        try:
            self._flush()
            self.on_write(None)
        except BlockingIOError:
            self.on_write(self._push)
        except OSError:  # the next read says so
            self.on_write(None)

    # Both directions

    def read(self, most: int = PIECE) -> bytes:
        piece = self._decrypted()
        self.early[:0] = piece[most:]
        return piece[:most]

    def read_early(self, most: int = PIECE) -> bool:
        piece = self._decrypted()
        self.early += piece
        return bool(piece)

    @property
    def ready(self) -> bool:
        return bool(self.early) or self._ended

    def _decrypted(self) -> bytes:
        """b"" = the other end has said that this is all. An end without a word may be somebody else's doing, and is an error."""
        if self._ended:
            return b""
        piece = os.read(self.fd, PIECE)
        self._coming.write(piece) if piece else self._coming.write_eof()
        found: list[bytes] = []
        try:
            while more := self._tls.read(PIECE):
                found.append(more)
            self._ended = True
        except ssl.SSLWantReadError:
            if not found:
                raise BlockingIOError from None
        except OSError:
            if not found:
                raise
        return b"".join(found)

    def write(self, text: bytes) -> int:
        """How much of it is gone. BlockingIOError = some of it is not: to be called again with the same text."""
        if not self._owed:
            self._owed = self._tls.write(text[:PIECE])
        self._flush()
        owed, self._owed = self._owed, 0
        return owed

    def _flush(self) -> None:
        self._left += self._going.read()
        while self._left:
            self._left = self._left[os.write(self.fd, self._left) :]
