"""Submissions become lines outside the jail, and the lines of a scope become the jobs that it may see and control.

    ledger/PROJECT/SESSION/HOST-PID-START    one file for each process that writes; only appended to, each line on the disk before we go on
    jobs/SESSION/ID.log                      what Slurm itself says of a job; its directory names the session to Slurm

An intent is written before a job is submitted: where that fails nothing is submitted, and one that nothing followed tells the
next reader that somebody died in between. Then Slurm is asked whose log is in a directory of the session's: nothing is lost.
"""

from __future__ import annotations

import os
import time

from agent_sandbox.chaperon.projects import make_private, project_id
from agent_sandbox.chaperon.views.scope import NO_LOG, PROJECT, SESSION, Scope, Tools
from agent_sandbox.config.errors import UserError, plain
from agent_sandbox.config.record import record
from agent_sandbox.launcher.session import started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_sandbox.chaperon.orders import Orders
    from agent_sandbox.chaperon.views.lookup import Live

INTENT, JOB, SETTLED, END = "intent", "job", "settled", "."
FIELDS = {INTENT: 5, JOB: 7, SETTLED: 3}  # with the first, and the last that says that the line is whole
PATIENCE = 600.0  # seconds after which an intent that Slurm knows nothing of is nothing: longer than any submission may take
TICK = 2 * 10**9  # nanoseconds: more than any clock of a file server is coarse
SHORT = 2.0  # seconds that a submission of ours may take before Slurm is asked for its job
LONGEST_LOG = 1 << 16
NOT_STARTED = "was not started"  # how a node says that there was no jail, and so no job
UNOPENED, UNSTARTED = "agent-sandbox: the job's ", "error: execve(): "  # how our part in the jail says so, and how Slurm does
FILE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@record
class Job:
    id: int
    tasks: int  # of an array; 1 for other jobs
    time: float
    name: str = ""


class _Read:
    """What one file said so far."""

    def __init__(self) -> None:
        self.at = 0
        self.jobs: list[Job] = []
        self.intents: dict[str, float] = {}  # that nothing followed in this file
        self.tasks: dict[str, int] = {}  # of these
        self.ended: set[str] = set()  # intents of other files that something followed here
        self.became: dict[str, int] = {}  # of all that something followed here, the job; 0 = none

    def take(self, path: str) -> None:
        """The lines that were added since, but for one that is not whole yet."""
        with open(path, "rb") as file:
            file.seek(self.at)
            text = file.read()
        whole = text.rpartition(b"\n")[0]
        self.at += len(whole) + 1 if whole else 0
        for line in whole.decode("utf-8", "replace").split("\n"):
            try:
                self._line(line.split("\t"))
            except ValueError:  # a number that is none
                pass

    def _line(self, words: list[str]) -> None:
        """What is torn or unknown says nothing."""
        if FIELDS.get(words[0]) != len(words) or words[-1] != END:
            return
        if words[0] == INTENT:
            begun, tasks = float(words[2]), int(words[3])
            self.intents[words[1]], self.tasks[words[1]] = begun, tasks
            return
        if words[0] == JOB:
            self.jobs.append(Job(id=int(words[2]), tasks=int(words[3]), time=float(words[4]), name=words[5]))
        self.became[words[1]] = int(words[2]) if words[0] == JOB else 0
        if self.intents.pop(words[1], None) is None:  # by a whole line alone: of a job that cannot be read Slurm is asked
            self.ended.add(words[1])
        else:
            del self.tasks[words[1]]


def read_file(path: str) -> dict[str, int]:
    """The tokens of one file whose end is known, and their jobs; 0 = there was none."""
    found = _Read()
    try:
        found.take(path)
    except OSError:
        pass
    return found.became


def host_name() -> str:
    """With which tokens and files begin."""
    return os.uname().nodename.replace("/", "_")


