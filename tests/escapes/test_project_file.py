"""`.agent-sandbox.toml` is the agent's to write: it hangs nothing, shows nothing of the person's, and opens nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.escapes.backends import stopped
from tests.machines.jail import Jail, Result

NAME = ".agent-sandbox.toml"


def launch(jail: Jail, *options: str) -> Result:
    """A launch that ends in words and in time."""
    start = time.monotonic()
    result = jail.run("echo", "ran", options=["--quiet", *options], timeout=30)
    assert time.monotonic() - start < 5
    assert "Traceback" not in result.err
    assert len(result.err) < 4000
    assert all(char.isprintable() or char in "\n" for char in result.err)
    return result


def refused(jail: Jail) -> str:
    result = launch(jail)
    assert (result.code, result.out) == (125, "")
    assert NAME in result.err
    assert launch(jail, "--ignore-project-file").out == "ran\n"  # the way out that the message names
    return result.err


def test_a_link_to_a_key_shows_nothing_of_it(jail: Jail, secret: Path) -> None:
    (jail.project / NAME).symlink_to(secret)
    assert "hunter2" not in refused(jail)


def test_a_link_to_a_directory_on_the_way_shows_nothing(jail: Jail, home: Path) -> None:
    jail.write(home / "private" / NAME, "hunter2 = 'hunter2'\n")
    (jail.project / "sub").symlink_to(home / "private")
    result = jail.run("echo", "ran", options=["--quiet", "--project-dir", jail.project])
    assert result.out == "ran\n"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path), lambda path: os.symlink(path, path)])
def test_what_is_no_file_is_refused_at_once(jail: Jail, make: Callable[[Path], None]) -> None:
    make(jail.project / NAME)
    refused(jail)


def test_a_huge_file_is_refused_at_once(jail: Jail) -> None:
    path = jail.write(jail.project / NAME)
    os.truncate(path, 10 << 30)
    refused(jail)


HOSTILE = {
    "deep arrays": "a = " + "[" * 200_000,
    "deep tables": "a = " + "{a=" * 100_000,
    "many parts": "a" + ".a" * 300_000 + " = 1",
    "many quoted parts": "'a'" + ".'a'" * 200_000 + " = 1",
    "dots in quotes": "'" + "." * 500_000 + "'.b = 1",
    "long key": "'" + "a" * 900_000 + "' = 1",
    "long section": "[" + "a" * 900_000 + "]",
    "many sections": "\n".join(f"[a{number}.b]" for number in range(60_000)),
    "long number": "a = " + "9" * 900_000,
    "escape in a key": '"\\u001b]0;title\\u0007\\u001b[31m" = 1',
    "escape in a section": '[filesystem]\n"\\u001b[31mhome" = 1',
    "escape in a value": '[filesystem]\nhome = "\\u001b[31m"',
    "escape in a path": '[filesystem]\nhidden = ["/\\u001b[31m\\u202e"]\nhome = 1',
    "line breaks in a key": '"one\\ntwo\\r\\nagent-sandbox: all is well" = 1',
    "bad utf-8": "a = '\udcff'",
    "nul": "a = '\0'",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_in_a_line_of_plain_words(jail: Jail, name: str) -> None:
    (jail.project / NAME).write_bytes(HOSTILE[name].encode("utf-8", "surrogateescape"))
    err = refused(jail)
    assert "\nagent-sandbox: all is well" not in err


@pytest.mark.parametrize("pattern", ["/*/*/*/*/*/*/*", "/proc/*/task/*/*", "/usr/*/*/*/*", "/**", "/[a-z]*/*/*/*"])
def test_a_pattern_does_not_make_the_launcher_walk_the_machine(jail: Jail, pattern: str) -> None:
    (jail.project / NAME).write_text(f"[filesystem]\nhidden = ['{pattern}']\n")
    launch(jail)


def test_a_pattern_that_stands_for_thousands_of_paths_is_refused(jail: Jail, backend: str) -> None:
    for number in range(50):
        for other in range(50):
            (jail.project / f"wide/{number}/{other}").mkdir(parents=True)
    narrow, wide = f"{jail.project}/wide/0/*", f"{jail.project}/wide/*/*"
    (jail.project / NAME).write_text(f"[filesystem]\nhidden = ['{narrow}']\n")
    result = launch(jail)
    assert result.out == "ran\n" or (backend == "landlock" and stopped(result, "hidden"))
    (jail.project / NAME).write_text(f"[filesystem]\nhidden = ['{wide}']\n")
    result = launch(jail)
    assert (result.code, "stands for more than" in result.err) == (125, True), result.err


def test_thousands_of_hidden_files_do_not_stall_a_launch(jail: Jail) -> None:
    names = [f"f{number}" for number in range(3000)]
    for name in names:
        jail.write(jail.project / name)
    (jail.project / NAME).write_text(f"[filesystem]\nhidden = {[f'{jail.project}/{name}' for name in names]}\n")
    launch(jail)


WEAKENING = {
    "home": "[filesystem]\nhome = 'write'\n",
    "grants": "[filesystem]\nwritable = ['~']\nreadonly = ['~/.ssh']\n",
    "reveal": "[filesystem]\nreveal = ['~/.ssh']\nreadonly = ['~/.ssh']\n",
    "seed": "[filesystem]\nseed = ['~/.ssh/id_ed25519']\n",
    "environment": "[environment]\nallow = ['*']\nset = { LD_PRELOAD = '/tmp/x' }\n",
    "network": "[network]\nmode = 'open'\nfallback = 'weaker'\n",
    "seccomp": "[seccomp]\nmode = 'off'\n",
    "audit": "[audit]\nenabled = false\n",
    "devices": "[filesystem]\ndevices = ['/dev/*']\n",
    "tmp": "[filesystem]\nprivate_tmp = false\n",
    "gaps": "[sandbox]\naccept_gaps = ['hidden']\nnested_userns = true\n",
}
LOOK = """
cat ~/.ssh/id_ed25519; env | grep -E 'MY_TOKEN|PRELOAD'; ls /dev /tmp; unshare -U true && echo NESTED
grep Seccomp: /proc/self/status; touch ~/left; cat /proc/net/dev | wc -l
"""


@pytest.mark.parametrize("name", WEAKENING)
def test_it_opens_nothing(jail: Jail, secret: Path, name: str) -> None:
    env = {"MY_TOKEN": "hunter2"}
    plain = jail.run("sh", "-c", LOOK, env=env)
    (jail.project / NAME).write_text(WEAKENING[name])
    with_it = jail.run("sh", "-c", LOOK, env=env)
    assert "Seccomp:\t2" in plain.out
    assert with_it.out == plain.out
    assert "not allowed" in with_it.err or with_it.err != plain.err
    assert not (jail.user.home / "left").exists()


def test_control_the_persons_own_file_opens_what_it_says(jail: Jail, secret: Path) -> None:
    jail.configure(WEAKENING["reveal"])
    assert "hunter2" in jail.run("sh", "-c", LOOK).out
