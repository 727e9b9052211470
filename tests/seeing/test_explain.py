"""`explain` outside: its answer is what a jail then does, with the rule and the layer that it comes from."""

from __future__ import annotations

import json
import os

import pytest

from tests.machines.jail import Jail
from tests.machines.needs import need_root

PATH_PROBE = """
for path; do
  if [ -c "$path" ] && [ "${path#/dev}" = "$path" ]; then echo hidden
  elif [ -w "$path" ]; then echo write
  elif [ -r "$path" ]; then echo read
  else echo none
  fi
done
"""
NAMES = ("MY_NOTE", "MY_TOKEN", "AWS_REGION", "MY_URL", "HOME", "TMPDIR", "LANG", "mypassword", "PATH")


def answer(jail: Jail, *words: str, options: tuple[str, ...] = (), **more: object) -> dict[str, object]:
    asked = jail.ask(*options, "explain", "--json", *words, **more)  # type: ignore[arg-type]
    assert (asked.code, asked.err) == (0, "")
    found = json.loads(asked.out)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def furnished(jail: Jail) -> Jail:
    need_root()
    home = jail.user.home
    for name in (".ssh/id", ".netrc", "notes", ".bashrc", ".cache/pip/x", "data/set", "data/deep/er", ".gitconfig"):
        jail.write(home / name, "text\n")
    for name in ("file", "secret", "sub/dir/file", ".agent/plan"):
        jail.write(jail.project / name, "text\n")
    jail.outside("git", "init", "-q", ".")
    jail.outside("ln", "-s", home / "notes", jail.project / "to-notes")
    jail.outside("ln", "-s", home / "data", home / "way-to-data")
    return jail


@pytest.mark.parametrize("mode", ["restricted", "tmpwrite", "read", "write"])
def test_the_answer_about_a_path_is_what_the_jail_does(furnished: Jail, mode: str) -> None:
    home, project = furnished.user.home, furnished.project
    options = ("--quiet", "--home", mode, "--hide", "secret", "--ro", str(home / "data"), "--rw", str(home / "data/deep"))
    paths = [
        project, project / "file", project / "sub/dir", project / "secret", project / ".git", project / ".git/hooks", project / "to-notes",
        home / ".ssh", home / ".ssh/id", home / ".netrc", home / "notes", home / ".bashrc", home / "data/set", home / "data/deep/er",
        home / "way-to-data/set", home / ".cache/pip", home / ".config/agent-sandbox", home / ".local/state/agent-sandbox", home,
        home / ".gitconfig", "/etc/passwd", "/etc/hostname", "/etc/shadow", "/usr/bin", "/bin/sh", "/proc/self/status", "/dev/null",
        "/var/tmp", "/tmp", "/home", "/srv", "/nowhere", furnished.copy,
    ]  # fmt: skip
    seen = furnished.run("sh", "-c", PATH_PROBE, "sh", *paths, options=options).out.split()
    told = [answer(furnished, "path", str(path), options=options)["verdict"] for path in paths]
    expected = [{"hidden": "none", "not there": "none"}.get(str(verdict), verdict) for verdict in told]
    measured = [{"hidden": "none"}.get(one, one) for one in seen]
    assert list(zip(map(str, paths), expected, strict=True)) == list(zip(map(str, paths), measured, strict=True))


def test_the_rule_about_a_path_has_its_layer_and_line(furnished: Jail) -> None:
    home = furnished.user.home
    config = furnished.configure("[filesystem]\nhidden = [\n  '~/notes',\n]\nreadonly = ['~/data']\n")
    assert answer(furnished, "path", str(home / "notes")) == {
        "subject": f"path {home}/notes", "verdict": "hidden", "rule": f"filesystem.hidden {home}/notes",
        "origin": f"{config}:3", "values": [], "notes": ["what is made here inside ends with the session"],
    }  # fmt: skip
    told = answer(furnished, "path", str(home / "data/set"))
    assert (told["verdict"], told["origin"]) == ("read", f"{config}:5")
    told = answer(furnished, "path", ".git/hooks/pre-commit")
    assert (told["verdict"], told["rule"], told["origin"]) == ("read", "project.protect .git/hooks", "default")
    told = answer(furnished, "path", ".")
    assert (told["verdict"], told["rule"], told["origin"]) == ("write", "project", "current directory")


