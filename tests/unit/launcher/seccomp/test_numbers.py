"""Names of system calls become numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.seccomp import numbers
from agent_sandbox.launcher.seccomp.numbers import number_of, numbers_of


def test_a_name_has_its_machines_number() -> None:
    assert [number_of("ptrace", machine) for machine in ("x86_64", "aarch64")] == [101, 117]


def test_a_call_newer_than_libseccomp_has_a_number() -> None:
    assert number_of("open_tree_attr", "aarch64") == 467


def test_a_call_that_only_another_machine_has_is_no_mistake() -> None:
    assert number_of("iopl", "aarch64") is None
    assert numbers_of(("iopl", "bpf", "open"), "aarch64") == (280,)


def test_the_first_number_is_a_number() -> None:
    assert number_of("read", "x86_64") == 0


def test_a_misspelt_name_gets_the_nearest_right_one() -> None:
    with pytest.raises(UserError) as caught:
        numbers_of(("read", "ptrcae"), "x86_64")
    assert (caught.value.problem, caught.value.hint) == ("there is no system call 'ptrcae'", "did you mean 'ptrace'?")


def test_a_name_like_no_other_gets_no_guess() -> None:
    with pytest.raises(UserError) as caught:
        number_of("\n§", "x86_64")
    assert caught.value.hint == ""


def test_a_machine_without_filters_is_named() -> None:
    with pytest.raises(UserError, match="riscv64"):
        number_of("read", "riscv64")


@pytest.mark.parametrize("content", [None, b"read zero\n", b"read\n", b"\xff 1\n"])
def test_a_missing_or_damaged_list_is_named(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "FOLDER", str(tmp_path))
    if content is not None:
        (tmp_path / "syscalls.x86_64.txt").write_bytes(content)
    with pytest.raises(UserError, match=r"syscalls\.x86_64\.txt: the list of system calls cannot be used"):
        number_of("read", "x86_64")
