"""`agent-sandbox doctor` on a machine that is ready, and on ones that are not: made so for the run, not pretended."""

from __future__ import annotations

import io
import json
import os
import shlex
from pathlib import Path

import pytest

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.policy import Gap, Property
from agent_sandbox.launcher.seccomp.filters import path_of
from agent_sandbox.launcher.seeing.doctor import Check, judge, put_check
from agent_sandbox.launcher.seeing.measured import Measured
from tests.machines.jail import Jail, Result
from tests.machines.needs import need, need_root
from tests.seeing.changed import run_on_changed_machine

SEEN = ["fs-write", "hidden", "environment", "open files", "signals", "processes", "unix-sockets", "abstract-sockets", "network"]
PRIVILEGES = ["jail", "capabilities", "no_new_privs", "syscalls"]
MEASURED = {
    "bwrap": [*PRIVILEGES, "namespaces", *SEEN, "proxy"], "firejail": [*PRIVILEGES, "namespaces", *SEEN, "proxy"],
    "landlock": [*PRIVILEGES, *SEEN, "proxy"],
}  # fmt: skip
NO_BWRAP = "for place in /usr/bin /usr/local/bin; do [ ! -e $place/bwrap ] || mount --bind /dev/null $place/bwrap; done"


def failed(answer: Result) -> dict[str, dict[str, object]]:
    """The checks that did not hold, by name; proof that all the others were made."""
    found = json.loads(answer.out)
    assert found["ready"] is all(check["ok"] is not False for check in found["checks"])
    assert answer.code == (0 if found["ready"] else 1)
    return {check["name"]: check for check in found["checks"] if check["ok"] is False}


def named(answer: Result) -> dict[str, dict[str, object]]:
    """All checks by name."""
    return {check["name"]: check for check in json.loads(answer.out)["checks"]}


def with_program(text: str, tmp_path: Path) -> str:
    """The change that puts a program of the test's in the place of bwrap."""
    fake = tmp_path / "bwrap"
    fake.write_text(text)
    fake.chmod(0o755)
    return f"mount --bind {shlex.quote(str(fake))} /usr/bin/bwrap"


def test_a_machine_that_is_ready(jail: Jail) -> None:
    told = jail.ask("doctor")
    assert (told.code, told.err) == (0, "")
    assert told.out.endswith("\nready\n")
    assert max(map(len, told.out.splitlines())) <= 80
    assert {line[0] for line in told.out.splitlines()[:-1] if line[0] != " "} <= {"✓", "–"}
    assert "\x1b" not in told.out


@pytest.mark.parametrize("asked", ["auto", *MEASURED])
def test_every_backend_is_run_and_the_chosen_one_measured(jail: Jail, asked: str) -> None:
    if asked == "firejail":
        need(asked)
    answer = jail.ask("--backend", asked, "doctor", "--json")
    assert failed(answer) == {}
    checks = named(answer)
    assert list(checks)[:3] == ["bwrap", "firejail", "landlock"]
    chosen = "bwrap" if asked == "auto" else asked
    why = "auto takes it first, and it runs" if asked == "auto" else "asked for by command line"
    assert checks["choice"]["found"] == f"{chosen}: {why}"
    assert list(checks)[-len(MEASURED[chosen]) :] == MEASURED[chosen]
    assert str(checks["network mode"]["found"]).startswith("proxied (filtered is not available")
    assert checks["proxy"]["found"] == "answers, and refuses a service on this machine (403)"


def test_a_part_of_the_floor_that_an_admin_has_opened_is_told(jail: Jail) -> None:
    checks = named(jail.ask("doctor", "--json", admin={"config.toml": '[network]\nmode = "proxied"\nfloor_open = ["loopback"]\n'}))
    assert (checks["proxy"]["ok"], checks["proxy"]["found"]) == (True, "answers, and lets through what an admin has opened")


@pytest.mark.parametrize(
    ("named", "ok"),
    [
        ([], False),
        ([Gap(property=Property.PIDS, reason="this kernel does not stop signals to your processes")], None),
        ([Gap(property=Property.PIDS, reason="names of processes can be read in /proc")], False),  # another way to leave it open
        ([Gap(property=Property.PIDS, reason="this kernel does not stop signals to your processes", weak=True)], False),
        ([Gap(property=Property.IPC, reason="signals")], False),
    ],
)  # fmt: skip
def test_only_a_gap_that_was_named_excuses_what_does_not_hold(named: list[Gap], ok: bool | None) -> None:
    seen = Measured(name="signals", holds=False, found="can be signalled", property=Property.PIDS, word="signal")
    assert judge(seen, tuple(named)).ok is ok
    assert judge(replace(seen, holds=True), tuple(named)).ok is True


