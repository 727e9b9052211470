"""All that a jail must keep apart, made outside for one user: files, services, processes, shared memory – with names for the facts."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.jail.services import listener
from tests.jail.settings import VARIABLES, Setting
from tests.machines import users
from tests.machines.copies import fill_copy
from tests.machines.jail import Jail, Result

SECRET = "hunter2"
MAILERS = "/usr/local/sbin"
WITH_OTHERS = f'mount --bind "$1" /etc && mount --bind "$2" {MAILERS} || exit 99; shift 2; exec "$@"'
APART = ("/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", WITH_OTHERS, "sh")
VICTIMS = (
    "table", "beside", "truncates", "removes", "moves", "moves-away", "links", "replaced", "mode", "mode-of-open", "owner", "times",
    "times-of-open", "attribute", "attribute-of-open", "flags", "secret/token",
)  # fmt: skip
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
CREATE = 0o1000 | 0o666
CROWD = 60
DEVICES = ("/dev/fuse", "/dev/net/tun")


class World:
    def __init__(self, jail: Jail, places: dict[str, str]) -> None:
        self.jail, self.places = jail, places

    def run(self, argv: Sequence[str], *, as_root: bool = False) -> Result:
        """As the user, where /etc is a copy – other tests add accounts meanwhile, which a jail may notice – and a mailer is installed."""
        user = self.jail.user
        identity = () if as_root else ("setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--init-groups", "--")
        words = (*APART, self.places["etc"], self.places["mailers"], *identity, *argv)
        done = users.run_as(users.current_user(), words, env={**user.environment, **VARIABLES}, cwd=self.jail.project)
        return Result(code=done.returncode, out=done.stdout, err=done.stderr)

    def fill(self, text: str) -> str:
        """The places in braces, by their paths."""
        for name, path in self.places.items():
            text = text.replace(f"{{{name}}}", path)
        return text

    @contextlib.contextmanager
    def during(self, setting: Setting) -> Iterator[None]:
        """What is there in one setting only."""
        with contextlib.ExitStack() as stack:
            if setting.crowded:
                stack.enter_context(_crowd(self.jail.user))
            if "{service}" in setting.options:
                for path in ("{service}/socket", "{project}/service.socket"):
                    stack.enter_context(listener(socket.AF_UNIX, self.fill(path)))
            stack.enter_context(self._chores())
            yield

    @contextlib.contextmanager
    def _chores(self) -> Iterator[None]:
        """Done outside when an act inside asks for it, by a file in the project."""
        places = {name: Path(path) for name, path in self.places.items()}
        chores: dict[Path, Callable[[], object]] = {
            places["project"] / "chore-netrc": lambda: _replace(places["netrc"], self.jail.user),
            places["project"] / "chore-pgpass": lambda: _replace(places["home"] / ".pgpass", self.jail.user),
            places["project"] / "chore-vault": lambda: _replace(places["project"] / "vault-file", self.jail.user),
            places["project"] / "chore-later": lambda: _fill(places["later"]),
            places["project"] / "chore-account": lambda: _replace_accounts(places["etc"]),
        }
        ended = threading.Event()

        def work() -> None:
            while not ended.wait(0.02):
                for asked, chore in chores.items():
                    if asked.exists():
                        chore()
                        asked.unlink()

        thread = threading.Thread(target=work)
        thread.start()
        yield
        ended.set()
        thread.join()
        (places["home"] / ".pgpass").unlink(missing_ok=True)
        shutil.rmtree(places["later"], ignore_errors=True)


@contextlib.contextmanager
def made(user: users.TestUser) -> Iterator[World]:
    """Only root can: accounts, devices, directories in / and /run."""
    name = f"agent-sandbox-test-{os.getpid()}-{user.uid}"
    home, project = user.home, user.home / "project"
    places = {
        "name": name, "user": user.name, "home": str(home), "project": str(project), "data": str(home / "data"), "out": str(home / "out"),
        "service": str(home / "service"), "key": str(home / ".ssh/id_ed25519"), "netrc": str(home / ".netrc"), "mnt": f"/mnt/{name}",
        "top": f"/{name}", "top_name": name, "later": f"/{name}-later", "tmp": f"/tmp/{name}", "tmp_name": name,
        "var_tmp": f"/var/tmp/{name}", "shm": f"/dev/shm/{name}", "device": f"/dev/{name}", "much_memory": str(4 << 30),
        "settings": str(home / ".config/agent-sandbox"), "state": str(home / ".local/state/agent-sandbox"), "tools": str(home / "tools"),
        "slurm_conf": f"/etc/slurm/{name}.conf", "etc": f"/var/lib/{name}-etc", "mailers": f"/var/lib/{name}-mailers",
        "mailer": f"{MAILERS}/msmtp", "munge": f"/run/munge/{name}.socket",
        "docker": f"/run/{name}/docker.sock",
        "log": f"/run/{name}/log", "packets": f"/run/{name}/packets", "bus": f"/run/user/{user.uid}/bus",
        "agent": f"/tmp/{name}-agent/agent.1", "granted": f"/run/{name}/granted", "beside_granted": f"/run/{name}/beside",
    }  # fmt: skip
    jail = Jail(copy=home / "tools", user=user, project=project)
    with contextlib.ExitStack() as stack:
        _fill_home(jail, places)
        fill_copy(_mkdir(jail.copy))
        for path in (places["mnt"], places["top"]):
            stack.callback(shutil.rmtree, path)
            _fill(Path(path), mode=0o777)
        for path in (places["tmp"], places["var_tmp"], places["shm"]):
            stack.callback(_remove, path)
            _mkdir(Path(path).parent)
            Path(path).write_text(SECRET)
        subprocess.run(["chown", "-Rh", f"{user.uid}:{user.gid}", home], check=True)
        _add_setuid_program(project / "id")
        _add_device(places["device"], stack)
        _open_devices(user, stack)
        _add_services(places, user, stack)
        places |= _add_memory(name, stack)
        places |= _add_others(user, stack)
        places |= _add_ports(stack)
        _copy_etc(places, stack)
        _add_mailer(places, stack)
        yield World(jail, places)


def _mkdir(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _fill(directory: Path, mode: int = 0o755) -> None:
    _mkdir(directory).chmod(mode)
    (directory / "file").write_text(SECRET)


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def _replace(path: Path, user: users.TestUser) -> None:
    """As most programs save: a new file is moved over the old one."""
    new = path.with_name(path.name + "-new")
    new.write_text(SECRET)
    os.chown(new, user.uid, user.gid)
    new.rename(path)


def _fill_home(jail: Jail, places: dict[str, str]) -> None:
    home, project, data = (Path(places[name]) for name in ("home", "project", "data"))
    for path in (home / "out", data / "empty", project / "sub", home / "service", project / "vault", home / ".gnupg", home / "private"):
        _mkdir(path)
    secrets = ("notes", "notes-short", ".bashrc", "notes-mode", "notes-times", "private/diary", ".ssh/id_ed25519", ".netrc")
    files = [home / name for name in secrets] + [data / name for name in VICTIMS]
    files += [project / name for name in ("here", "here-too", "replacement", "vault/token", "vault-file", ".vscode/tasks.json")]
    for path in files:
        _mkdir(path.parent)
        path.write_text(SECRET)
    (home / "private/tool").write_text("#!/bin/sh\nexit 0\n")
    (home / "private/tool").chmod(0o755)
    for name, target in (("to-notes", "notes"), ("to-key", ".ssh/id_ed25519")):
        (project / name).symlink_to(home / target)
    (project / "to-docker").symlink_to(places["docker"])
    subprocess.run(["git", "init", "-q", project], check=True)
    jail.configure("")


def _copy_etc(places: dict[str, str], stack: contextlib.ExitStack) -> None:
    """With settings of Slurm's in it."""
    stack.callback(shutil.rmtree, places["etc"])
    subprocess.run(["cp", "-a", "/etc", places["etc"]], check=True)
    conf = Path(places["etc"] + places["slurm_conf"].removeprefix("/etc"))
    _mkdir(conf.parent)
    conf.write_text(SECRET)


