"""Pieces of Python that run in the jail and, as the control, outside it."""

from __future__ import annotations

PYTHON = "/usr/bin/python3"


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (PYTHON, "-I", "-c", code, *arguments)


def call(number: int, *arguments: int) -> tuple[str, ...]:
    """One system call: prints its result and errno."""
    listed = ", ".join(f"ctypes.c_ulong({a & (1 << 64) - 1})" for a in arguments)
    return python(
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        f"libc.syscall.restype = ctypes.c_long; print(libc.syscall({number}, {listed}), ctypes.get_errno())"
    )
