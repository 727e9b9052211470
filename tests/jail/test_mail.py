"""Mail: every mailer is a plain refusal, by name and by path, unless the switch says otherwise."""

from __future__ import annotations

import pytest

from agent_sandbox.launcher.mail.attach import read_names
from tests.jail.mailers import INSTALLED, Machine
from tests.machines.jail import Jail

NAMES = [
    "sendmail", "sendmail.sendmail", "sendmail.postfix", "rmail", "mail", "mailx", "Mail", "s-nail", "nail", "bsd-mailx", "heirloom-mailx",
    "mutt", "neomutt", "alpine", "pine", "msmtp", "msmtpq", "ssmtp", "esmtp", "nullmailer-send", "nullmailer-inject", "smtp-cli", "swaks",
    "postsuper", "postdrop", "postqueue", "mailq", "newaliases", "mpack", "metasend", "exim", "exim4", "dma", "opensmtpd", "smtpctl",
    "qmail-inject", "qmail-qmqpc", "qmail-remote", "mail.mailutils",
]  # fmt: skip
REFUSED = "no mail is sent from inside this jail"
PATHS = (*INSTALLED, "/usr/sbin/sendmail", "/usr/lib/sendmail", "/sbin/msmtp")
EACH = 'for one; do "$one" -s subject hunter2@example.org 2>&1; echo "$one $?"; done'
BACKENDS = ("bwrap", "landlock", "firejail")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def machine(jail: Jail) -> Machine:
    return Machine(jail=jail)


def codes(text: str) -> dict[str, str]:
    """The last line about each program: its code."""
    lines = [line.split(" ") for line in text.splitlines()]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def test_every_mailer_by_name_is_refused_in_words(jail: Jail) -> None:
    assert sorted(read_names()) == sorted(NAMES)
    inside = jail.run("sh", "-c", EACH, "sh", *NAMES)
    assert codes(inside.out) == dict.fromkeys(NAMES, "77"), inside.err
    told = [line for line in inside.out.splitlines() if line.startswith("agent-sandbox: ")]
    assert [line.partition(f": {REFUSED}")[0] for line in told] == [f"agent-sandbox: {name} (arguments: 3)" for name in NAMES]
    assert inside.out.count("this is policy and not a fault") == inside.out.count("do not try another") == len(NAMES)
    assert "hunter2" not in inside.out + inside.err and "subject" not in inside.out


def test_every_installed_mailer_is_refused_by_its_path(machine: Machine, backend: str) -> None:
    outside = machine.outside("sh", "-c", EACH, "sh", *PATHS)
    assert codes(outside.out) == dict.fromkeys(PATHS, "0") and outside.out.count("sent by") == len(PATHS), outside
    inside = machine.inside("sh", "-c", EACH, "sh", *PATHS)
    assert codes(inside.out) == dict.fromkeys(PATHS, "77" if backend == "bwrap" else "126"), inside
    assert inside.out.count(REFUSED if backend == "bwrap" else "ermission denied") == len(PATHS)
    assert "sent by" not in inside.out and "hunter2" not in inside.out


def test_the_other_programs_beside_them_stay_what_they_are(machine: Machine) -> None:
    """Also one that the name of a mailer is a link to."""
    script = "/usr/sbin/swaks echo still env; /usr/bin/env echo env; ls -d /usr/sbin/useradd"
    assert machine.inside("sh", "-c", script).out == machine.outside("sh", "-c", script).out == "still env\nenv\n/usr/sbin/useradd\n"


def test_a_mailer_in_a_directory_that_is_granted_is_refused_too(machine: Machine, backend: str) -> None:
    """One that a person could swap meanwhile, and that is on PATH."""
    jail = machine.jail
    own = jail.write(jail.user.home / "tools/msmtp", "#!/bin/sh\necho sent\n", 0o755)
    env = {"PATH": f"{own.parent}:/usr/bin:/bin"}
    assert machine.outside(str(own), env=env).out == "sent\n"
    jail.write(own.parent / "beside", "can be read\n")
    inside = machine.inside("sh", "-c", '"$1"; echo $?; cat "${1%msmtp}beside"', "sh", str(own), options=["--ro", str(own.parent)], env=env)
    assert inside.out == f"{77 if backend == 'bwrap' else 126}\ncan be read\n", inside


