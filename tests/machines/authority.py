"""A site's certificate authority, made by the test: its certificate, and an HTTPS server on loopback that it vouches for."""

from __future__ import annotations

import contextlib
import functools
import http.server
import ipaddress
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.machines.copies import PYTHON
from tests.machines.needs import missing

TODAY = datetime.now(UTC)


def need_parser() -> None:
    """Of the Python that installed copies run with, which is not the tests' own."""
    if subprocess.run((PYTHON, "-I", "-c", "import cryptography"), capture_output=True).returncode:
        missing("python3-cryptography is not installed")


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def make(
    name: str, by: Pair | None = None, *, ca: bool = True, begins: int = -2, ends: int = 365, names: Sequence[str] = ("localhost",)
) -> Pair:
    """`by`: who signs it, itself if nobody; `begins` and `ends` in days from now; `names` of a server, at 127.0.0.1 if nowhere else."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder(
        issuer_name=by.certificate.subject if by else subject, subject_name=subject, public_key=key.public_key(),
        serial_number=x509.random_serial_number(), not_valid_before=(TODAY + timedelta(begins)).replace(tzinfo=None),
        not_valid_after=(TODAY + timedelta(ends)).replace(tzinfo=None),
    )  # fmt: skip
    made = made.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    if not ca:
        subjects = [*map(x509.DNSName, names), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = made.add_extension(x509.SubjectAlternativeName(subjects), critical=False)
    return Pair(made.sign(by.key if by else key, hashes.SHA256()), key)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def serve(directory: Path, pair: Pair) -> Iterator[str]:
    """The address of an HTTPS server of these files, outside every jail."""
    chain = directory / "server.pem"
    chain.write_text(pair.pem + pair.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    chain.unlink()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(directory)))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
