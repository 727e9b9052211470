"""The table of rules becomes the files in `filters/`: run ahead of any launch, where libseccomp is.

    python -m agent_sandbox.launcher.seccomp.compile

A filter begins with a few instructions of our own – foreign calls, and calls too new for libseccomp to know – and
goes on with libseccomp's program for the rest of the table. Jumps are relative: two programs in a row are one.
"""

from __future__ import annotations

import errno
import itertools
import tempfile
from pathlib import Path

import pyseccomp  # type: ignore[import-untyped]

from agent_sandbox.launcher.seccomp import filters, numbers
from agent_sandbox.launcher.seccomp.extra import own_calls_only, refuse
from agent_sandbox.launcher.seccomp.rules import LOW_HALF, MODES, Match, Rule, rules_for

# Calls that libseccomp 2.5.4 has no name for. New calls have one number on all machines.
NEWER = {
    "statmount": 457,
    "listmount": 458,
    "lsm_get_self_attr": 459,
    "lsm_set_self_attr": 460,
    "lsm_list_modules": 461,
    "mseal": 462,
    "setxattrat": 463,
    "getxattrat": 464,
    "listxattrat": 465,
    "removexattrat": 466,
    "open_tree_attr": 467,
    "file_getattr": 468,
    "file_setattr": 469,
    "listns": 470,
    "rseq_slice_yield": 471,
}
NEWER_ON = {"x86_64": {"uretprobe": 335, "uprobe": 336}, "aarch64": {}}
NUMBERS_END = 1024  # well above the highest number in use


def main() -> None:
    for machine in filters.ARCHITECTURES:
        Path(numbers.path_of(machine)).write_text(list_names(machine), encoding="ascii")
        for mode, nested in itertools.product(MODES, (False, True)):
            program = compile_filter(mode, machine, nested=nested)
            Path(filters.path_of(mode, machine, nested=nested)).write_bytes(program)


def compile_filter(mode: str, machine: str, *, nested: bool) -> bytes:
    rules = rules_for(mode, nested=nested)
    newer = {call for rule in rules for call in rule.calls if call in NEWER}
    if any(rule.matches or rule.error != "EPERM" for rule in rules if newer.intersection(rule.calls)):
        raise NotImplementedError("a call without a name in libseccomp can only be refused whole, with EPERM")
    own = own_calls_only(machine) + refuse(NEWER[call] for call in newer)
    return own + _compile_named(rules, filters.architecture_of(machine))


def _compile_named(rules: tuple[Rule, ...], architecture: int) -> bytes:
    program = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    program.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.ERRNO(errno.ENOSYS))
    if architecture != pyseccomp.system_arch():
        program.add_arch(architecture)
        program.remove_arch(pyseccomp.system_arch())
    for rule in rules:
        action = pyseccomp.ERRNO(getattr(errno, rule.error))
        for call in rule.calls:
            if _exists(call, architecture):
                for comparisons in itertools.product(*map(compare, rule.matches)):
                    program.add_rule(action, call, *comparisons)
    with tempfile.TemporaryFile() as file:
        program.export_bpf(file)
        file.seek(0)
        return file.read()


def _exists(call: str, architecture: int) -> bool:
    """Whether libseccomp is to write the rule: -1 is a name it does not know, less is a call of other machines."""
    if call in NEWER:
        return False
    number: int = pyseccomp.resolve_syscall(architecture, call)
    if number == -1:
        raise ValueError(f"libseccomp knows no system call {call}: give its number in NEWER")
    return number >= 0


def compare(match: Match) -> list[object]:
    """Comparisons of which at least one is true where the match holds."""
    wanted = [(match.mask, value) for value in match.values] if match.among else _all_but(match)
    return [pyseccomp.Arg(match.position, pyseccomp.MASKED_EQ, mask, value) for mask, value in wanted]


def _all_but(match: Match) -> list[tuple[int, int]]:
    """Masked values that cover every number but the match's own.

    libseccomp has no "masked and unequal". But a number that is none of ours leaves the one it shares most leading
    bits with at some bit; so: each of ours down to each bit, that bit turned, unless another of ours begins so.
    """
    prefixes = set()
    for bit, value in itertools.product(range(32), match.values):
        mask = match.mask & (LOW_HALF << bit)
        turned = (value ^ 1 << bit) & mask
        if match.mask >> bit & 1 and all(other & mask != turned for other in match.values):
            prefixes.add((mask, turned))
    return sorted(prefixes)


def list_names(machine: str) -> str:
    """Lines of a name and its number, sorted by name."""
    known = {**NEWER, **NEWER_ON[machine]}
    for number in range(NUMBERS_END):
        try:
            known[pyseccomp.resolve_syscall(filters.architecture_of(machine), number).decode()] = number
        except ValueError:
            continue  # a number without a call
    return "".join(f"{name} {number}\n" for name, number in sorted(known.items()))


if __name__ == "__main__":
    main()