def test_a_path_is_answered_where_no_launch_is_possible(furnished: Jail) -> None:
    home = furnished.user.home
    hidden = answer(furnished, "path", ".ssh", cwd=home)
    assert (hidden["verdict"], hidden["rule"]) == ("hidden", f"filesystem.hidden {home}/.ssh")
    other = answer(furnished, "path", "notes", cwd=home)
    assert other["verdict"] == "no jail"
    assert "cannot be the project" in str(other["notes"])


def test_the_answer_about_a_variable_is_what_the_jail_does(jail: Jail) -> None:
    env = {"MY_NOTE": "a", "MY_TOKEN": "b", "AWS_REGION": "c", "MY_URL": "https://me:pass@host/", "mypassword": "d"}
    options = ("--quiet", "--env", "AWS_REGION")
    script = 'for name; do printenv "$name" > /dev/null && echo there || echo gone; done'
    seen = jail.run("sh", "-c", script, "sh", *NAMES, options=options, env=env)
    told = {name: answer(jail, "env", name, options=options, env=env) for name in NAMES}
    assert ["gone" if told[name]["verdict"] == "removed" else "there" for name in NAMES] == seen.out.split()
    assert {name: (told[name]["verdict"], told[name]["rule"], told[name]["origin"]) for name in NAMES} == {
        "MY_NOTE": ("kept", "nothing removes it", "default"),
        "MY_TOKEN": ("removed", "environment.block *_TOKEN", "default"),
        "AWS_REGION": ("kept", "environment.allow", "command line"),
        "MY_URL": ("kept, cleaned", "environment.strip_passwords takes out a password in its value", "default"),
        "HOME": ("set", "agent-sandbox", "default"),
        "TMPDIR": ("set", "agent-sandbox", "default"),
        "LANG": ("kept", "nothing removes it", "default"),
        "mypassword": ("removed", "environment.block *password*/i", "default"),
        "PATH": ("set", "agent-sandbox", "default"),
    }


def test_a_variable_that_is_not_set_is_asked_about_as_if_it_were(jail: Jail) -> None:
    told = answer(jail, "env", "SOME_SECRET")
    assert (told["verdict"], told["notes"]) == ("removed", ["it is not set here: this is what would hold"])


def test_no_value_of_a_variable_is_shown(jail: Jail) -> None:
    for name in ("A", "B_TOKEN", "C"):
        asked = jail.ask("explain", "env", name, env={"A": "hunter2", "B_TOKEN": "hunter2", "C": "http://x:hunter2@y"})
        assert (asked.code, "hunter2" in asked.out + asked.err) == (0, False)


def test_a_block_of_the_admin_is_named_with_its_line(jail: Jail) -> None:
    admin = {"config.toml": "[environment]\nblock = [\n  'SITE_*',\n]\n"}
    told = answer(jail, "env", "SITE_X", options=("--env", "SITE_X"), admin=admin)
    assert (told["verdict"], told["rule"], told["origin"]) == (
        "removed", "environment.block SITE_*", "/app/lib/agent-sandbox/config.toml:3",
    )  # fmt: skip


def test_a_key_has_its_value_origin_rule_and_clamps(jail: Jail) -> None:
    admin = {"config.toml": "[filesystem]\nhome = 'restricted'\n"}
    told = answer(jail, "filesystem.home", options=("--home", "write"), admin=admin)
    assert told["verdict"] == "restricted"
    assert told["origin"] == "/app/lib/agent-sandbox/config.toml:2"
    assert str(told["rule"]).startswith("strictest: ")
    notes = told["notes"]
    assert isinstance(notes, list)
    assert notes[1].startswith("command line: filesystem.home: write is not allowed, kept restricted")


def test_a_key_of_a_later_part_says_so(jail: Jail) -> None:
    assert "takes effect with a later part" in jail.ask("explain", "slurm.log_level").out


def test_the_network_mode_that_is_delivered_is_named(jail: Jail) -> None:
    told = answer(jail, "network.mode")
    assert told["verdict"] == "filtered"
    assert "inside it is proxied: filtered is not available" in str(told["notes"])


