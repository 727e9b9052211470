"""Started by root the jail has no capability, and the name root opens nothing: neither files, nor the kernel's settings."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.escapes.backends import only
from tests.escapes.inside import python
from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.needs import need, need_root


@pytest.fixture
def root(copy: Path, backend: str) -> Iterator[Jail]:
    """The launcher run by root itself, in a project outside /root, whose own settings are not written: the backend is an option."""
    need_root()
    need("bwrap")
    project = Path(f"/srv/agent-sandbox-root-{os.getpid()}")
    project.mkdir()
    wrapper = Path(f"{project}.program")
    (wrapper / "bin").mkdir(parents=True)
    (wrapper / "bin/agent-sandbox").write_text(f'#!/bin/sh\nexec {copy}/bin/agent-sandbox --backend {backend} "$@"\n')
    (wrapper / "bin/agent-sandbox").chmod(0o755)
    yield Jail(copy=wrapper, user=users.current_user(), project=project)
    subprocess.run(["rm", "-r", str(project), str(wrapper)], check=True)


def test_it_has_no_capabilities(root: Jail) -> None:
    show = "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Uid)' /proc/self/status"
    assert "CapEff:\t0000000000000000" not in root.outside("sh", "-c", show).out
    lines = root.run("sh", "-c", show).out.splitlines()
    assert [line.split()[1] for line in lines] == ["0", *["0" * 16] * 5, "1"]


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/shadow-"])
def test_it_cannot_read_the_systems_secrets(root: Jail, path: str) -> None:
    if not os.path.exists(path):
        path = "/etc/shadow"
    assert root.outside("cat", path).code == 0
    inside = root.run("cat", path)
    assert (inside.code, inside.out) == (1, "")
    assert "cat:" in inside.err


@pytest.mark.parametrize("mode", ["restricted", "tmpwrite", "read"])
def test_it_cannot_read_hidden_paths_of_roots_home(root: Jail, mode: str) -> None:
    home = root.user.home
    made = not (home / ".ssh").exists()
    if made:
        (home / ".ssh").mkdir(mode=0o700)
    key = home / f".ssh/agent-sandbox-test-{os.getpid()}"
    key.write_text("hunter2\n")
    try:
        assert root.outside("cat", key).out == "hunter2\n"
        inside = root.run("cat", key, options=["--quiet", "--home", mode])
        assert (inside.code, inside.out) == (1, "")
    finally:
        key.unlink()
        if made:
            (home / ".ssh").rmdir()


@pytest.mark.parametrize("place", ["/usr", "/usr/bin", "/etc", "/bin", "/opt", "/", "/run"])
def test_it_cannot_write_system_directories(root: Jail, place: str) -> None:
    name = f"{place}/agent-sandbox-test-{os.getpid()}"
    script = f"touch {name} && rm {name} && echo WROTE; touch here && echo ran"
    assert root.outside("sh", "-c", script).out == "WROTE\nran\n"
    inside = root.run("sh", "-c", script)
    assert inside.out == "ran\n"
    assert not os.path.exists(name)


SETTINGS = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sysrq-trigger",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
]


@pytest.mark.parametrize("path", SETTINGS)
def test_it_cannot_open_the_kernels_settings_for_writing(root: Jail, path: str) -> None:
    """The kernel asks there for the number 0, not for a capability: a pattern with a pipe is a program run by the real root."""
    attempt = python(
        f"import os\ntry:\n    os.close(os.open({path!r}, os.O_WRONLY)); print('open')\nexcept OSError as e:\n    print(e.errno)"
    )
    inside = root.run(*attempt)
    assert inside.code == 0
    assert inside.out.strip() in ("30", "13", "2", "1")  # EROFS, EACCES, ENOENT, EPERM
    if os.path.exists(path):
        assert root.outside(*attempt).out == "open\n"


OPEN_THEM = """
import os, sys
for path in sys.stdin.read().splitlines():
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        print(path)
    except OSError:
        pass
print("ran")
"""


def test_nothing_else_in_proc_can_be_written(root: Jail) -> None:
    left_out = " ".join(f"-not -path '/proc/{name}*'" for name in ("[0-9]", "self", "thread-self", "pressure"))
    writable = root.outside("sh", "-c", f"find /proc {left_out} -type f -writable 2>/dev/null").out
    assert "/proc/sys/kernel/core_pattern" in writable
    assert root.run(*python(OPEN_THEM), input=writable).out == "ran\n"


def test_it_cannot_make_a_user_namespace(root: Jail) -> None:
    """There it would have every capability again."""
    assert root.outside("unshare", "-U", "true").code == 0
    inside = root.run("unshare", "-U", "true")
    assert inside.code == 1
    assert "unshare:" in inside.err


def test_it_cannot_signal_processes_outside(root: Jail) -> None:
    victim = subprocess.Popen(["sleep", "100"])
    try:
        inside = root.run("sh", "-c", f"kill -9 {victim.pid}; echo ran")
        assert inside.out == "ran\n"
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


@only("bwrap")
def test_no_mount_of_it_is_seen_outside(root: Jail) -> None:
    """Of an ordinary user's the kernel itself sees to that; root could mount in the host's own namespace."""
    (root.project / ".git").mkdir()
    (root.project / ".git/config").write_text("")
    before = Path("/proc/self/mountinfo").read_text()
    process = root.start("sh", "-c", "echo x > .git/config || echo held; sleep 100", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout and process.stdout.readline() == "held\n"  # proof that something was mounted
    seen = Path("/proc/self/mountinfo").read_text()
    process.terminate()
    process.wait(10)
    assert seen == before
