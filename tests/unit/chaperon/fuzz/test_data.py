"""What comes back from elsewhere: documents of Slurm's, rows of the queue, the envelope's data on its node, the ledger's lines."""

from __future__ import annotations

import base64
import json
import marshal
import random
import zlib
from collections import Counter
from pathlib import Path

from agent_sandbox.chaperon.envelope import Job, Launcher, make_script, pack_variables, read_data, unpack_variables
from agent_sandbox.chaperon.outputs import Files
from agent_sandbox.chaperon.views.data import sift, to_yaml
from agent_sandbox.chaperon.views.lookup import WIDE, read
from agent_sandbox.chaperon.views.scope import Scope, Tools
from agent_sandbox.config.errors import UserError
from tests.unit.chaperon.fuzz.cases import changed_bytes, each, odd_text

SCOPE = Scope(
    user="alice", uid=1000, kind="project", jobs=frozenset({5, 6}), sessions=frozenset({"s1", "s2"}), logs="/state/jobs",
    tools=Tools(python="/p", library="/l", programs="/usr/bin"),
)  # fmt: skip
JOB = Job(
    name="n", script=b"#!/bin/sh\ntrue\n", arguments=("a", "é"), cwd="/p", submit_directory="/p", export=None,
    files=Files(input="", output="o", error=""), open_mode="",
    umask=0o022, project="/p", session="s1", settings={"a": [["b", 1]]}, variables="/state/x.env",
)  # fmt: skip
DATA = make_script(JOB, Launcher(python="/usr/bin/python3", library="/l", entry="/e")).decode().rpartition('main("')[2].partition('"')[0]


