"""What the audit log says of a command line: arguments, and neither scripts nor the values of variables."""

from __future__ import annotations

import pytest

from agent_sandbox.chaperon.telling import told
from tests.unit.chaperon.asking import refusals

SECRET = "hunter2"


@pytest.mark.parametrize(("command", "words", "said"), [
    ("sbatch", ["-n4", "--time", "5", "job.sh", "a b"], ["-n", "4", "--time=5", "job.sh", "a b"]),
    ("sbatch", [f"--wrap=curl {SECRET}"], ["--wrap=…"]), ("sbatch", ["--wra", SECRET], ["--wra=…"]),
    ("sbatch", ["-n", "1", "--wrap", SECRET], ["-n", "1", "--wrap=…"]),
    ("sbatch", [f"--export=ALL,A={SECRET},B", "s"], ["--export=ALL,A=…,B", "s"]), ("sbatch", ["--export", f"A='x,{SECRET}'"], ["--export=A=…"]),
    ("sbatch", [f"--wrpa={SECRET}"], ["--wrpa"]), ("sbatch", ["--wrpa", SECRET], ["--wrpa", "…"]), ("sbatch", [f"-Z{SECRET}", "x"], ["-Z", "…"]),
    ("sbatch", ["--comment=for the log"], ["--comment=for the log"]), ("scontrol", ["update", "JobId=1", "Nice=5"], ["update", "JobId=1", "Nice=5"]),
    ("srun", [f"--export=A={SECRET}", "hostname"], ["--export=A=…", "hostname"]), ("strigger", [f"--program={SECRET}"], ["--program"]),
    ("nonsense", [SECRET], ["…"]), ("nonsense", [], []), ("scancel", ["1", "2"], ["1", "2"]),
])  # fmt: skip
def test_arguments_are_told_and_secrets_are_not(command: str, words: list[str], said: list[str]) -> None:
    assert told(command, words) == said


def test_there_is_an_end_to_it() -> None:
    assert [len(word) for word in told("sbatch", ["x" * 1000] * 1000)] == [200] * 50


def test_a_refusal_tells_no_variable_and_no_script() -> None:
    said = refusals("sbatch", "--export=A=" + SECRET * 20_000, "--container=c", "--wrap=x", env={"SBATCH_CLUSTERS": SECRET})
    assert len(said) == 3
    assert SECRET not in "".join(said)