def test_what_landlock_cannot_give_is_named_and_seen_to_be_missing(jail: Jail) -> None:
    checks = named(jail.ask("--backend", "landlock", "doctor", "--json"))
    assert (checks["processes"]["ok"], checks["signals"]["ok"]) == (None, True)
    assert any(note.startswith("pids is not enforced") for note in list(checks["choice"]["notes"]))  # type: ignore[call-overload]
    closed = jail.ask("--backend", "landlock", "doctor", "--json", admin={"config.toml": "[sandbox]\nrequire = ['pids']\n"})
    assert failed(closed) == {}
    assert (named(closed)["processes"]["ok"], named(closed)["capabilities"]["ok"]) == (True, None)


def test_it_works_from_home_where_no_project_can_be(jail: Jail) -> None:
    assert jail.run("true", cwd=jail.user.home).code == 125
    assert jail.ask("doctor", cwd=jail.user.home).code == 0


def own_entries(jail: Jail) -> list[str]:
    """Of this user; others come and go while we look."""
    found = jail.outside("find", "/tmp", "/var/tmp", "-maxdepth", "1", "-user", str(jail.user.uid), "-print")
    return sorted(found.out.splitlines())


def test_it_leaves_an_audit_line_and_nothing_else(jail: Jail) -> None:
    need_root()
    before = own_entries(jail)
    assert jail.ask("doctor").code == 0
    assert own_entries(jail) == before
    assert os.listdir(jail.project) == []
    assert jail.ask("audit", "verify").code == 0


