"""`sbatch`: a request → what is wanted, refused, or the real sbatch with our script; its answer is recorded before it is passed on.

The steps follow each other as the serve loop asks for them: which script, is it allowed, how many are there already, submit.
"""

from __future__ import annotations

import os
import time

from agent_sandbox.chaperon import words
from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.envelope import Job, Launcher, forced_options, make_script, pack_variables
from agent_sandbox.chaperon.outputs import Files
from agent_sandbox.chaperon.rebuild import force, rebuild
from agent_sandbox.chaperon.registry import COMMANDS, variables
from agent_sandbox.chaperon.validate import script_of, validate
from agent_sandbox.chaperon.views.answer import ledger_of, rules_of
from agent_sandbox.chaperon.wire import Reply, Want, refused
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.command import Result, Step
    from agent_sandbox.chaperon.ledger import Ledger
    from agent_sandbox.chaperon.orders import Orders
    from agent_sandbox.chaperon.wire import Request
    from agent_sandbox.chaperon.words import Approved

MINUTE = 60.0
TELLS = ("help", "usage", "version")  # the command does nothing else
WRAP = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{command}\n"  # as sbatch writes it


def submit(request: Request, orders: Orders) -> Step:
    path = script_of(request.words)
    if path is not None and (request.script is None or request.script.path != path):
        return Want(path=path)
    script = request.script.content if request.script and path is not None else None
    text = None if script is None else script.decode("utf-8", "surrogateescape")
    known = set(variables(COMMANDS["sbatch"]))
    asked = words.Request(
        command="sbatch", words=request.words, environment={name: value for name, value in request.environment.items() if name in known},
        cwd=request.cwd, script=text,
    )  # fmt: skip
    checked = validate(asked, rules_of(orders))
    if isinstance(checked, words.Refused):
        return refused("sbatch", *map(str, checked.reasons))
    for name in TELLS:
        if checked.has(name):
            return Command(program="sbatch", words=(f"--{name}",))
    ledger = ledger_of(orders)
    late = _too_fast(checked, orders, ledger)
    if late:
        return refused("sbatch", late)
    if orders.caps.max_jobs is None or checked.has("test-only"):
        return _start(request, checked, script, orders, ledger)
    return Command(
        program="squeue", words=("--noheader", "--array", f"--user={orders.user}", "--format=%i"),
        finish=lambda found: _if_there_is_room(found, request, checked, script, orders, ledger),
    )  # fmt: skip


def _too_fast(checked: Approved, orders: Orders, ledger: Ledger) -> str:
    most = orders.caps.max_submit_rate
    if most is None or checked.has("test-only"):
        return ""
    done, more = ledger.submitted_since(time.time() - MINUTE), checked.sizes.array if checked.sizes else 1
    if done + more <= most:
        return ""
    return f"{done} jobs were submitted within a minute, and this would be {more} more: slurm.max_submit_rate is {most}; wait a minute"


def _if_there_is_room(found: Result, request: Request, checked: Approved, script: bytes | None, orders: Orders, ledger: Ledger) -> Step:
    if found.code:
        return Reply(code=found.code, err=found.err)
    running, more, most = len(found.out.split()), checked.sizes.array if checked.sizes else 1, orders.caps.max_jobs
    if most is not None and running + more > most:
        return refused("sbatch", f"you have {running} jobs, and this would be {more} more: slurm.max_jobs is {most}; wait until some have ended")
    return _start(request, checked, script, orders, ledger)


def _start(request: Request, checked: Approved, script: bytes | None, orders: Orders, ledger: Ledger) -> Step:
    token = ""
    try:
        token = ledger.intend()
        return _submission(request, checked, script, orders, ledger, token)
    except UserError as error:
        if token:
            ledger.drop(token)
        return refused("sbatch", f"{error.problem}" + (f" ({error.where})" if error.where else "") + (f"; {error.hint}" if error.hint else ""))


def _submission(request: Request, checked: Approved, script: bytes | None, orders: Orders, ledger: Ledger, token: str) -> Command:
    job = _job(request, checked, script, orders, f"{ledger.log_directory}/{token}.env")
    packed = make_script(job, Launcher(python=orders.python, library=orders.library, entry=orders.entry))
    _write(job.variables, pack_variables(request.environment))
    approved = force(checked, "ignore-pbs")
    for name, value in {**forced_options(ledger.log_directory), "chdir": "/"}.items():
        approved = force(approved, name, value)
    if not approved.has("job-name"):
        approved = force(approved, "job-name", job.name)
    options = tuple(word for word in rebuild(approved) if word not in ("--parsable", "--quiet"))
    return Command(
        program="sbatch", words=(*options, "--parsable"), stdin=packed, lasting=approved.has("wait"),
        finish=lambda result: _answer(result, checked, job, ledger, token),
    )  # fmt: skip


def _job(request: Request, checked: Approved, script: bytes | None, orders: Orders, variables_file: str) -> Job:
    wrapped = checked.value("wrap")
    body = WRAP.format(command=wrapped).encode("utf-8", "surrogateescape") if wrapped is not None else script or b""
    named = checked.operands[0].rpartition("/")[2] if checked.operands else "wrap" if wrapped is not None else "sbatch"
    directory = checked.meaning("chdir")
    return Job(
        name=checked.value("job-name") or named, script=body, arguments=tuple(checked.operands[1:]),
        cwd=str(directory) if directory else request.cwd, submit_directory=request.cwd, export=checked.value("export"),
        files=Files(input=checked.value("input") or "", output=checked.value("output") or "", error=checked.value("error") or ""),
        open_mode=checked.value("open-mode") or "", umask=request.umask, project=orders.project, session=orders.session,
        settings=orders.settings, variables=variables_file,
    )  # fmt: skip


def _write(path: str, content: bytes) -> None:
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise UserError(f"nothing was submitted: the job's variables could not be kept: {error.strerror}", where=path)


def _answer(result: Result, checked: Approved, job: Job, ledger: Ledger, token: str) -> Reply:
    """Recorded first. With --wait the job has ended by now, and its exit code is ours."""
    number = result.out.decode("ascii", "replace").strip().partition(";")[0]
    if not number.isdecimal():
        if not result.timed_out:  # else it may have been submitted: the intent stays, and Slurm is asked
            ledger.drop(token)
            _remove(job.variables)
        told = b"" if checked.has("test-only") and checked.has("quiet") and not result.code else result.err
        return Reply(code=result.code, out=b"" if checked.has("test-only") else result.out, err=told)
    ledger.record(token, int(number), checked.sizes.array if checked.sizes else 1, job.name)
    told = result.out if checked.has("parsable") else f"Submitted batch job {number}\n".encode()
    return Reply(code=result.code, out=b"" if checked.has("quiet") else told, err=result.err, facts=(("job", int(number)), ("name", job.name)))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
