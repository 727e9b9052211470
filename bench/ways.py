"""A generator of traffic straight to a server, from a jail through its proxy, and through tinyproxy where that is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.place import HERE
from tests.machines.jail import Jail

PROXY_PORT = 3128
TINY = "Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 2000\nLogLevel Critical\n"


@dataclass
class Way:
    """`server` is the proxy's process."""

    driver: subprocess.Popen[str]
    server: Callable[[], int] = lambda: 0
    others: list[subprocess.Popen[str]] = field(default_factory=list)

    def ask(self, line: str) -> float:
        assert self.driver.stdin and self.driver.stdout
        self.driver.stdin.write(line + "\n")
        self.driver.stdin.flush()
        answer = self.driver.stdout.readline()
        if not answer:
            raise RuntimeError(f"{line}: the generator ended")
        return float(answer)


def open_ways(jail: Jail) -> dict[str, Way]:
    program = compile_traffic(jail.project)
    server = _start([program, "serve"])
    assert server.stdout
    port = int(server.stdout.readline())
    ways = {"direct": Way(_start([program, "drive", port]), others=[server]), "proxied": _in_jail(jail, program, port)}
    if shutil.which("tinyproxy"):
        ways["tinyproxy"] = _through_tinyproxy(jail, program, port)
    else:
        print("tinyproxy is not installed (Debian's package tinyproxy-bin): no comparison with it", file=sys.stderr)
    return ways


def compile_traffic(where: Path) -> Path:
    program = where / "traffic"
    subprocess.run(["gcc", "-O2", "-static", "-o", program, HERE / "traffic.c"], check=True)
    program.chmod(0o755)
    return program


def _start(argv: list[object], **more: object) -> subprocess.Popen[str]:
    return subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload, no-any-return]


def _in_jail(jail: Jail, program: Path, port: int) -> Way:
    """The server is on this machine's loopback, which only an admin can open."""
    admin = {"config.toml": f'[network]\nmode = "proxied"\nfloor_open = ["127.0.0.1:{port}"]\n'}
    holder = jail.argv("--quiet", "--", program, "drive", str(port), str(PROXY_PORT), admin=admin)
    argv = holder.__enter__()
    driver = _start(list(argv), cwd=jail.project, env=dict(jail.user.environment))
    way = Way(driver, server=lambda: find_proxy(driver.pid))
    way.ask("connect 1 1")
    holder.__exit__()
    return way


def _through_tinyproxy(jail: Jail, program: Path, port: int) -> Way:
    with socket.create_server(("127.0.0.1", 0)) as free:
        there = free.getsockname()[1]
    config = jail.project / "tinyproxy.conf"
    config.write_text(TINY.format(port=there))
    tiny = _start(["tinyproxy", "-d", "-c", config], stderr=subprocess.DEVNULL)
    _wait_for(there)
    return Way(_start([program, "drive", port, there]), server=lambda: tiny.pid, others=[tiny])


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as sock:
            if not sock.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.05)
    raise RuntimeError("tinyproxy does not listen")


def find_proxy(launcher: int) -> int:
    """A launcher by its name, whose first descriptor after the standard ones is its listening socket."""
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and _is_proxy(name) and _comes_from(int(name), launcher):
                return int(name)
        except OSError:
            continue
    raise RuntimeError("the proxy is not there")


def _is_proxy(pid: str) -> bool:
    return b"/bin/agent-sandbox" in Path(f"/proc/{pid}/cmdline").read_bytes() and os.readlink(f"/proc/{pid}/fd/3").startswith("socket:")


def _comes_from(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid == ancestor


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def close(ways: dict[str, Way]) -> None:
    for way in ways.values():
        assert way.driver.stdin
        way.driver.stdin.close()
        way.driver.wait(20)
        for one in way.others:
            one.kill()
            one.wait()
