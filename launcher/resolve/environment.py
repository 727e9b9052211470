"""The caller's variables become the jail's: filtered by name, cleaned by value, and set where we or the settings say so. Pure."""

from __future__ import annotations

from agent_sandbox.config.patterns import names_variable
from agent_sandbox.launcher.policy import Environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.policy import Host, Rooms

PASSWORD_IN_URL = r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s:@,]*:[^/\s@]*@"
TOKEN_IN_URL = r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s:@,]{20,}@"
TOOLS = "bin"  # in the jail's own place


def resolve_environment(settings: Settings, host: Host, rooms: Rooms) -> Environment:
    blocked = Names(settings.names("environment.block"))
    kept = Names(settings.names("environment.keep")) if settings.text("environment.mode") == "minimal" else None
    injected = injected_variables(settings)
    values: dict[str, str] = {}
    removed: list[tuple[str, str]] = []
    changed: list[tuple[str, str]] = []
    for name, value in host.environment.items():
        rule = injected.get(name) or _why_removed(name, value, settings, blocked, kept)
        if rule:
            removed.append((name, rule))
            continue
        values[name] = without_password(value) if settings.flag("environment.strip_passwords") else value
        if values[name] != value:
            changed.append((name, "a password in its value"))
    ours = {**_own_values(host, values, rooms), **settings.table("environment.set")}
    return Environment(
        values={**values, **ours}, removed=tuple(removed), changed=tuple(changed), renamed=tuple(ours),
    )  # fmt: skip


def injected_variables(settings: Settings) -> dict[str, str]:
    """Those that hold a credential which the proxy adds: no rank lets them through, whatever the network."""
    entries = settings.entries("network.inject")
    if not entries:
        return {}
    from agent_sandbox.config.inject import read

    found = [read(entry.value) for entry in entries]
    return {one.place: f"network.inject {one.name}" for one in found if one.source == "env"}


def _why_removed(name: str, value: str, settings: Settings, blocked: Names, kept: Names | None) -> str:
    if "\0" in name + value or not name or name.startswith("AGENT_SANDBOX"):
        return "reserved"
    if _is_allowed(name, settings):
        return ""
    rule = blocked.match(name)
    if rule:
        return f"environment.block {rule}"
    if kept is not None and not kept.match(name):
        return "environment.mode minimal"
    return ""


def _is_allowed(name: str, settings: Settings) -> bool:
    """Let through by an entry of a rank that may do so: a pattern may be wider than what a higher rank blocks."""
    return any(
        names_variable(entry.value, name) and not settings.denied_by(entry.key, name, entry.rank)
        for entry in settings.entries("environment.allow")
    )


def _own_values(host: Host, values: dict[str, str], rooms: Rooms) -> dict[str, str]:
    """What must be true inside whatever the caller's variables say."""
    path = values.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    ours = {
        "HOME": rooms.home, "USER": host.user, "LOGNAME": host.user,
        "PATH": f"{path}:{rooms.own}/{TOOLS}", "TMPDIR": rooms.tmp, "AGENT_SANDBOX": "1",
    }  # fmt: skip
    if rooms.session:
        ours["AGENT_SANDBOX_OWN"] = rooms.own
    if rooms.tmp != "/tmp":
        ours["TMUX_TMPDIR"] = rooms.tmp  # tmux does not look at TMPDIR
    return ours


def without_password(value: str) -> str:
    """`https://user:pass@host` loses what stands before the @; so does a long token alone."""
    if "@" not in value or "://" not in value:
        return value
    import re

    return re.sub(TOKEN_IN_URL, r"\1", re.sub(PASSWORD_IN_URL, r"\1", value))


class Names:
    """Names and patterns, `/i` at the end of one = in any case. Most need no regular expression, and compiling one is slow."""

    def __init__(self, patterns: Iterable[str]) -> None:
        listed = tuple(patterns)
        self._plain = _Shapes(p for p in listed if not p.endswith("/i"))
        self._folded = _Shapes(p[:-2].lower() for p in listed if p.endswith("/i"))

    def match(self, name: str) -> str:
        """The pattern that matches, or ""."""
        found = self._plain.match(name)
        if found:
            return found
        folded = self._folded.match(name.lower())
        return f"{folded}/i" if folded else ""


class _Shapes:
    """Patterns sorted by shape: NAME, PREFIX*, *SUFFIX, *PART*, and the rest."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._prefixes: list[str] = []
        self._suffixes: list[str] = []
        self._parts: list[str] = []
        self._rest: list[str] = []
        for pattern in patterns:
            self._place(pattern)

    def _place(self, pattern: str) -> None:
        head, tail = pattern.removesuffix("*"), pattern.removeprefix("*")
        middle = pattern.strip("*")
        if "*" in middle or "?" in pattern or "[" in pattern or pattern == "*":
            self._rest.append(pattern)
        elif middle == pattern:
            self._exact.add(pattern)
        elif head == middle:
            self._prefixes.append(head)
        elif tail == middle:
            self._suffixes.append(tail)
        else:
            self._parts.append(middle)

    def match(self, name: str) -> str:
        if name in self._exact:
            return name
        found = next((f"{p}*" for p in self._prefixes if name.startswith(p)), "")
        found = found or next((f"*{s}" for s in self._suffixes if name.endswith(s)), "")
        found = found or next((f"*{p}*" for p in self._parts if p in name), "")
        return found or next((p for p in self._rest if names_variable(p, name)), "")
