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
    """`server` is the proxy's process, `web` that of the server at the other end."""

    driver: subprocess.Popen[str]
    web: int
    server: Callable[[], int] | None = None
    others: list[subprocess.Popen[str]] = field(default_factory=list)

    def measure(self, line: str) -> tuple[float, float]:
        """Its answer, and the seconds of the processor that generator, proxy and server took for it together."""
        pids = [self.web, *generators(self.driver.pid), *([self.server()] if self.server else [])]
        before = [used(pid) for pid in pids]
        answer = self.ask(line)
        return answer, sum(used(pid) - then for pid, then in zip(pids, before, strict=True))

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
    ways = {"direct": Way(_start([program, "drive", port]), server.pid, others=[server]), "proxied": _in_jail(jail, program, port, server.pid)}
    if shutil.which("tinyproxy"):
        ways["tinyproxy"] = _through_tinyproxy(jail, program, port, server.pid)
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


def _in_jail(jail: Jail, program: Path, port: int, web: int) -> Way:
    """The server is on this machine's loopback, which only an admin can open."""
    admin = {"config.toml": f'[network]\nmode = "proxied"\nfloor_open = ["127.0.0.1:{port}"]\n'}
    holder = jail.argv("--quiet", "--", program, "drive", str(port), str(PROXY_PORT), admin=admin)
    argv = holder.__enter__()
    driver = _start(list(argv), cwd=jail.project, env=dict(jail.user.environment))
    way = Way(driver, web, lambda: find_proxy(driver.pid))
    way.ask("connect 1 1")
    holder.__exit__()
    return way


def _through_tinyproxy(jail: Jail, program: Path, port: int, web: int) -> Way:
    with socket.create_server(("127.0.0.1", 0)) as free:
        there = free.getsockname()[1]
    config = jail.project / "tinyproxy.conf"
    config.write_text(TINY.format(port=there))
    tiny = _start(["tinyproxy", "-d", "-c", config], stderr=subprocess.DEVNULL)
    _wait_for(there)
    return Way(_start([program, "drive", port, there]), web, lambda: tiny.pid, others=[tiny])


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


def generators(launcher: int) -> list[int]:
    """It, or what runs in the jail that it started."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _named(name, "traffic") and _comes_from(int(name), launcher)]


def _named(pid: str, name: str) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == name
    except OSError:
        return False


def used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