def _add_mailer(places: dict[str, str], stack: contextlib.ExitStack) -> None:
    stack.callback(shutil.rmtree, places["mailers"])
    mailer = _mkdir(Path(places["mailers"])) / "msmtp"
    mailer.write_text("#!/bin/sh\nexit 0\n")
    mailer.chmod(0o755)


def _replace_accounts(etc: Path) -> None:
    """As `useradd` does: new files are moved over the old ones."""
    for name in ("passwd", "group"):
        shutil.copy2(etc / name, etc / f"{name}+")
        (etc / f"{name}+").rename(etc / name)


def _add_setuid_program(path: Path) -> None:
    shutil.copyfile("/usr/bin/id", path)
    path.chmod(0o4755)


def _open_devices(user: users.TestUser, stack: contextlib.ExitStack) -> None:
    """On some machines these are open to everybody, on others to root alone: here to this user, while the facts are looked at."""
    for path in DEVICES:
        stack.callback(subprocess.run, ["setfacl", "-x", f"u:{user.name}", path], check=True)
        subprocess.run(["setfacl", "-m", f"u:{user.name}:rw", path], check=True)


def _add_device(path: str, stack: contextlib.ExitStack) -> None:
    """Another name of /dev/null that everybody may open."""
    stack.callback(_remove, path)
    os.mknod(path, stat.S_IFCHR, os.stat("/dev/null").st_rdev)
    os.chmod(path, 0o666)


