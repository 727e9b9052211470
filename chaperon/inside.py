"""Inside the jail of a job: open its files, go to its directory, get its environment, and become the agent's script.

Run as `python -I -S inside.py`. Every path here is the agent's, and reaches only what the agent reaches. Until the job's own output
is open, stderr is the forced log: why it could not be opened stands there.
"""

from __future__ import annotations

import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal

NO_FILES = 53  # what Slurm says of a job whose output it could not open
NO_DIRECTORY = 125
OWN, OWN_VARIABLE = "/run/agent-sandbox", "AGENT_SANDBOX_OWN"  # as in launcher/own.py
PORT_VARIABLE, PORT_TO_COME = "AGENT_SANDBOX_PORT", "@PORT@"  # of the proxy, where only the process that builds the jail knows it
SCRIPT, ORDERS = "slurm_script", "job"  # in the jail's own place
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"  # what the launcher puts where PATH was not given
LONGEST_FIRST_LINE = 255  # of which the kernel sees no more
LOGIN_SECONDS = 10
LOGIN_GETS = ("HOME", "USER", "LOGNAME", "PATH", "TMPDIR", "AGENT_SANDBOX", OWN_VARIABLE)
MOST_SAID = 8 << 20
MARK = b"agent-sandbox: variables follow"
SHOW = f"/usr/bin/printf '\\0%s\\0' '{MARK.decode()}'; /usr/bin/env -0"


def main() -> NoReturn:
    own = os.environ.get(OWN_VARIABLE, OWN)
    orders = marshal.loads(_read(f"{own}/{ORDERS}"))
    script = f"{own}/{SCRIPT}"
    os.umask(orders["umask"])
    _enter(orders["cwd"])
    open_files(orders)
    environment = with_port({**orders["environment"], "PWD": orders["cwd"]}, os.environ.get(PORT_VARIABLE, ""))
    if orders["shell"]:
        environment = over_login(environment, orders["shell"], path_given=orders["path_given"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    become([*interpreter(_read(script)), script, *orders["arguments"]], environment)


def with_port(environment: dict[str, str], port: str) -> dict[str, str]:
    return {name: value.replace(PORT_TO_COME, port) for name, value in environment.items()} if port else environment


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        _end(f"the job's directory {directory!r}: {error.strerror}", NO_DIRECTORY)


def open_files(orders: dict[str, Any]) -> None:
    """As Slurm does it: always at the end of the file, which is emptied first unless the job is to append."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if orders["append"] else os.O_TRUNC)
    source = _open(orders["input"], os.O_RDONLY, "input")
    output = _open(orders["output"], flags, "output")
    error = output if orders["error"] == orders["output"] else _open(orders["error"], flags, "error")
    for number, handle in enumerate((source, output, error)):
        os.dup2(handle, number)
    for handle in {source, output, error}:
        os.close(handle)


def _open(path: str, flags: int, what: str) -> int:
    try:
        handle = os.open(path, flags | os.O_NOCTTY, 0o666)
    except OSError as error:
        _end(f"the job's {what} file {path!r}: {error.strerror}", NO_FILES)
    if handle > 2:
        return handle
    import fcntl

    return fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 3)


def interpreter(script: bytes) -> list[bytes]:
    """As the kernel reads a first line: a program, and all that follows as one argument."""
    line = script[:LONGEST_FIRST_LINE].partition(b"\n")[0]
    words = line[2:].strip(b" \t").split(None, 1) if line.startswith(b"#!") else []
    return words or [b"/bin/sh"]


def become(command: list[bytes | str], environment: dict[str, str]) -> NoReturn:
    """The exit code is the error's number, as in Slurm."""
    try:
        os.execve(command[0], command, environment)
    except OSError as error:
        _end(f"the job's interpreter {os.fsdecode(command[0])!r}: {error.strerror}", error.errno or NO_DIRECTORY)


def over_login(environment: dict[str, str], shell: str, *, path_given: bool) -> dict[str, str]:
    """What a log-in shell sets, in this jail, below what is set already."""
    found = login_environment(environment, shell)
    found.pop("_", None)
    path = environment.get("PATH", "")
    if not path_given and found.get("PATH"):
        path = path.replace(DEFAULT_PATH, found["PATH"], 1)
    return {**found, **environment, "PATH": path}


def login_environment(environment: dict[str, str], shell: str) -> dict[str, str]:
    given = {name: environment[name] for name in LOGIN_GETS if name in environment}
    hear, tell = os.pipe()
    try:
        child = os.posix_spawn(
            shell, [f"-{os.path.basename(shell)}", "-c", SHOW], {**given, "SHELL": shell, "ENVIRONMENT": "BATCH"},
            file_actions=[(os.POSIX_SPAWN_DUP2, tell, 1)],
        )  # fmt: skip
    except OSError as error:
        _say(f"no log-in environment: {shell!r}: {error.strerror}")
        return {}
    os.close(tell)
    said, ended = hear_all(hear, LOGIN_SECONDS)
    if not ended:
        _say(f"no log-in environment: {shell!r} did not end within {LOGIN_SECONDS} s")
        os.kill(child, signal.SIGKILL)
    os.close(hear)
    os.waitpid(child, 0)
    return variables_in(said) if ended else {}


def hear_all(pipe: int, seconds: float) -> tuple[bytes, bool]:
    """What is written until the last writer is gone, and whether that was in time."""
    import select
    import time

    said, deadline = b"", time.monotonic() + seconds
    while len(said) < MOST_SAID and select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(pipe, 1 << 16)
        if not piece:
            return said, True
        said += piece
    return said, False


def variables_in(said: bytes) -> dict[str, str]:
    """After our mark: a profile may print too."""
    entries = said.split(b"\0")
    after = entries[entries.index(MARK) + 1 :] if MARK in entries else []
    pairs = [os.fsdecode(entry).partition("=") for entry in after]
    return {name: value for name, equals, value in pairs if equals and name}


def _say(text: str) -> None:
    os.write(2, f"agent-sandbox: {text}\n".encode("utf-8", "backslashreplace"))


def _end(problem: str, code: int) -> NoReturn:
    _say(problem)
    os._exit(code)


if __name__ == "__main__":
    main()
