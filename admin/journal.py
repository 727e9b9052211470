"""What was applied, in files of root's, each written before the change that it tells of: one file a command.

    {"command": …}                                  the command
    {"step": 0, "act": …, "saved": …}               about to be done; how things were
    {"step": 0, "left": …}                          done
    {"end": "applied" | "undone"}                   nothing is open; without it the process was killed, and the next one takes it back
"""

from __future__ import annotations

import contextlib
import json
import os

from agent_sandbox.admin.descriptors import append
from agent_sandbox.admin.places import JOURNAL, STATE
from agent_sandbox.admin.plaindata import from_act, to_act
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.steps import Act, Step

    Saved = dict[str, object]

KEPT = 50  # older entries go


@record
class Done:
    """One step of an entry: what was done, and how things were."""

    does: str
    act: Act
    saved: Saved


@record
class Entry:
    path: str
    command: str
    steps: tuple[Done, ...]
    end: str


class Journal:
    """The entry of the command that is being applied."""

    def __init__(self, command: str) -> None:
        make_state()
        numbers = [int(name.split(".")[0]) for name in names()]
        self.path = f"{JOURNAL}/{max(numbers, default=0) + 1:08d}.jsonl"
        self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._write({"command": command})

    def begin(self, number: int, step: Step, saved: Saved) -> None:
        self._write({"step": number, "does": step.does, "act": from_act(step.act), "saved": saved})

    def done(self, number: int, left: Saved) -> None:
        self._write({"step": number, **left})

    def end(self, how: str) -> None:
        self._write({"end": how})
        os.close(self._handle)

    def _write(self, line: dict[str, object]) -> None:
        append(self._handle, json.dumps(line).encode() + b"\n")
        os.fsync(self._handle)


def make_state() -> None:
    """Our directories, for root; who owns which bot may be read by all."""
    for path, mode in ((STATE, 0o755), (f"{STATE}/bots", 0o755), (f"{STATE}/disabled", 0o700), (JOURNAL, 0o700), (f"{STATE}/shares", 0o700)):
        try:
            os.mkdir(path, mode)  # the umask is 022
        except FileExistsError:
            pass


def names() -> list[str]:
    try:
        return sorted(name for name in os.listdir(JOURNAL) if name.endswith(".jsonl"))
    except FileNotFoundError:
        return []


def entries() -> list[Entry]:
    return [read_entry(f"{JOURNAL}/{name}") for name in names()]


def read_entry(path: str) -> Entry:
    """A last line that was cut off by a crash tells of nothing that was begun: it is passed over."""
    command, end, steps = "", "", dict[int, dict[str, object]]()
    with open(path, encoding="utf-8") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if "step" in line:
                steps.setdefault(line["step"], {}).update(line)
            command, end = line.get("command", command), line.get("end", end)
    return Entry(path=path, command=command, steps=tuple(_done(one) for _, one in sorted(steps.items())), end=end)


def _done(line: dict[str, object]) -> Done:
    act, saved = line["act"], line["saved"]
    assert isinstance(act, dict) and isinstance(saved, dict)
    left = {"left": line["left"]} if "left" in line else {}
    return Done(does=str(line["does"]), act=to_act(act), saved={**saved, **left})


def mark(entry: Entry, end: str) -> None:
    with open(entry.path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"end": end}) + "\n")
        file.flush()
        os.fsync(file.fileno())


def tidy() -> None:
    for name in names()[:-KEPT]:
        with contextlib.suppress(OSError):
            os.unlink(f"{JOURNAL}/{name}")
