"""The made internet as a test sees it: a host whose users can be in a jail or not, and what the servers got."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.machines import users
from tests.machines.authority import Pair, make
from tests.machines.internet import shelf
from tests.machines.internet.namespaces import Namespace, connect, held
from tests.machines.internet.places import DOMAIN, NAME_SERVER, NAMES, SUBJECTS, TRICKS, WEB, WEB6
from tests.machines.jail import Jail, Result
from tests.machines.needs import SYSTEM_PATH, need, need_root

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ("dnsmasq", "git", "ip", "nsenter", "setpriv", "unshare")


@dataclass(frozen=True, slots=True, kw_only=True)
class Internet:
    host: Namespace
    far: Namespace
    directory: Path
    authority: Pair
    socket: str  # a service of the host's, in the file system

    def inside(
        self, jail: Jail, *command: str | Path, options: Sequence[str] = ("--quiet",), env: Mapping[str, str] | None = None,
        admin: Mapping[str, str] | None = None, timeout: float = 120,
    ) -> Result:  # fmt: skip
        """In a jail that is started on the host of this internet."""
        with jail.argv(*options, "--", *command, admin=admin or {}) as argv:
            return self._run(jail, argv, env, timeout)

    def outside(self, jail: Jail, *command: str | Path, env: Mapping[str, str] | None = None, powers: str = "", timeout: float = 120) -> Result:
        """The control: the same user on the same host without a jail; `powers`: a capability besides."""
        return self._run(jail, [*as_user(jail.user, powers), *map(str, command)], env, timeout)

    def start(self, jail: Jail, *command: str | Path, options: Sequence[str] = ("--quiet",)) -> subprocess.Popen[str]:
        words = self.host.argv([*as_user(jail.user), jail.program, *options, "--", *command], jail.project)
        pipe = subprocess.PIPE
        return users.start_as(users.current_user(), words, env=jail.user.environment, stdin=pipe, stdout=pipe, stderr=pipe, new_session=True)

    def _run(self, jail: Jail, argv: Sequence[str], env: Mapping[str, str] | None, timeout: float) -> Result:
        environment = {**jail.user.environment, **(env or {})}
        done = users.run_as(users.current_user(), self.host.argv(argv, jail.project), env=environment, timeout=timeout)
        return Result(code=done.returncode, out=done.stdout, err=done.stderr)

    def ask_for_names(self, *servers: str) -> None:
        """From now on the host asks these; none: it can look up nothing."""
        (self.directory / "resolv.conf").write_text("".join(f"nameserver {one}\n" for one in servers))

    def trust(self, jail: Jail) -> None:
        """The site's CA, as an admin or a person names it: the one thing that is said about certificates."""
        file = jail.write(jail.user.home / "site" / "ca.pem", self.authority.pem)
        jail.configure(f"[network]\nca_bundle = ['{file}']\n", "conf.d/site.toml")

    def deliveries(self) -> list[str]:
        """What the mail servers got since the last question."""
        files = sorted((self.directory / "mail").glob("[0-9]*"))
        found = [file.read_text(errors="replace") for file in files]
        for file in files:
            file.unlink()
        return found


def as_user(user: users.TestUser, powers: str = "") -> list[str]:
    more = [f"--inh-caps=+{powers}", f"--ambient-caps=+{powers}"] if powers else []
    return ["/usr/bin/setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--init-groups", *more, "--"]


@contextlib.contextmanager
def internet() -> Iterator[Internet]:
    need_root()
    for tool in TOOLS:
        need(tool)
    directory = Path(tempfile.mkdtemp(prefix="agent-sandbox-internet-", dir="/var/tmp"))
    try:
        authority = furnish(directory)
        with held(directory / "resolv.conf.far") as far, held(directory / "resolv.conf") as host:
            connect(host, far)
            with serving(far, "internet", directory), serving(host, "host", directory) as path:
                wait_for_names(host)
                yield Internet(host=host, far=far, directory=directory, authority=authority, socket=path)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def furnish(directory: Path) -> Pair:
    authority = make("CA of the made internet")
    server = make(DOMAIN, authority, ca=False, names=SUBJECTS)
    (directory / "server.pem").write_text(server.pem + server.key_pem)
    for name in ("resolv.conf", "resolv.conf.far"):
        (directory / name).write_text(f"nameserver {NAME_SERVER}\noptions timeout:2 attempts:1\n")
    (directory / "mail").mkdir()
    shelf.fill(directory / "www")
    lines = [f"address=/{name}/{address}" for name, addresses in NAMES.items() for address in addresses]
    lines += [f"address=/{DOMAIN}/{WEB}", f"address=/{DOMAIN}/{WEB6}", *(f"local=/{name}/" for name in (TRICKS, *NAMES))]
    (directory / "names").write_text("\n".join(lines) + "\n")
    return authority


@contextlib.contextmanager
def serving(namespace: Namespace, role: str, directory: Path) -> Iterator[str]:
    words = namespace.argv([sys.executable, "-m", "tests.machines.internet.servers", role, directory], ROOT)
    environment, pipe = {"PATH": SYSTEM_PATH}, subprocess.PIPE
    with (
        (directory / f"{role}.log").open("w") as log,
        subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=log, text=True, env=environment) as process,
    ):
        assert process.stdout and process.stdin
        word, _, path = process.stdout.readline().strip().partition(" ")
        assert word == "ready", (directory / f"{role}.log").read_text()
        try:
            yield path
        finally:
            process.stdin.close()
            process.wait(30)


def wait_for_names(host: Namespace) -> None:
    """The name server is a program of its own, and begins a moment later."""
    deadline = time.monotonic() + 20
    while subprocess.run(host.argv(["getent", "ahosts", f"www.{DOMAIN}"]), capture_output=True).returncode:
        assert time.monotonic() < deadline, "no name server"
        time.sleep(0.05)
