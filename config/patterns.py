"""Which names and paths an entry stands for. Pure.

Paths match component by component: `*`, `?` and `[…]` never cross a slash, and an entry stands for everything below it
(`/foo` for `/foo/x`, not for `/foobar`). Names of variables match as a whole: `*` and `?`, any case after a `/i`.
Unlike in a shell, `*` matches a leading dot too: what is denied by pattern must not be had by another name.

Written out, since importing `re` costs a launch more than all of its matching; and a pattern that an agent wrote must
not take exponential time.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ANY_CASE = "/i"


def below(path: str, top: str) -> bool:
    """Is `path` the place `top`, or below it? Both are taken literally."""
    return path == top or top == "/" or path.startswith(top + "/")


def within(path: str, top: str) -> bool:
    """Is `path` a place that the pattern `top` names, or below one?"""
    if not is_pattern(top):
        return below(path, top)
    steps, wanted = path.split("/"), top.split("/")
    return len(steps) >= len(wanted) and all(map(glob_matches, wanted, steps))


def is_pattern(text: str) -> bool:
    return "*" in text or "?" in text or "[" in text


def names_variable(pattern: str, name: str) -> bool:
    """Does this entry of environment.* stand for the variable `name`?"""
    name = name.removesuffix(ANY_CASE)
    if pattern.endswith(ANY_CASE):
        pattern, name = pattern.removesuffix(ANY_CASE).lower(), name.lower()
    return pattern == name or (is_pattern(pattern) and _matches(pattern, name))


def glob_matches(pattern: str, name: str) -> bool:
    """Does the whole of `name` fit the shell pattern?"""
    return pattern == name or (is_pattern(pattern) and _matches(_tokens(pattern), name))


def check_glob(pattern: str) -> None:
    """ValueError for a pattern that would never match what its writer had in mind."""
    for token in _tokens(pattern):
        if token == "[":
            raise ValueError(f"holds {pattern!r}: a [ without its ] (a plain [ is written [[])")
        if any(low > high for low, high in _ranges(token)):
            raise ValueError(f"holds {pattern!r}: a range that runs backwards")


def _matches(tokens: Sequence[str], name: str) -> bool:
    """Each `*` takes as little as it can; where that fails, only the last one has to take more."""
    token = char = 0
    star = retry = -1
    while char < len(name):
        if token < len(tokens) and tokens[token] == "*":
            star, retry = token, char
            token += 1
        elif token < len(tokens) and _fits(tokens[token], name[char]):
            token, char = token + 1, char + 1
        elif star >= 0:
            retry += 1
            token, char = star + 1, retry
        else:
            return False
    return all(rest == "*" for rest in tokens[token:])


def _fits(token: str, char: str) -> bool:
    if len(token) == 1:
        return token in ("?", char)
    return any(low <= char <= high for low, high in _ranges(token)) is not token.startswith("[!")


def _tokens(pattern: str) -> list[str]:
    """`a[b-d]*` → `a`, `[b-d]`, `*`."""
    tokens, rest = [], pattern
    while rest:
        start = 3 if rest.startswith("[!") else 2  # a ] right after the opening stands for itself
        end = rest.find("]", start) + 1 if rest[0] == "[" else 1
        tokens.append(rest[: end or 1])
        rest = rest[end or 1 :]
    return tokens


def _ranges(token: str) -> list[tuple[str, str]]:
    """`[!a-z_]` → (a, z), (_, _)."""
    body, found = token[2:-1] if token.startswith("[!") else token[1:-1], []
    while body:
        wide = len(body) > 2 and body[1] == "-"
        found.append((body[0], body[2] if wide else body[0]))
        body = body[3 if wide else 1 :]
    return found
