"""The loop under stubs that are slow, dead, many, or out to harm: each gets what it deserves, and the next one its answer."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_sandbox.chaperon.limits import Limits
from agent_sandbox.chaperon.wire import MOST_REQUEST, Script, encode_request, frame
from tests.unit.chaperon.serving import Chaperon, RawStub, chaperon, request, shout, wait_until

QUICK = Limits(idle=0.3, whole=2.0, stall=0.4, pressed=0.1, tick=0.05, sweep=0.2, drain=2.0)
SAID = frame(b"O", b"hello") + frame(b"X", b"\0")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Chaperon]:
    with chaperon(tmp_path, QUICK) as running:
        hello(running)  # by now it has opened everything that it keeps open
        shutil.rmtree(tmp_path / "audit")
        yield running


def hello(server: Chaperon) -> bytes:
    """The answer to a stub that does nothing wrong."""
    with RawStub(server.fifos) as stub:
        return stub.ask(request("say", "0", "hello", ""))


def audited(server: Chaperon) -> list[dict[str, object]]:
    lines = [line for file in (server.top / "audit").iterdir() for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_an_answer_is_what_the_program_said_and_is_written_to_the_audit_log(server: Chaperon) -> None:
    with RawStub(server.fifos) as stub:
        said = stub.ask(request("sh", "-c", "printf out; printf err >&2; exit 3", command="sbatch"))
    assert said == frame(b"O", b"out") + frame(b"R", b"err") + frame(b"X", b"\3")
    (event,) = audited(server)
    assert (event["event"], event["command"], event["code"], event["job"], event["session"]) == ("slurm", "sbatch", 3, 7, "s1")


def test_very_many_requests_leave_room_in_the_log_and_what_became_a_job_is_told(tmp_path: Path) -> None:
    with chaperon(tmp_path, QUICK, room=64 << 10) as server:
        for _ in range(30):
            with RawStub(server.fifos) as stub:
                stub.ask(request("say", "0", "hello", ""))
        with RawStub(server.fifos) as stub:
            stub.ask(request("sh", "-c", "exit 0", command="sbatch"))
        server.kill(signal.SIGTERM)
        found = audited(server)
    left_out = sum(int(str(one["requests"])) for one in found if one["verdict"] == "left out")
    listed = [one for one in found if one["verdict"] != "left out"]
    assert 2 < len(listed) < 15 and len(listed) + left_out == 31
    assert (listed[-1]["command"], listed[-1]["job"]) == ("sbatch", 7)


def test_programs_run_in_an_environment_of_ours(server: Chaperon) -> None:
    with RawStub(server.fifos) as stub:
        said = stub.ask(request("env", environment={"LD_PRELOAD": "/x", "SLURM_JOB_ID": "1"}))
    names = sorted(line.split(b"=")[0] for line in said[5:-6].splitlines())
    assert names == [b"HOME", b"LANG", b"LOGNAME", b"PATH", b"USER"]


def test_programs_inherit_no_descriptor(server: Chaperon) -> None:
    with RawStub(server.fifos) as stub:
        assert stub.ask(request("sh", "-c", "echo /proc/self/fd/*"))[5:-6].split() == [b"/proc/self/fd/%d" % number for number in (0, 1, 2, 3)]


def test_a_stub_that_dies_does_not_end_what_it_submitted_and_it_is_recorded(server: Chaperon) -> None:
    with RawStub(server.fifos) as stub:
        stub.say(encode_request(request("sh", "-c", "sleep 0.5; echo 4711", command="sbatch")))
        stub.announce()
        wait_until(server.children)
    wait_until(lambda: (server.top / "ledger").exists())
    assert (server.top / "ledger").read_text() == "4711\n"
    assert hello(server) == SAID


def test_a_stub_that_dies_ends_what_was_only_shown_to_it(server: Chaperon) -> None:
    with RawStub(server.fifos) as stub:
        stub.say(encode_request(request("sleep", "1000", command="squeue")))
        stub.announce()
        wait_until(server.children)
    wait_until(lambda: not server.children(), patience=3)


def test_a_request_whose_stub_died_in_the_queue_is_not_carried_out(tmp_path: Path) -> None:
    with chaperon(tmp_path, Limits(**{**QUICK.__dict__, "running": 1})) as server, RawStub(server.fifos) as first:
        first.say(encode_request(request("sleep", "0.5")))
        first.announce()
        with RawStub(server.fifos) as second:
            second.say(encode_request(request("touch", str(tmp_path / "done"))))
            second.announce()
            wait_until(lambda: not server.left())
        assert first.hear()
        assert hello(server) == SAID
        assert not (tmp_path / "done").exists()


PARTS = encode_request(request("say", "0", "x", "y"))


@pytest.mark.parametrize("size", [0, 1, 5, 11, 12, len(PARTS) - 1])
def test_a_stub_that_says_a_part_and_stands_still_is_told_so_and_forgotten(server: Chaperon, size: int) -> None:
    before = server.open_files()
    with RawStub(server.fifos) as stub:
        stub.say(PARTS[:size])
        stub.announce()
        assert hello(server) == SAID  # at once, while it stands
        assert b"did not come in time" in stub.hear() if size else b"nothing was said" in stub.hear()
    wait_until(lambda: server.open_files() == before)


@pytest.mark.parametrize("size", [0, 1, 11, len(PARTS) - 1])
def test_a_stub_that_dies_in_the_middle_leaves_nothing(server: Chaperon, size: int) -> None:
    before = server.open_files()
    with RawStub(server.fifos) as stub:
        stub.say(PARTS[:size])
        stub.announce()
        wait_until(lambda: not server.left())
    wait_until(lambda: server.open_files() == before)
    assert hello(server) == SAID


def test_a_trickle_does_not_hold_a_place_for_ever(server: Chaperon) -> None:
    with RawStub(server.fifos) as stub:
        stub.say(PARTS[:12])
        stub.announce()
        for byte in PARTS[12:]:
            time.sleep(0.15)
            stub.say(bytes([byte]))
            if stub.is_answered():
                break
        assert b"did not come in time" in stub.hear()


@pytest.mark.parametrize("said", [b"GET / HTTP/1.0\r\n\r\n", b"\0" * 100, PARTS + b"x", frame(b"V", b"\0\1" + (MOST_REQUEST + 1).to_bytes(4))])
def test_nonsense_is_refused_in_words_at_once(server: Chaperon, said: bytes) -> None:
    with RawStub(server.fifos) as stub:
        stub.say(said)
        stub.announce()
        assert stub.hear(2).startswith(b"R")
    assert hello(server) == SAID


def test_a_stub_that_never_listens_is_dropped_and_the_program_with_it(server: Chaperon) -> None:
    before = server.open_files()
    with RawStub(server.fifos) as stub:
        stub.say(encode_request(request("yes", command="squeue")))
        stub.announce()
        wait_until(server.children)
        assert hello(server) == SAID
        wait_until(lambda: not server.children(), patience=5)
        assert server.memory() < 40_000
    wait_until(lambda: server.open_files() == before)


def test_live_output_of_any_length_passes_in_little_memory(server: Chaperon) -> None:
    hello(server)
    before = server.memory()
    done = subprocess.run(server.argv("squeue", "head", "-c", "50000000", "/dev/zero"), capture_output=True, timeout=60)
    assert (done.returncode, len(done.stdout)) == (0, 50_000_000)
    assert server.memory() - before < 16_000  # pages that it shared with the tests become its own as they are used


def test_captured_output_that_is_too_long_is_cut_and_said_so(server: Chaperon) -> None:
    done = server.call("sacct", "head", "-c", "3000000", "/dev/zero")
    assert (done.returncode, len(done.stdout), b"longer than 65536 bytes" in done.stderr) == (1, 65536, True)


def test_a_program_that_does_not_end_is_ended(server: Chaperon) -> None:
    done = server.call("sinfo", "sh", "-c", "trap '' TERM; echo here; sleep 1000")
    assert (done.returncode, done.stdout) == (137, b"here\n")
    assert b"no end after 0.4 s" in done.stderr
    wait_until(lambda: not server.children())


def test_what_a_program_leaves_behind_is_not_waited_for(server: Chaperon) -> None:
    begin = time.monotonic()
    done = server.call("sacct", "sh", "-c", "sleep 3 & echo here")
    assert (done.stdout, time.monotonic() - begin < 2.5) == (b"here\n", True)


def test_a_program_that_is_missing_is_said_to_be(server: Chaperon) -> None:
    done = server.call("sacct", "no-such-program")
    assert (done.returncode, done.stderr) == (127, b"no-such-program: error: it cannot be started: No such file or directory\n")


def test_a_handler_that_fails_answers_and_does_not_say_why(server: Chaperon) -> None:
    done = server.call("sacct", "fail")
    assert (done.returncode, done.stdout, b"not for the stub" in done.stderr) == (1, b"", False)
    assert [event["what"] for event in audited(server) if event["event"] == "error"] == ["RuntimeError: not for the stub"]
    assert hello(server) == SAID


def test_requests_run_side_by_side(server: Chaperon) -> None:
    begin = time.monotonic()
    stubs = [RawStub(server.fifos) for _ in range(20)]
    for stub in stubs:
        stub.say(encode_request(request("sleep", "0.5")))
        stub.announce()
    assert [stub.hear() for stub in stubs] == [frame(b"X", b"\0")] * 20
    assert time.monotonic() - begin < 5
    for stub in stubs:
        stub.close()


def test_those_that_wait_for_a_job_do_not_stop_the_others_and_are_counted(tmp_path: Path) -> None:
    with chaperon(tmp_path, Limits(**{**QUICK.__dict__, "running": 1, "lasting": 2})) as server:
        waiting = [server.popen("salloc", "sleep", "1000") for _ in range(2)]
        for one in waiting:
            assert one.stdout
            assert one.stdout.read(6) == b"first\n"  # said before the program starts
        assert hello(server) == SAID
        done = server.call("salloc", "sleep", "1000")
        assert (done.returncode, b"2 commands of this session wait already" in done.stderr) == (1, True)
        for one in waiting:
            one.send_signal(signal.SIGINT)
            assert one.wait(5) == -signal.SIGINT
        wait_until(lambda: not server.children(), patience=5)


def test_long_requests_wait_for_each_other_and_none_is_lost(tmp_path: Path) -> None:
    script = b"x" * (3 << 20)
    (tmp_path / "script").write_bytes(script)
    with chaperon(tmp_path, Limits(**{**QUICK.__dict__, "big": 2, "idle": 10.0, "whole": 30.0})) as server:
        stubs = [server.popen("sbatch", "wc", "-c", str(tmp_path / "script"), cwd=tmp_path) for _ in range(12)]
        # wc gets the script as its input and as its argument
        assert [stub.communicate(timeout=30)[0].split()[0] for stub in stubs] == [b"%d" % len(script)] * 12
        assert server.memory() < 60_000


def test_of_many_long_requests_only_a_few_are_read_at_a_time(tmp_path: Path) -> None:
    opening = frame(b"V", b"\0\1" + (3 << 20).to_bytes(4))
    with chaperon(tmp_path, Limits(big=2)) as server:
        stubs = [RawStub(server.fifos) for _ in range(9)]
        for stub in stubs:
            stub.say(opening + b"x" * 1000)
            stub.announce()
        wait_until(lambda: not server.left())
        for stub in stubs:
            stub.fill()
        wait_until(lambda: sum(stub.has_room() for stub in stubs) == 2)
        time.sleep(0.3)
        assert sum(stub.has_room() for stub in stubs) == 2
        for stub in stubs:
            stub.close()


def test_those_who_stand_still_make_place_for_others(tmp_path: Path) -> None:
    with chaperon(tmp_path, Limits(talks=4, pressed=0.2, tick=0.05)) as server:
        idlers = [RawStub(server.fifos) for _ in range(12)]
        for one in idlers:
            one.say(PARTS[:20])
            one.announce()
        begin = time.monotonic()
        assert hello(server) == SAID
        assert time.monotonic() - begin < 5  # not 10 s, and not three times 10 s
        for one in idlers:
            one.close()


def test_a_flood_of_garbage_does_not_keep_others_out(server: Chaperon) -> None:
    code = "import os,sys\nf=os.open(sys.argv[1],os.O_WRONLY)\nwhile True: os.write(f, os.urandom(65536))"
    with subprocess.Popen(["/usr/bin/python3", "-IS", "-c", code, str(server.fifos / "ask")]) as flood:
        try:
            time.sleep(0.3)
            assert [hello(server) for _ in range(5)] == [SAID] * 5
            assert server.memory() < 40_000
        finally:
            flood.kill()


def test_an_announcement_of_what_is_not_there_is_nothing(server: Chaperon) -> None:
    for _ in range(20):
        shout(server.fifos, b"\nchaperon/1 %s\n" % os.urandom(16).hex().encode() * 50)
    assert hello(server) == SAID


def test_500_stubs_at_once_all_get_their_answer(tmp_path: Path) -> None:
    with chaperon(tmp_path) as server:
        begin = time.monotonic()
        stubs = [server.popen("sbatch", "echo", str(number), stderr=subprocess.DEVNULL) for number in range(500)]
        answers = [stub.communicate(timeout=60)[0] for stub in stubs]
        assert answers == [b"%d\n" % number for number in range(500)]
        assert [stub.returncode for stub in stubs] == [0] * 500
        assert sorted(map(int, (server.top / "ledger").read_text().split())) == list(range(500))
        assert (server.left(), server.children()) == ([], [])
        print(f"500 stubs: {time.monotonic() - begin:.1f} s")


def test_a_thousand_requests_leave_neither_memory_nor_descriptors_nor_processes(server: Chaperon) -> None:
    def batch(count: int) -> float:
        begin = time.monotonic()
        for number in range(count):
            with RawStub(server.fifos) as stub:
                script = Script(path="s", content=b"x" * 20_000)
                kind = ("say", "0", "hello", "") if number % 2 else ("show", "x")
                assert stub.ask(request(*kind, script=script)).endswith(frame(b"X", b"\0"))
        return (time.monotonic() - begin) / count

    first = batch(200)
    memory, files = server.memory(), server.open_files()
    last = batch(1000)
    assert server.memory() - memory < 6_000
    wait_until(lambda: server.open_files() == files)
    assert (server.children(), server.left()) == ([], [])
    assert last < 3 * first + 0.01


def test_a_removed_directory_harms_nobody_who_is_inside_already(server: Chaperon) -> None:
    with RawStub(server.fifos) as stub:
        stub.say(encode_request(request("sleep", "0.5")))
        stub.announce()
        wait_until(server.children)
        shutil.rmtree(server.fifos)
        assert stub.hear() == frame(b"X", b"\0")
    time.sleep(QUICK.sweep * 2)
    assert os.waitpid(server.pid, os.WNOHANG) == (0, 0)
    assert server.call("sacct", "say", "0", "", "").returncode == 1


def test_at_the_end_what_is_being_submitted_is_recorded(server: Chaperon) -> None:
    stub = server.popen("sbatch", "sh", "-c", "sleep 0.7; echo 5")
    wait_until(server.children)
    server.kill(signal.SIGTERM)
    assert (server.top / "ledger").read_text() == "5\n"
    assert stub.communicate(timeout=5)[0] == b"5\n"


def test_the_end_is_not_put_off_by_what_hangs(server: Chaperon) -> None:
    stub = server.popen("sbatch", "sleep", "5")
    wait_until(server.children)
    begin = time.monotonic()
    server.kill(signal.SIGTERM)
    assert time.monotonic() - begin < QUICK.drain + 2
    assert b"the chaperon ended before it answered" in stub.communicate(timeout=5)[1]


def test_what_is_no_request_cannot_fill_the_audit_log(server: Chaperon) -> None:
    for _ in range(130):
        with RawStub(server.fifos) as stub:
            stub.say(b"x" * 20)
            stub.announce()
            assert stub.hear().startswith(b"R")
    assert hello(server) == SAID
    assert [event["command"] for event in audited(server)] == [""] * 100 + ["sacct"]


def test_a_program_whose_input_cannot_be_made_is_ended_before_it_does_anything(server: Chaperon, tmp_path: Path) -> None:
    done = server.call("sbatch", "unready", str(tmp_path / "done"))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"no input for it" in done.stderr
    wait_until(lambda: not server.children())
    assert not (tmp_path / "done").exists()
