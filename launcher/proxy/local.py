"""A request that is meant for the proxy itself (`/name/…`, no host) becomes what it asks for. Pure."""

from __future__ import annotations

from agent_sandbox.config.inject import RESERVED
from agent_sandbox.config.record import record
from agent_sandbox.launcher.proxy.target import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_sandbox.launcher.proxy.credential import Credential
    from agent_sandbox.launcher.proxy.head import Request

PAGE = f"/{RESERVED}/log".encode()
METHODS = frozenset((b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"))  # none that has a server say the request back
DIGITS = b"0123456789abcdefABCDEF"
NEVER = bytes(range(32)) + b"\x7f\xc0\xc1\xf5\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff"  # control characters, and what UTF-8 never has
TIMES = 8  # that a path may be quoted, so that looking through it takes no time
STEPS_BACK = frozenset((b".", b".."))


@record
class Asked:
    credential: Credential
    path: bytes


def asked_of(request: Request, credentials: Mapping[str, Credential]) -> Asked:
    way, question, query = request.target.partition(b"?")
    name, slash, rest = way[1:].partition(b"/")
    credential = credentials.get(name.decode("ascii"))
    if credential is None:
        raise Malformed(f"a proxy is asked with http://host/path, or with CONNECT; {known(credentials)}")
    if request.method not in METHODS:
        raise Malformed(f"of methods {', '.join(sorted(one.decode() for one in METHODS))} go on from here")
    check_steps(rest)
    path = credential.path + slash + rest
    return Asked(credential=credential, path=(path or b"/") + question + query)


def known(credentials: Mapping[str, Credential]) -> str:
    bases = [f"/{one.name} (for {one.target.text})" for one in credentials.values()]
    return f"base URLs here are {', '.join(bases)}" if bases else "there is no base URL of network.inject here"


def check_steps(path: bytes) -> None:
    """What leads out of the credential's own path, or is a fragment, has no place in a request: however often a server may unquote it, and
    whether or not it takes what follows a ; for a part of the step, or a dot that is written longer than it need be for one."""
    if b"#" in path:
        raise Malformed("a fragment is not for servers")
    if any(not _is_hex(part[:2]) for part in path.split(b"%")[1:]):
        raise Malformed("the path has a % that stands for nothing")
    plain, before = path, b""
    for _ in range(TIMES):
        if plain == before:
            return
        if b"\\" in plain or STEPS_BACK & {step.partition(b";")[0].strip() for step in plain.split(b"/")}:
            raise Malformed("the path has a step back in it")
        if plain.translate(None, NEVER) != plain:
            raise Malformed("the path has something in it that is no text")
        plain, before = unquoted(plain), plain
    raise Malformed("the path is quoted too often")


def unquoted(path: bytes) -> bytes:
    first, *rest = path.split(b"%")
    return first + b"".join(bytes.fromhex(part[:2].decode()) + part[2:] if _is_hex(part[:2]) else b"%" + part for part in rest)


def _is_hex(digits: bytes) -> bool:
    return len(digits) == 2 and not digits.translate(None, DIGITS)
