"""Settings as a jail feels them: what the merge decides is what is mounted. (The merge itself: tests/unit/config.)"""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from agent_sandbox.config.template import template
from tests.escapes.backends import only
from tests.machines.jail import Jail, Result


@pytest.fixture
def shared(jail: Jail, home: Path) -> Path:
    return jail.write(home / "shared/file", "shared\n").parent


def test_a_person_cannot_widen_the_admins_project_parents(jail: Jail, shared: Path) -> None:
    admin = {"config.toml": f"[project]\nparents = ['{shared}']\n"}
    jail.configure(f"[project]\nparents = ['{jail.project}', '{shared}']\n")
    refused = jail.run("echo", "ran", admin=admin)
    assert (refused.code, refused.out) == (125, "")
    assert jail.run("echo", "ran", options=["--quiet", "--project-dir", shared], admin=admin).out == "ran\n"


def test_a_longer_name_is_not_below_a_parent(jail: Jail, shared: Path) -> None:
    other = jail.write(shared.parent / "shared-not/file").parent
    admin = {"config.toml": f"[project]\nparents = ['{shared}']\n"}
    assert jail.run("true", options=["--quiet", "--project-dir", other], admin=admin).code == 125
    assert jail.run("true", options=["--quiet", "--project-dir", shared / "."], admin=admin).code == 0


def test_a_link_does_not_lead_around_the_admins_denials(jail: Jail, shared: Path) -> None:
    link = shared.parent / "link"
    link.symlink_to(shared)
    admin = {"config.toml": f"[filesystem]\ndeny_writable = ['{shared}']\n"}
    write = ("sh", "-c", f"echo x > {shared}/made; echo ran")
    assert jail.run(*write, options=["--quiet", "--rw", link]).out == "ran\n"
    (shared / "made").unlink()  # control: without the denial it was made
    for way in (shared, link, f"{link}/../shared"):
        jail.run(*write, options=["--quiet", "--rw", way], admin=admin)
        assert not (shared / "made").exists()
    parents = {"config.toml": f"[project]\nparents = ['{jail.project}']\n"}
    (jail.project / "out").symlink_to(shared)
    led_out = jail.run("true", options=["--quiet", "--project-dir", jail.project / "out"], admin=parents)
    assert (led_out.code, "project.parents" in led_out.err) == (125, True), led_out.err


@only("bwrap")
def test_an_admin_file_that_only_comments_says_nothing(jail: Jail, home: Path) -> None:
    """A template as it is shipped: enforcing its examples on everybody would be a surprise to everybody."""
    write = ("sh", "-c", "echo x > ~/left && echo ran")
    inside = jail.run(*write, options=["--home", "write", "--quiet"], admin={"config.toml": template()})
    assert inside.out == "ran\n"
    assert (home / "left").exists()  # in a throw-away home it could be written as well, and would be gone
    assert "not allowed" not in inside.err


@only("bwrap")
def test_an_admin_who_says_the_default_is_told_from_one_who_says_nothing(jail: Jail, home: Path) -> None:
    write = ("sh", "-c", "echo x > ~/left; echo ran")
    assert jail.run(*write, options=["--quiet", "--home", "write"], admin={}).out == "ran\n"
    assert (home / "left").exists()
    (home / "left").unlink()
    said = jail.run(*write, options=["--quiet", "--home", "write"], admin={"config.toml": "[filesystem]\nhome = 'tmpwrite'\n"})
    assert said.out == "ran\n" and "not allowed" in said.err
    assert not (home / "left").exists()


def test_the_persons_file_is_read_where_the_tests_write_it(jail: Jail, home: Path) -> None:
    """Else every test that configures something could not fail."""
    jail.configure("[filesystem]\nhom = 'write'\n")
    inside = jail.run("true")
    assert inside.code == 125
    assert ".config/agent-sandbox/config.toml:2" in inside.err


@only("bwrap")
@pytest.mark.parametrize("other", ["firejail", "landlock"])
def test_a_backend_that_cannot_be_had_is_not_replaced_by_nothing(jail: Jail, other: str) -> None:
    inside = jail.run("sh", "-c", "test $AGENT_SANDBOX && echo IN || echo OUT", options=["--quiet", "--backend", other])
    assert "OUT" not in inside.out
    assert inside.code in (0, 125)


def test_twenty_jails_started_at_one_moment_all_start(jail: Jail) -> None:
    results: list[Result] = []
    gate = threading.Barrier(20)

    def start() -> None:
        gate.wait()
        results.append(jail.run("sh", "-c", "d=${TMPDIR:-/tmp}; echo ran > $d/x; cat $d/x"))

    threads = [threading.Thread(target=start) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(one.code, one.out) for one in results] == [(0, "ran\n")] * 20


def test_a_jail_starts_with_few_open_files_allowed(jail: Jail) -> None:
    """Neither our descriptors nor closing the inherited ones depends on how many there may be."""
    for limit in ("40", "1048576"):
        done = jail.outside("bash", "-c", f"ulimit -n {limit}; '{jail.program}' --quiet -- echo ran")
        if "cannot modify limit" not in done.err:
            assert done.out == "ran\n", done.err


@only("bwrap")
def test_doctor_says_what_it_measured_and_not_what_is_configured(jail: Jail) -> None:
    """In a mount namespace where bwrap is another program: the settings are the same, the answer is not."""
    from tests.machines.needs import need_root

    need_root()
    good = jail.ask("doctor")
    user = jail.user
    hide = 'for p in /usr/bin/bwrap /usr/local/bin/bwrap; do test -e $p && mount --bind /bin/false $p; done; exec "$@"'
    around = ["unshare", "--mount", "--propagation", "private", "sh", "-c", hide, "sh"]
    switch = ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", "env", "-i", "PATH=/usr/bin:/bin"]
    bad = subprocess.run([*around, *switch, str(jail.program), "doctor"], cwd=jail.project, capture_output=True, text=True, check=False)
    assert good.code == 0
    assert bad.returncode != 0
