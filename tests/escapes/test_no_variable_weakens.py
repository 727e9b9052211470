"""No environment variable makes a jail weaker: neither one that our code reads, nor a key in any spelling of it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from agent_sandbox.config.keys import KEYS
from tests.machines.jail import Jail

ROOT = Path(__file__).parents[2]
CODE = [path for top in ("launcher", "config", "bootstrap", "chaperon", "admin") for path in (ROOT / top).rglob("*.py")]
SCRIPTS = [ROOT / "agent-sandbox", ROOT / "bootstrap/python"]

# What the people before us took from the environment, and what a reader of our documents might try.
KNOWN_TEXT = """
SANDBOX_CONF SANDBOX_CONFIG AGENT_SANDBOX_CONFIG AGENT_SANDBOX_CONF AGENT_SANDBOX_ADMIN_DIR ADMIN_DIR SANDBOX_ADMIN HOME_ACCESS SANDBOX_HOME
SANDBOX_BACKEND SANDBOX_DISABLE AGENT_SANDBOX_DISABLE AGENT_SANDBOX_OFF NO_SANDBOX SANDBOX_MODE AGENT_SANDBOX AGENT_SANDBOX_INSIDE
SANDBOX_PROJECT PROJECT_DIR SANDBOX_TESTS SANDBOX_SOAK XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_STATE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR
HOME USER LOGNAME SHELL SUDO_UID SUDO_USER TMPDIR PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONINSPECT PYTHONDONTWRITEBYTECODE NO_COLOR
EDITOR VISUAL BWRAP BWRAP_PATH SECCOMP LANDLOCK DEBUG VERBOSE
"""
KNOWN = KNOWN_TEXT.split()
WEAKEST = {
    "sandbox.nested_userns": "true", "filesystem.home": "write", "filesystem.private_tmp": "false", "environment.mode": "filtered",
    "environment.strip_passwords": "false", "network.mode": "open", "network.fallback": "weaker", "seccomp.mode": "off",
    "audit.enabled": "false", "mail.stubs": "off", "slurm.scope": "user",
}  # fmt: skip
ADMIN = {
    "config.toml": "[filesystem]\nhome = 'restricted'\nhidden = ['/opt']\n[seccomp]\nmode = 'strict'\n",
    "conf.d/more.toml": "[environment]\nblock = ['ADMINS']\n[limits]\nopen_files = 500\n",
}


def names_in_python(path: Path) -> set[str]:
    """Every text that is asked of an environment: os.environ["X"], .get("X"), getenv("X"), "X" in os.environ."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        about = ast.unparse(node) if isinstance(node, ast.Subscript | ast.Call | ast.Compare) else ""
        if re.search(r"\benviron\b|getenv|host\.environment\b", about):
            found |= {text.value for text in ast.walk(node) if isinstance(text, ast.Constant) and isinstance(text.value, str)}
    return {name for name in found if re.fullmatch(r"[A-Z][A-Z0-9_]+", name)}


def names_in_shell(path: Path) -> set[str]:
    return set(re.findall(r"\$\{?([A-Z][A-Z0-9_]+)", path.read_text()))


def names_read() -> set[str]:
    return set().union(*map(names_in_python, CODE), *map(names_in_shell, SCRIPTS))


def spellings(key: str) -> list[str]:
    plain = key.upper().replace(".", "_")
    return [
        plain,
        plain.lower(),
        f"SANDBOX_{plain}",
        f"AGENT_SANDBOX_{plain}",
        plain.partition("_")[2],
        f"SANDBOX_{plain.partition('_')[2]}",
    ]


