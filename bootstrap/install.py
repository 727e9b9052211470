"""This clone → a copy of its code in the user's data directory, where no jail can write.

    versions/<key>/lib/agent_sandbox        one copy, named by its content and never changed
    versions/<key>/bin/agent-sandbox        starts it; what people put on their PATH
    versions/<key>/bin/from-clone           starts it for ../agent-sandbox, and says if the clone has changed since
    versions/<key>/bin/botadm               makes bots; agent-sandbox-bot is what a strict rule for sudo permits
    clones/<path of the clone>/.installed   which copy the clone runs, and with which interpreter

Run as `python -I install.py`: without options for the first use of a clone, which leaves alone what another process was
faster to install; with `--link` for `make install`, which takes over a change and puts the command into ~/.local/bin;
with `--system` for `make install-system`: root's own copy for everybody, below /usr/local.
"""

import compileall
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import py_compile
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

CLONE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CLONE))
sys.dont_write_bytecode = True  # nothing is written into the clone
from bootstrap.clone import changes, is_changed  # noqa: E402

FREEZE = (
    "import runpy, sys; sys.path.insert(0, sys.argv[1]); "
    "runpy.run_module('agent_sandbox.config.freeze', run_name='__main__')"
)
LIBRARIES = {"tomlkit": "`agent-sandbox config set`", "idna": "naming hosts beyond ASCII (their xn-- form does)"}
SYSTEM = Path("/usr/local")
STARTERS = {
    "agent-sandbox": "agent_sandbox.launcher.__main__", "botadm": "agent_sandbox.admin.cli", "agent-sandbox-bot": "agent_sandbox.admin.bots.entry",
}  # fmt: skip
NOTE_CHANGE = "from bootstrap.clone import note_change\n\nnote_change(sys.argv.pop(1), sys.argv.pop(1))\n"


class Failure(Exception):
    """What the user can act on; printed as one paragraph."""


def main(arguments: list[str]) -> int:
    os.umask(0o022)  # a bot or a compute node may read the copy as another user
    try:
        if "--system" in arguments:
            install_system()
            return 0
        home = find_home()
        with own_turn(home / ".local/share/agent-sandbox") as data:
            if "--link" in arguments:
                renew(data, home)
            elif not is_installed(data):
                check_unchanged(data)
                say(f"first use of this clone, installed a copy in {install(data)}")
    except Failure as problem:
        return refuse(str(problem))
    except OSError as problem:
        what = f"{problem.filename or 'the data directory'}: {problem.strerror or problem}"
        return refuse(f"{what}\n  The copy that runs goes to ~/.local/share/agent-sandbox.")
    return 0


def refuse(problem: str) -> int:
    say(f"cannot install: {problem}")
    return 125


def renew(data: Path, home: Path) -> None:
    copy = install(data)
    say(f"installed {CLONE} in {copy}")
    add_libraries(copy)
    link_command(copy, home / ".local/bin/agent-sandbox")


def install_system() -> None:
    """Root's own, readable by all. Earlier copies stay: a rule for sudo may name one until `botadm update`."""
    if os.geteuid() != 0:
        raise Failure("only root installs for everybody: sudo make install-system")
    with own_turn(SYSTEM / "lib/agent-sandbox") as data:
        python = os.path.realpath(sys.executable)
        files = read_library()
        copy = data / "versions" / key_of(files, python)
        if not copy.exists():
            make_copy(copy, files, python)
    add_libraries(copy)
    for name in ("agent-sandbox", "botadm"):
        link_command(copy, SYSTEM / "bin" / name)
    say(f"installed {CLONE} in {copy}")


def install(data: Path) -> Path:
    """The copy of the clone as it is now, made unless there is one, and recorded."""
    python = os.path.realpath(sys.executable)
    newest = max(changes(str(CLONE)))  # before reading: a file that changes while we read has changed since
    files = read_library()
    copy = data / "versions" / key_of(files, python)
    if not copy.exists():
        make_copy(copy, files, python)
    write_record(record_of(data), f"{copy}\n{python}\n", newest)
    return copy


def find_home() -> Path:
    """From passwd, as everywhere: $HOME must not choose the code that enforces."""
    try:
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        raise Failure(f"user {os.geteuid()} has no entry in passwd, so no home directory") from None
    if not home.is_dir():
        raise Failure(f"the home directory {home} does not exist")
    return home


@contextlib.contextmanager
def own_turn(data: Path) -> Iterator[Path]:
    """One installation at a time, for speed alone: every step is atomic. So where locks fail or block, go on."""
    (data / "versions").mkdir(parents=True, exist_ok=True)
    with open(data / ".lock", "w") as lock:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                break
        yield data


def record_of(data: Path) -> Path:
    return Path(f"{data}/clones{CLONE}/.installed")


def is_installed(data: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        copy, python = record_of(data).read_text(errors="surrogateescape").splitlines()
        return os.path.exists(f"{copy}/bin/from-clone") and os.access(python, os.X_OK)
    return False


def check_unchanged(data: Path) -> None:
    """That a copy stopped working, since its Python was removed, is no word of the user's about a changed clone."""
    record = record_of(data)
    if record.exists() and is_changed(str(CLONE), record.stat().st_mtime_ns):
        raise Failure(f"the copy that ran is gone, and {CLONE} changed since: `make install` there takes it as it is")


def read_library() -> dict[str, tuple[bytes, bool]]:
    """The library's files by relative path: content, and whether executable. Links count at the top alone."""
    package = CLONE / "src/agent_sandbox"
    tops = [package / name for name in sorted(os.listdir(package))]
    paths = [path for path in tops if not path.is_dir()]
    for top in tops:
        for parent, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name != "__pycache__"]
            paths += [Path(parent, name) for name in files]
    found = {f"agent_sandbox/{path.relative_to(package)}": path for path in paths if is_ours(path.name)}
    found["bootstrap/clone.py"] = CLONE / "bootstrap/clone.py"
    return {name: read_file(path) for name, path in found.items()}


