"""The plan for macOS, as text; it is never applied."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agent_sandbox.admin.bots.macos import plan
from agent_sandbox.admin.cli import main, parser
from agent_sandbox.admin.report import how

CREATE = """\
/usr/sbin/dseditgroup -o create -i FREE_ID clio
/usr/bin/dscl . -create /Users/clio
/usr/bin/dscl . -create /Users/clio UniqueID FREE_ID
/usr/bin/dscl . -create /Users/clio PrimaryGroupID FREE_ID
/usr/bin/dscl . -create /Users/clio NFSHomeDirectory /var/bot/clio
/usr/bin/dscl . -create /Users/clio UserShell /usr/bin/false
/usr/bin/dscl . -create /Users/clio IsHidden 1
/usr/bin/dscl . -create /Users/clio Password *
/usr/sbin/dseditgroup -o edit -a clio -t user bot
/usr/bin/install -d -o alice -g clio -m 2770 /var/bot/clio
/usr/sbin/visudo -cf /etc/sudoers.d/bot-clio
"""
RIGHTS = "list,add_file,search,add_subdirectory,delete_child,readattr,writeattr,read,write,execute,append,file_inherit,directory_inherit"
PLANS = {
    ("init", "--owner", "alice"): "/usr/sbin/dseditgroup -o create bot\n/usr/sbin/dseditgroup -o edit -a alice -t user bot\n"
    "/usr/bin/install -d -o root -g wheel -m 0755 /var/bot\n",
    ("init", "--undo"): "/usr/sbin/dseditgroup -o delete bot\n/bin/rmdir /var/bot\n",
    ("create", "clio", "--owner", "alice"): CREATE,
    ("disable", "clio"): "/bin/rm /etc/sudoers.d/bot-clio\n/usr/bin/pwpolicy -u clio -disableuser\n/bin/chmod 0000 /var/bot/clio\n"
    "/usr/bin/pkill -KILL -U clio\n",
    ("enable", "clio"): "/usr/bin/pwpolicy -u clio -enableuser\n/bin/chmod 2770 /var/bot/clio\n/usr/sbin/visudo -cf /etc/sudoers.d/bot-clio\n",
    ("destroy", "clio"): "/bin/rm /etc/sudoers.d/bot-clio\n/usr/bin/dscl . -delete /Users/clio\n/usr/sbin/dseditgroup -o delete clio\n"
    "/usr/bin/pkill -KILL -U clio\n/bin/rm -R /var/bot/clio\n",
    ("share", "-r", "/Users/alice/work"): "/usr/sbin/chown -R :bot /Users/alice/work\n/bin/chmod -R g+rwX /Users/alice/work\n"
    f"/bin/chmod -R +a group:bot allow {RIGHTS} /Users/alice/work\n",
    ("noshare", "/Users/alice/work"): f"/bin/chmod -a group:bot allow {RIGHTS} /Users/alice/work\n/usr/sbin/chown :staff /Users/alice/work\n",
}


@pytest.mark.parametrize("words", PLANS, ids=lambda words: words[0])
def test_a_plan_is_printed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    options = parser().parse_args([*words, "--system", "macos", "--dry-run"])
    assert "".join(f"{how(step.act)}\n" for step in plan(words[0], options)) == PLANS[words]
    assert main([*words, "--system", "macos", "--dry-run"]) == 0
    assert "nothing was changed" in capsys.readouterr().out


@pytest.mark.parametrize("words", PLANS, ids=lambda words: words[0])
def test_nothing_is_applied(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--system", "macos"]) == 125
    assert "never tried" in capsys.readouterr().err


def test_a_bad_name_is_refused_there_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", "../x", "--system", "macos", "--dry-run"]) == 125
    assert main(["create", "clio", "--owner", "a b", "--system", "macos", "--dry-run"]) == 125


def test_botadm_can_be_started_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "agent_sandbox.admin.bots", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage: botadm")
