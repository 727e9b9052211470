"""The exit code is the command's own; ours are told apart from it."""

from __future__ import annotations

import pytest

from tests.machines.jail import Jail


@pytest.mark.parametrize("code", [0, 1, 3, 42, 124, 125, 126, 127, 130, 255])
def test_the_commands_own_code_comes_out(jail: Jail, code: int) -> None:
    done = jail.run("sh", "-c", f"exit {code}")
    assert (done.code, done.err) == (code, "")


def test_a_missing_command_is_127(jail: Jail) -> None:
    done = jail.run("no-such-command")
    assert (done.code, done.err) == (127, "agent-sandbox: no-such-command: command not found\n")
    near = jail.run("docter")
    assert (near.code, near.err) == (127, "agent-sandbox: docter: command not found\n  did you mean `agent-sandbox doctor`?\n")


def test_a_missing_path_is_127(jail: Jail) -> None:
    assert jail.run("./no-such-file").code == 127
    assert jail.run("/no/such/file").code == 127


def test_a_file_that_cannot_be_run_is_126(jail: Jail) -> None:
    jail.write(jail.project / "plain", "echo hello\n")
    done = jail.run("./plain")
    assert (done.code, done.err) == (126, "agent-sandbox: ./plain: cannot be run: not an executable file\n")


def test_a_directory_is_126(jail: Jail) -> None:
    assert jail.run("/usr").code == 126


def test_a_script_whose_interpreter_is_missing_fails_as_in_a_shell(jail: Jail) -> None:
    jail.write(jail.project / "script", "#!/no/such/interpreter\n", 0o755)
    assert jail.run("./script").code in (126, 127)


def test_a_script_without_an_interpreter_line_is_run_by_sh(jail: Jail) -> None:
    jail.write(jail.project / "script", "echo from $1; exit 5\n", 0o755)
    jail.write(jail.project / "bin" / "a=b", "echo from $1; exit 6\n", 0o755)
    done = jail.run("./script", "here")
    assert (done.code, done.out) == (5, "from here\n")
    done = jail.run("bin/a=b", "there")
    assert (done.code, done.out) == (6, "from there\n")


def test_a_broken_jail_is_125(jail: Jail) -> None:
    done = jail.run("true", options=["--quiet", "--project-dir", "/no/such/project"])
    assert done.code == 125


class TestSearch:
    """Along PATH as a shell searches it."""

    def run(self, jail: Jail, path: str, name: str = "tool") -> tuple[int, str]:
        done = jail.run(name, env={"PATH": path})
        return done.code, done.out

    def tool(self, jail: Jail, place: str, text: str, mode: int = 0o755, name: str = "tool") -> None:
        jail.write(jail.project / place / name, f"#!/bin/sh\necho {text}\n", mode)

    def test_what_cannot_be_run_is_passed_over(self, jail: Jail) -> None:
        self.tool(jail, "one", "first", 0o644)
        self.tool(jail, "two", "second")
        assert self.run(jail, f"{jail.project}/one:{jail.project}/two") == (0, "second\n")

    def test_only_what_cannot_be_run_is_126(self, jail: Jail) -> None:
        self.tool(jail, "one", "first", 0o644)
        assert self.run(jail, f"{jail.project}/one:/usr/bin") == (126, "")
        assert jail.outside("env", f"PATH={jail.project}/one:/usr/bin", "bash", "-c", "tool").code == 126

    def test_a_directory_of_that_name_is_passed_over(self, jail: Jail) -> None:
        self.tool(jail, "one/tool", "below")
        self.tool(jail, "two", "second")
        assert self.run(jail, f"{jail.project}/one:{jail.project}/two") == (0, "second\n")
        assert self.run(jail, f"{jail.project}/one:/usr/bin") == (127, "")

    def test_an_empty_and_a_relative_entry_are_the_current_directory(self, jail: Jail) -> None:
        self.tool(jail, ".", "here")
        self.tool(jail, "sub", "below", name="other")
        assert self.run(jail, ":/usr/bin") == (0, "here\n")
        assert self.run(jail, "/usr/bin:sub", "other") == (0, "below\n")

    def test_links_in_circles_are_passed_over(self, jail: Jail) -> None:
        (jail.project / "one").mkdir()
        (jail.project / "one" / "tool").symlink_to("tool")
        assert self.run(jail, f"{jail.project}/one:/usr/bin") == (127, "")

    def test_a_name_with_an_equals_sign_is_a_command(self, jail: Jail) -> None:
        self.tool(jail, "one", "equal", name="A=B")
        assert self.run(jail, f"{jail.project}/one:/usr/bin:/bin", "A=B") == (0, "equal\n")

    def test_a_dash_is_a_command(self, jail: Jail) -> None:
        self.tool(jail, "one", "dash", name="-")
        assert self.run(jail, f"{jail.project}/one:/usr/bin:/bin", "-") == (0, "dash\n")

    def test_a_command_that_only_lies_outside_is_127_and_says_where(self, jail: Jail) -> None:
        place = jail.user.home / "tools"
        jail.write(place / "tool", "#!/bin/sh\necho hidden\n", 0o755)
        done = jail.run("tool", env={"PATH": f"{place}:/usr/bin:/bin"})
        assert (done.code, done.out) == (127, "")
        assert f"--ro {place}" in done.err
        assert jail.outside(place / "tool").out == "hidden\n"
