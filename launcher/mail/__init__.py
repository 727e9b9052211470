"""Sending mail becomes a plain refusal that an agent can read."""
