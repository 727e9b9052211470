"""What the proxy knows of one entry of `network.inject`, and how it changes the two heads of an exchange. Pure.

What a client says of a credential itself never goes on, nor does what would have a server look for its request elsewhere, or answer
in pieces or in an encoding, in which the secret could not be recognised if the server said it back.
"""

from __future__ import annotations

from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.proxy.head import HOP, NEVER_HOP, end_to_end
from agent_sandbox.launcher.proxy.scrub import blank
from agent_sandbox.launcher.proxy.target import Malformed, Target, target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.proxy.head import Request, Response

    Wired = tuple[str, str, int, str, str, str, str, str, str]  # as orders carry it

# Each also with _ for -, which some servers take for the same.
CREDENTIALS = frozenset((b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key", b"x-auth-token", b"private-token", b"cookie", b"cookie2"))
ELSEWHERE = frozenset((
    b"host", b"forwarded", b"x-forwarded-host", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-server", b"x-original-url", b"x-rewrite-url",
    b"x-original-host", b"x-host", b"x-http-method", b"x-http-method-override", b"x-method-override",
))  # fmt: skip
IN_PIECES = frozenset((
    b"accept-encoding", b"accept-charset", b"range", b"if-range", b"a-im", b"want-digest", b"want-repr-digest", b"want-content-digest",
))  # fmt: skip
NOT_BACK = frozenset((b"set-cookie", b"set-cookie2"))  # a credential of its own, as good as the one that it was given for
FRAMING = HOP | NEVER_HOP  # which are understood as they are written: with _ they would be for somebody else
HTTPS = 443


@record
class Credential:
    name: str
    target: Target
    path: bytes  # before what the client asks for
    field: bytes
    value: bytes  # of the field
    secret: bytes  # b"" = it could not be had
    missing: str  # why


def credential_of(wired: Wired) -> Credential:
    name, host, port, path, field, before, after, secret, missing = wired
    return Credential(
        name=name, target=target_of(host, port), path=path.encode(), field=field.encode(), value=f"{before}{secret}{after}".encode(),
        secret=secret.encode(), missing=missing,
    )  # fmt: skip


def dashed(name: bytes) -> bytes:
    return name.replace(b"_", b"-")


def request_head(request: Request, credential: Credential, path: bytes) -> bytes:
    dropped = CREDENTIALS | ELSEWHERE | IN_PIECES | {dashed(credential.field.lower())}
    named = [(dashed(one[0]), one) for one in request.fields]
    fields = [one for name, one in named if name not in dropped and (name == one[0] or name not in FRAMING)]
    lines = [
        b"%s %s HTTP/1.1" % (request.method, path), b"Host: " + credential.target.text.removesuffix(f":{HTTPS}").encode(), *end_to_end(fields),
        b"Accept-Encoding: identity", b"%s: %s" % (credential.field, credential.value),
    ]  # fmt: skip
    if request.chunked:
        lines.append(b"Transfer-Encoding: chunked")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def cleaned(response: Response, credential: Credential, *, bodiless: bool) -> Response:
    """Whatever of the secret a server says back in its head is blanked; a body in which it could not be recognised is not passed on."""
    encodings = [value.lower() for name, _, value in response.fields if name == b"content-encoding"]
    if not bodiless and any(encoding not in (b"", b"identity") for encoding in encodings):
        raise Malformed("it is in an encoding that was not asked for, in which the credential could not be recognised")
    fields = [(name, blank(written, credential.secret), blank(value, credential.secret)) for name, written, value in response.fields]
    return replace(response, reason=blank(response.reason, credential.secret), fields=[one for one in fields if one[0] not in NOT_BACK])
