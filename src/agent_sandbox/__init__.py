"""agent-sandbox: run AI coding agents on shared machines inside a jail that the kernel enforces."""

__version__ = "0.1.0"
