"""Events reach who they are about."""

from __future__ import annotations

import os

from agent_sandbox.launcher.poller import READ, Poller


def test_an_event_of_what_was_closed_does_not_reach_what_got_its_number() -> None:
    poller, called = Poller(), []
    ends = [os.pipe() for _ in range(2)]
    fresh: list[tuple[int, int]] = []

    def act(mine: int, other: int) -> None:
        """Who is called first closes the other, and opens something that gets its number."""
        called.append(mine)
        poller.drop(other)
        os.close(other)
        fresh.append(os.pipe())
        assert fresh[0][0] == other
        poller.watch(other, READ, lambda _: called.append(-1))

    (one, into_one), (two, into_two) = ends
    poller.watch(one, READ, lambda _: act(one, two))
    poller.watch(two, READ, lambda _: act(two, one))
    for end in (into_one, into_two):
        os.write(end, b"x")  # both can be read in the same turn
    poller.turn(1)
    assert called in ([one], [two])
    poller.drop(called[0])
    poller.turn(0)
    assert len(called) == 1
    os.write(fresh[0][1], b"x")
    poller.turn(1)
    assert called[1:] == [-1]  # its own event comes
    poller.close()
    for handle in (called[0], into_one, into_two, *fresh[0]):
        os.close(handle)
