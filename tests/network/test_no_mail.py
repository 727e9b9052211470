"""Mail does not get out: every mailer by name, the installed ones by path, and every other way to a mail server. Outside, each delivers."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator

import pytest

from agent_sandbox.launcher.mail.attach import read_names
from tests.machines.copies import PYTHON
from tests.machines.internet.machine import Internet
from tests.machines.internet.places import WEB, WEB6
from tests.machines.jail import Jail
from tests.machines.needs import need
from tests.network.driving import SOON, Did, inside, outside

BACKENDS, MODES = ("bwrap", "firejail", "landlock"), ("isolated", "proxied")
INSTALLED = ("msmtp", "s-nail")
STUB, NOT_EXECUTED = 77, 126
REFUSED = "no mail is sent from inside this jail"
TOLD = ("403", "floor mail", "not allowed by ruleset", "connection not allowed", "SOCKS5")

MESSAGE = "printf 'Subject: {0}\\r\\n\\r\\nhello\\r\\n'"
WORDS = ("HELO a", "MAIL FROM:<ada@example.org>", "RCPT TO:<bob@example.org>", "DATA", "Subject: {0}", "", "hello", ".", "QUIT", "")
DIALOGUE = "printf '" + "\\r\\n".join(WORDS) + "'"
MSMTP = MESSAGE + " | {1} --host={2} --port=25 --from=ada@example.org {3} bob@example.org"
NAIL = "echo hello | {1} -:/ -S v15-compat -S mta=smtp://{2} -S smtp-auth=none -S from=ada@example.org -s '{0}' bob@example.org"
SMTPLIB = "import sys, smtplib as s; m = s.{1}('{2}', {3}, timeout=20); m.sendmail('ada@example.org', ['bob@example.org'], 'Subject: {0}\\n\\nhello')"
CURL = MESSAGE + " | curl -sS -k --mail-from ada@example.org --mail-rcpt bob@example.org -T - {2} {1}"
NC = DIALOGUE + " | nc -q 1 -w 20 {2} {1}"
OPENSSL = DIALOGUE + " | openssl s_client -quiet -ign_eof {2} {1}"
BASH = "bash -c 'exec 3<>/dev/tcp/{1}/25 && " + DIALOGUE.replace("'", '"') + " >&3 && cat <&3'"

# By PATH, and by where it is installed. `PROXY` is the jail's; outside, an option with it is left out.
MAILERS = {
    **{f"{name} by name": line for name, line in (("msmtp", (MSMTP, "msmtp")), ("s-nail", (NAIL, "s-nail")))},
    **{f"{name} by path": line for name, line in (("msmtp", (MSMTP, "/usr/bin/msmtp")), ("s-nail", (NAIL, "/usr/bin/s-nail")))},
}
ROUTES: dict[str, tuple[str, ...]] = {
    "an own mailer": (MSMTP, "../own", "mail.example.org", ""),
    "an own mailer, to the host": (MSMTP, "../own", "127.0.0.1", ""),
    "an own mailer, by SOCKS": (MSMTP, "../own", "mail.example.org", "[--proxy-host=127.0.0.1 --proxy-port=${PROXY##*:}]"),
    "smtplib": (SMTPLIB, "SMTP", "mail.example.org", "25"),
    "smtplib by address": (SMTPLIB, "SMTP", WEB, "25"),
    "smtplib, IPv6": (SMTPLIB, "SMTP", WEB6, "25"),
    "smtplib, submission": (SMTPLIB, "SMTP", "mail.example.org", "587"),
    "smtplib, TLS": (SMTPLIB, "SMTP_SSL", "mail.example.org", "465"),
    "smtplib, to the host": (SMTPLIB, "SMTP", "127.0.0.1", "25"),
    "curl smtp": (CURL, "smtp://mail.example.org", ""),
    "curl smtp, submission": (CURL, "smtp://mail.example.org:587", ""),
    "curl smtps": (CURL, "smtps://mail.example.org", ""),
    "curl smtp, to the host": (CURL, "smtp://127.0.0.1", ""),
    "curl smtp, no proxy": (CURL, "smtp://mail.example.org", "--noproxy '*'"),
    "curl smtp, SOCKS": (CURL, "smtp://mail.example.org", "[--noproxy '' --socks5-hostname $PROXY]"),
    "curl smtp to the host, by its proxy": (CURL, "smtp://127.0.0.1", "[--noproxy '' -p -x $PROXY]"),
    "nc": (NC, "mail.example.org 25", ""),
    "nc by address": (NC, f"{WEB} 25", ""),
    "nc, to the host": (NC, "127.0.0.1 25", ""),
    "nc, CONNECT to 25": (NC, "mail.example.org 25", "[-X connect -x $PROXY]"),
    "nc, CONNECT to 587": (NC, "mail.example.org 587", "[-X connect -x $PROXY]"),
    "nc, CONNECT to the host": (NC, "127.0.0.1 25", "[-X connect -x $PROXY]"),
    "nc, SOCKS to 25": (NC, "mail.example.org 25", "[-X 5 -x $PROXY]"),
    "nc, SOCKS to 587": (NC, "mail.example.org 587", "[-X 5 -x $PROXY]"),
    "openssl, CONNECT to 465": (OPENSSL, "-connect mail.example.org:465", "[-proxy $PROXY]"),
    "bash": (BASH, WEB),
    "bash, to the host": (BASH, "127.0.0.1"),
}  # fmt: skip


@pytest.fixture
def sender(net: Internet, jail: Jail) -> Iterator[Jail]:
    for tool in (*INSTALLED, "curl", "nc", "openssl"):
        need(tool)
    own = jail.write(jail.project / "own", mode=0o755)
    shutil.copyfile("/usr/bin/msmtp", own)
    net.deliveries()
    yield jail


def mailers() -> dict[str, str]:
    return {name: template.format(name, program, "mail.example.org", "") for name, (template, program) in MAILERS.items()}


def routes(*, jailed: bool) -> dict[str, str]:
    proxy = "PROXY=${http_proxy:-http://127.0.0.1:3128}; PROXY=${PROXY#http://}; "
    return {name: proxy + _line(name, *row, jailed=jailed) for name, row in ROUTES.items()}


def _line(name: str, template: str, *words: str, jailed: bool) -> str:
    kept = [word.strip("[]") if jailed or not word.startswith("[") else "" for word in words]
    if template is SMTPLIB:
        return f"{PYTHON} -c {shlex.quote(template.format(name, *kept))}"
    return template.format(name, *kept)


def subjects(deliveries: list[str]) -> list[str]:
    return sorted(line.removeprefix("Subject: ").strip() for text in deliveries for line in text.splitlines() if line.startswith("Subject: "))


@pytest.mark.parametrize("backend", ("bwrap",), indirect=True)
def test_outside_every_one_of_them_delivers(net: Internet, sender: Jail) -> None:
    """The control of both tests below."""
    did = outside(net, sender, mailers() | routes(jailed=False))
    arrived = subjects(net.deliveries())
    assert {name: one for name, one in did.items() if name not in arrived} == {}
    assert arrived == sorted([*MAILERS, *ROUTES])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_inside_every_mailer_is_refused_in_words(net: Internet, sender: Jail, backend: str, mode: str) -> None:
    names = {name: f"echo hello | {name} -s subject bob@example.org" for name in read_names()}
    did = inside(net, sender, mode, names | mailers())
    by_path = [name for name in MAILERS if name.endswith("by path")]
    expected = {name: NOT_EXECUTED if name in by_path and backend != "bwrap" else STUB for name in did}
    assert {name: one.code for name, one in did.items()} == expected
    assert {name: one for name, one in did.items() if (REFUSED if one.code == STUB else "ermission denied") not in one.err} == {}
    assert net.deliveries() == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_inside_no_other_way_leads_to_a_mail_server(net: Internet, sender: Jail, backend: str, mode: str) -> None:
    did = inside(net, sender, mode, routes(jailed=True))
    assert {name: one for name, one in did.items() if one.code == 0 or one.seconds > SOON} == {}
    assert net.deliveries() == []
    if mode == "proxied":
        assert {name: one.said for name, one in did.items() if "PROXY" in " ".join(ROUTES[name]) and not told(one)} == {}


def told(did: Did) -> bool:
    """By the proxy: its refusal, as the program shows it. With Landlock /tmp is not to be written, and msmtp does not get that far."""
    return any(words in did.said for words in (*TOLD, "own: cannot create temporary file"))
