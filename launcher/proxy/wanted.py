"""What a client asks for becomes a target: what it says twice must agree. Pure."""

from __future__ import annotations

from agent_sandbox.launcher.proxy.head import one_value
from agent_sandbox.launcher.proxy.target import Malformed, parse_authority

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.proxy.head import Request
    from agent_sandbox.launcher.proxy.target import Target


def connect_target(request: Request) -> Target:
    target = parse_authority(request.target.decode("ascii"))
    if request.chunked or request.length:
        raise Malformed("CONNECT has no body")
    host = one_value(request.fields, b"host")
    if host and parse_authority(host.decode("latin-1"), default_port=target.port) != target:
        raise Malformed("the field Host is not the destination")
    return target


def plain_target(request: Request) -> tuple[Target, bytes]:
    """`http://host[:port]/path` and the `Host` that must say the same."""
    scheme, separator, rest = request.target.partition(b"://")
    if not separator or scheme.lower() != b"http" or b"#" in rest:
        raise Malformed("a proxy is asked with http://host/path, or with CONNECT")
    cut = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
    target = parse_authority(rest[:cut].decode("ascii"), default_port=80)
    host = one_value(request.fields, b"host")
    if host is None and request.minor == 1:
        raise Malformed("the field Host is missing")
    if host is not None and host != rest[:cut] and parse_authority(host.decode("latin-1"), default_port=80) != target:
        raise Malformed("the field Host is not the destination")
    path = rest[cut:]
    if not path and request.method == b"OPTIONS":
        return target, b"*"
    return target, path if path.startswith(b"/") else b"/" + path
