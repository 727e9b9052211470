"""Approved requests to look → commands for the real Slurm that can only show what the scope holds. Pure, but for answer.py."""
