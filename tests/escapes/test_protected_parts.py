"""What runs outside later is read-only inside, and cannot be carried away with a directory above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.escapes.backends import only, stopped
from tests.machines.jail import Jail
from tests.machines.needs import need

HOOK = ".git/hooks/post-commit"


@pytest.fixture
def repository(jail: Jail) -> Path:
    jail.write(jail.project / ".git/config", "[core]\n")
    jail.write(jail.project / ".git/hooks/sample", "")
    jail.write(jail.project / ".git/HEAD", "ref: refs/heads/main\n")
    return jail.project


def planted(jail: Jail, script: str, path: str = HOOK, *options: str | Path) -> bool:
    """Did the script, which shall write the word `planted`, get it to where it would run outside?"""
    jail.run("sh", "-c", f"{script}; touch ran", options=["--quiet", *options])
    assert (jail.project / "ran").exists()
    found = jail.project / path
    return found.exists() and "planted" in found.read_text()


ATTACKS = [
    f"echo planted > {HOOK}",
    f"mv .git/hooks .git/x; mkdir -p .git/hooks; echo planted > {HOOK}",
    f"mv .git x; mkdir -p .git/hooks; echo planted > {HOOK}",
    f"rm -rf .git; mkdir -p .git/hooks; echo planted > {HOOK}",
    f"chmod -R u+w .git; chmod 777 .git/hooks; echo planted > {HOOK}",
    f"cp -r .git copy; mv -T --exchange copy .git || mv -T copy .git; echo planted > {HOOK}",
    f"mkdir new; echo planted > new/post-commit; mv -T new .git/hooks; ln -sfn ../new .git/hooks; ln new/post-commit {HOOK}",
    f"(cd ..; mv project* away; mkdir -p project/.git/hooks); echo planted > {HOOK}",
]


@only("landlock")
def test_landlock_says_that_it_cannot_protect_parts_of_the_project(jail: Jail, repository: Path) -> None:
    """Named at the start; where the property is required, nothing starts."""
    jail.configure('[sandbox]\nbackend = "landlock"\n', "conf.d/backend.toml")
    inside = jail.run("echo", "ran")
    assert inside.out == "ran\n" and "project-protect" in inside.err
    jail.configure('[sandbox]\nrequire = ["project-protect"]\n')
    assert stopped(jail.run("echo", "ran"), "project-protect")


@only("bwrap")
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_hook_can_be_planted(jail: Jail, repository: Path, attack: str) -> None:
    assert jail.outside("sh", "-c", f"echo planted > {HOOK}").code == 0  # control
    (repository / HOOK).unlink()
    assert not planted(jail, attack)
    assert (repository / ".git/hooks/sample").exists()


@only("bwrap")
@pytest.mark.parametrize(
    "attack", ["echo planted >> .git/config", "echo planted > n; mv n .git/config", "mv .git x; mkdir .git; echo planted > .git/config"]
)
def test_gits_settings_cannot_be_changed(jail: Jail, repository: Path, attack: str) -> None:
    assert not planted(jail, attack, ".git/config")
    assert jail.outside("sh", "-c", attack).code == 0
    assert "planted" in (repository / ".git/config").read_text()


def test_git_itself_goes_on_working(jail: Jail) -> None:
    """Read-only files in a writable directory: with a read-only directory every lock file would fail."""
    need("git")
    assert jail.outside("git", "init", "-q").code == 0
    commit = "git -c user.name=a -c user.email=a@b commit -q -m one"
    script = f"touch f && git add f && {commit} && git status --short && git branch other && git gc -q"
    inside = jail.run("sh", "-c", script)
    assert (inside.code, inside.err) == (0, "")
    assert jail.outside("git", "log", "--format=%s").out == "one\n"


@only("bwrap")
def test_a_worktrees_git_file_cannot_be_pointed_elsewhere(jail: Jail) -> None:
    (jail.write(jail.project / ".git", "gitdir: /nowhere\n"))
    assert not planted(jail, "echo gitdir: planted > .git; mv .git x; rm -f .git; echo gitdir: planted > .git", ".git")


@only("bwrap")
def test_a_lock_file_beside_a_read_only_file_can_be_made(jail: Jail, repository: Path) -> None:
    jail.write(repository / ".claude/settings.json", "{}")
    inside = jail.run(
        "sh", "-c", "touch .git/config.lock .git/index.lock .claude/settings.json.lock && echo made; echo x > .claude/settings.json"
    )
    assert inside.out == "made\n"
    assert "Read-only file system" in inside.err


@only("bwrap")
@pytest.mark.parametrize("renamed", [".claude", ".gemini"])
def test_agent_settings_cannot_be_carried_away_with_their_directory(jail: Jail, renamed: str) -> None:
    jail.write(jail.project / renamed / "settings.json", "{}")
    attack = f"mv {renamed} x; mkdir {renamed}; echo planted > {renamed}/settings.json"
    assert not planted(jail, attack, f"{renamed}/settings.json")


@pytest.mark.parametrize("renamed", ["deny", "deny/inner"])
def test_what_an_admin_keeps_read_only_cannot_be_carried_away_with_its_directory(jail: Jail, backend: str, renamed: str) -> None:
    """Below the project: renaming the directory above and building it again must not give a writable one at that path."""
    path = jail.write(jail.project / "deny/inner/kept/file", "kept\n")
    admin = {"config.toml": f"[filesystem]\ndeny_writable = ['{path.parent}']\n"}
    attack = (
        f"echo planted > deny/inner/kept/file; mv {renamed} x; mkdir -p deny/inner/kept; echo planted > deny/inner/kept/file; touch ran"
    )
    inside = jail.run("sh", "-c", attack, admin=admin)
    assert stopped(inside, "fs-write") if backend == "landlock" else (jail.project / "ran").exists()
    assert path.read_text() == "kept\n"


@only("bwrap")
def test_in_write_mode_our_settings_and_state_cannot_be_carried_away_with_their_directory(jail: Jail, home: Path) -> None:
    path = jail.configure("# mine\n")
    rename = "for d in .config .local .local/state; do mv ~/$d ~/$d.x; done; mkdir -p ~/.config/agent-sandbox"
    attack = f"{rename}; echo planted > ~/.config/agent-sandbox/config.toml; touch ran"
    jail.run("sh", "-c", attack, options=["--quiet", "--home", "write"])
    assert (jail.project / "ran").exists()
    assert path.read_text() == "# mine\n"


@only("landlock")
def test_landlock_starts_nothing_in_write_mode(jail: Jail, home: Path) -> None:
    """Our settings, our state and the credentials lie below home."""
    assert stopped(jail.run("echo", "ran", options=["--quiet", "--home", "write"]), "hidden")
    jail.configure("[sandbox]\naccept_gaps = ['hidden']\n")  # which says nothing about what is ours
    assert stopped(jail.run("echo", "ran", options=["--quiet", "--home", "write"]), "self-protection")


@only("bwrap")
def test_in_write_mode_settings_that_do_not_exist_yet_cannot_be_made(jail: Jail, home: Path) -> None:
    """The agent's own file would be read as the person's at the next launch."""
    attack = "mkdir -p ~/.config/agent-sandbox; echo planted > ~/.config/agent-sandbox/config.toml; touch ran"
    inside = jail.run("sh", "-c", attack, options=["--quiet", "--home", "write"])
    assert (jail.project / "ran").exists(), inside.err
    assert not (home / ".config/agent-sandbox/config.toml").exists()


def test_read_only_places_hold_after_everything_in_them_was_made(jail: Jail, home: Path) -> None:
    """Mounts below a directory that is made read-only last: each is there, and none is lost or writable."""
    jail.write(home / ".bashrc", "# mine\n")
    jail.write(home / "data/file", "data\n")
    refused = "echo x > ~/left; echo x > ~/.bashrc; echo x > /left"
    script = f"cat ~/.bashrc ~/data/file; {refused}; echo x > ~/data/w && echo wrote; echo x > here && cat here"
    inside = jail.run("sh", "-c", script, options=["--quiet", "--home", "restricted", "--rw", home / "data"])
    assert inside.out == "# mine\ndata\nwrote\nx\n"
    assert inside.err.count("Read-only file system") + inside.err.count("Permission denied") == 3
