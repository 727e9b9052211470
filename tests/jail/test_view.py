"""What a jail shows: the statement of the filesystem view, with a control outside for every denial."""

from __future__ import annotations

from tests.machines.jail import Jail


def test_the_project_is_writable_and_is_the_working_directory(jail: Jail) -> None:
    inside = jail.run("sh", "-c", "pwd; echo made > here")
    assert (inside.code, inside.out) == (0, f"{jail.project}\n")
    assert (jail.project / "here").read_text() == "made\n"


def test_home_is_a_throw_away_with_start_up_files(jail: Jail) -> None:
    jail.write(jail.user.home / ".bashrc", "# mine\n")
    jail.write(jail.user.home / "notes", "private\n")
    assert jail.outside("cat", jail.user.home / "notes").out == "private\n"
    inside = jail.run("sh", "-c", "cat ~/.bashrc; cat ~/notes; echo x > ~/left && cat ~/left")
    assert (inside.code, inside.out) == (0, "# mine\nx\n")
    assert "notes: No such file" in inside.err
    assert not (jail.user.home / "left").exists()


def test_a_bad_admin_file_stops_the_launch(jail: Jail) -> None:
    inside = jail.run("true", admin={"config.toml": "[filesystem]\nhom = 'write'\n"})
    assert inside.code == 125
    assert "/app/lib/agent-sandbox/config.toml:2" in inside.err
    assert "filesystem.home" in inside.err


def test_the_admins_stricter_mode_holds_against_the_command_line(jail: Jail) -> None:
    admin = {"config.toml": "[filesystem]\nhome = 'restricted'\n"}
    inside = jail.run("sh", "-c", "echo x > ~/left", options=["--home", "write"], admin=admin)
    assert inside.code == 2
    assert "Read-only file system" in inside.err
    assert "command line: filesystem.home" in inside.err
