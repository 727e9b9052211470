"""A Policy becomes a Plan: how each mechanism makes it true. Pure."""
