"""The content of the sources becomes one bundle, by the parser of `cryptography`: certificates alone, each once, written anew.

Imported when a bundle must be made: the parser costs more than all the rest of a launch.
"""

from __future__ import annotations

import sys
import warnings
from base64 import encodebytes
from datetime import UTC, datetime

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record
from agent_sandbox.launcher.trust import pem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cryptography.x509 import Certificate

NEVER = 1 << 62


@record
class Bundle:
    content: bytes
    until: int  # the next moment at which one of the site's certificates begins or ceases to be valid
    warnings: tuple[str, ...]


@record
class Read:
    """One certificate of the site's."""

    der: bytes
    name: str
    begins: int
    ends: int
    is_ca: bool


def build(files: Iterable[tuple[str, bool, bytes]], now: int, library: str) -> Bundle:
    """`files`: path, is it the site's, content. Its own order is kept; the system's come first."""
    load_parser(library)
    ders: dict[bytes, None] = {}
    said: list[str] = []
    boundaries = [NEVER]
    for path, site, data in files:
        if not site:
            ders.update(dict.fromkeys(pem.usable_in(data)))
            continue
        for one in _certificates(path, data):
            boundaries += [moment for moment in (one.begins, one.ends) if moment > now]
            problem = _problem(one, now)
            if problem:
                said.append(f"network.ca_bundle: {path}: {one.name} {problem}")
            if one.is_ca and one.ends > now:
                ders.setdefault(one.der)
    return Bundle(content=b"".join(map(_encoded, ders)), until=min(boundaries), warnings=tuple(dict.fromkeys(said)))


def load_parser(library: str) -> None:
    """From our own library, or from where this Python keeps what was installed for all: we were started without the latter."""
    try:
        import cryptography.x509
    except ImportError:
        import site

        before = list(sys.path)
        sys.path += [path for path in site.getsitepackages() if path not in sys.path]
        try:
            import cryptography.x509  # noqa: F401
        except ImportError as error:
            raise UserError(
                f"network.ca_bundle is set, and the Python library that reads certificates cannot be loaded: {error}",
                hint=f"the package python3-cryptography has it, or: {sys.executable} -m pip install --target {library} cryptography",
            ) from None
        finally:
            sys.path[:] = before


def _certificates(path: str, data: bytes) -> Iterator[Read]:
    for number, der in enumerate(pem.certificates_in(data, path), 1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of old encodings
                found = _read(der)
        except Exception as error:  # the parser's own have no common parent
            problem = f"is broken: certificate {number} cannot be understood ({type(error).__name__}: {error})"
            raise pem.wrong(path, problem, "get the file again from where it came") from None
        yield found


def _read(der: bytes) -> Read:
    from cryptography.x509 import load_der_x509_certificate

    found = load_der_x509_certificate(der)
    begins, ends = (_moment(found, name) for name in ("not_valid_before", "not_valid_after"))
    return Read(der=der, name=found.subject.rfc4514_string()[:120] or "a certificate without a name", begins=begins, ends=ends, is_ca=_is_ca(found))


def _moment(found: Certificate, name: str) -> int:
    """Before version 42 the parser gave UTC without saying so."""
    moment = getattr(found, f"{name}_utc", None) or getattr(found, name).replace(tzinfo=UTC)
    assert isinstance(moment, datetime)
    return int(moment.timestamp())


def _is_ca(found: Certificate) -> bool:
    """As OpenSSL judges it: by the extensions, and without any (version 1) by signing itself."""
    from cryptography.x509 import BasicConstraints, ExtensionNotFound, KeyUsage, Version

    if found.version == Version.v1:
        return found.issuer == found.subject
    try:
        if not found.extensions.get_extension_for_class(BasicConstraints).value.ca:
            return False
        return found.extensions.get_extension_for_class(KeyUsage).value.key_cert_sign
    except ExtensionNotFound as missing:
        return missing.oid == KeyUsage.oid


def _problem(one: Read, now: int) -> str:
    if not one.is_ca:
        return "is not the certificate of a CA, and was left out"
    if one.ends <= now:
        return f"expired on {_day(one.ends)}, and was left out: servers with certificates of this CA will not be believed"
    return f"is not valid before {_day(one.begins)}" if one.begins > now else ""


def _day(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def _encoded(der: bytes) -> bytes:
    lines = encodebytes(der).replace(b"\n", b"")
    body = b"\n".join(lines[at : at + 64] for at in range(0, len(lines), 64))
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"\n-----END CERTIFICATE-----\n"
