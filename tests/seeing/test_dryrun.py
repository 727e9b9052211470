"""`--dry-run`: what it prints builds the same jail when it is pasted, shows no secret, and leaves no trace."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent_sandbox.launcher.syscalls import landlock_abi
from tests.machines.jail import Jail, Result
from tests.machines.needs import need, need_root

SECRET = "hunter2-in-a-variable"
PROBE = """
echo "cwd $(pwd)"; id -u
cat ~/.ssh/id; cat ~/.netrc; cat ~/notes
echo planted > .git/hooks/pre-commit; mv .git moved; echo made > here && cat here
grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
tr '\\0' '\\n' < /proc/1/environ
ls /proc/self/fd; ulimit -n; echo "$MY_NOTE"; printenv 'odd.name'
unshare --user true
"""


def paste(jail: Jail, *words: str | Path, before: str = "", env: dict[str, str] | None = None) -> Result:
    """Ask for the command and give it to bash as the same user, in the same directory."""
    need("bash")
    printed = jail.ask("--dry-run", *words, env=env)
    assert (printed.code, printed.err) == (0, "")
    return jail.outside("bash", "-s", input=before + printed.out, env=env)


@pytest.fixture
def secrets(jail: Jail) -> Jail:
    need_root()  # an own home to write into
    for name in (".ssh/id", ".netrc", "notes"):
        jail.write(jail.user.home / name, "private\n")
    jail.outside("git", "init", "-q", ".")
    return jail


@pytest.mark.parametrize("mode", ["tmpwrite", "write"])
def test_what_is_pasted_is_the_same_jail(secrets: Jail, mode: str) -> None:
    options = ["--home", mode, "--limit", "open_files=321", "--", "bash", "-c", PROBE]
    env = {"MY_NOTE": SECRET, "odd.name": "odd value"}
    control = secrets.outside("cat", secrets.user.home / ".ssh/id", secrets.user.home / ".netrc")
    assert control.out == "private\nprivate\n"
    pasted = paste(secrets, *options, env=env, before="exec 9</etc/hostname\n")
    visible = ["private"] if mode == "write" else []
    assert pasted.out.splitlines() == [
        f"cwd {secrets.project}", str(secrets.user.uid), *visible, "made",
        "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "PATH=/usr/bin:/bin",
        "0", "1", "2", "3", "321", SECRET, "odd value",
    ]  # fmt: skip
    assert "pre-commit: Read-only file system" in pasted.err
    assert "mv: cannot move '.git'" in pasted.err
    assert "unshare: unshare failed" in pasted.err
    assert not (secrets.project / ".git/hooks/pre-commit").exists()
    launched = secrets.run("bash", "-c", PROBE, options=["--quiet", *options[:4]], env=env)
    assert launched.out == pasted.out


def test_the_values_of_variables_are_not_printed(jail: Jail) -> None:
    env = {"MY_NOTE": SECRET, "HTTPS_PROXY": f"http://me:{SECRET}@proxy:3128", "ODD-NAME": SECRET}
    for options in (["--dry-run"], ["--dry-run", "--json"]):
        printed = jail.ask(*options, "--network", "isolated", "--set-env", "OURS=written out", "--", "true", env=env)
        assert printed.code == 0
        assert "MY_NOTE" in printed.out
        assert SECRET not in printed.out
        assert "written out" in printed.out
        assert "http://proxy:3128" in printed.out
    assert '--setenv MY_NOTE "$MY_NOTE" \\\n' in jail.ask("--dry-run", "--", "true", env=env).out


def test_strange_words_survive_being_pasted(jail: Jail) -> None:
    odd = ["it's", "two\nlines", "tab\there", "$HOME `id` \\ \"", "caf\u00e9", "\udcff\udcfe", "", "!x", "-n"]
    script = 'printf "%s|" "$@"'
    launched = jail.run("bash", "-c", script, "bash", *odd)
    assert launched.out == "|".join([*odd, ""])
    assert paste(jail, "--", "bash", "-c", script, "bash", *odd).out == launched.out


def test_an_exported_function_gets_in(jail: Jail) -> None:
    env = {"BASH_FUNC_module%%": "() {  echo loaded $1\n}"}
    assert jail.run("bash", "-c", "module gcc", env=env).out == "loaded gcc\n"
    assert paste(jail, "--", "bash", "-c", "module gcc", env=env).out == "loaded gcc\n"


def test_a_hidden_file_in_the_project_is_hidden(jail: Jail) -> None:
    need_root()
    for name in ("it's secret", "secrets/key"):
        jail.write(jail.project / name, "private\n")
    assert jail.outside("cat", "it's secret", "secrets/key").out == "private\nprivate\n"
    words = ["--hide", "it's secret", "--hide", "secrets", "--", "sh", "-c", "echo ran; cat \"it's secret\"; cat secrets/key"]
    assert paste(jail, *words).out == "ran\n"


def test_a_second_filter_for_denied_calls_is_there_too(jail: Jail) -> None:
    need_root()
    jail.configure('[seccomp]\ndeny = ["chroot", "sethostname"]\n')
    count = ["grep", "Seccomp_filters", "/proc/self/status"]
    assert jail.outside(*count).out != "Seccomp_filters:\t2\n"
    assert jail.run(*count).out == paste(jail, "--", *count).out == "Seccomp_filters:\t2\n"


def test_mail_is_refused_in_what_was_pasted(jail: Jail) -> None:
    words = ["sh", "-c", "mail 2>&1; echo $?"]
    assert paste(jail, "--", *words).out == jail.run(*words).out
    assert paste(jail, "--", *words).out.endswith("\n77\n")


def test_the_time_limit_ends_what_was_pasted(jail: Jail) -> None:
    assert paste(jail, "--limit", "wall_time=1", "--", "sh", "-c", "sleep 30; echo late").out == ""


def test_what_a_shell_cannot_do_is_said(jail: Jail) -> None:
    note = "# NOT in here, as no shell can do it: the Landlock scope"
    opened = jail.ask("--dry-run", "--network", "open", "--", "true")
    assert (note in opened.out) == (landlock_abi() >= 6)
    assert note not in jail.ask("--dry-run", "--network", "isolated", "--", "true").out


def test_clamps_and_gaps_are_named(jail: Jail) -> None:
    admin = {"config.toml": "[filesystem]\nhome = 'restricted'\n"}
    printed = jail.ask("--dry-run", "--home", "write", "--", "true", admin=admin)
    assert "# command line: filesystem.home: write is not allowed, kept restricted" in printed.out


def trace(*places: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for place in places:
        for path in [place, *place.rglob("*")] if place.exists() else []:
            status = path.lstat()
            found[str(path)] = (status.st_mtime_ns, status.st_size)
    return found


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_nothing_is_changed_on_disk(jail: Jail, option: str) -> None:
    need_root()
    uid = jail.user.uid
    places = (jail.user.home, jail.project, Path(f"/tmp/agent-sandbox-{uid}"), Path(f"/run/user/{uid}"))
    before = trace(*places)
    assert jail.ask("--dry-run", option, "--home", "write", "--", "true").code == 0
    assert trace(*places) == before
    assert jail.run("true").code == 0
    assert trace(*places) != before  # the control: a launch leaves its audit line


def test_a_refusal_leaves_no_audit_line(jail: Jail) -> None:
    need_root()
    refused = jail.ask("--dry-run", "--", "true", cwd=jail.user.home)
    assert (refused.code, refused.out) == (125, "")
    assert not (jail.user.home / ".local").exists()


def test_json_has_policy_plan_and_gaps(jail: Jail) -> None:
    found = json.loads(jail.ask("--dry-run", "--json", "--network", "open", "--", "echo", "hi").out)
    assert sorted(found) == ["backend", "clamps", "gaps", "plan", "policy"]
    assert found["policy"]["project"] == str(jail.project)
    assert found["policy"]["environment"]["values"]["LANG"] == "$LANG"
    assert found["policy"]["network"] == {"mode": "open", "asked": "open", "why": ""}
    assert found["plan"]["command"][-2:] == ["echo", "hi"]
    options = found["plan"]["options"]
    assert options[options.index("LANG") + 1] == "$LANG"
    assert os.path.basename(found["plan"]["program"]) == "bwrap"
