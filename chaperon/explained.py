"""A request and the rules → the verdict on each option, and the words of the command that would run, or why it would not. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.rebuild import rebuild, submission
from agent_sandbox.chaperon.submit import TELLS, name_of
from agent_sandbox.chaperon.validate import validate
from agent_sandbox.chaperon.views.answer import PLANS
from agent_sandbox.chaperon.views.scope import CALLED, NOBODY, Scope, Tools
from agent_sandbox.chaperon.wire import Reply
from agent_sandbox.chaperon.words import Refused, Row
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.words import Approved, Request, Rules

ALLOWED, REFUSED = "allowed", "refused"
PYTHON = "/python"
JOBS = "JOBS"  # stands for ids that only a session knows


@record
class Explained:
    command: str
    verdict: str
    rows: tuple[Row, ...]
    argv: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()  # that belong to no row
    notes: tuple[str, ...] = ()
    dated: bool = False

    def table(self) -> list[tuple[str, ...]]:
        return [(_typed(row), row.channel, row.verdict, row.reason, row.instead) for row in self.rows]


def explain(request: Request, rules: Rules, kind: str, logs: str, uid: int) -> Explained:
    """`kind` is slurm.scope, `logs` where Slurm's own output goes."""
    checked = validate(request, rules)
    if isinstance(checked, Refused):
        return Explained(command=checked.command, verdict=REFUSED, rows=checked.rows, dated=checked.dated)
    if checked.command == "sbatch":
        argv: tuple[str, ...] | Reply = _submitted(checked, logs)
        notes: tuple[str, ...] = ("your script is inside a script of ours, which sbatch reads from its input",)
    else:
        argv, notes = _viewed(checked, rules, kind, uid), (f"only for jobs {CALLED[kind]} (slurm.scope)",) if checked.jobs else ()
    notes = (*checked.notes, *notes)
    if isinstance(argv, Reply):
        lines = tuple(argv.err.decode("utf-8", "replace").splitlines())
        return Explained(command=checked.command, verdict=REFUSED, rows=checked.rows, refusals=lines, notes=notes, dated=checked.dated)
    if any(JOBS in word for word in argv):
        notes = (*notes, f"{JOBS}: those {CALLED[kind]} (slurm.scope)")
    return Explained(
        command=checked.command, verdict=ALLOWED, rows=checked.rows, argv=(checked.command, *argv), notes=notes, dated=checked.dated,
    )  # fmt: skip


def _submitted(checked: Approved, logs: str) -> tuple[str, ...]:
    told = next((name for name in TELLS if checked.has(name)), None)
    return (f"--{told}",) if told else submission(checked, name_of(checked), logs)


def _viewed(checked: Approved, rules: Rules, kind: str, uid: int) -> tuple[str, ...] | Reply:
    """The plan is made for jobs that are all in the scope. Where it begins with a question to Slurm, what follows is what was approved."""
    named = frozenset([job.job for job in checked.jobs])
    scope = Scope(
        user=rules.user, uid=uid, kind=kind, jobs=named, sessions=frozenset(), logs="/", tools=Tools(python=PYTHON, library="/", programs="/"),
    )  # fmt: skip
    step = PLANS[checked.command](checked, scope)
    if isinstance(step, Reply):
        return step
    words = step.words if isinstance(step, Command) and step.program == checked.command else rebuild(checked)
    if isinstance(step, Command) and step.program == PYTHON and isinstance(step.stdin, bytes):  # a sieve, told by its input: views/data.py
        words = tuple(step.stdin.decode("utf-8", "surrogateescape").split("\n")[4:])
    return tuple([f"--jobs={JOBS}" if word.startswith(f"--jobs={NOBODY}") else word for word in words])


def _typed(row: Row) -> str:
    if not row.value:
        return row.option
    return f"{row.option}{'=' if len(row.option) > 2 else ' '}{row.value}"
