"""Which names and paths an entry stands for. Pure.

Paths match component by component: `*`, `?` and `[…]` never cross a slash, and an entry stands for everything below it
(`/foo` for `/foo/x`, not for `/foobar`). Names of variables match as a whole: `*` and `?`, any case after a `/i`.
Unlike in a shell, `*` matches a leading dot too: what is denied by pattern must not be had by another name.
"""

from __future__ import annotations

import re

ANY_CASE = "/i"
_compiled: dict[tuple[str, bool], re.Pattern[str]] = {}


def within(path: str, top: str) -> bool:
    """Is `path` the place that `top` names, or below it? `top` may be a pattern."""
    if not is_pattern(top):
        return path == top or top == "/" or path.startswith(top + "/")
    steps, wanted = path.split("/"), top.split("/")
    return len(steps) >= len(wanted) and all(map(_component_matches, steps, wanted))


def is_pattern(text: str) -> bool:
    return "*" in text or "?" in text or "[" in text


def names_variable(pattern: str, name: str) -> bool:
    """Does this entry of environment.* stand for the variable `name`?"""
    name = name.removesuffix(ANY_CASE)
    if pattern.endswith(ANY_CASE):
        pattern, name = pattern.removesuffix(ANY_CASE).lower(), name.lower()
    return pattern == name or (is_pattern(pattern) and _matches(pattern, name, brackets=False))


def glob_matches(pattern: str, name: str) -> bool:
    """Does the whole of `name` fit the shell pattern?"""
    return pattern == name or (is_pattern(pattern) and _matches(pattern, name, brackets=True))


def check_glob(pattern: str) -> None:
    """ValueError for a pattern that cannot be read, such as `[z-a]`."""
    try:
        _matches(pattern, "", brackets=True)
    except re.error:
        raise ValueError(f"{pattern!r} holds a [range] that runs backwards") from None


def _component_matches(step: str, wanted: str) -> bool:
    return glob_matches(wanted, step)


def _matches(pattern: str, name: str, *, brackets: bool) -> bool:
    kept = _compiled.get((pattern, brackets))
    if kept is None:
        kept = _compiled[pattern, brackets] = re.compile(_expression(pattern, brackets), re.DOTALL)
    return kept.fullmatch(name) is not None


def _expression(pattern: str, brackets: bool) -> str:
    """Each part after a `*` is an atomic group: a pattern of a hundred stars stays linear in the name."""
    first, *rest = (_part(part, brackets) for part in re.split(r"\*+", pattern))
    if not rest:
        return first
    return first + "".join(f"(?>.*?{part})" for part in rest[:-1]) + f".*{rest[-1]}"


def _part(text: str, brackets: bool) -> str:
    tokens = re.findall(r"\[(?:![^\]]+|[^!\]][^\]]*)\]|.", text, re.DOTALL) if brackets else list(text)
    return "".join("." if token == "?" else _bracket(token) if len(token) > 1 else re.escape(token) for token in tokens)


def _bracket(token: str) -> str:
    """`[!a-z]` becomes `[^a-z]`; only a `-` keeps a meaning of its own."""
    negated = token.startswith("[!")
    body = re.sub(r"[^\w\s-]", lambda found: "\\" + found[0], token[2 if negated else 1 : -1])
    return f"[{'^' if negated else ''}{body}]"
