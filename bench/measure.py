"""Run as the user, from the installed copy: times the commands in turn and prints JSON."""

import json
import os
import statistics
import subprocess
import sys

COPY, ROUNDS = sys.argv[1], int(sys.argv[2])
sys.path[:0] = [f"{COPY}/lib", COPY]

from agent_sandbox.launcher.cli import parse  # noqa: E402
from agent_sandbox.launcher.launch import decide, open_case  # noqa: E402
from bench.timing import in_turn, spawn  # noqa: E402

PROGRAM = f"{COPY}/bin/agent-sandbox"
PYTHON = "/usr/bin/python3"
PHASES = f"""
import time; begin = time.perf_counter(); marks = []
def mark(name): marks.append((name, time.perf_counter()))
import sys; sys.path.insert(0, {COPY + "/lib"!r})
from agent_sandbox.launcher.cli import parse
request = parse(["--", "true"]); mark("import and read the command line")
from agent_sandbox.launcher import launch; mark("import the launch")
from agent_sandbox.launcher import supervise, session, aftermath; mark("import the supervisor")
case = launch.open_case(request); mark("probe the host, read the settings")
decision = launch.decide(case); mark("resolve and plan")
audit = launch.open_audit(case.settings, case.places, case.host); audit.write("bench", {{}}); mark("one audit line")
for name, now in marks:
    print(name, (now - begin) * 1e3, sep="\\t"); begin = now
"""


def bare_bwrap():
    """The plan's own bwrap without us: same mounts, same filter, no stage, nothing around it."""
    plan = decide(open_case(parse(["--", "true"])), in_session=False).plan
    options = list(plan.options)
    place = options.index("--json-status-fd")
    del options[place : place + 2]
    contents = {plan.options_fd: b"".join(os.fsencode(word) + b"\0" for word in options), **{one.fd: one.content for one in plan.data}}
    argv = [plan.program, "--args", str(plan.options_fd), "--", "/usr/bin/true"]

    def start():
        actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        handles = []
        for number, content in contents.items():
            handle = os.memfd_create("bench")
            os.write(handle, content)
            os.lseek(handle, 0, os.SEEK_SET)
            handles.append(handle)
            actions.append((os.POSIX_SPAWN_DUP2, handle + 0, number + 200))
        actions += [(os.POSIX_SPAWN_DUP2, number + 200, number) for number in contents]
        actions += [(os.POSIX_SPAWN_CLOSE, number + 200) for number in contents]
        pid = os.posix_spawn(argv[0], argv, {"PATH": "/usr/bin:/bin"}, file_actions=actions)
        for handle in handles:
            os.close(handle)
        return pid

    return start


def phases():
    runs = [subprocess.run([PYTHON, "-I", "-S", "-c", PHASES], capture_output=True, text=True, check=True).stdout for _ in range(11)]
    rows = [dict(line.split("\t") for line in run.splitlines()) for run in runs]
    return {name: statistics.median(float(row[name]) for row in rows) for name in rows[0]}


def imports():
    argv = [PYTHON, "-I", "-S", "-X", "importtime", PROGRAM, "--quiet", "--", "true"]
    lines = subprocess.run(argv, capture_output=True, text=True).stderr.splitlines()
    rows = [line.removeprefix("import time:").split("|") for line in lines if line.startswith("import time:") and "self" not in line]
    dear = sorted(((int(row[0]) / 1e3, row[2].strip()) for row in rows), reverse=True)[:14]
    return {name: cost for cost, name in dear}


def bare_firejail():
    """The plan's own firejail without us: the same profile, no stage inside."""
    from agent_sandbox.launcher.firejail import other_entries, profile

    plan = decide(open_case(parse(["--backend", "firejail", "--", "true"])), in_session=False).plan
    name = f"{os.path.expanduser('~')}/.bench-profile"
    with open(name, "w") as file:
        file.writelines(f"{line}\n" for line in profile(plan, tuple(other_entries(plan.inner.shown))))
    return spawn([plan.program, "--quiet", f"--profile={name}", "/usr/bin/true"])


def compare():
    commands = {
        "python3 -I -S -c pass": spawn([PYTHON, "-I", "-S", "-c", "pass"]),
        "bwrap, same mounts": bare_bwrap(),
        "firejail, same options": bare_firejail(),
        **{f"agent-sandbox, {name}": spawn([PROGRAM, "--backend", name, "--", "true"]) for name in ("bwrap", "firejail", "landlock")},
    }
    print(json.dumps({"times": in_turn(commands, ROUNDS)}))


def main():
    commands = {
        "true": spawn(["/usr/bin/true"]),
        "python3 -I -S -c pass": spawn([PYTHON, "-I", "-S", "-c", "pass"]),
        "bwrap, same mounts": bare_bwrap(),
        "agent-sandbox -- true": spawn([PROGRAM, "--", "true"]),
    }
    print(json.dumps({"times": in_turn(commands, ROUNDS), "phases": phases(), "imports": imports()}))


compare() if "backends" in sys.argv else main()
