"""Which variables enter a jail."""

from __future__ import annotations

from tests.machines.jail import Jail

SECRETS = {"GH_TOKEN": "s1", "AWS_REGION": "s2", "MYPASS": "s3", "my_password_file": "s4", "SSH_AUTH_SOCK": "s5", "WANDB_KEY": "s6"}


def variables(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)


def test_secrets_are_removed_and_the_rest_stays(jail: Jail) -> None:
    given = {**SECRETS, "SLURM_JOB_ID": "7", "CONDA_PREFIX": "/x", "LC_TIME": "C", "ODD NAME%%": "() { :; }"}
    assert variables(jail.outside("env", "-0", env=given).out).items() >= given.items()
    inside = variables(jail.run("env", "-0", env=given).out)
    assert not inside.keys() & SECRETS.keys()
    assert inside["SLURM_JOB_ID"] == "7"
    assert inside["ODD NAME%%"] == "() { :; }"
    assert inside["HOME"] == str(jail.user.home)


def test_a_variable_comes_in_by_name_and_not_against_the_admin(jail: Jail) -> None:
    assert variables(jail.run("env", "-0", env=SECRETS, options=["--env", "GH_TOKEN"]).out)["GH_TOKEN"] == "s1"
    admin = {"config.toml": "[environment]\nblock = ['GH_*']\n"}
    refused = jail.run("env", "-0", env=SECRETS, options=["--env", "GH_TOKEN"], admin=admin)
    assert "GH_TOKEN" not in variables(refused.out)
    assert "environment.allow" in refused.err
    widest = jail.run("env", "-0", env={**SECRETS, "PLAIN": "x"}, options=["--env", "*"], admin=admin)
    assert "GH_TOKEN" not in variables(widest.out)
    assert variables(widest.out)["PLAIN"] == "x"


def test_minimal_passes_only_what_is_listed(jail: Jail) -> None:
    jail.configure("[environment]\nmode = 'minimal'\n")
    inside = variables(jail.run("env", "-0", env={"LANG": "C.UTF-8", "ANYTHING": "x"}).out)
    assert "ANYTHING" not in inside
    assert inside["LANG"] == "C.UTF-8"


def test_a_password_in_a_value_is_taken_out(jail: Jail) -> None:
    options = ("--quiet", "--network", "isolated")
    inside = jail.run("printenv", "HTTPS_PROXY", env={"HTTPS_PROXY": "http://ada:secret@proxy:3128"}, options=options)
    assert inside.out == "http://proxy:3128\n"


def test_set_variables_are_there(jail: Jail) -> None:
    jail.configure("[environment.set]\nEDITOR = 'ed'\n")
    inside = variables(jail.run("env", "-0", options=["--quiet", "--set-env", "COLOUR=blue=green"]).out)
    assert (inside["EDITOR"], inside["COLOUR"]) == ("ed", "blue=green")


def test_an_exported_module_function_works_inside(jail: Jail) -> None:
    """What Lmod leaves in the environment of a login shell."""
    script = 'module() { echo "loaded $*"; }; export -f module; exec "$0" --quiet -- bash -c "module load gcc"'
    assert jail.outside("bash", "-c", script, jail.program).out == "loaded load gcc\n"


def test_the_start_line_counts_and_does_not_name(jail: Jail) -> None:
    started = jail.run("true", env=SECRETS, options=[])
    assert f"{len(SECRETS)} variables removed" in started.err
    assert not any(name in started.err for name in SECRETS)
