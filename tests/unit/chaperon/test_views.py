"""Views, without a Slurm: what goes to the real commands, and what is sifted out of their data."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agent_sandbox.chaperon.command import Command, Result
from agent_sandbox.chaperon.registry import COMMANDS
from agent_sandbox.chaperon.validate import validate
from agent_sandbox.chaperon.views.answer import PLANS
from agent_sandbox.chaperon.views.data import sift, to_json, to_yaml
from agent_sandbox.chaperon.views.lookup import WIDE, Live, read
from agent_sandbox.chaperon.views.scope import MOST_IDS, NOBODY, Scope, Tools
from agent_sandbox.chaperon.wire import Reply
from agent_sandbox.chaperon.words import Approved, Request, Rules
from agent_sandbox.config.record import replace

SCOPE = Scope(
    user="me", uid=1000, kind="project", jobs=frozenset({10, 20}), sessions=frozenset({"s1", "s2"}), logs="/st%te/jobs",
    tools=Tools(python="/p", library="/l", programs="/real"),
)  # fmt: skip


def plan(line: str, scope: Scope = SCOPE) -> Command | Reply:
    command, *words = line.split()
    checked = validate(Request(command=command, words=tuple(words), environment={}, cwd="/"), Rules(project="/", user="me"))
    assert isinstance(checked, Approved), checked
    step = PLANS[command](checked, scope)
    assert isinstance(step, Command | Reply)
    return step


def row(job: int, array: int = 0, het: object = "N/A", log: str = "") -> bytes:
    return f"{job:<{WIDE}}{array or job:<{WIDE}}{het:<{WIDE}}{log}".encode().ljust(200) + b"\n"


def then(step: Command | Reply, out: bytes = b"", code: int = 0) -> Command | Reply:
    """What follows when the program that a step runs says this."""
    assert isinstance(step, Command) and step.finish
    following = step.finish(Result(code=code, out=out))
    assert isinstance(following, Command | Reply)
    return following


def refusal(step: Command | Reply) -> str:
    assert isinstance(step, Reply) and (step.code, step.out) == (1, b"")
    return step.err.decode()


@pytest.mark.parametrize(("line", "words"), [
    ("squeue", f"--jobs={NOBODY},10,20 --users=me"), ("squeue -u me --me -h", f"--jobs={NOBODY},10,20 --noheader --users=me"),
    ("squeue -j 0010", "--jobs=10 --users=me"), ("squeue -j10_[1-2],20", "--jobs=10_[1-2],20 --users=me"),
    ("squeue --steps=10.batch", f"--jobs={NOBODY},10 --steps=10.batch --users=me"),
    ("sacct", f"--starttime=00:00:00 --jobs={NOBODY},10,20 --user=me"),
    ("sacct -S now-1day", f"--starttime=now-1day --jobs={NOBODY},10,20 --user=me"),
    ("sacct --state=R", f"--starttime=now --jobs={NOBODY},10,20 --state=R --user=me"), ("sacct -a -j 10", "--jobs=10 --user=me"),
    ("sacct -a", f"--starttime=00:00:00 --jobs={NOBODY},10,20 --user=me"), ("sstat -j 20.0", "--jobs=20.0"), ("sstat", ""),
    ("sprio -l", f"--jobs={NOBODY},10,20 --long --users=me"), ("sshare -a", "--users=me"), ("sinfo -N", "--Node"),
    ("squeue --help -j 99", "--help"), ("sacct -e", "--helpformat"),
])  # fmt: skip
def test_the_real_command_is_given_ids_and_the_user(line: str, words: str) -> None:
    step = plan(line)
    assert isinstance(step, Command)
    assert (step.program, " ".join(step.words), step.live) == (line.split()[0], words, True)


def test_an_empty_scope_is_a_list_of_nobody() -> None:
    step = plan("squeue", replace(SCOPE, jobs=frozenset()))
    assert isinstance(step, Command) and step.words == (f"--jobs={NOBODY},{NOBODY}", "--users=me")


@pytest.mark.parametrize(
    "line", ["squeue -u you", "squeue -u me,you", "squeue -u 0", "sacct -u root", "sshare -u you", "scancel -u you", "scancel -u you 10"]
)  # fmt: skip
def test_other_users_are_refused_with_what_to_do(line: str) -> None:
    text = refusal(plan(line))
    assert "=me" in text


@pytest.mark.parametrize(
    "line", ["squeue -j", "sacct -j", "sstat -j", "sprio -j", "scancel", "scontrol show job", "scontrol hold", "scontrol update Nice=1 JobId="]
)  # fmt: skip
@pytest.mark.parametrize("ids", ["99", "10,99", "99_1,10", "10_1,99", "10.batch,99.batch", "0099", "10,10,99+1"])
def test_an_id_that_slurm_does_not_call_ours_stops_everything(line: str, ids: str) -> None:
    """Where nothing is known of it, where it is the user's own from elsewhere, and where it is somebody's whose name is ours."""
    for queue in (b"", row(99, log="/home/me/slurm-99.out"), row(99, log="/st%te/jobs/other/99.log"), row(99, log="/x/st%te/jobs/s1/99.log"),
                  row(99, 10, log="/home/me/x")):  # fmt: skip
        asked = then(plan(f"{line}{'' if line.endswith('=') else ' '}{ids}"), queue)
        assert isinstance(asked, Command) and (asked.program, "--user=me" in asked.words) == ("sacct", True)
        for accounting in (b"", b"99|99\n", b"99|98_1\n", b"|\n", b"x|10_1\n"):
            text = refusal(then(asked, accounting))
            assert "Invalid job id specified" in text and "nothing was done" in text and "99" in text


@pytest.mark.parametrize("queue", [row(99, 10, log="/st%te/jobs/s1/99.log"), row(99, 99, 10, "/st%%te/jobs/s2/%j.log")])
def test_a_part_of_a_job_is_known_by_its_log(queue: bytes) -> None:
    step = then(plan("squeue -j 99"), queue)
    assert isinstance(step, Command) and step.words == ("--jobs=99", "--users=me")


def test_a_part_of_a_job_is_known_by_accounting() -> None:
    for said in (b"99|10_3\n", b"99|20+1\n"):
        step = then(then(plan("sacct -j 99"), b""), said)
        assert isinstance(step, Command) and step.words == ("--jobs=99", "--user=me")


def test_columns_are_read_by_their_widths() -> None:
    text = row(1, log="/st%te/jobs/s1/1.log") + b"garbage\n" + row(2, 1, log="/st%te/jobs/s1") + row(3, 3, 2, "/st%te/jobs/s3/3.log")
    assert read(text, SCOPE) == (Live(id=1, base=1, session="s1"), Live(id=2, base=1, session=""), Live(id=3, base=2, session=""))


def test_more_jobs_than_fit_into_one_word_are_asked_for_first() -> None:
    many = replace(SCOPE, jobs=frozenset(range(1, MOST_IDS * 3)))
    queue = then(plan("squeue -h", many), row(17, log="/st%te/jobs/s1/x"))
    assert isinstance(queue, Command) and queue.words == (f"--jobs={NOBODY},17", "--noheader", "--users=me")
    accounting = then(plan("sacct -S now-1day", many), b"17\n17.batch\n999999\n")
    assert isinstance(accounting, Command) and f"--jobs={NOBODY},17" in accounting.words
    assert "ask for less" in refusal(then(plan("sacct", many), "\n".join(map(str, range(1, MOST_IDS + 5))).encode()))


def test_a_controller_that_does_not_answer_says_so_itself() -> None:
    step = plan("scancel 10")
    assert isinstance(step, Command) and step.finish
    assert step.finish(Result(code=1, err=b"slurm_load_jobs error: Unable to contact slurm controller\n")) == Reply(
        code=1, err=b"slurm_load_jobs error: Unable to contact slurm controller\n"
    )


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data_pass_a_sieve(form: str) -> None:
    step = plan(f"squeue --{form}")
    assert isinstance(step, Command) and step.program == "/p"
    assert step.stdin.decode().split("\n")[:4] == [form, "me", "10,20", "/real/squeue"]
    assert "--json" in step.stdin.decode().split("\n") and "--yaml" not in step.stdin.decode().split("\n")


def test_sifted_data_hold_only_what_is_certainly_in_the_scope() -> None:
    def job(**more: object) -> dict[str, object]:
        return {"user_name": "me", "job_id": 5, **more}

    kept = [job(job_id=10), job(array_job_id=20), job(job_id={"set": True, "number": 10}), {"user": "me", "job_id": 9, "array": {"job_id": 10}}]
    dropped: list[object] = [
        job(), job(job_id=10, user_name="you"), {"job_id": 10}, job(job_id="10"), job(job_id=None), job(job_id={"set": False, "number": 10}),
        "x", None,
    ]  # fmt: skip
    document = {"meta": {"a": 1}, "jobs": [*kept, *dropped], "surprise": [{"job_id": 3, "name": "secret"}]}
    assert sift(document, "me", frozenset({10, 20})) == {"meta": {"a": 1}, "jobs": kept}
    assert sift([1], "me", frozenset({10})) == {}
    assert sift({"jobs": {"job_id": 10}}, "me", frozenset({10})) == {"jobs": []}


VALUES: some.SearchStrategy[object] = some.recursive(
    some.none() | some.booleans() | some.integers(-99, 99) | some.text(max_size=12),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3), max_leaves=12,
)  # fmt: skip


@given(VALUES)
def test_yaml_is_one_value_a_line(value: object) -> None:
    """So that no text can begin a line: what is not plain is quoted as JSON quotes it."""
    lines = list(to_yaml({"k": value}))
    assert lines[:2] == ["%YAML 1.1", "--- !!map"]
    assert all("\n" not in line and line.isascii() for line in lines)


def test_yaml_looks_as_slurms() -> None:
    document = {"errors": [], "jobs": [{"name": "a: b", "job_id": 1, "x": None, "flags": ["A"], "on": True}], "meta": {}}
    assert "\n".join(to_yaml(document)) == (
        '%YAML 1.1\n--- !!map\n!!str errors: !!seq []\n!!str jobs: !!seq\n- !!map\n  !!str name: !!str "a: b"\n  !!str job_id: !!int 1\n'
        "  !!str x: !!null null\n  !!str flags: !!seq\n  - !!str A\n  !!str on: !!bool true\n!!str meta: !!map {}\n..."
    )


def test_texts_of_yaml_are_plain_where_slurms_are() -> None:
    texts = {"a": "", "b": "Slurm OpenAPI v1", "c": "/x/%j.log", "d": "cpu=1,mem=2M", "e": "-x", "f": "x ", "g": "x: y", "h": "x #y"}
    assert list(to_yaml(texts))[2:-1] == [
        "!!str a: !!null null", "!!str b: !!str Slurm OpenAPI v1", "!!str c: !!str /x/%j.log", "!!str d: !!str cpu=1,mem=2M", '!!str e: !!str "-x"',
        '!!str f: !!str "x "', '!!str g: !!str "x: y"', '!!str h: !!str "x #y"',
    ]  # fmt: skip


def test_json_looks_as_slurms() -> None:
    document = {"errors": [], "meta": {}, "jobs": [{"name": "a[]", "path": "/x", "flags": []}]}
    assert to_json(document) == (
        '{\n  "errors": [\n  ],\n  "meta": {\n  },\n  "jobs": [\n    {\n      "name": "a[]",\n'
        '      "path": "\\/x",\n      "flags": [\n      ]\n    }\n  ]\n}'
    )


@given(VALUES)
def test_json_can_be_read_back(value: object) -> None:
    assert json.loads(to_json({"k": value})) == {"k": value}


def test_scontrol_shows_each_job_by_itself_and_what_is_nobodys_as_it_is() -> None:
    first = then(plan("scontrol -o show job 10,20"), row(10, log="/st%te/jobs/s1/x") + row(20, log="/st%te/jobs/s1/x"))
    assert isinstance(first, Command) and first.words == ("--oneliner", "--", "show", "job", "10")
    second = then(first, b"JobId=10\n")
    assert isinstance(second, Command) and second.words[-1] == "20"
    assert then(second, b"JobId=20\n") == Reply(out=b"JobId=10\nJobId=20\n")
    whole = plan("scontrol show node")
    assert isinstance(whole, Command) and (whole.words, whole.live) == (("--", "show", "node"), True)


def test_a_job_that_is_gone_and_one_that_is_anothers_now_look_the_same() -> None:
    """scontrol knows no --user: it is not asked for an id that the user's queue does not have."""
    assert then(plan("scontrol show job 10"), b"") == Reply(code=1, err=b"slurm_load_jobs error: Invalid job id specified\n")


def test_every_view_has_a_table_and_every_table_of_a_view_a_plan() -> None:
    passed = {name for name, command in COMMANDS.items() if not command.reason} - {"sbatch", "srun", "salloc"}
    assert passed == set(PLANS)


def test_a_reason_is_told_with_the_job() -> None:
    reasons: Callable[[int], str] = lambda job: f"job {job} was not started" if job == 10 else ""  # noqa: E731
    step = then(plan("sacct -j 10,20", replace(SCOPE, reasons=reasons)), b"rows\n")
    assert step == Reply(out=b"rows\n", err=b"job 10 was not started\n")
