"""What `explain syscall NAME` is told."""

from __future__ import annotations

from agent_sandbox.launcher.seccomp.verdict import Refusal, Verdict, verdict


def test_an_ordinary_call_is_allowed() -> None:
    assert verdict("read", "strict", nested=False) == Verdict(action="allowed", refusals=())


def test_a_refused_call_has_its_error_and_reason() -> None:
    why = "work queued on a ring passes no system-call filter; programs fall back to ordinary calls"
    assert verdict("io_uring_setup", "hpc", nested=False) == Verdict(
        action="refused", refusals=(Refusal(error="ENOSYS", when="", reason=why),)
    )


def test_a_call_that_depends_on_its_arguments_has_every_case() -> None:
    found = verdict("socket", "hpc", nested=False)
    assert found.action == "depends"
    assert [refusal.error for refusal in found.refusals] == ["EAFNOSUPPORT", "EPROTONOSUPPORT", "EPERM"]
    assert all("family is" in refusal.when for refusal in found.refusals)


def test_the_mode_decides() -> None:
    assert [verdict("ptrace", mode, nested=False).action for mode in ("hpc", "strict")] == ["allowed", "refused"]


def test_nested_lifts_the_mount_family() -> None:
    assert [verdict("mount", "hpc", nested=nested).action for nested in (False, True)] == ["refused", "allowed"]
