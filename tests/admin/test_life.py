"""The whole life of two bots, with real root, real users and real sudo; and that nothing is left of it."""

from __future__ import annotations

import json
import subprocess
import time

import pexpect
import pytest

from tests.machines.site import BOTADM, Machine

PROJECT = "/home/alice/work"


@pytest.fixture
def shared(bots: Machine) -> Machine:
    """alice has two bots and a project that they share."""
    bots.must("create", "dora")
    bots.shell("mkdir -p work/src; echo one > work/src/a; chmod 700 work work/src; chmod 600 work/src/a", user="alice", cwd="/home/alice")
    bots.must("share", "-r", PROJECT)
    return bots


def test_nothing_is_left_of_two_bots(site: Machine) -> None:
    site.shell("mkdir work; echo hello > work/a; chmod 2751 work", user="alice", cwd="/home/alice")
    site.shell("setfacl -m u:nobody:r work/a; setfacl -d -m u:nobody:rx work", user="alice", cwd="/home/alice")
    before = site.state("/home", "/var/bot", "/var/lib/botadm", "/var/mail")
    site.must("init")
    site.must("create", "clio")
    site.must("create", "dora", "--strict")
    site.must("share", "-r", PROJECT)
    assert run_as(site, "clio", "sh", "-c", "cat a && touch ~/x && mkdir -p ~/deep/er", cwd=PROJECT).stdout == "hello\n"
    site.start(BOTADM, "run", "clio", "sleep", "600", user="alice")
    assert processes(site, "clio")
    site.must("disable", "clio")
    site.must("enable", "clio")
    site.must("noshare", "-r", PROJECT)
    site.start(BOTADM, "run", "clio", "sleep", "600", user="alice")
    assert processes(site, "clio")
    site.must("destroy", "clio", "--force")
    assert "sleep 600" not in site.run("/bin/ps", "-eo", "args").stdout
    site.must("destroy", "dora", input="dora\n")
    site.must("init", "--undo")
    assert site.state("/home", "/var/bot", "/var/lib/botadm", "/var/mail") == before


def test_each_party_can_use_what_the_others_make(shared: Machine) -> None:
    shared.shell("umask 077; echo human > by-alice; mkdir dir-by-alice", user="alice", cwd=PROJECT)
    for name in ("clio", "dora"):
        assert run_as(shared, name, "sh", "-c", f"umask 077; echo {name} > by-{name}; mkdir dir-by-{name}; cat src/a", cwd=PROJECT).stdout == "one\n"
    for name in ("clio", "dora"):
        script = "for one in by-* ; do echo more >> $one; done; for one in dir-*; do touch $one/of-$USER; done"
        assert run_as(shared, name, "sh", "-ec", script, cwd=PROJECT).returncode == 0
    shared.shell("cat by-clio by-dora; echo more >> by-clio; rm by-dora dir-by-dora/of-clio", user="alice", cwd=PROJECT)
    assert (shared.root / "home/alice/work/by-clio").read_text() == "clio\nmore\nmore\nmore\n"


def test_a_temporary_file_of_a_bot_stays_its_own(shared: Machine) -> None:
    """As the page says: 0600 on purpose is 0600."""
    run_as(shared, "clio", "python3", "-c", "import os; os.close(os.open('secret', os.O_CREAT | os.O_WRONLY, 0o600))", cwd=PROJECT)
    assert shared.run("/bin/cat", f"{PROJECT}/secret", user="alice").returncode == 1
    shared.must("share", "-r", PROJECT)
    assert shared.run("/bin/cat", f"{PROJECT}/secret", user="alice").returncode == 0


def test_bots_are_apart(shared: Machine) -> None:
    run_as(shared, "clio", "sh", "-c", "echo mine > ~/file")
    own = run_as(shared, "clio", "cat", "/var/bot/clio/file")
    other = run_as(shared, "dora", "cat", "/var/bot/clio/file")
    assert (own.stdout, other.returncode, other.stdout) == ("mine\n", 1, "")
    assert other.stderr == "cat: /var/bot/clio/file: Permission denied\n"
    assert run_as(shared, "clio", "ls", "/var/bot/clio").stdout == "env\nfile\n"
    assert run_as(shared, "dora", "ls", "/var/bot/clio").stderr == "ls: cannot open directory '/var/bot/clio': Permission denied\n"
    assert shared.run("/bin/cat", "/var/bot/clio/file", user="alice").stdout == "mine\n"  # and her owner's


