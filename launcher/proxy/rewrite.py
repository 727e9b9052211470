"""A head that was understood becomes the head that goes on. Pure."""

from __future__ import annotations

from agent_sandbox.launcher.proxy.head import end_to_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.proxy.head import Request, Response
    from agent_sandbox.launcher.proxy.target import Target


def request_head(request: Request, target: Target, path: bytes) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method, path), b"Host: " + target.field.encode(), *end_to_end(request.fields, but=b"host")]
    if request.chunked:
        lines.append(b"Transfer-Encoding: chunked")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def response_head(response: Response, *, keep: bool, bare: bool = False) -> bytes:
    lines = [b"HTTP/1.1 %d %s" % (response.status, response.reason), *end_to_end(response.fields)]
    if response.chunked and not bare:
        lines.append(b"Transfer-Encoding: chunked")
    if not keep:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def interim_head(minor: int, response: Response) -> bytes:
    """An interim answer is for who knows them."""
    return response_head(response, keep=True) if minor else b""
