"""Requests to a local base URL become requests to the real host, encrypted, with the credential that the client does not have.

Only to that host and port, whatever the answer says: a redirect is an answer like any other, and goes to the client.
"""

from __future__ import annotations

import time

from agent_sandbox.launcher.proxy import words
from agent_sandbox.launcher.proxy.credential import cleaned, request_head
from agent_sandbox.launcher.proxy.exchange import BODILESS, Exchange
from agent_sandbox.launcher.proxy.route import Failed
from agent_sandbox.launcher.proxy.scrub import Scrubbed
from agent_sandbox.launcher.proxy.secure import Secure, make_context
from agent_sandbox.launcher.proxy.trace import Trace
from agent_sandbox.launcher.trust.sources import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from agent_sandbox.launcher.proxy.chunks import Chunks
    from agent_sandbox.launcher.proxy.credential import Credential
    from agent_sandbox.launcher.proxy.head import Request, Response
    from agent_sandbox.launcher.proxy.side import Side

contexts: dict[str, ssl.SSLContext] = {}  # by roots: one, in one proxy


class Injected(Exchange):
    _credential: Credential | None = None
    _shaking = False

    def begin_with(self, request: Request, credential: Credential, path: bytes) -> None:
        if credential is not self._credential:  # a connection serves one credential
            self._leave()
        self._credential = credential
        if credential.secret:
            self.begin(request, credential.target, path)
            return
        self._target = credential.target
        trace = self._new_trace()
        trace.tell(Failed(why=credential.missing))
        trace.close()
        said = f"the credential {credential.name} for {credential.target.text} is not there: {credential.missing}. Ask the user."
        self._owner.say_last(words.trouble(503, said))

    def _new_trace(self) -> Trace:
        assert self._credential
        return Trace("inject", self._target, self._parts.note, inject=self._credential.name)

    # There

    def _arrive(self, side: Side) -> None:
        roots = self._parts.roots
        if roots not in contexts:
            contexts[roots] = make_context(roots, SYSTEM)
        secure = Secure(side, self._parts.poller, lambda error: self._owner.close_broken(), contexts[roots], self._target.host)
        self._far, self._there, self._used = secure, self._target, False
        self._shaking, self._progress = True, time.monotonic()
        secure.shake(self._on_shaken)

    def _on_shaken(self, problem: str) -> None:
        self._shaking = False
        if problem:
            if self._trace:
                self._trace.tell(Failed(why=problem))
            self._fail(problem)
        else:
            self._go()

    def _request_head(self) -> bytes:
        assert self._credential
        return request_head(self._request, self._credential, self._path)

    # And back

    def _taken(self, response: Response) -> Response:
        assert self._credential
        bodiless = self._request.method == b"HEAD" or response.status in BODILESS or response.status < 200
        return cleaned(response, self._credential, bodiless=bodiless)

    def _body(self, response: Response, *, chunked: bool, bare: bool) -> tuple[int | None, Chunks | None]:
        if response.length == 0:
            return 0, None
        assert self._credential
        return None, Scrubbed(self._credential.secret, length=response.length, chunked=chunked, framed=chunked and not bare)

    def look(self, now: float, idle: float) -> None:
        super().look(now, self._parts.limits.dial_seconds if self._shaking else idle)
