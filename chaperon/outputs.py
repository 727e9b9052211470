"""Slurm's file name patterns (`slurm-%A_%a.out`) and a running job's facts become the paths that its files have. Pure.

As slurmstepd 22.05 expands them for a batch script, its oddities included: of `%5q`, which is no symbol, `5q` is left. What is
measured there is compared with this module in the tests.
"""

from __future__ import annotations

from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT, ARRAY_DEFAULT = "slurm-%j.out", "slurm-%A_%a.out"
NO_INPUT = "/dev/null"
NO_TASK = "4294967294"  # how Slurm writes that there is no number
WIDEST = 10
DIGITS = frozenset("0123456789")


@record
class Names:
    """What the symbols stand for."""

    job: str
    array_job: str
    task: str
    node: str
    node_number: str
    user: str
    name: str

    @property
    def is_array(self) -> bool:
        return self.task != NO_TASK


@record
class Files:
    """Where a job reads and writes: absolute paths. The same path twice is one open file."""

    input: str
    output: str
    error: str


def names_of(environment: Mapping[str, str], user: str, name: str) -> Names:
    """From the variables that Slurm gives to a batch script."""
    job = environment.get("SLURM_JOB_ID", "0")
    return Names(
        job=job, array_job=environment.get("SLURM_ARRAY_JOB_ID", job), task=environment.get("SLURM_ARRAY_TASK_ID", NO_TASK),
        node=environment.get("SLURMD_NODENAME", "").partition(".")[0], node_number=environment.get("SLURM_NODEID", "0"),
        user=user, name=environment.get("SLURM_JOB_NAME", name),
    )  # fmt: skip


def files_of(asked: Files, names: Names, cwd: str) -> Files:
    """The paths behind the patterns that were asked for; "" = not asked for."""
    output = asked.output or (ARRAY_DEFAULT if names.is_array else DEFAULT)
    return Files(
        input=locate(asked.input or NO_INPUT, names, cwd), output=locate(output, names, cwd), error=locate(asked.error or output, names, cwd),
    )  # fmt: skip


def locate(pattern: str, names: Names, cwd: str) -> str:
    """A pattern is absolute as it is written: what stands for one of its symbols may begin with a slash, too."""
    path = expand(pattern, names)
    return path if pattern.startswith("/") else f"{cwd.rstrip('/')}/{path}"


def expand(pattern: str, names: Names) -> str:
    if "\\" in pattern:
        return without_backslashes(pattern)
    numbers = {"j": names.job, "J": names.job, "A": names.array_job, "a": names.task, "n": names.node_number, "t": "0"}
    texts = {"N": names.node, "u": names.user, "x": names.name, "s": "batch", "%": "%"}
    done, place = "", 0
    while place < len(pattern):
        if pattern[place] != "%":
            done, place = done + pattern[place], place + 1
            continue
        end = place + 1
        while pattern[end : end + 1] in DIGITS:
            end += 1
        width, symbol = pattern[place + 1 : end], pattern[end : end + 1]
        if symbol in numbers:
            done, place = done + numbers[symbol].zfill(min(int(width or "0"), WIDEST)), end + 1
        elif symbol in texts and not (symbol == "%" and width):
            done, place = done + texts[symbol], end + 1
        else:
            done, place = done + (width[-1:] or "%"), end
    return done


def without_backslashes(pattern: str) -> str:
    """A backslash anywhere: no symbol is replaced, and each quotes what follows it."""
    done, place = "", 0
    while place < len(pattern):
        place += pattern[place] == "\\"
        done, place = done + pattern[place : place + 1], place + 1
    return done
