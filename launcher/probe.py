"""The host becomes a Host; Disk answers questions about paths. Reads, never writes, and walks no tree."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sys

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.policy import Host

PROGRAM_PLACES = ("/usr/bin", "/usr/local/bin", "/bin")  # never along the caller's PATH
MOST_ENTRIES = 4000
MOST_LINKS = 40


@record
class Found:
    """A path followed to its end: the links met on the way (where, what they say), the real path, what is there."""

    real: str
    links: tuple[tuple[str, str], ...]
    kind: str  # directory, file, other, or "" = nothing there


class Disk:
    """What lies on disk, each path looked at once."""

    def __init__(self) -> None:
        self._seen: dict[str, os.stat_result | None] = {}
        self._listed: dict[str, tuple[str, ...]] = {}
        self._followed: dict[str, Found] = {}

    def stat(self, path: str) -> os.stat_result | None:
        """The entry itself, links not followed; None = not there, or not for us to see."""
        if path not in self._seen:
            try:
                self._seen[path] = os.lstat(path)
            except (OSError, ValueError):
                self._seen[path] = None
        return self._seen[path]

    def kind(self, path: str) -> str:
        """directory, file, link, other, or "" = nothing there."""
        found = self.stat(path)
        return _kind(found.st_mode) if found else ""

    def link(self, path: str) -> str:
        """What a link says; "" = it cannot be read, or is none any more."""
        try:
            return os.readlink(path)
        except OSError:
            return ""

    def follow(self, path: str) -> Found:
        """Resolve every link of an absolute path; a loop is an error that names it."""
        if path not in self._followed:
            self._followed[path] = self._follow(path)
        return self._followed[path]

    def _follow(self, path: str) -> Found:
        links: list[tuple[str, str]] = []
        done, left = "", path.split("/")[1:]
        while left:
            name = left.pop(0)
            if name in ("", "."):
                continue
            if name == "..":
                done = done.rpartition("/")[0]
                continue
            here = f"{done}/{name}"
            kind = self.kind(here)
            if not kind:
                return Found(real="/".join([here, *left]), links=tuple(links), kind="")
            if kind != "link":
                done = here
                continue
            target = self.link(here)
            if not target:
                return Found(real="/".join([here, *left]), links=tuple(links), kind="")
            links.append((here, target))
            if len(links) > MOST_LINKS:
                raise UserError(f"{printable(path)}: too many symbolic links", hint="one of them points back to itself")
            if links[-1][1].startswith("/"):
                done = ""
            left = links[-1][1].split("/") + left
        real = done or "/"
        return Found(real=real, links=tuple(links), kind="directory" if real == "/" else self.kind(real))

    def entries(self, directory: str) -> tuple[str, ...]:
        """The names in a directory, sorted; nothing where it cannot be read."""
        if directory not in self._listed:
            self._listed[directory] = self._list(directory)
        return self._listed[directory]

    def _list(self, directory: str) -> tuple[str, ...]:
        try:
            names = os.listdir(directory)
        except OSError:
            return ()
        if len(names) > MOST_ENTRIES:
            raise UserError(
                f"{printable(directory)} has {len(names)} entries and something hidden among them",
                hint="move what is hidden into a directory of its own, or do not grant this one",
            )
        return tuple(sorted(names))

    def read(self, path: str, most: int = 1 << 20) -> bytes | None:
        """The content of a small regular file, or None."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        with os.fdopen(handle, "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(handle).st_mode) else None

    def writable(self, path: str) -> bool:
        return os.access(path, os.W_OK | os.X_OK)

    def identity(self, path: str) -> tuple[int, int]:
        """The same for every name of a file or directory, bind mounts included; (0, 0) = not there."""
        found = self.stat(path)
        return (found.st_dev, found.st_ino) if found else (0, 0)

    def movable(self, path: str) -> bool:
        """Could somebody but root rename this, or a directory above it, and put something else in its place?"""
        here = path.rpartition("/")[0]
        while here:
            found = self.stat(here)
            if found is None or found.st_uid != 0 or found.st_mode & 0o022:
                return True
            here = here.rpartition("/")[0]
        return False

    def readable(self, path: str) -> bool:
        return os.access(path, os.R_OK)

    def executable(self, path: str) -> bool:
        return os.access(path, os.X_OK)


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"


def printable(text: str) -> str:
    """Text of unknown origin made safe for a terminal and short enough for a line."""
    plain = text.encode("utf-8", "backslashreplace").decode()
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in plain)
    return plain if len(plain) <= 300 else f"{plain[:140]}…{plain[-140:]}"


def read_host() -> Host:
    """Who asks, from the passwd database and never from the environment, and what is installed; not yet what the kernel can do."""
    try:
        person = pwd.getpwuid(os.getuid())
    except KeyError:
        problem = f"no account has the user id {os.getuid()}"
        raise UserError(problem, hint="the home directory is read from the passwd database")
    system = os.uname()
    install, entry, package = find_install()
    return Host(
        user=person.pw_name, uid=person.pw_uid, gid=os.getgid(), home=person.pw_dir.rstrip("/") or "/",
        shell=person.pw_shell or "/bin/sh", groups=read_groups(), name=system.nodename, machine=system.machine,
        landlock=0, bwrap=find_program("bwrap"), firejail=find_program("firejail"),
        install=install, entry=entry, package=package, python=os.path.realpath(sys.executable), environment=dict(os.environ),
        cwd=read_cwd(), own_group=os.getpgrp() == os.getpid(),
    )  # fmt: skip


def find_program(name: str) -> str:
    return next((path for place in PROGRAM_PLACES if os.access(path := f"{place}/{name}", os.X_OK)), "")


def find_install() -> tuple[str, str, str]:
    """The directory to show inside, the program in it and the package: a copy has lib/ and bin/, a source tree neither."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    copy = package.removesuffix("/lib/agent_sandbox")
    entry = f"{copy}/bin/agent-sandbox"
    if copy != package and os.path.exists(entry):
        return copy, entry, package
    return os.path.dirname(package), os.path.abspath(sys.argv[0]), package


def read_groups() -> tuple[tuple[int, str], ...]:
    numbers = [os.getgid(), *(number for number in os.getgroups() if number != os.getgid())]
    return tuple((number, _group_name(number)) for number in numbers)


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def read_cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise UserError("the current directory does not exist any more", hint="cd to one that does, or give --project-dir")


def read_yama() -> int:
    """kernel.yama.ptrace_scope; 0 where there is no Yama."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", "rb") as file:
            return int(file.read())
    except OSError:
        return 0


def read_kernel(host: Host) -> Host:
    """What the kernel can do, for those without a guard to ask it meanwhile."""
    from agent_sandbox.launcher.syscalls import can_notify, landlock_abi

    return replace(host, landlock=landlock_abi(), notify=can_notify(), yama=read_yama())
