"""A fabric's device is a way past every network namespace: it is there where the network is open, and where an admin says so.

The device is /dev/null by another name, in a /dev of the run's own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machines.jail import Jail, Result
from tests.machines.needs import need_root
from tests.machines.users import current_user, run_as

NODE = "/dev/infiniband/uverbs0"
WITH_IT = f"""
mount -t tmpfs -o mode=755 none /mnt && mkdir /mnt/pts /mnt/shm /mnt/infiniband || exit 99
for name in null zero full random urandom tty; do : >/mnt/$name && mount --bind /dev/$name /mnt/$name || exit 99; done
mount --bind /dev/pts /mnt/pts && mount -t tmpfs -o mode=1777 none /mnt/shm && ln -s pts/ptmx /mnt/ptmx && ln -s /proc/self/fd /mnt/fd || exit 99
mknod -m 666 /mnt/infiniband/uverbs0 c 1 3 && mount --rbind /mnt /dev && test -c {NODE} || exit 99
exec "$@"
"""
LOOK = f"test -r {NODE} && cat {NODE} && echo there || echo not there"


def run(jail: Jail, *options: str, admin: str = "") -> Result:
    need_root()
    with jail.argv("--quiet", *options, "--", "sh", "-c", LOOK, admin={"config.toml": admin}) as argv:
        words = ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", WITH_IT, "sh", *argv]
        done = run_as(current_user(), words, env=jail.user.environment, cwd=jail.project)
    return Result(code=done.returncode, out=done.stdout, err=done.stderr)


@pytest.mark.parametrize("backend", ("bwrap", "landlock"), indirect=True)  # firejail's /dev has none
def test_the_device_of_a_fabric_is_there_with_an_open_network_alone(jail: Jail) -> None:
    assert not Path(NODE).exists() or Path("/sys/class/infiniband").exists()  # nothing of this is seen outside
    assert run(jail, "--network", "open").out == "there\n"  # control
    for mode in ("isolated", "proxied"):
        assert (run(jail, "--network", mode).out) == "not there\n", mode
    jail.configure('[filesystem]\ndevices = ["/dev/infiniband"]\n')
    assert run(jail, "--network", "proxied").out == "not there\n"  # a person's list lifts nothing
    done = run(jail, "--network", "proxied", admin='[filesystem]\ndevices = ["/dev/infiniband"]\n')
    assert done.out == "there\n"
    assert f"weak point in network: {NODE} is there by filesystem.devices" in done.err