def test_where_the_marks_cannot_be_spelled_there_are_words(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii", write_through=True))
    put_check(Check(name="one", ok=True, found="fine"))
    put_check(Check(name="two", ok=False, found="caf\u00e9"))
    assert written.getvalue().decode() == "ok one              fine\nNO two              caf\\xe9\n"


def test_what_is_measured_is_what_counts(jail: Jail, tmp_path: Path) -> None:
    """A bwrap that answers as it should and builds no jail: every property must be seen to be missing."""
    need("bwrap")
    change = with_program(
        """#!/bin/bash
[ "$1" = --version ] && { echo bubblewrap 0.9.0; exit; }
while [ "$1" != -- ]; do shift; done; shift
export DOCTOR_CANARY_TOKEN=seen
"$@"; code=$?
{ echo "{ \\"exit-code\\": $code }" >&10; } 2> /dev/null
exit $code
""",
        tmp_path,
    )
    jail.write(jail.user.home / ".ssh/id", "private\n")
    found = failed(run_on_changed_machine(jail, change, "--backend", "bwrap", "--network", "isolated", "doctor", "--json"))
    missing = set(MEASURED["bwrap"]) - {"jail", "open files", "no_new_privs", "signals", "proxy"}  # ours: done by the stage, before any backend
    assert missing - set(found) == set()
    assert found["namespaces"]["found"] == "shared with the host: pid ipc uts net"  # our own stage has made user and mount


def test_a_missing_bwrap_is_named_with_the_line_that_installs_it(jail: Jail) -> None:
    answer = run_on_changed_machine(jail, NO_BWRAP, "--backend", "bwrap", "doctor")
    assert answer.code == 1
    assert "✗ bwrap            bwrap is not installed" in answer.out
    assert "    Debian, Ubuntu: apt install bubblewrap" in answer.out
    assert "✗ jail             bwrap cannot be used: bwrap is not installed" in answer.out
    assert answer.out.endswith("not ready\n")
    assert max(map(len, answer.out.splitlines())) <= 80


def test_without_bwrap_and_firejail_landlock_is_taken_and_holds(jail: Jail) -> None:
    change = f"{NO_BWRAP}; [ ! -e /usr/bin/firejail ] || mount --bind /dev/null /usr/bin/firejail"
    answer = run_on_changed_machine(jail, change, "doctor", "--json")
    assert failed(answer) == {}
    checks = named(answer)
    assert [checks[name]["ok"] for name in ("bwrap", "firejail", "landlock")] == [None, None, True]
    assert checks["choice"]["found"] == "landlock: auto takes it, since bwrap does not run and firejail does not run"


def test_an_old_bwrap_is_named_with_its_version(jail: Jail, tmp_path: Path) -> None:
    change = with_program("#!/bin/sh\necho bubblewrap 0.3.1\n", tmp_path)
    found = failed(run_on_changed_machine(jail, change, "--backend", "bwrap", "doctor", "--json"))
    assert found["bwrap"]["found"] == "bwrap 0.3.1 is too old: 0.5 or later is needed"


def test_user_namespaces_that_are_switched_off_are_named_with_the_switch(jail: Jail) -> None:
    """In a user namespace whose own count is set to none: the kernel then refuses as with the machine's switch."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    inner = ["unshare", "--user", "--map-current-user", "--keep-caps", "bash", "-c", script, "bash"]
    asked = [str(jail.program), "--backend", "bwrap", "doctor", "--json"]
    control = jail.outside("unshare", "--user", "--map-current-user", *asked)
    assert failed(control) == {}
    assert "inside a user namespace" in str(named(control)["firejail"]["found"])
    found = failed(jail.outside(*inner, *asked))
    assert "user.max_user_namespaces = 0" in str(found["bwrap"]["found"])
    assert "sysctl -w user.max_user_namespaces" in str(found["bwrap"]["notes"])
    assert list(found) == ["bwrap", "jail"]


def test_a_filter_that_forbids_namespaces_is_named(jail: Jail) -> None:
    """Under the strict filter, as a container's."""
    bwrap = [need("bwrap"), "--unshare-user", "--dev-bind", "/", "/", "--seccomp", "9", "--"]
    strict = os.path.basename(path_of("strict", os.uname().machine, nested=False))
    filters = jail.copy / "lib/agent_sandbox/launcher/seccomp/filters"
    found = failed(jail.outside("bash", "-c", 'exec "$@" 9< "$0"', filters / strict, *bwrap, jail.program, "--backend", "bwrap", "doctor", "--json"))
    assert "does not let a process make user namespaces" in str(found["bwrap"]["found"])


def test_config_that_is_not_understood_is_named(jail: Jail) -> None:
    need_root()
    config = jail.configure("[filesystem]\nhom = 'write'\n")
    found = failed(jail.ask("doctor", "--json"))
    assert list(found) == ["config"]
    assert str(found["config"]["found"]).startswith(f"{config}:2")


def test_clamps_are_listed(jail: Jail) -> None:
    told = jail.ask("--home", "write", "doctor", admin={"config.toml": "[filesystem]\nhome = 'restricted'\n"})
    assert told.code == 0
    assert "1 file read, 1 value put back" in told.out
    assert "command line: filesystem.home" in told.out


@pytest.mark.parametrize(("line", "ready"), [("[slurm]\nlog_level = 'info'", True), ("[modules]\nload = ['gcc']", False)])
def test_a_key_that_waits_for_a_later_part_is_named(jail: Jail, line: str, ready: bool) -> None:
    need_root()
    config = jail.configure(line + "\n")
    told = jail.ask("--network", "open", "doctor")
    assert told.code == (0 if ready else 1)
    assert "waits for it" in told.out
    assert str(config) in told.out


def test_an_audit_log_that_cannot_be_written_is_named(jail: Jail) -> None:
    need_root()
    jail.write(jail.user.home / ".local/state/agent-sandbox", "a file in its place\n")
    found = failed(jail.ask("doctor", "--json"))
    assert "the audit log cannot be written" in str(found["audit"]["found"])


def test_an_admin_who_narrows_projects_is_respected(jail: Jail) -> None:
    told = jail.ask("doctor", admin={"config.toml": f"[project]\nparents = ['{jail.user.home}']\n"})
    assert told.code == 0, told.out
    refused = jail.ask("doctor", admin={"config.toml": "[project]\nparents = ['/nowhere']\n"})
    assert refused.code == 1
    assert "projects may lie below" in refused.out


def test_more_words_are_refused(jail: Jail) -> None:
    asked = jail.ask("doctor", "now")
    assert (asked.code, "usage: agent-sandbox doctor" in asked.err) == (125, True)
