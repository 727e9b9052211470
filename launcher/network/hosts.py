"""What a client asks for → host and port, by the reading that entries of the lists go through too. Pure.

The reading itself is the config's (config/hosts.py), as a config file must be refused by the same rules.
"""

from __future__ import annotations

from agent_sandbox.config.hosts import Address, Host, Name, parse_host, parse_port, parse_target

__all__ = ["Address", "Host", "Name", "parse_host", "parse_port", "parse_target", "target_text"]


def target_text(host: Host, port: int) -> str:
    return f"[{host.text}]:{port}" if ":" in host.text else f"{host.text}:{port}"
