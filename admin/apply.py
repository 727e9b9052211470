"""Steps are done one after the other; at the first failure all that was done is taken back, last first. The journal knows each of them
before it is done, so what a killed process left half done is taken back by the next one.
"""

from __future__ import annotations

import contextlib

from agent_sandbox.admin import acts, interrupt, journal
from agent_sandbox.admin.accountlines import Conflict
from agent_sandbox.admin.steps import FINAL
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.share.rules import Tally
    from agent_sandbox.admin.steps import Step

PROBLEMS = (acts.Failed, Conflict, OSError, KeyError, UserError, interrupt.Interrupted)


@record
class Undone:
    """What became of taking steps back: what was, what never can be, and what could not be and why."""

    back: tuple[str, ...]
    final: tuple[str, ...]
    stuck: tuple[str, ...]


def apply(command: str, steps: tuple[Step, ...], turn: int) -> tuple[Tally, ...]:
    """All of them, or none: UserError says what failed and what was taken back."""
    book = _begin(command)
    done: list[journal.Done] = []
    tallies, doing = [], ""
    try:
        for number, step in enumerate(steps):
            doing = step.does
            tallies.append(_do(book, number, step, done, turn))
        doing = "note in the journal that all is done"
        book.end("applied")
    except Exception as error:
        undone = take_back(tuple(done))
        if not undone.stuck:
            with contextlib.suppress(OSError):  # then the next command takes it back once more, which changes nothing
                book.end("undone")
        if not isinstance(error, PROBLEMS):  # a mistake of ours: all is back, and it shows
            raise
        raise _failure(command, doing, _words(error), undone) from None
    journal.tidy()
    return tuple(one for one in tallies if one)


def _begin(command: str) -> journal.Journal:
    try:
        return journal.Journal(command)
    except OSError as error:
        raise UserError(f"the journal cannot be written, so nothing is done: {_words(error)}", where=command, code=1) from None


def _do(book: journal.Journal, number: int, step: Step, done: list[journal.Done], turn: int) -> Tally | None:
    interrupt.check()
    saved = acts.save(step.act)
    book.begin(number, step, saved)
    done.append(journal.Done(does=step.does, act=step.act, saved=saved))
    tally = acts.do(step.act, turn)
    problem = acts.check(step.act)
    if problem:
        raise acts.Failed(f"done, but then {problem}")
    left = acts.after(step.act)
    done[-1] = journal.Done(does=step.does, act=step.act, saved={**saved, **left})
    book.done(number, left)
    return tally


def take_back(done: tuple[journal.Done, ...]) -> Undone:
    back, final, stuck = list[str](), list[str](), list[str]()
    for one in reversed(done):
        try:
            acts.undo(one.act, one.saved)
            (final if isinstance(one.act, FINAL) else back).append(one.does)
        except PROBLEMS as error:
            stuck.append(f"{one.does} ({_words(error)})")
    return Undone(back=tuple(back), final=tuple(final), stuck=tuple(stuck))


def recover() -> tuple[str, ...]:
    """Take back what killed processes left; what was done, in words. To be called in one's own turn."""
    said = []
    for entry in reversed(journal.entries()):
        if not entry.end:
            undone = take_back(entry.steps)
            journal.mark(entry, "undone")
            left = undone.final + undone.stuck
            stuck = f"; not taken back: {', '.join(left)}" if left else ""
            said.append(f"«{entry.command}» was interrupted: {len(undone.back)} of its steps were taken back{stuck}")
    return tuple(said)


def _failure(command: str, doing: str, why: str, undone: Undone) -> UserError:
    back = f"taken back: {'; '.join(undone.back)}" if undone.back else "nothing had to be taken back"
    left = undone.final + undone.stuck
    stuck = f"; NOT taken back: {'; '.join(left)}" if left else ""
    return UserError(f"«{doing}» failed: {why}", where=command, hint=back + stuck, code=1)


def _words(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    return f"unknown name {error}" if isinstance(error, KeyError) else str(error)
