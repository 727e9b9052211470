"""The tables: every entry is whole, its examples hold, and no spelling has two meanings."""

from __future__ import annotations

import pytest

from agent_sandbox.chaperon.registry import COMMANDS, grammars, variables
from agent_sandbox.chaperon.registry.scontrol import UPDATES
from agent_sandbox.chaperon.words import ALLOW, FLAG, FORCE, IGNORE, REFUSE, VALUE, Option
from tests.unit.chaperon.asking import NEWEST, PROJECT, refusals, words

NAMES = (
    "sbatch srun salloc squeue scancel scontrol sacct sacctmgr sinfo sstat sprio sshare sdiag sreport strigger sattach sbcast scrontab scrun"
)
# What makes Slurm read, write, run or become something outside; whoever softens one of these answers to this list.
NEVER = {
    "sbatch": "bb bbf container container-id context export-file get-user-env gid uid nodefile propagate clusters cluster-constraint reboot x11",
    "srun": "bcast container epilog prolog task-epilog task-prolog multi-prog propagate uid gid x11 nodefile bbf no-allocate",
    "sacct": "file completion batch-script env-vars group allclusters clusters",
    "squeue": "iterate clusters federation", "sinfo": "iterate clusters federation", "scontrol": "uid clusters", "scancel": "interactive clusters",
}  # fmt: skip


def test_every_command_has_its_entry() -> None:
    assert sorted(COMMANDS) == sorted(NAMES.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_entries_are_whole(command: str) -> None:
    for option in COMMANDS[command].options:
        assert option.grammar in grammars.GRAMMARS
        assert (option.takes == FLAG) == (option.grammar == "flag"), option
        assert bool(option.choices) == (option.grammar in ("choice", "choices")), option
        assert bool(option.reason) == (option.verdict in (REFUSE, IGNORE, FORCE)), option
        assert bool(option.instead) == (option.verdict == REFUSE), option


@pytest.mark.parametrize("command", [*COMMANDS, "update"])
def test_examples_hold(command: str) -> None:
    for option in with_values(UPDATES if command == "update" else COMMANDS[command].options):
        accepted, refused = grammars.examples(option)
        assert accepted, option
        for value in accepted:
            grammars.read(option, value)
        for value in refused:
            with pytest.raises(ValueError, match=r"must|is longer|holds"):
                raise AssertionError(f"{option.name}={value!r} means {grammars.read(option, value)!r}")


def with_values(options: tuple[Option, ...]) -> list[Option]:
    return [option for option in options if option.takes != FLAG]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_spelling_has_two_meanings(name: str) -> None:
    options = COMMANDS[name].options
    for spellings in (
        [name for option in options for name in (option.name, *option.aliases)],
        [option.short for option in options if option.short],
        [variable for option in options for variable in option.variables],
    ):
        assert sorted(spellings) == sorted(set(spellings))


@pytest.mark.parametrize(("command", "names"), NEVER.items())
def test_what_reaches_outside_is_refused(command: str, names: str) -> None:
    verdicts = {option.name: option.verdict for option in COMMANDS[command].options}
    assert {name: verdicts[name] for name in names.split()} == dict.fromkeys(names.split(), REFUSE)


def test_files_of_a_job_never_reach_slurm_as_they_were_typed() -> None:
    said = ["--output=../x", "-e", "/etc/x", "-i/dev/stdin", "--open-mode=append", "--export=ALL,BASH_ENV=x", "--chdir=sub", "--wrap=true"]
    assert words("sbatch", *said) == []


@pytest.mark.parametrize("name", ["srun", "salloc", "sdiag", "sreport", "strigger", "sattach", "sbcast", "scrontab", "scrun"])
def test_refused_commands_say_what_to_do_instead(name: str) -> None:
    said = refusals(name, "--anything", "x")
    assert len(said) == 1
    assert said[0].startswith(f"{name} (command line): ")
    assert "; " in said[0]


def test_the_stub_knows_which_variables_to_send() -> None:
    sent = variables(COMMANDS["sbatch"])
    assert {"SBATCH_ACCOUNT", "SLURM_CLUSTERS", "SLURM_HOSTFILE", "SBATCH_WAIT4SWITCH", "SBATCH_IGNORE_PBS"} <= set(sent)
    assert not [name for name in sent if "*" in name or "SRUN" in name or "SALLOC" in name]


def test_updates_that_grow_a_job_or_move_its_files_are_refused() -> None:
    verdicts = {option.name: option.verdict for option in UPDATES}
    assert {name for name, verdict in verdicts.items() if verdict == REFUSE} >= {
        "EndTime", "NumNodes", "NumCPUs", "NumTasks", "StdOut", "StdErr", "StdIn", "WorkDir", "UserId", "Gres", "BurstBuffer", "AdminComment",
    }  # fmt: skip


@pytest.mark.parametrize("command", [name for name, command in COMMANDS.items() if not command.reason])
def test_accepted_examples_come_through_in_one_spelling(command: str) -> None:
    passed = [option for option in with_values(COMMANDS[command].options) if option.verdict == ALLOW and option.until >= NEWEST.version]
    assert command == "sacctmgr" or passed
    for option in passed:
        value = grammars.examples(option)[0][0]
        rest = {"scontrol": ["show", "config"], "sacctmgr": ["show", "qos"]}.get(command, [])
        rebuilt = words(command, f"--{option.name}={value}", *rest, rules=NEWEST)
        assert f"--{option.name}={value}" in rebuilt
        assert words(command, *rebuilt, rules=NEWEST) == rebuilt
        if option.takes == VALUE:
            assert words(command, f"--{option.name}", value, *rest, rules=NEWEST) == rebuilt
        if option.short:
            assert words(command, f"-{option.short}{value}", *rest, rules=NEWEST) == rebuilt


def test_the_project_is_where_a_job_may_start() -> None:
    for inside in (".", "sub", "../project/sub", f"{PROJECT}/a/../b", f"{PROJECT}/"):
        assert words("sbatch", f"--chdir={inside}", "--wrap=x") == []
    for outside in ("..", "../projects", "/", "/etc", f"{PROJECT}/../x", f"{PROJECT}2"):
        assert "must be a directory of the project" in refusals("sbatch", f"-D{outside}", "--wrap=x")[0]
