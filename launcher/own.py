"""The jail's own place, with the summary and our tools, as a process finds it that may be inside one."""

from __future__ import annotations

import os

USUAL = "/run/agent-sandbox"  # where it can be mounted
VARIABLE = "AGENT_SANDBOX_OWN"  # says where it is else; who changes it changes only what they are told
SUMMARY = "summary.json"
BUNDLE = "ca-bundle.pem"  # where network.ca_bundle is set
PORT = 3128  # of the proxy, where the jail has a network of its own
PORT_TO_COME = "@PORT@"  # in variables, where the port is known only when the jail is built


def summary_path() -> str:
    """"" = not inside a jail."""
    places = (USUAL, os.environ.get(VARIABLE, USUAL))
    return next((path for place in places if os.path.exists(path := f"{place}/{SUMMARY}")), "")