def hostile(jail: Jail) -> dict[str, str]:
    """All at once, each at what would weaken most: a file that opens everything, or the weakest value."""
    open_all = "\n".join(
        f"[{key.partition('.')[0]}]\n{key.partition('.')[2]} = {_toml(value)}"
        for key, value in WEAKEST.items()
        if "mail" not in key and "slurm" not in key
    )
    planted = jail.write(jail.project / "planted/agent-sandbox/config.toml", open_all)
    jail.write(jail.project / "planted/.config/agent-sandbox/config.toml", open_all)
    for_all = dict.fromkeys([*KNOWN, *names_read()], str(planted.parents[1]))
    for_files = {name: str(planted) for name in for_all if name.endswith(("CONF", "CONFIG"))}
    for_keys = {name: WEAKEST.get(key, "*") for key in KEYS for name in spellings(key)}
    given = {**for_keys, **for_all, **for_files, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    return {name: value for name, value in given.items() if name != "SLURM_CONF"}  # one that is not believed leaves Slurm out: less, not more


def _toml(value: str) -> str:
    return value if value in ("true", "false") else f"'{value}'"


def test_the_names_that_our_code_reads_are_found() -> None:
    """Control: the search sees the one that is known to be read, and a change here is looked at by a person."""
    assert "NO_COLOR" in names_read()
    usual = {"NO_COLOR", "PATH", "HOME", "PWD", "VISUAL", "EDITOR", "TERM", "COLUMNS"}
    read_inside = {"AGENT_SANDBOX_OWN", "DOCTOR_CANARY_TOKEN"}  # where our page lies; what doctor looks for in a jail
    on_the_node = {"SLURM_JOB_ID"}  # of the job that Slurm started us in: said, logged, and part of names
    for_slurm = {"SLURM_CONF", "MODULEPATH"}  # which of the site's clusters: the real programs outside read it too; where more of those may lie
    as_root = {"SUDO_UID"}  # by botadm, which root alone can run: who called sudo, checked against the accounts
    assert names_read() - usual - read_inside - on_the_node - for_slurm - as_root == set()


@pytest.mark.parametrize("admin", [None, ADMIN], ids=["no admin", "admin"])
def test_all_of_them_together_change_no_setting(jail: Jail, admin: dict[str, str] | None) -> None:
    variables = hostile(jail)
    plain = jail.ask("config", "show", "--json", admin=admin)
    assert plain.code == 0, plain.err
    assert jail.ask("config", "show", "--json", env=variables, admin=admin).out == plain.out
    assert json.loads(plain.out)


@pytest.mark.parametrize("admin", [None, ADMIN], ids=["no admin", "admin"])
def test_all_of_them_together_change_nothing_of_the_plan_but_the_commands_variables(jail: Jail, admin: dict[str, str] | None) -> None:
    variables = hostile(jail)
    plain = jail.ask("--dry-run", "--json", "--", "true", admin=admin)
    changed = jail.ask("--dry-run", "--json", "--", "true", env=variables, admin=admin)
    assert (plain.code, changed.code) == (0, 0), changed.err
    assert without_variables(json.loads(same_room(changed.out))) == without_variables(json.loads(same_room(plain.out)))


def same_room(text: str) -> str:
    """Each launch on Landlock has a directory of its own, and only its name differs."""
    return re.sub(r"/agent-sandbox-[0-9a-f]{12}\b", "/agent-sandbox-room", text)


DIFFERS = ("environment", "content", "data", "summary", "files", "orders")


def without_variables(plan: object) -> object:
    """The plan less what must differ: the command's own environment, and what is counted or printed of it; which cluster the chaperon asks."""
    if isinstance(plan, dict):
        return {name: without_variables(value) for name, value in plan.items() if name not in DIFFERS}
    if isinstance(plan, list):
        skip, kept = 0, []
        for one in plan:
            skip = 3 if one == "--setenv" else skip
            if skip == 0:
                kept.append(without_variables(one))
            skip = max(0, skip - 1)
        return kept
    return plan


BEHAVIOUR = """
grep -E '^(Seccomp|NoNewPrivs|CapEff)' /proc/self/status; cat ~/.ssh/id; ls -A ~ | grep -v '^project'; touch ~/left 2>&1
unshare -U true 2>/dev/null && echo NESTED; cat /proc/net/dev | wc -l; ls /opt | wc -l; ulimit -n
ls /tmp | wc -l; awk '$5 !~ "^/etc/(passwd|group)$" {print $5, $6}' /proc/self/mountinfo
"""


@pytest.mark.parametrize("admin", [None, ADMIN], ids=["no admin", "admin"])
def test_all_of_them_together_change_nothing_in_the_jail(jail: Jail, home: Path, admin: dict[str, str] | None) -> None:
    jail.write(home / ".ssh/id", "hunter2\n")
    variables = hostile(jail)
    plain = jail.run("/bin/sh", "-c", BEHAVIOUR, admin=admin)
    changed = jail.run("/bin/sh", "-c", BEHAVIOUR, env=variables, admin=admin)
    assert "CapEff" in plain.out
    assert "hunter2" not in plain.out
    assert same_room(changed.out) == same_room(plain.out)


def test_home_comes_from_the_passwd_database(jail: Jail, backend: str, home: Path) -> None:
    planted = jail.project / "planted"
    jail.write(planted / ".config/agent-sandbox/config.toml", "[filesystem]\nhome = 'write'\n")
    inside = jail.run("sh", "-c", "echo $HOME $USER; touch ~/left; ls -d ~/project*", env={"HOME": str(planted), "USER": "root", "LOGNAME": "root"})
    shown = "/tmp/agent-sandbox-room/home" if backend == "landlock" else str(home)
    assert same_room(inside.out) == f"{shown} {jail.user.name}\n{shown}/{jail.project.name}\n"
    assert not (home / "left").exists()


def test_control_the_same_values_in_a_file_do_change_the_jail(jail: Jail, home: Path) -> None:
    """Else none of the tests above could fail."""
    plain = jail.ask("config", "show", "--json").out
    jail.configure("[filesystem]\nhome = 'read'\n[network]\nmode = 'open'\n")
    assert jail.ask("config", "show", "--json").out != plain
    jail.write(home / "notes", "seen\n")
    assert jail.run("cat", home / "notes").out == "seen\n"