def is_ours(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(("~", ".pyc"))  # what editors and Python leave behind


def read_file(path: Path) -> tuple[bytes, bool]:
    if not path.is_file():
        raise Failure(f"{path} is not a regular file")
    return path.read_bytes(), os.access(path, os.X_OK)


def key_of(files: dict[str, tuple[bytes, bool]], python: str) -> str:
    """The bytecode in a copy belongs to one version of Python, its first line to one interpreter."""
    whole = hashlib.sha256(f"{sys.version}\0{python}\0".encode(errors="surrogateescape"))
    for name, (content, executable) in sorted(files.items()):
        part = f"{name}\0{executable}\0{hashlib.sha256(content).hexdigest()}\0"
        whole.update(part.encode(errors="surrogateescape"))
    return whole.hexdigest()[:16]


def make_copy(copy: Path, files: dict[str, tuple[bytes, bool]], python: str) -> None:
    """Made under another name and renamed when whole. If another process was first, its copy is the same: keep it."""
    sweep(copy.parent)
    with new_directory(copy.parent) as new:
        for name, (content, executable) in files.items():
            write(new / "lib" / name, content, executable)
        for name, module in STARTERS.items():
            write(new / "bin" / name, starter(copy, python, "", module), True)
        write(new / "bin/from-clone", starter(copy, python, NOTE_CHANGE), True)
        if "agent_sandbox/config/freeze.py" in files:
            run("making the default settings", [python, "-I", "-S", "-B", "-c", FREEZE, f"{new}/lib"], 60)
        compile_all(new / "lib")
        try:
            new.rename(copy)
        except OSError:
            if not copy.is_dir():
                raise


@contextlib.contextmanager
def new_directory(parent: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=".new.", dir=parent))
    try:
        path.chmod(0o755)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def sweep(versions: Path) -> None:
    """Remove what installations that were killed left behind."""
    for path in versions.glob(".new.*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > 3600:
                shutil.rmtree(path, ignore_errors=True)


def write(path: Path, content: bytes, executable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755 if executable else 0o644)


def starter(copy: Path, python: str, first_step: str, module: str = STARTERS["agent-sandbox"]) -> bytes:
    """It names its library, since it may be started through a link."""
    if len(python) < 100 and not set(python) & set(" \t"):
        first_line = f"#!{python} -IS\n"
    else:  # not for the kernel: a shell's line that Python reads as a string
        first_line = f"#!/bin/bash -p\n'''exec' {shlex.quote(python)} -IS \"$0\" \"$@\"\n' '''\n"
    lib = ascii(f"{copy}/lib")
    start = f"from {module} import main\n\nsys.exit(main())\n"
    return os.fsencode(f"{first_line}import sys\n\nsys.path.insert(0, {lib})\n{first_step}{start}")


def compile_all(lib: Path) -> None:
    """Bytecode that is not checked against its source at each start: neither ever changes."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(lib, quiet=1, force=True, invalidation_mode=mode):
        raise Failure("the code of this clone does not compile")


def write_record(record: Path, content: str, newest: int) -> None:
    """Dated like the newest change that it covers, so that `find -cnewer` finds later ones."""
    record.parent.mkdir(parents=True, exist_ok=True)
    with new_directory(record.parent) as new:
        file = new / "installed"
        write(file, content.encode(errors="surrogateescape"), False)
        os.utime(file, ns=(newest, newest))
        if file.stat().st_mtime_ns < newest:  # a file system with coarser time stamps
            os.utime(file, (newest // 10**9 + 1,) * 2)
        file.replace(record)


def add_libraries(copy: Path) -> None:
    """What is not Python's own and used at run time, though not by a launch."""
    for name, use in LIBRARIES.items():
        if (copy / "lib" / name).exists():
            continue
        try:
            with new_directory(copy.parent) as new:
                fetch(name, new)
                compile_all(new / name)
                (new / name).rename(copy / "lib" / name)
        except (OSError, Failure) as problem:
            say(f"everything works but {use}, which needs {name}: {problem}")


def fetch(name: str, target: Path) -> None:
    known = importlib.util.find_spec(name)
    if known and known.origin:
        shutil.copytree(Path(known.origin).parent, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        return
    pip = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run(f"pip install {name}", [*pip, "--no-compile", "--target", str(target), name], 30)


def link_command(copy: Path, name: Path) -> None:
    ours = name.is_symlink() and os.readlink(name).startswith(f"{copy.parent}/")
    if os.path.lexists(name) and not ours:
        say(f"left {name} alone: it is not one of ours")
        return
    name.parent.mkdir(parents=True, exist_ok=True)
    new = name.with_name(f".{name.name}.{os.getpid()}")
    new.symlink_to(copy / "bin" / name.name)
    new.replace(name)
    on_path = str(name.parent) in os.environ.get("PATH", "").split(":")
    say(f"the command is {name}" + ("" if on_path else f"; {name.parent} is not on your PATH: export PATH={name.parent}:$PATH"))


def run(what: str, argv: list[str], seconds: int) -> None:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failure(f"{what} took more than {seconds} s") from None
    if done.returncode:
        last = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise Failure(f"{what} failed: {last}")


def say(text: str) -> None:
    print(f"agent-sandbox: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
