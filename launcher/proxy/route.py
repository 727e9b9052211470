"""A target becomes a connection, or a reason why not: judged by name, resolved once, judged by every address, dialled at a judged one."""

from __future__ import annotations

from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.proxy.attempt import asking
from agent_sandbox.launcher.proxy.dial import Dial, Way
from agent_sandbox.launcher.proxy.judge import Verdict
from agent_sandbox.launcher.proxy.target import as_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.proxy.parts import Parts, Upstream
    from agent_sandbox.launcher.proxy.side import Side
    from agent_sandbox.launcher.proxy.target import Target

SPENT = Verdict(
    allowed=False, rule="network.max_bytes",
    why="this session has moved as much as it may (network.max_bytes, or 0 in network.max_connections or network.max_rate)",
)  # fmt: skip
BROKEN = Verdict(allowed=False, rule="error", why="the policy could not be asked")


@record
class Reached:
    side: Side
    address: str
    verdict: Verdict


@record
class Refused:
    verdict: Verdict
    address: str = ""


@record
class Failed:
    why: str
    late: bool = False


class Route:
    def __init__(self, target: Target, parts: Parts, done: Callable[[Reached | Refused | Failed], None]) -> None:
        """`done` is called once, never before `start` returns to the loop in the case of a connection."""
        self._target, self._parts, self._done = target, parts, done
        self._verdicts: dict[str, Verdict] = {}
        self._dial: Dial | None = None
        self._asked = ""
        self.over = False

    def start(self) -> None:
        target, upstream = self._target, self._parts.upstream
        verdict = SPENT if self._parts.budget.spent else self._judge("")
        if not verdict.allowed:
            self._finish(Refused(verdict=verdict))
        elif target.numeric:
            self._on_addresses((target.host,), "")
        elif upstream and upstream.names and not upstream.direct(target.host, ""):
            self._verdicts[target.host] = verdict
            self._through(upstream, [target.host], [])
        else:
            self._ask(target.host, self._on_addresses)

    def _judge(self, address: str) -> Verdict:
        """Whatever goes wrong in there opens nothing."""
        judge, target = self._parts.judge, self._target
        try:
            return judge.address(target.host, target.port, address) if address else judge.name(target.host, target.port)
        except Exception:
            return BROKEN

    def _judge_upstream(self, upstream: Upstream, address: str) -> Verdict:
        try:
            return self._parts.judge.address(upstream.host, upstream.port, address)
        except Exception:
            return BROKEN

    def _ask(self, host: str, heard: Callable[[tuple[str, ...], str], None]) -> None:
        self._asked, self._heard = host, heard
        self._parts.resolver.ask(host, heard)

    def _on_addresses(self, addresses: tuple[str, ...], problem: str) -> None:
        self._asked = ""
        if not addresses:
            self._finish(Failed(why=f"{self._target.host}: {problem}"))
            return
        judged = {address: self._judge(address) for address in addresses}
        self._verdicts = {address: verdict for address, verdict in judged.items() if verdict.allowed}
        if not self._verdicts:
            address, verdict = next(iter(judged.items()))
            self._finish(Refused(verdict=verdict, address=address))
            return
        upstream, allowed = self._parts.upstream, list(self._verdicts)
        straight = [one for one in allowed if upstream is None or upstream.direct(self._target.host, one)]
        if upstream and len(straight) < len(allowed):
            self._through(upstream, [one for one in allowed if one not in straight], straight)
        else:
            self._start_dial(self._straight(straight))

    def _straight(self, addresses: list[str]) -> list[Way]:
        return [Way(address=one, port=self._target.port, ask=b"", reaches=one) for one in addresses]

    def _through(self, upstream: Upstream, addresses: list[str], straight: list[str]) -> None:
        """The address of an admin's proxy is not judged; that of somebody else's is, as any."""

        def go(found: tuple[str, ...], problem: str) -> None:
            self._asked = ""
            if upstream.judged:
                verdicts = [self._judge_upstream(upstream, one) for one in found]
                if refused := next((one for one in verdicts if not one.allowed), None):
                    self._finish(Refused(verdict=replace(refused, why=f"the way leads over {upstream.host}, and {refused.why}")))
                    return
            ways = [Way(address=hop, port=upstream.port, ask=asking(one, self._target.port), reaches=one) for one in addresses for hop in found[:2]]
            if ways or straight:
                self._start_dial(self._straight(straight) + ways)
            else:
                self._finish(Failed(why=f"the upstream proxy {upstream.host}: {problem}"))

        if address := as_address(upstream.host):
            go((address,), "")
        else:
            self._ask(upstream.host, go)

    def _start_dial(self, ways: list[Way]) -> None:
        self._dial = Dial(ways, self._parts, self._on_dialled)
        self._dial.start()

    def _on_dialled(self, side: Side | None, address: str, problem: str) -> None:
        if side:
            self._finish(Reached(side=side, address=address, verdict=self._verdicts[address]))
        else:
            self._finish(Failed(why=f"{self._target.text} cannot be reached ({problem})"))

    def _finish(self, result: Reached | Refused | Failed) -> None:
        if not self.over:
            self.over = True
            self._done(result)

    def give_up(self) -> None:
        """It took too long."""
        self.stop()
        self._done(Failed(why=f"{self._target.text} did not answer in time", late=True))

    def stop(self) -> None:
        self.over = True
        if self._asked:
            self._parts.resolver.forget(self._asked, self._heard)
        if self._dial:
            self._dial.stop()
