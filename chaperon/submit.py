"""`sbatch`: a request → what is wanted, refused, or the real sbatch with our script; its answer is recorded before it is passed on.

The steps follow each other as the serve loop asks for them: which script, is it allowed, how many are there already, submit.
"""

from __future__ import annotations

import os

from agent_sandbox.chaperon import words
from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.envelope import Job, Launcher, make_script, pack_variables
from agent_sandbox.chaperon.outputs import Files
from agent_sandbox.chaperon.rebuild import submission
from agent_sandbox.chaperon.registry import COMMANDS, variables
from agent_sandbox.chaperon.room import with_room
from agent_sandbox.chaperon.validate import script_of
from agent_sandbox.chaperon.views.answer import ledger_of, with_verdict
from agent_sandbox.chaperon.views.scope import NO_LOG
from agent_sandbox.chaperon.wire import Reply, Want, refused
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.command import Result, Step
    from agent_sandbox.chaperon.ledger import Ledger
    from agent_sandbox.chaperon.orders import Orders
    from agent_sandbox.chaperon.wire import Request
    from agent_sandbox.chaperon.words import Approved, Refused

READ = frozenset(variables(COMMANDS["sbatch"]))
TELLS = ("help", "usage", "version")  # the command does nothing else
WRAP = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{command}\n"  # as sbatch writes it


def submit(request: Request, orders: Orders) -> Step:
    wanted = script_of(request.words)
    if wanted is not None and (request.script is None or request.script.path != wanted[0]):
        return Want(path=wanted[0], typed=wanted[1])
    script = request.script.content if request.script and wanted is not None else None
    text = None if script is None else script.decode("utf-8", "surrogateescape")
    asked = words.Request(
        command="sbatch", words=request.words, environment={name: value for name, value in request.environment.items() if name in READ},
        cwd=request.cwd, script=text,
    )  # fmt: skip
    return with_verdict(asked, orders, lambda checked: _carry_out(request, checked, script, orders))


def _carry_out(request: Request, checked: Approved | Refused, script: bytes | None, orders: Orders) -> Step:
    if isinstance(checked, words.Refused):
        return refused("sbatch", *map(str, checked.reasons))
    for name in TELLS:
        if checked.has(name):
            return Command(program="sbatch", words=(f"--{name}",))
    ledger = ledger_of(orders)
    tasks = 0 if checked.has("test-only") else checked.sizes.array if checked.sizes else 1
    return with_room("sbatch", tasks, orders.caps, ledger, lambda token: _start(request, checked, script, orders, ledger, token))


def _start(request: Request, checked: Approved, script: bytes | None, orders: Orders, ledger: Ledger, token: str) -> Step:
    """The script is made while sbatch starts, which reads it to the end before it submits anything."""
    job = _job(request, checked, script, orders, f"{ledger.log_directory}/{token}.env")
    try:
        options = submission(checked, job.name, ledger.log_directory)
    except UserError as error:
        ledger.drop(token)
        return refused("sbatch", " ".join(str(error).split()))

    def prepare() -> bytes:
        try:
            packed = make_script(job, Launcher(python=orders.python, library=orders.library, entry=orders.entry))
            _write(job.variables, pack_variables(request.environment))
        except UserError as error:
            ledger.drop(token)
            raise UserError(" ".join(str(error).split())) from None
        return packed

    waits, submitted = checked.has("wait"), Submission(checked, job, ledger, token)
    return Command(
        program="sbatch", words=options, stdin=prepare, lasting=waits, hear=submitted.hear if waits else None, finish=submitted.finish,
    )  # fmt: skip


def _job(request: Request, checked: Approved, script: bytes | None, orders: Orders, variables_file: str) -> Job:
    wrapped = checked.value("wrap")
    body = WRAP.format(command=wrapped).encode("utf-8", "surrogateescape") if wrapped is not None else script or b""
    directory = checked.meaning("chdir")
    return Job(
        name=name_of(checked), script=body, arguments=tuple(checked.operands[1:]),
        cwd=str(directory) if directory else request.cwd, submit_directory=request.cwd, export=checked.value("export"),
        files=Files(input=checked.value("input") or "", output=checked.value("output") or "", error=checked.value("error") or ""),
        open_mode=checked.value("open-mode") or "", umask=request.umask, project=orders.project, session=orders.session,
        settings=orders.settings, variables=variables_file,
    )  # fmt: skip


def name_of(checked: Approved) -> str:
    """As sbatch names a job that was given no name; a file's name may hold what no list of jobs should print."""
    named = checked.operands[0].rpartition("/")[2] if checked.operands else "wrap" if checked.has("wrap") else "sbatch"
    return checked.value("job-name") or "".join([char if char.isprintable() else "?" for char in named])


def _write(path: str, content: bytes) -> None:
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise UserError(f"nothing was submitted: the job's variables could not be kept: {error.strerror}", where=path)


class Submission:
    """What sbatch says of a job, recorded before it is passed on: at once where it then waits for the job, else at its end."""

    def __init__(self, checked: Approved, job: Job, ledger: Ledger, token: str) -> None:
        self._checked, self._job, self._ledger, self._token = checked, job, ledger, token
        self._number = 0

    def hear(self, line: bytes) -> bytes:
        """The job's number → what the stub is told; nothing where it is none, or was told before."""
        number = line.decode("ascii", "replace").strip().partition(";")[0]
        if self._number or not number.isdecimal():
            return b""
        self._number = int(number)
        self._ledger.record(self._token, self._number, self._checked.sizes.array if self._checked.sizes else 1, self._job.name)
        if self._checked.has("quiet"):
            return b""
        return line if self._checked.has("parsable") else f"Submitted batch job {number}\n".encode()

    def finish(self, result: Result) -> Reply:
        """With --wait the job has ended by now, and its exit code is ours."""
        told = self.hear(result.out)
        if not self._number:
            return self._refused(result)
        facts = (("job", self._number), ("name", self._job.name))
        return Reply(code=result.code, out=told, err=result.err + self._why(result.code), facts=facts)

    def _refused(self, result: Result) -> Reply:
        if not result.timed_out:  # else it may have been submitted: the intent stays, and Slurm is asked
            self._ledger.drop(self._token)
            _remove(self._job.variables)
        tests = self._checked.has("test-only")
        silent = tests and self._checked.has("quiet") and not result.code
        return Reply(code=result.code, out=b"" if tests else result.out, err=b"" if silent else result.err)

    def _why(self, code: int) -> bytes:
        """Why a job that was waited for never started: there is no output of its own that would tell."""
        reason = self._ledger.reasons(self._number) if code and self._checked.has("wait") else ""
        return f"{reason}\n".encode() if reason and reason != NO_LOG.format(job=self._number) else b""


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
