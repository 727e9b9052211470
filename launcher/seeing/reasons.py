"""Facts of a machine on which bwrap does not run become the known reasons for that, each with its fix. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import record

OLDEST = (0, 5)
INSTALL = (
    "Debian, Ubuntu: apt install bubblewrap", "Fedora, RHEL: dnf install bubblewrap", "SUSE: zypper install bubblewrap",
    "Homebrew: brew install bubblewrap, and an admin links it to /usr/local/bin/bwrap",
)  # fmt: skip
PROFILE = """\
As root, put this into /etc/apparmor.d/agent-sandbox:
    abi <abi/4.0>,
    profile agent-sandbox "{entry}" flags=(unconfined) {{ userns, }}
    profile agent-sandbox-bwrap {bwrap} flags=(unconfined) {{ userns, }}
and load it: apparmor_parser --replace /etc/apparmor.d/agent-sandbox"""


@record
class Facts:
    """What was measured, and the text of the files that say why; "" = there is no such file."""

    bwrap: str = ""  # its path
    entry: str = ""  # our own program
    version: tuple[int, ...] = ()
    setuid: bool = False
    runs: bool = False
    error: str = ""  # what bwrap said
    userns_clone: str = ""  # kernel.unprivileged_userns_clone
    most_namespaces: str = ""  # user.max_user_namespaces
    apparmor: str = ""  # kernel.apparmor_restrict_unprivileged_userns
    container: bool = False
    filtered: bool = False  # a seccomp filter lies on this process


@record
class Reason:
    what: str
    fix: tuple[str, ...]


def find_reasons(facts: Facts) -> tuple[Reason, ...]:
    """All that apply, the surest first; none where bwrap runs and is new enough."""
    if not facts.bwrap:
        return (Reason(what="bwrap is not installed", fix=INSTALL),)
    found = [_too_old(facts.version)] if facts.version and facts.version < OLDEST else []
    if not facts.runs:
        found += _switched_off(facts)
        if not found:
            what = f"bwrap does not run: {facts.error or 'no reason was given'}"
            found = [Reason(what=what, fix=("ask your admin",))]
    return tuple(found)


def _too_old(version: tuple[int, ...]) -> Reason:
    shown, oldest = ".".join(map(str, version)), ".".join(map(str, OLDEST))
    return Reason(what=f"bwrap {shown} is too old: {oldest} or later is needed", fix=INSTALL)


def _switched_off(facts: Facts) -> list[Reason]:
    found = []
    if facts.userns_clone == "0":
        found.append(_sysctl("kernel.unprivileged_userns_clone", "0", "1"))
    if facts.most_namespaces == "0":
        found.append(_sysctl("user.max_user_namespaces", "0", "15000"))
    if facts.apparmor == "1":
        profile = PROFILE.format(entry=facts.entry, bwrap=facts.bwrap).split("\n")
        what = "AppArmor keeps programs without a profile from making user namespaces"
        found.append(Reason(what=what, fix=tuple(profile)))
    if not found and (facts.container or facts.filtered):
        where = "this container" if facts.container else "a system-call filter on this session"
        fix = "allow them where it is started (Docker: --security-opt seccomp=unconfined), or start outside it"
        found.append(Reason(what=f"{where} does not let a process make user namespaces", fix=(fix,)))
    if facts.setuid:
        what = f"{facts.bwrap} is setuid root, which does not help: our own part needs user namespaces too"
        found.append(Reason(what=what, fix=(f"allow user namespaces, then as root: chmod u-s {facts.bwrap}",)))
    return found


def _sysctl(name: str, value: str, wanted: str) -> Reason:
    fix = f"As root: sysctl -w {name}={wanted}, and the same line in /etc/sysctl.d/agent-sandbox.conf"
    return Reason(what=f"user namespaces are switched off: {name} = {value}", fix=(fix,))
