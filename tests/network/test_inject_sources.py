"""Where a credential may live outside, who may name it, and what stops a launch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.network.injecting import ENTRY, FROM_ENV, SECRET, VARIABLES, World, make_world  # noqa: F401

# Where it lives


def test_it_may_come_from_a_command(world: World) -> None:
    world.jail.write(world.jail.user.home / "keys" / "half", SECRET[:20], 0o600)
    script = 'printf "%s" "$1"; env | grep -c SITE_KEY >&2; cat "$HOME/keys/half" >/dev/null && printf "%s\\n" "$2"'
    world.configure(f'command = ["/bin/sh", "-c", {json.dumps(script)}, "sh", "{SECRET[:20]}", "{SECRET[20:]}"]\n')
    done = world.run("bash", "-c", "curl -sS $SITE_BASE_URL/command", env={})
    assert (done.code, done.out, done.err) == (0, "0 bytes came\n", "")
    assert world.host.seen("/command").values("x-api-key") == [SECRET]


@pytest.mark.parametrize("home", ["restricted", "tmpwrite", "read", "write"])
def test_it_may_lie_beside_the_settings_in_every_home(world: World, home: str) -> None:
    """The place that the docs name: never visible inside."""
    key = world.jail.write(world.jail.user.home / ".config" / "agent-sandbox" / "site.key", SECRET + "\n", 0o600)
    world.configure('file = "~/.config/agent-sandbox/site.key"\n')
    script = f"cat {key} 2>/dev/null || echo hidden; curl -sS $SITE_BASE_URL/file"
    done = world.run("bash", "-c", script, env={}, options=("--quiet", "--home", home))
    assert (done.code, done.out) == (0, "hidden\n0 bytes came\n"), done
    assert world.host.seen("/file").values("x-api-key") == [SECRET]


GONE = {
    FROM_ENV: "the variable SITE_KEY is not set where this was started",
    'file = "/nonexistent/key"\n': "/nonexistent/key cannot be read: No such file or directory",
    'command = ["/bin/sh", "-c", "echo oops; exit 3"]\n': "/bin/sh ended with status 3",
    'command = ["/nonexistent/get"]\n': "/nonexistent/get cannot be run: No such file or directory",
    'command = ["/usr/bin/yes"]\n': "/usr/bin/yes did not end within 20 s, or said too much",
}


@pytest.mark.parametrize("source", GONE, ids=lambda source: source.split()[-1][:20])
def test_one_that_is_not_there_is_named_and_stops_nothing_else(world: World, source: str) -> None:
    world.configure(source)
    done = world.run("bash", "-c", "curl -sS $SITE_BASE_URL/missing", env={})
    assert done.code == 0
    assert f"network.inject site: {GONE[source]}: requests to it will be refused" in done.err
    assert f"the credential site for localhost:{world.host.port} is not there: {GONE[source]}. Ask the user." in done.out
    assert world.host.requests == []
    assert GONE[source] in world.log()


CARELESS = {
    "is in {home}/keys/k, which others can read or change": ('file = "{home}/keys/k"\n', SECRET, 0o644),
    "is in {project}/k, which can be read inside": ('file = "{project}/k"\n', SECRET, 0o600),
    "comes from a command with {project}/k in it, which can be changed from inside": ('command = ["/bin/sh", "{project}/k"]\n', "echo x", 0o700),
    "must be 8 to 8192 printable ASCII characters on one line": ('file = "~/keys/k"\n', "two\nlines of it", 0o600),
}


@pytest.mark.parametrize("problem", CARELESS)
def test_one_that_is_kept_carelessly_stops_the_launch(world: World, problem: str) -> None:
    home, project = world.jail.user.home, world.jail.project
    source, content, mode = CARELESS[problem]
    path = project / "k" if "{project}" in source else home / "keys" / "k"
    world.jail.write(path, content, mode)
    world.configure(source.format(home=home, project=project))
    done = world.run("echo", "ran")
    assert (done.code, done.out) == (125, "")
    assert f"the credential site {problem.format(home=home, project=project)}" in done.err
    assert content not in done.err
    path.unlink()
    world.jail.write(home / "keys" / "good", SECRET, 0o600)
    world.configure(f'file = "{home}/keys/good"\n')
    assert world.run("echo", "ran").out == "ran\n"  # control


ACCEPTED = '[sandbox]\naccept_gaps = ["hidden", "project-protect", "self-protection", "fs-write", "pids", "ipc", "tmp", "users"]\n'
NOT_HELD = {  # what a mount would hide or hold below something writable, and Landlock cannot
    "which can be read inside": ('file = "{home}/.config/agent-sandbox/k"\n', "{home}/.config/agent-sandbox/k", ("--home", "write")),
    "which can be changed from inside": ('command = ["/bin/sh", "{project}/.vscode/k"]\n', "{project}/.vscode/k", ()),
}


@pytest.mark.parametrize("problem", NOT_HELD)
@pytest.mark.parametrize("backend", ("landlock", "bwrap"), indirect=True)
def test_what_the_backend_cannot_hold_is_no_place_for_it(world: World, backend: str, problem: str) -> None:
    """Though somebody has accepted that it cannot: it would be no secret, or the agent's own program would run outside."""
    home, project = world.jail.user.home, world.jail.project
    source, place, options = NOT_HELD[problem]
    path = world.jail.write(Path(place.format(home=home, project=project)), SECRET if "read" in problem else f"echo {SECRET}", 0o600)
    world.configure(source.format(home=home, project=project), ACCEPTED)
    world.jail.configure(f'[sandbox]\nbackend = "{backend}"\n', "conf.d/backend.toml")
    script, proxied = 'cat "$0" 2>/dev/null; echo x >>"$0"; echo ran', {"config.toml": '[network]\nmode = "proxied"\n'}
    done = world.jail.run("sh", "-c", script, path, options=("--quiet", *options), admin=proxied)
    if backend == "bwrap":  # control: there it is held
        assert done.code == 0 and done.out.endswith("ran\n") and path.read_text().count("x") == ("x" in SECRET)
        assert ("read" in problem) == (SECRET not in done.out)
    else:
        assert (done.code, done.out) == (125, "") and problem in done.err


