"""Nobody inside has a right over the jail's network, which was made before the jail: also where user namespaces may be made inside."""

from __future__ import annotations

import pytest

from tests.machines.internet.machine import Internet
from tests.machines.jail import Jail
from tests.machines.needs import need

# A device more, an address more, another network's device put into this one, another process's network.
ACTS = ("ip link set lo down", "ip addr add 10.9.9.9/32 dev lo", "ip link add v0 type veth peer name v1", "ip route add default dev lo")
TRIED = "; ".join(f"{act} >/dev/null 2>&1 && echo done || echo refused" for act in ACTS)
AS_ROOT_OF_ITS_OWN = f"unshare -Ur sh -c 'grep -c CapEff:.*f /proc/self/status; {TRIED}'"
ACROSS = "ip link add v0 type veth peer name v1 netns 1 >/dev/null 2>&1 && echo done || echo refused"
INTO_OURS = f"unshare -Urn sh -c 'ip link set lo up && echo own; {ACROSS}'"


@pytest.mark.parametrize("backend", ("bwrap", "firejail"), indirect=True)  # with Landlock there is no socket to ask the kernel by
def test_a_user_namespace_made_inside_gives_no_right_over_the_jails_network(net: Internet, jail: Jail) -> None:
    need("unshare")
    own = net.outside(jail, "sh", "-c", f"unshare -Urn sh -c 'ip link set lo up; {TRIED}'")
    assert own.out.splitlines()[:2] == ["done", "done"], own  # control: over a network of one's own there is one
    jail.configure("[sandbox]\nnested_userns = true\n")
    done = net.inside(jail, "sh", "-c", f"{TRIED}; {AS_ROOT_OF_ITS_OWN}; {INTO_OURS}", options=("--quiet", "--network", "proxied"))
    refused = ["refused"] * len(ACTS)
    assert done.out.splitlines() == [*refused, "1", *refused, "own", "refused"], done
