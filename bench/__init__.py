"""Measurements beside what a user would take instead: medians and ratios of one run, never a timed test."""