def test_another_person_can_use_neither(shared: Machine) -> None:
    shared.add_person("bob")
    assert shared.run("/usr/bin/sudo", "-n", "-u", "clio", "--", "/usr/bin/id", "-un", user="alice").stdout == "clio\n"  # control
    tried = shared.run("/usr/bin/sudo", "-n", "-u", "clio", "--", "/usr/bin/id", "-un", user="bob")
    assert (tried.returncode, tried.stdout) == (1, "")
    said = shared.run(BOTADM, "run", "clio", "id", user="bob")
    assert said.returncode == 125 and "clio is alice's bot, and you are bob" in said.stderr


def test_a_shell_logs_in_with_the_bots_prompt_and_variables(shared: Machine) -> None:
    run_as(shared, "clio", "sh", "-c", "echo 'TOKEN=a b\"c' >> ~/env")
    words = shared.words([BOTADM, "shell", "clio"], user="alice")
    child = pexpect.spawn(words[0], words[1:], encoding="utf-8", timeout=20, dimensions=(40, 200))
    child.expect(r"bot clio@")
    child.sendline("echo $TOKEN/$HOME/$(umask)/$(pwd)/$((6*7)); tty; stty size")
    child.expect(r'a b"c//var/bot/clio/0007//var/bot/clio/42\s+/dev/pts/\d+\s+40 200')
    child.sendline("exit 3")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 3


def test_disabling_ends_what_runs_and_enabling_is_exactly_back(shared: Machine) -> None:
    sleeper = shared.start(BOTADM, "run", "clio", "sh", "-c", "trap '' TERM HUP; echo up; while :; do sleep 1; done", user="alice")
    assert sleeper.stdout is not None and sleeper.stdout.readline() == "up\n"
    before = shared.state("/var/bot", "/var/lib/botadm/bots")
    assert processes(shared, "clio")
    shared.must("disable", "clio")
    assert processes(shared, "clio") == []
    assert sleeper.wait(20) != 0
    assert "clio is disabled" in shared.run(BOTADM, "run", "clio", "id", user="alice").stderr
    refused = shared.run("/usr/bin/sudo", "-n", "-u", "clio", "--", "/usr/bin/id", user="alice")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert shared.run("/bin/ls", "/var/bot/clio", user="alice").returncode == 2
    assert shared.must("disable", "clio").stdout == "disable clio: nothing to do\n"
    shared.must("enable", "clio")
    assert shared.state("/var/bot", "/var/lib/botadm/bots") == before
    assert run_as(shared, "clio", "id", "-un").stdout == "clio\n"
    assert shared.must("enable", "clio").stdout == "enable clio: nothing to do\n"


def test_destroying_asks_by_name_and_never_goes_through_a_link(shared: Machine) -> None:
    run_as(shared, "clio", "sh", "-c", "ln -s /home/alice ~/link; mkdir -p ~/d && ln -s / ~/d/root; ln -s /etc/passwd ~/p")
    assert "the name was not given" in shared.botadm("destroy", "clio", input="yes\n").stderr
    assert shared.must("status", "clio").returncode == 0
    homes = shared.state("/home")
    shared.must("destroy", "clio", input="clio\n")
    after = shared.state("/home")
    assert {path for path in homes if path.startswith("tree /home") and after.get(path) != homes[path]} == set()
    assert not (shared.root / "var/bot/clio").exists()
    assert "there is no bot" in shared.botadm("destroy", "clio", "--force").stderr


def test_a_namespace_that_became_a_link_is_removed_and_not_what_it_names(shared: Machine) -> None:
    shared.shell("rm -rf /var/bot/clio; ln -s /home/alice /var/bot/clio")
    shared.must("destroy", "clio", "--force")
    assert (shared.root / "home/alice/work/src/a").read_text() == "one\n"
    assert shared.shell("ls /var/bot") == "dora\n"


def test_what_is_mounted_in_a_namespace_stops_its_end_before_anything_is_done(bots: Machine) -> None:
    bots.shell("mkdir /var/bot/clio/mnt; mount --bind /home/alice /var/bot/clio/mnt; touch /var/bot/clio/file")
    before = bots.state("/home", "/var/bot", "/var/lib/botadm")
    done = bots.botadm("destroy", "clio", "--force")
    assert done.returncode == 125 and "something is mounted in it: /var/bot/clio/mnt" in done.stderr
    assert bots.state("/home", "/var/bot", "/var/lib/botadm") == before
    bots.shell("umount /var/bot/clio/mnt")
    bots.must("destroy", "clio", "--force")


