"""Facts of a machine on which a backend does not run become the known reasons for that, each with its fix. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import record

OLDEST_BWRAP, OLDEST_FIREJAIL = (0, 5), (0, 9, 72)
INSTALL = (
    "Debian, Ubuntu: apt install bubblewrap", "Fedora, RHEL: dnf install bubblewrap", "SUSE: zypper install bubblewrap",
    "Homebrew: brew install bubblewrap, and an admin links it to /usr/local/bin/bwrap",
)  # fmt: skip
INSTALL_FIREJAIL = ("Debian, Ubuntu: apt install firejail", "Fedora: dnf install firejail", "SUSE: zypper install firejail")
IN_SHORT = "apt install {name}, or dnf install {name}; `agent-sandbox doctor` says more"
PROFILE = """\
As root, put this into /etc/apparmor.d/agent-sandbox:
    abi <abi/4.0>,
    profile agent-sandbox "{entry}" flags=(unconfined) {{ userns, }}
    profile agent-sandbox-bwrap {bwrap} flags=(unconfined) {{ userns, }}
and load it: apparmor_parser --replace /etc/apparmor.d/agent-sandbox"""
MANY = {"user.max_user_namespaces": "15000", "kernel.unprivileged_userns_clone": "1"}  # what an admin sets instead of 0
REFUSED = ("namespace", "permi", "denied")  # in what is said when a namespace, or a mount in one, is not to be had
UNKNOWN = ("unknown option", "invalid --", "not a valid option")  # how the programs say that they do not know an option


@record
class Facts:
    """What was measured, and the text of the files that say why; "" = there is no such file."""

    program: str = ""  # its path
    entry: str = ""  # our own program
    version: tuple[int, ...] = ()
    setuid: bool = False  # or with the capabilities on the file that come to the same
    problem: str = ""  # what was said when it was run; "" = it ran
    switches: tuple[tuple[str, str], ...] = ()  # sysctls that are 0, and what they count or allow
    apparmor: str = ""  # kernel.apparmor_restrict_unprivileged_userns
    container: bool = False
    filtered: bool = False  # a seccomp filter lies on this process
    no_new_privileges: bool = False
    mapped: bool = False  # inside a user namespace


@record
class Reason:
    what: str
    fix: tuple[str, ...]
    short: str = ""  # the fix in one line, where it has several

    @property
    def advice(self) -> str:
        return self.short or " ".join(self.fix)


def why_no_bwrap(facts: Facts) -> tuple[Reason, ...]:
    """All that apply, the surest first; none where it ran."""
    if not facts.program:
        return (Reason(what="bwrap is not installed", fix=INSTALL, short=IN_SHORT.format(name="bubblewrap")),)
    if not facts.problem:
        return ()
    if facts.version and (facts.version < OLDEST_BWRAP or _is_unknown(facts.problem)):
        return (_too_old("bwrap", facts.version, OLDEST_BWRAP, INSTALL),)
    return tuple(_switched_off(facts)) or (_unknown("bwrap", facts.problem),)


def why_no_firejail(facts: Facts) -> tuple[Reason, ...]:
    if not facts.program:
        return (Reason(what="firejail is not installed", fix=INSTALL_FIREJAIL, short=IN_SHORT.format(name="firejail")),)
    if not facts.problem:
        return ()
    if facts.version and (facts.version < OLDEST_FIREJAIL or _is_unknown(facts.problem)):
        return (_too_old("firejail", facts.version, OLDEST_FIREJAIL, INSTALL_FIREJAIL),)
    return tuple(_not_as_root(facts)) or (_unknown("firejail", facts.problem),)


def why_no_landlock() -> tuple[Reason, ...]:
    fix = "Linux 5.13 or later, built with Landlock, and landlock in the list that the kernel was started with (lsm=)"
    return (Reason(what="this kernel has no Landlock, or it is switched off", fix=(fix,)),)


def _is_unknown(problem: str) -> bool:
    return any(words in problem.lower() for words in UNKNOWN)


def _is_refused(problem: str) -> bool:
    return any(words in problem.lower() for words in REFUSED)


def _unknown(name: str, problem: str) -> Reason:
    return Reason(what=f"{name} does not run: {problem}", fix=("--backend auto takes another one, if there is one; else ask your admin",))


def _too_old(name: str, version: tuple[int, ...], oldest: tuple[int, ...], fix: tuple[str, ...]) -> Reason:
    shown, needed = ".".join(map(str, version)), ".".join(map(str, oldest))
    return Reason(what=f"{name} {shown} is too old: {needed} or later is needed", fix=fix, short=f"ask an admin for {name} {needed} or later")


def _switched_off(facts: Facts) -> list[Reason]:
    found = [_sysctl(*switch) for switch in facts.switches]
    refused = _is_refused(facts.problem)
    if refused and facts.apparmor == "1":
        profile = PROFILE.format(entry=facts.entry, bwrap=facts.program).split("\n")
        what = "AppArmor keeps programs without a profile from making user namespaces"
        found.append(Reason(what=what, fix=tuple(profile), short="an admin loads the profile that `agent-sandbox doctor` prints"))
    if not found and refused and (facts.container or facts.filtered):
        where = "this container" if facts.container else "a system-call filter on this session"
        fix = "allow them where it is started (Docker: --security-opt seccomp=unconfined), or start outside it"
        found.append(Reason(what=f"{where} does not let a process make user namespaces", fix=(fix,)))
    if refused and facts.setuid:
        what = f"{facts.program} is setuid root, which does not help: our own part needs user namespaces too"
        found.append(Reason(what=what, fix=(f"allow user namespaces, then as root: chmod u-s {facts.program}",)))
    return found


def _sysctl(name: str, kind: str) -> Reason:
    fix = f"As root: sysctl -w {name}={MANY.get(name, '15000')}, and the same line in /etc/sysctl.d/agent-sandbox.conf"
    return Reason(what=f"{kind} namespaces are switched off: {name} = 0", fix=(fix,))


def _not_as_root(facts: Facts) -> list[Reason]:
    """firejail does its work as root, or not at all."""
    found = []
    if facts.mapped:
        what = "firejail does not work inside a user namespace, and this session is in one (a container, or a jail)"
        found.append(Reason(what=what, fix=("start outside it",)))
    elif not facts.setuid:  # inside one, the owner of a file is not told
        fix = f"As root: chown root {facts.program}; chmod u+s {facts.program}"
        found.append(Reason(what=f"{facts.program} is not setuid root", fix=(fix,)))
    if facts.no_new_privileges:
        what = "firejail must become root, and this session may gain no privileges (no_new_privs)"
        found.append(Reason(what=what, fix=("start outside it",)))
    return found