def test_a_host_has_its_verdict_rule_line_and_what_enforces_it(jail: Jail) -> None:
    path = jail.configure("[network]\nblock = [\n  '*.Example.org',\n  '22',\n]\nallow = ['www.example.org']\n")
    enforced = "enforced by network proxied: the proxy is the only way out, and it asks the lists"
    hosts = ("a.example.org", "www.example.org:443", "WWW.example.org.:22", "pastebin.com", "127.0.0.1:80")
    told = {host: answer(jail, "host", host) for host in hosts}
    assert {host: (one["verdict"], one["rule"], one["origin"]) for host, one in told.items()} == {
        "a.example.org": ("refused", "network.block *.example.org", f"{path}:3"),
        "www.example.org:443": ("allowed", "network.allow www.example.org", f"{path}:6"),
        "WWW.example.org.:22": ("refused", "network.block 22", f"{path}:4"),
        "pastebin.com": ("refused", "network.block pastebin.com", "default"),
        "127.0.0.1:80": ("refused", "floor loopback", "shipped"),
    }
    assert all(enforced in str(one["notes"]) for one in told.values())
    shut = answer(jail, "host", "www.example.org", options=("--network", "isolated"))
    assert shut["verdict"] == "not reachable (the lists allow it)"
    assert "enforced by network isolated: nothing is reachable, whatever the lists say" in str(shut["notes"])
    open_ = answer(jail, "host", "a.example.org:443", options=("--network", "open"))
    assert open_["verdict"] == "reachable, although the lists refuse it"
    assert "enforced by nothing" in str(open_["notes"])


@pytest.mark.parametrize("host", ["0x7f.1", "user@example.org", "example.org:http", "example.org/x"])
def test_what_is_no_host_is_said_to_be_none(jail: Jail, host: str) -> None:
    asked = jail.ask("explain", "host", host)
    assert (asked.code, asked.out) == (125, "")
    assert "names no host" in asked.err


def test_a_list_has_each_entry_with_its_origin(jail: Jail) -> None:
    need_root()
    config = jail.configure("[seccomp]\ndeny = ['chroot']\n")
    told = answer(jail, "seccomp.deny")
    assert (told["verdict"], told["values"]) == ("1 entry", [["chroot", f"{config}:2"]])
    call = answer(jail, "syscall", "chroot")
    assert (call["verdict"], call["rule"], call["origin"]) == ("refused (EPERM)", "seccomp.deny", f"{config}:2")
    assert answer(jail, "syscall", "sethostname")["verdict"] == "allowed"


def test_a_system_call_follows_the_mode(jail: Jail) -> None:
    admin = {"config.toml": "[seccomp]\nmode = 'strict'\n"}
    assert answer(jail, "syscall", "ptrace")["verdict"] == "allowed"
    told = answer(jail, "syscall", "ptrace", admin=admin)
    assert (told["verdict"], told["rule"], told["origin"]) == (
        "refused (EPERM)", "seccomp.mode strict", "/app/lib/agent-sandbox/config.toml:2",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["filesystem.hme"], "did you mean `explain filesystem.home`?"),
        (["seccomp"], "`agent-sandbox config show seccomp` has its keys: seccomp.mode, seccomp.deny"),
        (["syscall", "mountt"], "did you mean 'mount'?"),
        (["env", "A=B"], "explain env NAME"),
        ([], "usage: "),
        (["path"], "explain path takes one path"),
        (["path", ""], "usage: "),
        (["path", "a", "b"], "usage: "),
        (["pth", "a"], "did you mean `explain path a`?"),
        (["sbach", "-N1", "a"], "did you mean `explain sbatch -N1 a`?"),
        (["nothing", "like", "it"], "usage: "),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_question_gets_the_nearest_right_one(jail: Jail, words: list[str], hint: str) -> None:
    asked = jail.ask("explain", *words)
    assert (asked.code, asked.out) == (125, "")
    assert hint in asked.err
    assert "Traceback" not in asked.err


def test_a_command_of_slurm_is_refused_where_slurm_is_off(jail: Jail) -> None:
    assert jail.ask("explain", "squeue", "--me").out.startswith("squeue: allowed\n")
    jail.configure('[slurm]\nenabled = "off"\n')
    asked = jail.ask("explain", "squeue", "--me")
    assert asked.out.startswith("squeue: refused\n") and "slurm.enabled is off (" in asked.out, asked
    assert "  runs " not in asked.out


@pytest.mark.parametrize("path", ["\udcff\n", "x" * 5000, "//", "./../..", "loop/x"])
def test_a_strange_path_gets_an_answer(jail: Jail, path: str) -> None:
    jail.outside("ln", "-s", "loop", "loop")
    asked = jail.ask("explain", "path", path)
    assert "Traceback" not in asked.err
    assert asked.code == 0 or "too many symbolic links" in asked.err


def test_nothing_is_changed_by_asking(jail: Jail) -> None:
    need_root()
    assert jail.ask("explain", "path", ".").code == 0
    assert ".local" not in os.listdir(jail.user.home)
