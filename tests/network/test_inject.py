"""A credential that never enters: used by the real host, absent everywhere inside, and sent nowhere else."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.machines.copies import PYTHON
from tests.machines.needs import need
from tests.network.extractions import ATTEMPTS, FILES, SNIFF, USED
from tests.network.injecting import BACKENDS, SECRET, World, make_world  # noqa: F401

# It is used


CLIENTS = {
    "curl": 'curl -sS -m 20 -H "x-api-key: $SITE_API_KEY" "$SITE_BASE_URL/curl"',
    "python": f"""{PYTHON} -I -c 'import os, urllib.request as u; print(u.urlopen(os.environ["SITE_BASE_URL"] + "/python").read().decode()[:-1])'""",
    "node": 'node -e \'fetch(process.env.SITE_BASE_URL + "/node", {method: "POST", body: "1234567", '
            'headers: {"x-api-key": process.env.SITE_API_KEY}}).then(r => r.text()).then(t => process.stdout.write(t))\'',
}  # fmt: skip


@BACKENDS
def test_real_clients_use_a_credential_that_they_do_not_have(world: World) -> None:
    need("node")
    world.configure()
    done = world.run("bash", "-c", f"echo $SITE_API_KEY; env | grep -c ^SITE_KEY=; {'; '.join(CLIENTS.values())}")
    assert (done.code, done.err) == (0, "")
    assert done.out == "placeholder-set-by-agent-sandbox\n0\n0 bytes came\n0 bytes came\n7 bytes came\n"
    assert {one.path: one.values("x-api-key") for one in world.host.requests} == {path: [SECRET] for path in ("/curl", "/python", "/node")}
    lines = [json.loads(line) for line in world.log().splitlines()]
    told = [(one["protocol"], one["inject"], one["host"], one["verdict"]) for one in lines if one["event"] == "network"]
    assert told == [("inject", "site", "localhost", "allow")] * 3
    assert SECRET not in world.log()


# And by nobody else


@BACKENDS
def test_every_attempt_to_get_at_it_or_to_send_it_elsewhere_fails(world: World, backend: str) -> None:
    jail = world.jail
    key = jail.write(jail.user.home / "keys" / "site.key", SECRET + "\n", 0o600)
    world.configure(f'file = "{key}"\n')
    for name, text in (("sniff.py", SNIFF), ("files.py", FILES), ("attempts.json", json.dumps({name: line for name, (line, _) in ATTEMPTS.items()}))):
        jail.write(jail.project / name, text)
    drive = (
        "import json, subprocess\n"
        "for name, line in json.load(open('attempts.json')).items():\n"
        "    done = subprocess.run(['timeout', '30', 'bash', '-c', line], stdin=-3, stdout=-1, stderr=-2)\n"
        "    print(json.dumps([name, done.stdout.decode('utf-8', 'replace')]), flush=True)\n"
    )
    setting = f"export BASE=$SITE_BASE_URL PROXY=$http_proxy PORT={world.host.port} OTHER={world.other.port} REAL_HOME={jail.user.home}"
    done = world.run("bash", "-c", f"{setting}; exec {PYTHON} -I -c \"$0\"", drive, timeout=240)
    assert (done.code, done.err) == (0, ""), done.err
    said: dict[str, str] = dict(json.loads(line) for line in done.out.splitlines())
    assert {name: text for name, text in said.items() if not text.endswith(ATTEMPTS[name][1])} == {}
    assert said.keys() == ATTEMPTS.keys() and len(ATTEMPTS) >= 12
    assert [name for name, text in said.items() if any(form in text for form in (SECRET, SECRET[::-1], SECRET[10:]))] == []
    assert {name for one in world.other.requests for name in one.values("x-api-key")} <= {"mine"}
    assert [one.path for one in world.other.requests] == ["/redirected"]  # it was reached: the field that it got is the client's own
    used = {one.path.partition("?")[0]: one.values("x-api-key") for one in world.host.requests}
    assert used == {**{path: [SECRET] for path in USED}, "/direct": ["mine"]}  # the control: it was there for each of them
    if jail_sees_others := int(re.findall(r"^of (\d+)$", said["debugging the proxy"], re.MULTILINE)[0]):
        assert backend == "landlock" and jail_sees_others > 2  # launcher, guard, supervisor, proxy
    assert SECRET not in world.log()


@pytest.mark.parametrize("backend", ("bwrap",), indirect=True)
def test_the_same_search_outside_finds_it(world: World) -> None:
    """The control: in the launcher's variables. The proxy lets nobody look, not even outside."""
    world.configure()
    sniff = world.jail.write(world.jail.user.home / "sniff.py", SNIFF)
    with world.session("curl -sS $SITE_BASE_URL/x") as session:
        assert session.stdout and session.stdout.readline() == b"0 bytes came\n"
        outside = world.jail.outside(PYTHON, "-I", sniff).out
        proxies = [pid for pid in os.listdir("/proc") if pid.isdecimal() and _is_proxy(pid, world.jail.user.uid)]
        closed = [os.stat(f"/proc/{pid}/environ").st_uid for pid in proxies]
    assert re.search(r"looked True found \[.*'\d+ environ'", outside)
    assert closed == [0]  # not dumpable: its files in /proc are root's
    assert not any(f"'{pid} " in outside for pid in proxies)


def _is_proxy(pid: str, uid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        return f"Uid:\t{uid}\t" in status and os.readlink(f"/proc/{pid}/fd/3").startswith("socket:") and "python" in os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False


@BACKENDS
def test_the_log_of_the_session_can_be_read_inside(world: World) -> None:
    world.configure()
    done = world.run("bash", "-c", "agent-sandbox network log; curl -sS $SITE_BASE_URL/x; agent-sandbox network log --json")
    assert done.code == 0, done.err
    first, _, line = done.out.splitlines()
    assert first == "this session has asked for nothing on the network yet"
    told = json.loads(line)
    assert (told["inject"], told["host"], told["verdict"]) == ("site", "localhost", "allow")


@pytest.mark.parametrize(("backend", "codes"), [("landlock", (52, 56)), ("bwrap", (7,)), ("firejail", (7,))], indirect=["backend"])
def test_nobody_outside_can_use_it(world: World, codes: tuple[int, ...]) -> None:
    """With Landlock the port is one of the machine's own: who connects gets no answer (52, 56). The others have one of theirs (7)."""
    world.configure()
    with world.session("echo $SITE_BASE_URL; curl -sS $SITE_BASE_URL/mine") as session:
        assert session.stdout
        url = session.stdout.readline().decode().strip()
        assert session.stdout.readline() == b"0 bytes came\n"
        outside = world.jail.outside("curl", "-sS", "-m", "10", f"{url}/stolen")
    assert (outside.code in codes, outside.out) == (True, ""), outside
    assert [one.path for one in world.host.requests] == ["/mine"]
