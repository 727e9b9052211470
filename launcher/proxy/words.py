"""A refusal or a failure becomes an answer that an agent can read and act on. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.proxy.judge import Verdict
    from agent_sandbox.launcher.proxy.target import Target

REASONS = {
    200: "OK", 400: "Bad Request", 431: "Request Header Fields Too Large", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def refusal(target: Target, verdict: Verdict) -> bytes:
    """The reason is in the status line too: many clients show nothing else of an answer to CONNECT."""
    origin = f" ({verdict.origin})" if verdict.origin else ""
    lines = [f"agent-sandbox: the network policy refuses {target.text}", f"rule: {verdict.rule}{origin}"]
    if verdict.why:
        lines.append(f"why: {verdict.why}")
    lines += [
        "This is policy and not a fault: another try, another port or another tool gets the same answer.",
        f"What to do: ask the user. `agent-sandbox explain host {target.text}` says more, here and outside.",
    ]
    return answer(403, f"agent-sandbox refuses {target.text}: {verdict.rule}", lines)


def trouble(status: int, problem: str) -> bytes:
    return answer(status, REASONS[status], [f"agent-sandbox: {problem}"])


def page(text: str) -> bytes:
    return answer(200, REASONS[200], text.splitlines())


def answer(status: int, reason: str, lines: list[str]) -> bytes:
    body = "".join(_plain(line) + "\n" for line in lines).encode()
    head = (
        f"HTTP/1.1 {status} {_plain(reason)[:200]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\nProxy-Connection: close\r\n\r\n"
    )
    return head.encode("ascii", "replace") + body


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
