"""A host that wants a credential, a jail whose proxy has it, and a CA of the site's that vouches for the host.

The host is a TLS server on this machine's loopback that an admin has opened.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machines import authority, upstream
from tests.machines.jail import Jail, Result
from tests.machines.needs import need, need_root
from tests.machines.upstream import Host

BACKENDS = pytest.mark.parametrize("backend", ("bwrap", "firejail", "landlock"), indirect=True)
SITE = authority.make("the site's CA")
SECRET = f"sk-inject-{secrets.token_hex(16)}"
VARIABLES = 'base_url_variable = "SITE_BASE_URL"\nplaceholder_variable = "SITE_API_KEY"\n'
ENTRY = '[[network.inject]]\nname = "site"\nhost = "localhost:{port}"\nheader = "x-api-key: {{secret}}"\n' + VARIABLES
FROM_ENV = 'env = "SITE_KEY"\n'


@dataclass(frozen=True, slots=True)
class World:
    jail: Jail
    host: Host
    other: Host
    ca: Path

    @property
    def admin(self) -> dict[str, str]:
        opened = [f"127.0.0.1:{self.host.port}", f"127.0.0.1:{self.other.port}"]
        return {"config.toml": f'[network]\nmode = "proxied"\nfloor_open = {json.dumps(opened)}\nca_bundle = ["{self.ca}"]\n'}

    def configure(self, source: str = FROM_ENV, more: str = "") -> None:
        self.jail.configure(ENTRY.format(port=self.host.port) + source + more)

    def run(self, *command: str | Path, env: dict[str, str] | None = None, **more: object) -> Result:
        return self.jail.run(*command, env={"SITE_KEY": SECRET} if env is None else env, admin=self.admin, **more)  # type: ignore[arg-type]

    def ask(self, *words: str) -> Result:
        return self.jail.ask(*words, env={"SITE_KEY": SECRET}, admin=self.admin)

    @contextmanager
    def session(self, script: str) -> Iterator[subprocess.Popen[bytes]]:
        """One that runs until the block ends: its last command waits for a line."""
        with self.jail.argv("--quiet", "--", "bash", "-c", f"{script}; read", admin=self.admin) as argv:
            environment = {**self.jail.user.environment, "SITE_KEY": SECRET}
            popen = subprocess.Popen(argv, cwd=self.jail.project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                yield popen
            finally:
                popen.communicate(b"\n", timeout=20)

    def log(self) -> str:
        files = (self.jail.user.home / ".local" / "state" / "agent-sandbox" / "audit").glob("*.jsonl")
        return "".join(file.read_text() for file in files)


@pytest.fixture(name="world")
def make_world(jail: Jail, tmp_path: Path) -> Iterator[World]:
    need_root()
    need("curl")
    authority.need_parser()
    ca = jail.write(jail.user.home / ".config" / "agent-sandbox" / "ca.pem", SITE.pem)
    pairs = [authority.make("localhost", SITE, ca=False) for _ in range(2)]
    with upstream.wanting(tmp_path, pairs[0]) as host, upstream.wanting(tmp_path, pairs[1]) as other:
        yield World(jail, host, other, ca)
