"""Stub → FIFO → validate → real scheduler → jailed job: the side that guards the scheduler."""