def test_a_deep_tree_is_removed(bots: Machine) -> None:
    script = "import os\nos.chdir(os.environ['HOME'])\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\nopen('end', 'w')"
    assert run_as(bots, "clio", "python3", "-c", script).returncode == 0
    bots.must("destroy", "clio", "--force")
    assert not (bots.root / "var/bot/clio").exists()


def test_undo_takes_back_the_last_command_and_then_the_one_before(site: Machine) -> None:
    states = [site.state("/var/bot", "/var/lib/botadm/bots")]
    for words in (("init",), ("create", "clio"), ("create", "dora"), ("disable", "clio")):
        site.must(*words)
        states.append(site.state("/var/bot", "/var/lib/botadm/bots"))
    for state in reversed(states[1:-1]):
        site.must("undo")
        assert site.state("/var/bot", "/var/lib/botadm/bots") == state
    site.must("undo")
    assert {path: what for path, what in site.state("/var/bot").items()} == {path: what for path, what in states[0].items() if "botadm" not in path}


def test_a_bot_that_has_worked_is_not_uncreated(bots: Machine) -> None:
    run_as(bots, "clio", "touch", "/var/bot/clio/work")
    done = bots.botadm("undo")
    assert done.returncode == 125 and "clio has been used since" in done.stderr
    bots.shell("rm /var/bot/clio/work")
    plan = bots.must("undo", "--dry-run").stdout
    assert "do     remove /var/bot/clio if it is empty" in plan and "useradd" not in plan  # what undo would do, not what it would take back
    bots.must("undo")
    assert bots.uid("clio") == -1 and not (bots.root / "var/bot/clio").exists()


def test_undoing_one_member_leaves_the_others(site: Machine) -> None:
    """Somebody else joins the group between a command and its undo: only our own change is taken back."""
    site.add_person("bob")
    site.must("init")
    site.must("create", "clio")
    site.shell("gpasswd --add bob bot")
    site.must("undo")
    assert next(line for line in (site.root / "etc/group").read_text().splitlines() if line.startswith("bot:")).endswith(":alice,bob")


def test_status_names_each_thing_that_is_not_as_it_should_be(bots: Machine) -> None:
    assert bots.must("status", "clio").returncode == 0
    bots.shell("chmod 2777 /var/bot/clio; usermod --shell /bin/bash clio; gpasswd --delete clio bot; rm /var/bot/clio/env")
    bots.shell("echo '# x' >> /etc/sudoers.d/bot-clio")
    found = bots.botadm("status", "clio", "--json")
    data = json.loads(found.stdout)
    wrong = {check["what"] for check in data["checks"] if not check["ok"]}
    assert (found.returncode, data["ok"]) == (1, False)
    assert wrong == {"user clio", "clio in the group bot", "/var/bot/clio/env", "owner and mode of /var/bot/clio", "rule for sudo"}
    assert [check["ok"] for check in data["checks"] if check["what"] == "sudo lets the owner become the bot"] == [True]  # by the rule as it is
    bots.must("update", "clio")
    assert bots.must("status", "clio").returncode == 0
    assert bots.must("update", "clio").stdout == "update clio: nothing to do\n"


def test_status_asks_sudo_itself(bots: Machine) -> None:
    """The rule lies where it should, and sudo does not read it."""
    assert bots.must("status", "clio").returncode == 0
    bots.shell("sed -i '/includedir/d' /etc/sudoers")
    done = bots.botadm("status", "clio")
    assert done.returncode == 1 and "WRONG sudo lets the owner become the bot: no" in done.stdout
    assert "sudo does not go by the rule" in bots.must("create", "dora").stdout