def _add_services(places: dict[str, str], user: users.TestUser, stack: contextlib.ExitStack) -> None:
    home, name = places["home"], places["name"]
    stream, datagram, packets = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET
    for path in (f"/run/{name}", f"/run/user/{user.uid}", f"/tmp/{name}-agent"):
        stack.callback(shutil.rmtree, path)
        os.chown(_mkdir(Path(path)), user.uid, user.gid)
    _mkdir(Path("/run/munge"))
    streams = [places[one] for one in ("docker", "granted", "beside_granted", "bus", "agent", "munge")]
    streams += [f"{home}/.gnupg/S.gpg-agent", f"{home}/service.socket", f"{places['shm']}-socket", f"\0{name}"]
    for address in streams:
        stack.enter_context(listener(socket.AF_UNIX, address, stream))
    for address in (places["log"], f"\0{name}-log"):
        stack.enter_context(listener(socket.AF_UNIX, address, datagram))
    stack.enter_context(listener(socket.AF_UNIX, places["packets"], packets))


def _add_ports(stack: contextlib.ExitStack) -> dict[str, str]:
    wanted = {
        "port": (socket.AF_INET, "127.0.0.1", socket.SOCK_STREAM), "port6": (socket.AF_INET6, "::1", socket.SOCK_STREAM),
        "udp": (socket.AF_INET, "127.0.0.1", socket.SOCK_DGRAM),
    }  # fmt: skip
    made = {name: stack.enter_context(listener(family, (host, 0), kind)) for name, (family, host, kind) in wanted.items()}
    return {name: str(server.getsockname()[1]) for name, server in made.items()}


def _add_memory(name: str, stack: contextlib.ExitStack) -> dict[str, str]:
    """System V memory, a message queue, semaphores and a POSIX message queue that everybody may use."""
    key = 0x5A000000 + os.getpid()
    umask = os.umask(0)
    memory, queue, semaphores = libc.shmget(key, 4096, CREATE), libc.msgget(key, CREATE), libc.semget(key, 1, CREATE)
    posix = libc.mq_open(f"/{name}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    os.umask(umask)
    assert min(memory, queue, semaphores, posix) >= 0
    ctypes.memmove(libc.shmat(memory, None, 0), SECRET.encode(), len(SECRET))
    for option, number in (("-m", memory), ("-q", queue), ("-s", semaphores)):
        stack.callback(subprocess.run, ["ipcrm", option, str(number)], check=True)
    stack.callback(libc.mq_unlink, f"/{name}".encode())
    stack.callback(os.close, posix)
    return {"key_number": str(key), "memory": str(memory), "queue": name}


def _add_others(user: users.TestUser, stack: contextlib.ExitStack) -> dict[str, str]:
    """Another person, another process of the user's, another terminal of the user's."""
    other = stack.enter_context(users.account(groups=("users",)))
    ours, theirs = os.openpty()
    stack.callback(os.close, ours)
    stack.callback(os.close, theirs)
    terminal = os.ttyname(theirs)
    os.chown(terminal, user.uid, user.gid)
    process = users.start_as(user, ["/bin/sleep", "600"], env={"SECRET_OF_ANOTHER": "of another process"})
    stack.callback(process.wait)
    stack.callback(process.kill)
    return {"other": other.name, "other_number": str(other.uid), "terminal": terminal, "pid": str(process.pid)}


@contextlib.contextmanager
def _crowd(user: users.TestUser) -> Iterator[None]:
    script = f"for i in $(seq {CROWD}); do sleep 600 & done; echo ready; wait"
    with users.start_as(user, ["/bin/sh", "-c", script], stdout=subprocess.PIPE, new_session=True) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        yield
        os.killpg(process.pid, 9)
