"""What a jail shows: the statement of the filesystem view, with a control outside for every denial."""

from __future__ import annotations

import subprocess

from tests.machines.copies import fill_copy
from tests.machines.jail import Jail
from tests.machines.needs import need_root


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


def test_home_modes_differ_in_what_can_be_written(jail: Jail) -> None:
    jail.write(jail.user.home / "notes", "mine\n")
    script = "cat ~/notes 2>/dev/null; echo new > ~/new 2>/dev/null && cat ~/new"
    seen = {mode: jail.run("sh", "-c", script, options=["--quiet", "--home", mode]).out for mode in ("restricted", "tmpwrite", "read")}
    assert seen == {"restricted": "", "tmpwrite": "new\n", "read": "mine\n"}
    assert not (jail.user.home / "new").exists()
    assert jail.run("sh", "-c", script, options=["--quiet", "--home", "write"]).out == "mine\nnew\n"
    assert (jail.user.home / "new").read_text() == "new\n"


def test_grants_are_as_wide_as_they_say(jail: Jail) -> None:
    data = jail.write(jail.user.home / "data" / "in" / "a", "a\n").parent.parent
    jail.write(data / "out" / "b", "b\n")
    options = ["--quiet", "--ro", data, "--rw", data / "out"]
    inside = jail.run("sh", "-c", f"cd {data}; cat in/a out/b; echo x >> in/a; echo y >> out/b; rm -r out", options=options)
    assert inside.out == "a\nb\n"
    assert (data / "in" / "a").read_text() == "a\n"
    assert not (data / "out" / "b").exists()
    assert (data / "out").exists()


def test_a_read_only_grant_below_the_project_stays_read_only(jail: Jail) -> None:
    jail.write(jail.project / "data" / "a", "a\n")
    jail.write(jail.project / "data" / "out" / "b", "b\n")
    options = ["--quiet", "--ro", jail.project / "data", "--rw", jail.project / "data" / "out"]
    inside = jail.run("sh", "-c", "echo x > data/a; echo x > data/out/b; mv data gone; cat data/a data/out/b", options=options)
    assert (inside.code, inside.out) == (0, "a\nx\n")


def test_links_lead_to_the_same_place_inside(jail: Jail) -> None:
    real = jail.write(jail.user.home / "far" / "data" / "a", "a\n").parent
    (jail.user.home / "near").symlink_to("far/data")
    (jail.user.home / ".vimrc").symlink_to("far/vimrc")
    jail.write(jail.user.home / "far" / "vimrc", "set nu\n")
    inside = jail.run("sh", "-c", f"cat ~/near/a ~/.vimrc; cat {real}/a; ls ~/far", options=["--quiet", "--ro", jail.user.home / "near"])
    assert (inside.code, inside.out) == (0, "a\nset nu\na\ndata\nvimrc\n")


def test_git_configuration_comes_without_its_secrets(jail: Jail) -> None:
    jail.write(jail.user.home / ".gitconfig", "[user]\n\tname = Ada\n[credential]\n\thelper = store\n")
    for mode in ("tmpwrite", "read"):
        inside = jail.run("sh", "-c", "git config user.name; git config credential.helper", options=["--quiet", "--home", mode])
        assert (inside.code, inside.out) == (1, "Ada\n")


def test_settings_cannot_be_written_and_state_cannot_be_seen(jail: Jail) -> None:
    jail.configure("")
    for mode in ("tmpwrite", "write"):
        script = "echo x > ~/.config/agent-sandbox/config.toml; ls ~/.local/state/agent-sandbox"
        inside = jail.run("sh", "-c", script, options=["--quiet", "--home", mode])
        assert inside.code == 2
        assert (jail.user.home / ".config/agent-sandbox/config.toml").read_text() == ""


def test_a_copy_of_ones_own_cannot_be_written_in_a_writable_home(jail: Jail) -> None:
    need_root()
    copy = jail.user.home / "tools"
    copy.mkdir()
    fill_copy(copy)
    subprocess.run(["chown", "-R", f"{jail.user.uid}:{jail.user.gid}", copy], check=True)
    own = Jail(copy=copy, user=jail.user, project=jail.project)
    spoil = f"echo '#' >> {own.program}; echo '#' >> {copy}/lib/agent_sandbox/__init__.py; echo x > ~/left; echo ran"
    before = own.program.read_text()
    inside = own.run("sh", "-c", spoil, options=["--quiet", "--home", "write"])
    assert (inside.out, inside.err.count("Read-only file system")) == ("ran\n", 2)
    assert (jail.user.home / "left").exists()
    assert own.program.read_text() == before
    assert own.outside("sh", "-c", spoil).err == ""
    assert own.program.read_text() != before


def test_a_jail_in_a_jail_is_refused_in_words(jail: Jail) -> None:
    inside = jail.run("agent-sandbox", "true")
    assert (inside.code, inside.out) == (125, "")
    assert "already inside a jail" in inside.err