def test_anybody_may_list_and_look(bots: Machine) -> None:
    head, row = bots.run(BOTADM, "list", user="alice").stdout.splitlines()
    assert (head.split(), row.split()) == (["BOT", "OWNER", "STATE", "RULE", "FOR", "SUDO"], ["clio", "alice", "enabled", "open", "rule"])
    assert json.loads(bots.run(BOTADM, "list", "--json", user="alice").stdout)[0]["name"] == "clio"
    bots.add_person("bob")
    for person in ("alice", "bob"):
        seen = bots.run(BOTADM, "status", "clio", user=person)
        assert seen.returncode == 0 and "rule for sudo: cannot be seen without root" in seen.stdout and "WRONG" not in seen.stdout
    said = bots.run(BOTADM, "create", "dora", "--strict", user="alice").stderr
    assert said == "botadm: only root can do that\n  sudo botadm create dora --strict\n"


def test_where_there_are_no_bots_the_list_says_so(site: Machine) -> None:
    done = site.run(BOTADM, "list", user="alice")
    assert (done.returncode, done.stdout) == (0, "") and "sudo botadm create NAME" in done.stderr
    assert json.loads(site.run(BOTADM, "list", "--json", user="alice").stdout) == []


def run_as(site: Machine, bot: str, *argv: str, cwd: str = "/") -> subprocess.CompletedProcess[str]:
    return site.run(BOTADM, "run", bot, *argv, user="alice", cwd=cwd)


def processes(site: Machine, name: str) -> list[str]:
    """Waits for the first a little."""
    for _ in range(100):
        lines = site.run("/bin/ps", "-eo", "user:20,stat,pid").stdout.splitlines()
        found = [line for line in lines if line.split()[0] == name and "Z" not in line.split()[1]]
        if found:
            break
        time.sleep(0.01)
    return found


LEASE = """
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
handle = os.open("/var/bot/clio/.bashrc", os.O_RDWR)
fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
time.sleep(60)
"""


def test_a_bot_that_holds_a_lease_on_its_file_is_stopped_all_the_same(bots: Machine) -> None:
    """Whoever opens such a file waits, or is told to come again, as long as the bot likes."""
    bot = bots.start("/usr/bin/python3", "-c", LEASE, user="clio")
    assert bot.stdout and bot.stdout.readline() == "held\n"
    refused = bots.run("/usr/bin/python3", "-c", "import os; os.open('/var/bot/clio/.bashrc', os.O_RDONLY | os.O_NONBLOCK)")
    assert "BlockingIOError" in refused.stderr  # it holds
    assert bots.must("status", "clio").stdout.startswith("clio: all as it should be")
    bots.must("disable", "clio")
    assert bot.wait(20) != 0


def test_nothing_works_on_for_the_next_bot_of_that_name_or_number(bots: Machine) -> None:
    spools = ("/var/spool/cron/crontabs/clio", "/var/spool/cron/atjobs/a0001", "/var/lib/systemd/linger/clio")
    others = ("/var/spool/cron/crontabs/alice", "/var/spool/cron/atjobs/a0002")
    for path in (*spools, *others):
        bots.shell(f"mkdir -p {path.rpartition('/')[0]}; touch {path}; chown {'alice' if path in others else 'clio'} {path}")
    made = run_as(bots, "clio", "sh", "-c", "ipcmk -M 4096; ipcmk -S 1; ipcmk -Q")
    assert (made.returncode, bots.shell("ipcs -a").count("clio")) == (0, 3), made.stderr
    number = str(bots.uid("clio"))
    bots.must("destroy", "clio", "--force")
    assert [path for path in (*spools, *others) if (bots.root / path[1:]).exists()] == [*others]
    numbers = bots.shell("cat /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg").split()
    assert number not in numbers


BUSY = """
import contextlib, os, time
os.makedirs("a/b")
os.chdir("a/b")
print("ready", flush=True)
until = time.monotonic() + 20
while time.monotonic() < until:
    for number in range(50):
        with contextlib.suppress(OSError):
            os.close(os.open(f"{number}", os.O_CREAT | os.O_WRONLY))
            os.mkdir(f"d{number}")
    for number in range(50):
        with contextlib.suppress(OSError):
            os.unlink(f"{number}")
            os.rmdir(f"d{number}")
"""


def test_a_namespace_is_deleted_while_its_owner_fills_and_empties_it(bots: Machine) -> None:
    owner = bots.start("/usr/bin/python3", "-c", BUSY, user="alice", cwd="/var/bot/clio")
    assert owner.stdout and owner.stdout.readline() == "ready\n"
    try:
        done = bots.botadm("destroy", "clio", "--force")
    finally:
        owner.kill()
    assert (done.returncode, (bots.root / "var/bot/clio").exists()) == (0, False), done.stderr
