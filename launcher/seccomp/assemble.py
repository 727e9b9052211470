"""A table of rules becomes a seccomp program, assembled by hand. Pure: the numbers of the calls come in.

`compile` has libseccomp write the filters that are known ahead; this is for a table that depends on what a launch finds. It costs
less than reading a file: a tree over the numbers leads to each call that has a rule, and what has none is allowed without a look
at its arguments – only then does the kernel remember the answer, and asks the program never again (Linux 5.11).
"""

from __future__ import annotations

import errno

from agent_sandbox.launcher.seccomp.extra import ALLOW, AT_LEAST, EQUAL, ERRNO, LOAD, RETURN, instruction, own_calls_only
from agent_sandbox.launcher.seccomp.filters import INSTRUCTION
from agent_sandbox.launcher.seccomp.rules import LOW_HALF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_sandbox.launcher.seccomp.rules import Match, Rule

ASK = "ask"  # instead of an error's name: the supervisor answers
PRETEND = "pretend"  # likewise: nothing is done, and the call succeeds
USER_NOTIF = 0x7FC0_0000  # SECCOMP_RET_USER_NOTIF
JUMP, AND = 0x05, 0x54  # more BPF operations
ARGUMENTS_AT, ARGUMENT = 16, 8  # of struct seccomp_data; the lower half comes first on both machines


def assemble(rules: Iterable[Rule], machine: str, numbers: Mapping[str, int]) -> bytes:
    """Of several rules for a call the first that holds decides. Foreign architectures and x32 are refused."""
    leaves: dict[int, bytes] = {}
    for rule in rules:
        for number in [numbers[call] for call in rule.calls if call in numbers]:
            leaves[number] = leaves.get(number, b"") + _judge(rule)
    return own_calls_only(machine) + _tree(sorted(leaves.items()))


def _tree(leaves: list[tuple[int, bytes]]) -> bytes:
    """With the number loaded: halve the calls until one is left. The long way round a half is a jump without the limit of 255."""
    if len(leaves) < 2:
        return _leaf(*leaves[0]) if leaves else instruction(RETURN, ALLOW)
    middle = len(leaves) // 2
    below, above = _tree(leaves[:middle]), _tree(leaves[middle:])
    fork = instruction(AT_LEAST, leaves[middle][0], otherwise=1) + instruction(JUMP, _length(below))
    return fork + below + above


def _leaf(number: int, judgement: bytes) -> bytes:
    allow = instruction(RETURN, ALLOW)
    return instruction(EQUAL, number, otherwise=_length(judgement)) + judgement + allow


def _judge(rule: Rule) -> bytes:
    """The rule's answer where all of its matches hold; else on to whatever comes after."""
    code = instruction(RETURN, answer_of(rule.error))
    for match in reversed(rule.matches):
        code = _compare(match, miss=_length(code)) + code
    return code


def _compare(match: Match, miss: int) -> bytes:
    """Skip `miss` more instructions where the match does not hold."""
    code = instruction(LOAD, ARGUMENTS_AT + ARGUMENT * match.position)
    if match.mask != LOW_HALF:
        code += instruction(AND, match.mask)
    for left, value in reversed(tuple(enumerate(reversed(match.values)))):  # `left`: how many comparisons are still to come
        hit, none = (left, miss) if match.among else (left + miss, 0)
        code += instruction(EQUAL, value, then=hit, otherwise=0 if left else none)
    return code


def answer_of(error: str) -> int:
    """What the program returns: SECCOMP_RET_…"""
    return {ASK: USER_NOTIF, PRETEND: ERRNO}.get(error) or ERRNO | int(getattr(errno, error))


def _length(code: bytes) -> int:
    return len(code) // INSTRUCTION
