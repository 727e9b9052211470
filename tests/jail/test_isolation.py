"""Network, sockets, processes, devices and names of a jail, each beside a control outside."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from tests.jail.services import listener
from tests.machines.jail import Jail

CONNECT = """
import socket, sys
if sys.argv[1] == "tcp":
    family, address = socket.AF_INET, ("127.0.0.1", int(sys.argv[2]))
else:
    family, address = socket.AF_UNIX, sys.argv[2].replace("@", "\\0")
try:
    with socket.socket(family) as s:
        s.settimeout(5); s.connect(address); print(s.recv(9).decode())
except OSError as error:
    print(error.strerror)
"""


def connect(run: object, kind: str, address: str, **more: object) -> str:
    result = run("/usr/bin/python3", "-I", "-c", CONNECT, kind, address, **more)  # type: ignore[operator]
    assert result.code == 0, result.err
    return str(result.out.strip())


def test_an_isolated_jail_reaches_no_port_and_an_open_one_does(jail: Jail) -> None:
    with listener(socket.AF_INET, ("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert connect(jail.outside, "tcp", port) == "hello"
        assert connect(jail.run, "tcp", port, options=["--network", "open", "--quiet"]) == "hello"
        assert connect(jail.run, "tcp", port, options=["--network", "isolated", "--quiet"]) == "Connection refused"


def test_an_abstract_socket_is_out_of_reach_in_both_modes(jail: Jail) -> None:
    name = f"agent-sandbox-test-{os.getpid()}"
    with listener(socket.AF_UNIX, f"\0{name}"):
        assert connect(jail.outside, "unix", f"@{name}") == "hello"
        assert connect(jail.run, "unix", f"@{name}", options=["--network", "open", "--quiet"]) == "Operation not permitted"
        assert connect(jail.run, "unix", f"@{name}", options=["--network", "isolated", "--quiet"]) == "Connection refused"


def test_a_socket_in_run_or_tmp_is_not_there(jail: Jail) -> None:
    for folder in ("/tmp", "/var/tmp"):
        path = f"{folder}/agent-sandbox-test-{os.getpid()}.sock"
        with listener(socket.AF_UNIX, path):
            assert connect(jail.outside, "unix", path) == "hello"
            assert connect(jail.run, "unix", path, options=["--network", "open", "--quiet"]) == "No such file or directory"


def test_only_the_jails_processes_are_there(jail: Jail) -> None:
    assert int(jail.outside("sh", "-c", "ls -d /proc/[0-9]* | wc -l").out) > 10
    assert int(jail.run("sh", "-c", "ls -d /proc/[0-9]* | wc -l").out) < 8


def test_no_disk_no_kernel_memory_and_no_host_terminal(jail: Jail) -> None:
    inside = jail.run("sh", "-c", "ls /dev; ls /dev/pts")
    names = set(inside.out.split())
    assert names >= {"null", "zero", "urandom", "tty", "shm", "ptmx"}
    assert not names & {"mem", "kmem", "kmsg", "fuse", "net", "kvm", "vsock", "loop0", "sda", "vda"}


def test_tmp_is_private_and_can_be_shared(jail: Jail) -> None:
    left = Path(f"/tmp/agent-sandbox-test-{os.getpid()}")
    try:
        left.write_text("outside\n")
        assert jail.run("cat", left).code == 1
        jail.configure("[filesystem]\nprivate_tmp = false\n")
        assert jail.run("cat", left).out == "outside\n"
        refused = jail.run("cat", left, admin={"config.toml": "[filesystem]\nprivate_tmp = true\n"})
        assert refused.code == 1
        assert "filesystem.private_tmp" in refused.err
    finally:
        left.unlink()


def test_a_fallback_to_another_network_mode_is_said_and_can_be_refused(jail: Jail) -> None:
    assert "network proxied (filtered is not available" in jail.run("true", options=[]).err
    jail.configure("[network]\nfallback = 'refuse'\n")
    refused = jail.run("true")
    assert refused.code == 125
    assert "network.fallback is refuse" in refused.err
    jail.configure("[network]\nfallback = 'weaker'\n")
    clamped = jail.run("true", options=[])
    assert clamped.code == 0
    assert "network proxied" in clamped.err


def test_a_setting_whose_part_is_missing_stops_the_launch(jail: Jail) -> None:
    jail.configure("[modules]\nload = ['gcc']\n")
    refused = jail.run("true")
    assert (refused.code, "modules.load is set" in refused.err) == (125, True)


def test_an_open_network_does_not_pass_over_an_admins_lists(jail: Jail) -> None:
    for text in ("block = ['example.org']", "default = 'deny'", "max_bytes = '1G'"):
        admin = {"config.toml": f"[network]\n{text}\n"}
        refused = jail.run("true", options=["--network", "open"], admin=admin)
        assert (refused.code, "network open would pass over network." in refused.err) == (125, True)
        assert jail.run("true", options=["--network", "isolated"], admin=admin).code == 0
        assert jail.run("true", options=["--quiet"], admin={"config.toml": f"[network]\nmode = 'open'\n{text}\n"}).code == 0  # the admin's own will


def test_ones_own_lists_are_said_to_hold_for_nothing_in_an_open_network(jail: Jail) -> None:
    jail.configure("[network]\nblock = ['example.org']\n")
    done = jail.run("true", options=["--quiet", "--network", "open"])
    assert (done.code, done.err) == (0, "agent-sandbox: network open: network.block is not enforced\n")
    assert jail.run("true", options=["--quiet", "--network", "proxied"]).err == ""