def anything(chance: random.Random, depth: int = 3) -> object:
    kind = chance.randrange(9 if depth else 7)
    number = {"set": chance.random() < 0.5, "number": chance.randrange(9)}
    simple = (None, True, chance.randrange(9), chance.random(), "alice", odd_text(chance), number)
    if kind < 7:
        return simple[kind]
    if kind == 7:
        return [anything(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {odd_text(chance) if chance.randrange(3) else "job_id": anything(chance, depth - 1) for _ in range(chance.randrange(4))}


def queued(chance: random.Random) -> object:
    job = {
        "job_id": chance.choice([5, 6, 7, "5", None, {"set": True, "number": 5}, {"number": 5}]),
        "user_name": chance.choice(["alice", "bob", "alice"]), "array_job_id": chance.choice([0, 6, 9, anything(chance)]),
        "array": anything(chance), "name": odd_text(chance, 40),
    }  # fmt: skip
    if chance.randrange(5) == 0:
        job[chance.choice(list(job))] = anything(chance)
    return job if chance.randrange(9) else anything(chance)


def document(chance: random.Random) -> object:
    if chance.randrange(12) == 0:
        return anything(chance)
    return {"meta": anything(chance), "jobs": [queued(chance) for _ in range(chance.randrange(5))], odd_text(chance): anything(chance)}


def test_of_any_document_only_jobs_of_the_scope_are_left_and_its_text_breaks_no_line() -> None:
    seen = Counter[int]()

    def check(case: object) -> None:
        kept = sift(json.loads(json.dumps(case)), "alice", SCOPE.jobs)
        assert isinstance(kept, dict)
        listing = kept.get("jobs", [])
        assert all("alice" in (job.get("user_name"), job.get("user")) for job in listing)
        assert all(any(number in json.dumps(job) for number in ("5", "6")) for job in listing)
        assert set(kept) <= {"meta", "errors", "warnings", "last_backfill", "last_update", "jobs"}
        assert all(line.isascii() and line.isprintable() for line in to_yaml(kept))
        seen[len(listing)] += 1

    each("documents", document, check)
    assert seen[1] > seen.total() / 10 and seen[0] > seen.total() / 10


def row(chance: random.Random) -> bytes:
    numbers = [str(chance.choice([5, 7, 99, "N/A", "x"])).ljust(WIDE) for _ in range(3)]
    log = chance.choice(["/state/jobs/s1/%j.log", "/state/jobs/s3/5.log", "/state/jobs/../s1/x", "/state/jobss/s1/1", "s1", odd_text(chance)])
    text = "".join(numbers) + log.ljust(chance.randrange(60))
    data = text.encode("utf-8", "surrogateescape")
    return changed_bytes(chance, data, [data, b"\n" * 30]) if chance.randrange(3) == 0 else data


def test_a_row_of_the_queue_belongs_to_a_session_only_by_the_whole_path_of_its_log() -> None:
    seen = Counter[str]()

    def check(data: bytes) -> None:
        for live in read(data, SCOPE):
            assert live.session in ("", "s1", "s2")
            assert not live.session or b"/state/jobs/" + live.session.encode() + b"/" in data
            seen[live.session] += 1

    each("rows", row, check)
    assert seen["s1"] and seen[""]


def reshaped(chance: random.Random, data: dict[str, object]) -> object:
    """Of another shape: what a node with another version may find."""
    job, files = dict(data["job"]), dict(data["job"]["files"])  # type: ignore[call-overload,index]
    changed = chance.choice([data, job, files])
    key = chance.choice(sorted(changed))
    match chance.randrange(3):
        case 0:
            del changed[key]
        case 1:
            changed[key] = anything(chance)
        case _:
            changed[odd_text(chance)] = 1
    return data if changed is data else {**data, "job": {**job, "files": files} if "files" in job else job}


def packed(chance: random.Random) -> str:
    raw = base64.b64decode(DATA)
    match chance.randrange(4):
        case 0:
            raw = changed_bytes(chance, raw, [raw, b"\0" * 20])
        case 1:
            raw = zlib.compress(marshal.dumps(reshaped(chance, marshal.loads(zlib.decompress(raw)))))
        case 2:
            return changed_bytes(chance, DATA.encode(), [b"=" * 9, b"\xff"]).decode("latin-1")
    return base64.b64encode(raw).decode()


def test_damaged_data_of_a_job_is_refused_in_words_or_is_a_job() -> None:
    seen = Counter[bool]()

    def check(case: str) -> None:
        try:
            job, _ = read_data(case)
            seen[True] += isinstance(job, Job)
        except UserError as error:
            assert "job" in str(error)
            seen[False] += 1

    each("envelopes", packed, check)
    assert min(seen[True], seen[False]) > seen.total() / 10


def variables(chance: random.Random) -> tuple[dict[str, str], bytes]:
    names = {odd_text(chance).translate({0: None, ord("="): None}): odd_text(chance, 30).replace("\0", "") for _ in range(chance.randrange(5))}
    held = {name: value for name, value in names.items() if name}
    data = pack_variables(held)
    return held, changed_bytes(chance, data, [data, b"=\0=\0"])


def test_variables_come_back_as_they_went_and_damaged_ones_are_text() -> None:
    def check(case: tuple[dict[str, str], bytes]) -> None:
        held, damaged = case
        assert unpack_variables(pack_variables(held)) == held
        assert all("\0" not in name + value and "=" not in name for name, value in unpack_variables(damaged).items())

    each("variables", variables, check)


def test_damaged_lines_of_a_ledger_say_nothing_and_stop_nothing(tmp_path: Path) -> None:
    from agent_sandbox.chaperon.ledger import _Read

    whole = b"intent\th-1-2-1\t1700000000.123\t.\njob\th-1-2-1\t77\t1\t1700000000.500\tname\t.\nsettled\th-1-2-2\t.\n"
    file = tmp_path / "ledger"

    def check(damaged: bytes) -> None:
        file.write_bytes(damaged)
        found = _Read()
        found.take(str(file))
        assert found.at <= len(damaged)

    each("ledgers", lambda chance: changed_bytes(chance, whole, [whole, b"job\t" * 9]), check)
