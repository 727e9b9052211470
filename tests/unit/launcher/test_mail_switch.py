"""One function says whether mail may be sent: for the stubs, and for what Slurm sends."""

from __future__ import annotations

import pytest

from agent_sandbox.launcher.policy import Network
from agent_sandbox.launcher.resolve.network import MODES, may_send_mail

EVERY = [Network(mode=mode, asked=asked) for mode in MODES for asked in MODES]


@pytest.mark.parametrize(("stubs", "where"), [("on", []), ("auto", [Network(mode="open", asked="open")]), ("off", EVERY)])
def test_mail_is_sent_only_where_the_switch_and_both_modes_say_so(stubs: str, where: list[Network]) -> None:
    assert [network for network in EVERY if may_send_mail(stubs, network)] == where