class Ledger:
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._top = f"{orders.state}/ledger"
        self._project = orders.project_id or project_id(orders.state, orders.project)
        self._own = f"{self._top}/{self._project}/{orders.session}"
        self._file = f"{host_name()}-{os.getpid()}-{started(os.getpid())}"
        self._logs = f"{orders.state}/jobs"
        self._read: dict[str, _Read] = {}
        self._listed: dict[str, tuple[int, list[str]]] = {}
        self._torn: set[str] = set()  # directories where a line of ours may have no end
        self._count = 0
        self._open: dict[str, float] = {}  # intents of ours that are being carried out, and since when
        self._tools = Tools(python=orders.python, library=orders.library, programs=orders.programs)

    # What is written

    def intend(self, tasks: int = 1) -> str:
        """Before a submission: a token for what comes of it. Raises where nothing can be recorded."""
        self._count += 1
        token = f"{self._file}-{self._count}"
        try:
            make_private(self.log_directory)
            self._append(self._own, INTENT, token, f"{time.time():.3f}", str(tasks))
        except OSError as error:
            raise UserError(
                f"nothing was submitted: the job could not be recorded: {error.strerror}", where=self._own,
                hint="the state directory must be writable, with room",
            )  # fmt: skip
        self._open[token] = time.time()
        return token

    def record(self, token: str, job: int, tasks: int, name: str) -> bool:
        """Before the answer is given. False = it could not be written; the intent stays, and the job is found by its log."""
        self._open.pop(token, None)
        return self._try(self._own, JOB, token, str(job), str(tasks), f"{time.time():.3f}", _word(name))

    def drop(self, token: str) -> None:
        """Nothing was submitted."""
        self._open.pop(token, None)
        self._try(self._own, SETTLED, token)

    @property
    def log_directory(self) -> str:
        return f"{self._logs}/{self._orders.session}"

    def _try(self, directory: str, *words: str) -> bool:
        try:
            self._append(directory, *words)
        except OSError:
            return False
        return True

    def _append(self, directory: str, *words: str) -> None:
        """One write, to the disk. After one that failed the next begins a line of its own."""
        make_private(directory)
        line = ("\n" if directory in self._torn else "") + "\t".join((*words, END)) + "\n"
        data = line.encode("utf-8", "surrogateescape")
        handle = os.open(f"{directory}/{self._file}", FILE, 0o600)
        self._torn.add(directory)
        try:
            if os.write(handle, data) != len(data):
                raise OSError(28, "No space left on device")
            os.fsync(handle)
        finally:
            os.close(handle)
        self._torn.discard(directory)

    # What is read

    def scope(self, *, whole: bool = False) -> Scope:
        """What this session may see and control now; `whole`: everything that the user submitted from jails, to count it."""
        found = {place: self._found([place]) for place in (self._all_places() if whole else self._places())}
        jobs = frozenset([job.id for files in found.values() for file in files for job in file.jobs])
        return Scope(
            user=self._orders.user, uid=self._orders.uid, kind=self._orders.scope, jobs=jobs,
            sessions=frozenset([place.rpartition("/")[2] for place in found]), logs=self._logs, tools=self._tools, reasons=self.reasons,
            interrupted=any([self._intents(files) for files in found.values()]),
        )  # fmt: skip

    def recover(self, live: Iterable[Live]) -> None:
        """Record what Slurm, and the logs of the sessions concerned, know of jobs that nobody recorded."""
        now, rows = time.time(), tuple(live)
        for place in self._places():
            found = self._found([place])
            intents = self._intents(found)
            if not intents:
                continue
            session = place.rpartition("/")[2]
            known = {job.id for file in found for job in file.jobs}
            jobs = {row.base for row in rows if row.session == session} | self._logged(session)
            written = all([self._try(place, JOB, f"recovered-{job}", str(job), "1", f"{now:.3f}", "") for job in sorted(jobs - known)])
            for token in [token for token, begun in intents.items() if now - begun > PATIENCE and written]:
                self._try(place, SETTLED, token)

    def submitted_since(self, moment: float, token: str = "") -> int:
        """Tasks that this user submitted from any jail, or is about to: but for `token`, and what this process intends after it."""
        found = self._found(self._all_places())
        return sum(job.tasks for file in found for job in file.jobs if job.time >= moment) + self._intended(found, token, moment)

    def in_flight(self, rows: Sequence[Live], token: str, begun: float) -> int:
        """Jobs of the user's: a queue as it was asked for at `begun`, and what was on its way there. What is in it and not recorded yet is
        what was intended."""
        found = self._found(self._all_places())
        known, there = {job.id for file in found for job in file.jobs}, {row.base for row in rows}
        unrecorded = sum(bool(row.session) and row.base not in known for row in rows)
        since = sum(job.tasks for file in found for job in file.jobs if job.time >= begun - 0.001 and job.id not in there)
        return len(rows) + since + max(0, self._intended(found, token, time.time() - PATIENCE) - unrecorded)

    def _intended(self, found: list[_Read], token: str, moment: float) -> int:
        ended = {one for file in found for one in file.ended}
        own, _, last = token.rpartition("-")

        def counts(one: str) -> bool:
            process, _, number = one.rpartition("-")
            return one not in ended and not (token and process == own and int(number) >= int(last))

        return sum(file.tasks[one] for file in found for one, begun in file.intents.items() if begun >= moment and counts(one))

    def tasks_of(self, job: int) -> int:
        """1 where nothing is known."""
        return max([one.tasks for file in self._found(self._all_places()) for one in file.jobs if one.id == job], default=1)

    def reasons(self, job: int) -> str:
        """Why a job of the scope never started; empty where it did. Without a log it waits, or Slurm could not make one: it will tell."""
        texts = [_text(f"{self._logs}/{place.rpartition('/')[2]}/{job}.log") for place in self._places()]
        found = [line for text in texts if text for line in text.splitlines() if any(mark in line for mark in (NOT_STARTED, UNOPENED, UNSTARTED))]
        if found:
            line = plain(found[-1])
            return line if NOT_STARTED in line else f"agent-sandbox: job {job} {NOT_STARTED}: {line.removeprefix('agent-sandbox: ')}"
        return "" if any(text is not None for text in texts) else NO_LOG.format(job=job)

    def _places(self) -> list[str]:
        """The directories of the sessions in the scope."""
        if self._orders.scope == SESSION:
            return [self._own]
        if self._orders.scope == PROJECT:
            return sorted({self._own, *self._entries(f"{self._top}/{self._project}")})
        return self._all_places()

    def _all_places(self) -> list[str]:
        return sorted({self._own, *[place for project in self._entries(self._top) for place in self._entries(project)]})

    def _found(self, places: Iterable[str]) -> list[_Read]:
        return [self._take(path) for place in places for path in self._entries(place)]

    def _take(self, path: str) -> _Read:
        found = self._read.setdefault(path, _Read())
        try:
            if os.stat(path).st_size > found.at:
                found.take(path)
        except FileNotFoundError:
            pass
        return found

    def _intents(self, found: list[_Read]) -> dict[str, float]:
        """Those that nothing followed, in any file of a directory. Of ours those that take long: `sbatch --wait` ends with its job."""
        left = {token: begun for file in found for token, begun in file.intents.items() if token not in file.ended}
        if not left:
            return left
        now = time.time()
        ended = {token for file in found for token in file.ended} | {token for token, begun in self._open.items() if now - begun < SHORT}
        return {token: begun for token, begun in left.items() if token not in ended}

    def _logged(self, session: str) -> set[int]:
        """Jobs that have begun, by the names of their logs."""
        names = [path.rpartition("/")[2] for path in self._entries(f"{self._logs}/{session}")]
        return {int(name[:-4]) for name in names if name.endswith(".log") and name[:-4].isascii() and name[:-4].isdecimal()}

    def _entries(self, directory: str) -> list[str]:
        """Listed again when it has changed; one that changed just now may change again within the same tick of the clock."""
        try:
            changed = os.stat(directory).st_mtime_ns
            known = self._listed.get(directory)
            if known and known[0] == changed:
                return known[1]
            entries = [f"{directory}/{name}" for name in os.listdir(directory)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        if time.time_ns() - changed > TICK:
            self._listed[directory] = (changed, entries)
        return entries


def _text(path: str) -> str | None:
    """The end of a file; None where there is none. What is in it may be anything."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        file.seek(max(0, os.fstat(handle).st_size - LONGEST_LOG))
        return file.read(LONGEST_LOG).decode("utf-8", "replace")


def _word(text: str) -> str:
    return plain(text, 200).replace("\t", " ")
