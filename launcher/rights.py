"""Landlock's rights, by the version (ABI) that brought them, and what each access comes to. Pure."""

from __future__ import annotations

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV, RESOLVE_UNIX = 1 << 13, 1 << 14, 1 << 15, 1 << 16
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2

FIRST = (1 << 13) - 1  # what the first version knew
ADDED = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEV, 9: RESOLVE_UNIX}
NETWORK_ABI, SCOPES_ABI, LOG_ABI, TRUNCATE_ABI, REFER_ABI, RESOLVE_UNIX_ABI = 4, 6, 7, 3, 2, 9

READ = EXECUTE | READ_FILE | READ_DIR
# No device nodes: nobody inside could make them, and nobody should.
WRITE = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEV
OF_FILES = EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX  # the rest is about directories


def file_rights(abi: int) -> int:
    """All that the running kernel can refuse; what a newer one could do more is left alone."""
    return FIRST | sum(bits for since, bits in ADDED.items() if abi >= since)


def network_rights(abi: int) -> int:
    return BIND_TCP | CONNECT_TCP if abi >= NETWORK_ABI else 0


def scopes(abi: int) -> int:
    return SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if abi >= SCOPES_ABI else 0
