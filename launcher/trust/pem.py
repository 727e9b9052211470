"""The text of a PEM file becomes its certificates, still encoded; whatever else it is becomes a reason. Pure.

Only blocks go on: text around them (comments, `openssl x509 -text`) is left behind, and a private key stops everything.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64

from agent_sandbox.config.errors import UserError

CERTIFICATES = (b"CERTIFICATE", b"X509 CERTIFICATE")
BOUNDARY = re.compile(rb"^-----(BEGIN|END) ([^\r\n]*?)-----[ \t]*\r?$", re.MULTILINE)
PRIVATE = re.compile(rb"-(?:BEGIN|END) [^\n]*PRIVATE[ _]KEY", re.IGNORECASE)
BINARY = re.compile(rb"[\0-\x08\x0e-\x1f]")


def certificates_in(data: bytes, where: str) -> list[bytes]:
    """DER of each, in order; a file that holds anything doubtful is refused, since half a trust store is a mystery later."""
    if PRIVATE.search(data):
        hint = "take the key out, or name a file with the certificates alone; if others can read that file, make a new key"
        raise wrong(where, "holds a private key: what is in a CA bundle is shown inside", hint)
    if BINARY.search(data):
        hint = f"`openssl x509 -inform DER -in {where} -out NEW.pem` turns one certificate into PEM"
        raise wrong(where, "is not PEM text (binary, perhaps DER)", hint)
    found = [_decoded(number, label, body, where) for number, (label, body) in enumerate(_blocks(data, where), 1)]
    if not found:
        raise wrong(where, "holds no certificate", "network.ca_bundle takes CA certificates in PEM")
    return found


def usable_in(data: bytes) -> list[bytes]:
    """Of the system's own file: what is a certificate. It is not ours to judge."""
    parts = data.split(b"-----BEGIN CERTIFICATE-----")[1:]
    found = []
    for part in parts:
        try:
            found.append(_bytes_of(part.partition(b"-----END CERTIFICATE-----")[0]))
        except Error:
            continue
    return found


def _blocks(data: bytes, where: str) -> list[tuple[bytes, bytes]]:
    """Label and body of each, the lines in pairs."""
    lines = list(BOUNDARY.finditer(data))
    if len(lines) != len(re.findall(rb"-(?:BEGIN|END) ", data)):
        raise _broken("a BEGIN or END line is not as it should be", where)
    found = []
    for begin, end in zip(lines[::2], [*lines[1::2], None], strict=False):
        line = data.count(b"\n", 0, begin.start()) + 1
        if end is None or (begin[1], end[1]) != (b"BEGIN", b"END") or begin[2] != end[2]:
            raise _broken(f"the block at line {line} does not end, or does not begin, as it should", where)
        found.append((begin[2], data[begin.end() : end.start()]))
    return found


def _decoded(number: int, label: bytes, body: bytes, where: str) -> bytes:
    if label not in CERTIFICATES:
        shown = label.decode("ascii", "backslashreplace")[:40]
        hint = f"`openssl x509 -in {where} -out NEW.pem` takes the certificate out" if b"TRUSTED" in label else "CERTIFICATE blocks alone"
        raise wrong(where, f"cannot be used: block {number} is a {shown}", hint)
    try:
        return _bytes_of(body)
    except Error:
        raise _broken(f"block {number} is not base64", where) from None


def _bytes_of(body: bytes) -> bytes:
    return a2b_base64(b"".join(body.split()), strict_mode=True)


def _broken(problem: str, where: str) -> UserError:
    return wrong(where, f"is broken: {problem}", f"`openssl storeutl -noout -certs {where}` counts what is whole in it")


def wrong(path: str, problem: str, hint: str) -> UserError:
    return UserError(f"the CA file {path} {problem}", where="network.ca_bundle", hint=hint)
