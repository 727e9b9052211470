"""Whose files are read. Real files with real owners: each refusal next to the same file, as it is accepted."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.files import MOST_BYTES
from tests.machines.needs import need_root
from tests.unit.config.conftest import STRANGER, World

ISOLATED = 'network.mode = "isolated"\n'


def refusal(world: World) -> UserError:
    with pytest.raises(UserError) as error:
        world.load()
    return error.value


def test_files_of_the_person_and_of_root_are_read(world: World) -> None:
    world.user(ISOLATED)
    assert world.load().text("network.mode") == "isolated"
    if os.geteuid() == 0:
        os.chown(world.user_file, 0, 0)
        assert world.load().text("network.mode") == "isolated"


def test_an_admin_file_of_root_is_read(world: World) -> None:
    world.admin(ISOLATED)
    assert world.load().text("network.mode") == "isolated"


def test_missing_files_say_nothing(world: World) -> None:
    settings = world.load()
    assert [layer.name for layer in settings.layers] == ["default", "command line"]
    assert settings.text("network.mode") == "filtered"


@pytest.mark.parametrize("part", ["admin/config.toml", "admin", "admin/conf.d/a.toml", "admin/conf.d"])
def test_an_admin_file_or_directory_of_somebody_else_is_refused(world: World, part: str) -> None:
    world.admin(ISOLATED)
    world.admin("", "conf.d/a.toml")
    path = Path(world.where.admin_dir).parent / part
    assert world.load().text("network.mode") == "isolated"
    os.chown(path, STRANGER, -1)
    assert str(refusal(world)) == f"{path}: belongs to uid {STRANGER}: only files of root are read"


@pytest.mark.parametrize("part", ["", "admin/config.toml", "admin", "admin/conf.d/a.toml", "admin/conf.d"])
@pytest.mark.parametrize(("bits", "who"), [(0o020, "its group"), (0o002, "everybody"), (0o1002, "everybody")])
def test_an_admin_path_that_others_can_write_is_refused_all_the_way_up(
    world: World, part: str, bits: int, who: str
) -> None:
    world.admin(ISOLATED)
    world.admin("", "conf.d/a.toml")
    path = Path(world.where.admin_dir).parent / part
    assert world.load().text("network.mode") == "isolated"
    path.chmod(path.stat().st_mode | bits)
    assert str(refusal(world)).startswith(f"{path}: can be written by {who}\n  chmod ")


@pytest.mark.parametrize("part", ["config.toml", "conf.d/a.toml", "conf.d", "."])
def test_a_users_file_or_directory_of_somebody_else_is_refused(world: World, part: str) -> None:
    need_root()
    world.user(ISOLATED)
    world.user("", "conf.d/a.toml")
    assert world.load().text("network.mode") == "isolated"
    path = world.user_dir / part
    os.chown(path, STRANGER, -1)
    assert str(refusal(world)) == f"{path}: belongs to uid {STRANGER}: only files of ada and root are read"


@pytest.mark.parametrize("part", ["config.toml", ".", "..", "../.."])
def test_a_users_path_that_everybody_can_write_is_refused(world: World, part: str) -> None:
    world.user(ISOLATED)
    assert world.load().text("network.mode") == "isolated"
    path = (world.user_dir / part).resolve()
    path.chmod(path.stat().st_mode | 0o002)
    assert str(refusal(world)) == f"{path}: can be written by everybody\n  chmod o-w {path}"


def test_above_home_a_directory_that_everybody_can_write_must_be_sticky(world: World) -> None:
    world.user(ISOLATED)
    above = Path(world.where.home).parent
    above.chmod(0o1777)
    assert world.load().text("network.mode") == "isolated"
    above.chmod(0o777)
    assert refusal(world).where == str(above)


@pytest.mark.parametrize("part", ["config.toml", "."])
def test_a_group_may_write_only_if_the_person_is_alone_in_it(
    world: World, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import grp
    import pwd

    need_root()
    world.user(ISOLATED)
    path = (world.user_dir / part).resolve()
    os.chown(path, -1, STRANGER)
    path.chmod(0o770)
    assert refusal(world).problem == "can be written by its group"
    entry = pwd.struct_passwd(("ada", "x", world.where.uid, STRANGER, "", world.where.home, "/bin/sh"))
    group = grp.struct_group(("ada", "x", STRANGER, []))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: group)
    assert world.load().text("network.mode") == "isolated"
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group(("physics", "x", STRANGER, [])))
    assert refusal(world).problem == "can be written by its group"


def test_a_link_of_the_person_is_followed_and_one_of_somebody_else_is_not(world: World) -> None:
    need_root()
    target = world.own(Path(world.where.home) / "dotfiles" / "sandbox.toml", ISOLATED)
    world.user("")
    world.user_file.unlink()
    world.user_file.symlink_to(target)
    os.lchown(world.user_file, world.where.uid, -1)
    assert world.load().text("network.mode") == "isolated"
    os.lchown(world.user_file, STRANGER, -1)
    assert str(refusal(world)) == f"{world.user_file}: is a symbolic link made by uid {STRANGER}"


def test_a_linked_directory_on_the_way_is_judged_like_any_other(world: World) -> None:
    need_root()
    moved = Path(world.where.home) / "elsewhere"
    world.user(ISOLATED)
    world.user_dir.rename(moved)
    world.user_dir.symlink_to(Path("..") / "elsewhere")
    os.lchown(world.user_dir, world.where.uid, -1)
    assert world.load().text("network.mode") == "isolated"
    moved.chmod(0o777)
    assert refusal(world).where == str(moved)


def test_an_admins_link_to_a_file_that_a_user_can_change_is_refused(world: World) -> None:
    world.admin("")
    world.admin_file.unlink()
    world.admin_file.symlink_to(world.own(Path(world.where.home) / "mine.toml", ISOLATED))
    assert refusal(world).problem.startswith(f"belongs to uid {world.where.uid}")


def test_a_link_to_nowhere_is_no_missing_file(world: World) -> None:
    world.user("")
    world.user_file.unlink()
    world.user_file.symlink_to("/nonexistent/config.toml")
    assert str(refusal(world)) == f"{world.user_file}: leads to /nonexistent, which does not exist"


def test_a_loop_of_links_ends(world: World) -> None:
    world.user("")
    world.user_file.unlink()
    world.user_file.symlink_to("config.toml")
    assert refusal(world).problem == "leads through too many symbolic links"


@pytest.mark.parametrize("rank", ["admin_file", "user_file", "project_file"])
@pytest.mark.parametrize("thing", ["fifo", "socket", "directory", "device"])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(world: World, rank: str, thing: str) -> None:
    need_root()
    path: Path = getattr(world, rank)
    world.own(path, "") if rank != "admin_file" else world.admin("")
    path.unlink()
    if thing == "fifo":
        os.mkfifo(path, 0o600)
    elif thing == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif thing == "directory":
        path.mkdir(mode=0o700)
    else:
        os.mknod(path, 0o020600, os.makedev(1, 5))  # /dev/zero: no end to read
    if rank != "admin_file":
        os.chown(path, world.where.uid, -1)
    problem = "cannot be read: No such device or address" if thing == "socket" else "is not a regular file"
    assert str(refusal(world)).startswith(f"{path}: {problem}")


@pytest.mark.parametrize("rank", ["admin", "user", "project"])
def test_a_file_may_hold_one_mebibyte_and_no_more(world: World, rank: str) -> None:
    write = getattr(world, rank)
    comment = "#" * (MOST_BYTES - len(ISOLATED) - 1) + "\n"
    path = write(comment + ISOLATED)
    assert world.load().text("network.mode") == "isolated"
    write(comment + "#" + ISOLATED)
    assert str(refusal(world)).startswith(f"{path}: is larger than 1 MiB")


def test_a_file_that_cannot_be_read_stops_the_launch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.user(ISOLATED)
    opened = os.open

    def deny(name: str, *rest: int) -> int:
        if name == str(path):
            raise PermissionError(13, "Permission denied")
        return opened(name, *rest)

    assert world.load().text("network.mode") == "isolated"
    monkeypatch.setattr(os, "open", deny)
    assert str(refusal(world)) == f"{path}: cannot be read: Permission denied"


def test_a_file_in_the_place_of_a_directory_stops_the_launch(world: World) -> None:
    world.own(world.user_dir, "")
    assert refusal(world).problem == "cannot be read: Not a directory"


def test_a_link_in_the_place_of_the_projects_file_is_refused(world: World, tmp_path: Path) -> None:
    """The agent may have put it there, to have a file outside the project read."""
    elsewhere = tmp_path / "secret"
    elsewhere.write_text(ISOLATED)
    world.project_file.symlink_to(elsewhere)
    assert str(refusal(world)) == (
        f"{world.project_file}: is a symbolic link; it must be a file\n"
        "  agent-sandbox --ignore-project-file … starts without it"
    )
    assert world.load(use_project_file=False).text("network.mode") == "filtered"


def test_the_projects_file_may_belong_to_anybody(world: World) -> None:
    need_root()
    path = world.project(ISOLATED)
    os.chown(path, STRANGER, STRANGER)
    path.chmod(0o666)
    assert world.load().text("network.mode") == "isolated"


def test_where_no_config_is_nobody_has_to_be_trusted(world: World) -> None:
    """/app belongs to somebody else in many a container."""
    need_root()
    Path(world.where.admin_dir).mkdir()
    os.chown(world.where.admin_dir, STRANGER, -1)
    Path(world.where.home).chmod(0o777)
    assert world.load().text("network.mode") == "filtered"