@pytest.mark.parametrize(("backend", "code"), [("landlock", 125), ("bwrap", 0)], indirect=["backend"])
def test_nor_for_a_file_that_says_whom_to_trust(world: World, backend: str, code: int) -> None:
    """The CA's file lies beside the settings, and home can be written."""
    world.jail.configure(f'{ACCEPTED}backend = "{backend}"\n', "conf.d/backend.toml")
    done = world.jail.run("echo", "ran", options=("--quiet", "--home", "write"), admin=world.admin)
    assert done.code == code and ("it could choose for itself, and for later sessions, whom to trust" in done.err) == bool(code), done


def test_it_does_not_enter_by_another_way(world: World) -> None:
    world.configure()
    refused = world.run("echo", "ran", env={"SITE_KEY": SECRET, "COPIED": f"x={SECRET}"})
    assert (refused.code, refused.out) == (125, "")
    assert "the credential site is also in the variable COPIED" in refused.err
    refused = world.run("echo", SECRET)
    assert (refused.code, refused.out) == (125, "") and "is also in the command's arguments" in refused.err
    assert SECRET not in refused.err
    world.configure(more='[environment]\nallow = ["SITE_KEY"]\n')
    assert world.run("bash", "-c", "env | grep -c ^SITE_KEY=").out == "0\n"
    assert SECRET not in world.log()


SHOWN = (
    ("--dry-run", "true"), ("--dry-run", "--json", "true"), ("explain", "network.inject"), ("explain", "env", "SITE_KEY"), ("config", "show"),
    ("config", "show", "--json"), ("config", "show", "network.inject"),
)  # fmt: skip


def test_what_is_only_shown_reads_no_secret_and_runs_nothing(world: World) -> None:
    mark = world.jail.user.home / "ran"
    world.configure(f'command = ["/bin/sh", "-c", "touch {mark}; echo {SECRET}"]\n'.replace(SECRET, SECRET[:10]))
    for words in SHOWN:
        assert world.ask(*words).code == 0, words
        assert not mark.exists(), words
    world.configure()
    for words in SHOWN:
        done = world.ask(*words)
        assert done.code == 0 and SECRET not in done.out + done.err, words


def test_explain_says_which_variables_go_and_which_come(world: World) -> None:
    world.configure()
    for name, verdict in (("SITE_KEY", "removed"), ("SITE_BASE_URL", "set"), ("SITE_API_KEY", "set")):
        told = json.loads(world.ask("explain", "env", name, "--json").out)
        assert (told["verdict"], told["rule"].split()[0]) == (verdict, "network.inject"), told
        assert told["origin"].endswith("config.toml:2"), told
    (told,) = json.loads(world.ask("config", "show", "network.inject", "--json").out)["settings"]["network.inject"]["value"]
    assert told == {
        "name": "site", "host": f"localhost:{world.host.port}", "header": "x-api-key: {secret}", "env": "SITE_KEY",
        "base_url_variable": "SITE_BASE_URL", "placeholder_variable": "SITE_API_KEY",
    }  # fmt: skip


# Who may say so


def test_only_with_the_proxy_is_one_added(world: World) -> None:
    world.configure()
    opened = {"config.toml": world.admin["config.toml"].replace("proxied", "open")}
    done = world.jail.run("bash", "-c", "env | grep -c ^SITE_", env={"SITE_KEY": SECRET}, admin=opened)
    assert done.out == "0\n"
    assert "network open: network.inject adds no credential, since only the proxy could" in done.err
    done = world.run("bash", "-c", "env | grep -c ^SITE_", options=("--quiet", "--network", "isolated"))
    assert (done.out, done.err) == ("0\n", "")


def test_an_admins_entry_is_not_replaced_and_a_projects_file_adds_none(world: World) -> None:
    world.jail.configure(ENTRY.format(port=world.other.port) + FROM_ENV)
    theirs = ENTRY.format(port=world.other.port).replace('"site"', '"mine"').replace(VARIABLES, "")
    world.jail.write(world.jail.project / ".agent-sandbox.toml", theirs + FROM_ENV)
    admin = {"config.toml": world.admin["config.toml"] + ENTRY.format(port=world.host.port) + FROM_ENV}
    done = world.jail.run("bash", "-c", "curl -sS $SITE_BASE_URL/whose; curl -sS $http_proxy/mine/x", env={"SITE_KEY": SECRET}, admin=admin)
    assert "0 bytes came" in done.out and "base URLs here are /site (for localhost:" in done.out
    assert "network.inject: site is not allowed, left out: a higher rank sets it" in done.err
    assert "network.inject: mine is not allowed, left out: a project's own file may not set it" in done.err
    assert world.host.seen("/whose").values("x-api-key") == [SECRET]
    assert world.other.requests == []


def test_an_admins_block_of_a_variable_holds(world: World) -> None:
    world.configure()
    admin = {"config.toml": world.admin["config.toml"] + '[environment]\nblock = ["SITE_API_*"]\n'}
    done = world.jail.run("bash", "-c", "env | grep ^SITE_", env={"SITE_KEY": SECRET}, admin=admin)
    assert done.out == "SITE_BASE_URL=http://127.0.0.1:3128/site\n"