def test_with_mail_switched_off_the_real_one_runs(machine: Machine) -> None:
    machine.jail.configure("[mail]\nstubs = 'off'\n")
    inside = machine.inside("sh", "-c", "/usr/sbin/msmtp; mailx; command -v msmtp mutt", env={"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/bin"})
    assert inside.out == "sent by msmtp\nsent by mailx\n/usr/sbin/msmtp\n", inside


SWITCH = {  # what the person says, the options, what an admin says: is mail refused?
    ("auto", ()): True,
    ("auto", ("--network", "isolated")): True,
    ("auto", ("--network", "open")): False,
    ("on", ("--network", "open")): True,
    ("off", ("--network", "isolated")): False,
}
ADMIN = {
    "[network]\nfallback = 'weaker'\n": ("auto", (), True),  # open, which nobody asked for
    "[mail]\nstubs = 'on'\n": ("off", ("--network", "open"), True),
    "[mail]\nstubs = 'auto'\n": ("off", ("--network", "isolated"), True),
}


@pytest.mark.parametrize("backend", ["bwrap"], indirect=True)
def test_the_switch_follows_the_network_that_was_asked_for_and_is_there(machine: Machine) -> None:
    seen = {}
    for said, options in SWITCH:
        machine.jail.configure(f"[mail]\nstubs = '{said}'\n")
        seen[said, options] = machine.inside("/usr/sbin/msmtp", options=options).code == 77
    assert seen == SWITCH


@pytest.mark.parametrize("backend", ["bwrap"], indirect=True)
@pytest.mark.parametrize("admin", ADMIN)
def test_nobody_switches_off_what_an_admin_has_on(machine: Machine, admin: str) -> None:
    said, options, is_refused = ADMIN[admin]
    machine.jail.configure(f"[mail]\nstubs = '{said}'\n")
    jailed = machine.inside("/usr/sbin/msmtp", options=options, admin={"config.toml": admin})
    assert (jailed.code == 77, REFUSED in jailed.err) == (is_refused, is_refused), jailed
    if said == "off":
        assert "mail.stubs" in jailed.err  # the clamp is named


def test_input_that_never_ends_does_not_hang_it(jail: Jail) -> None:
    script = """
import subprocess, sys
held = subprocess.Popen(["mail", "-t"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
print(held.wait(20))
print(subprocess.run("yes | sendmail -t 2> told; cat told | wc -l", shell=True, stdout=subprocess.PIPE, text=True).stdout.strip())
print(subprocess.run("mutt 2>&-", shell=True, stdout=subprocess.PIPE).returncode)
print(subprocess.run("{ mutt; echo $? > code; } 2>&1 | true; cat code", shell=True, stdout=subprocess.PIPE, text=True).stdout.strip())
"""
    assert jail.run("/usr/bin/python3", "-c", script).out == "77\n4\n77\n77\n"


def test_a_strange_name_is_shown_short_and_plain(jail: Jail) -> None:
    script = r'stub=$(command -v mail); for one; do cp "$stub" "./$one"; "./$one" secret; done'
    names = ["\x1b[31mred\x07", "caf\u00e9", "x" * 200, "two\nlines"]
    told = jail.run("sh", "-c", script, "sh", *names).err
    shown = [line.partition(" (arguments: 1)")[0] for line in told.splitlines() if REFUSED in line]
    assert shown == [f"agent-sandbox: {name}" for name in ("?[31mred?", "caf??", "x" * 64, "two?lines")]
    assert told.replace("\n", "").isascii() and told.replace("\n", "").isprintable()
