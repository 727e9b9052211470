"""Who exists inside a jail."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from agent_sandbox.launcher.policy import Host
from agent_sandbox.launcher.probe import Disk
from agent_sandbox.launcher.resolve.accounts import group_file, passwd_file
from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.needs import need_root


def test_other_people_are_not_in_passwd_and_the_system_is(jail: Jail) -> None:
    need_root()
    with users.account() as other:
        assert jail.outside("getent", "passwd", other.name).code == 0
        inside = jail.run("sh", "-c", f"id -un; getent passwd root >/dev/null && getent passwd {other.name} {other.uid}")
    assert (inside.code, inside.out) == (2, f"{jail.user.name}\n")


def test_names_of_own_groups_are_known_inside(jail: Jail) -> None:
    name = jail.outside("id", "-gn").out
    assert jail.run("id", "-gn").out == name


class OnlyLdap(Disk):
    """A host whose files know nobody but root."""

    def read(self, path: str, most: int = 1 << 20) -> bytes | None:
        files = {"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nada:x:1500:1500::/home/ada:/bin/sh\n", "/etc/group": "root:x:0:ada\n"}
        return files[path].encode()


def test_an_account_that_only_ldap_knows_is_written_out() -> None:
    person = pwd.getpwuid(os.getuid())
    host = Host(  # noqa: S604
        user="eve", uid=50001, gid=60001, home="/ldap/eve", shell="/bin/zsh", groups=((60001, "physics"), (60002, "lab x")), name="n",
        machine="x86_64", landlock=7, bwrap="", install="", entry="", package="", python="", environment={}, cwd=person.pw_dir,
    )  # fmt: skip
    assert passwd_file(host, OnlyLdap()) == b"root:x:0:0:root:/root:/bin/sh\neve:x:50001:60001::/ldap/eve:/bin/zsh\n"
    assert group_file(host, OnlyLdap()) == b"root:x:0:\nphysics:x:60001:eve\nlab x:x:60002:eve\n"


def test_the_files_are_written_below_etc(jail: Jail) -> None:
    inside = jail.run("sh", "-c", "wc -l < /etc/passwd; echo x >> /etc/passwd")
    assert int(inside.out) <= len(Path("/etc/passwd").read_text().splitlines())
    assert inside.code == 2
