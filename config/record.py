"""Frozen records, as `dataclasses` makes them, without what importing `dataclasses` costs. Pure.

Importing `dataclasses` takes as long as starting Python itself: a fifth of what a whole launch may cost. Type
checkers read `@record` as a frozen, keyword-only dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_options):
        return lambda decorator: decorator


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Give `cls` a keyword-only constructor, equality, a hash and a repr over its annotated fields, and freeze it."""
    fields = tuple(cls.__annotations__)
    names = frozenset(fields)
    defaults = {name: cls.__dict__[name] for name in fields if name in cls.__dict__}

    def __init__(self: T, **values: object) -> None:
        held = {**defaults, **values}
        if held.keys() != names:
            wrong = sorted(held.keys() ^ names)
            raise TypeError(f"{cls.__name__}: missing or unknown: {', '.join(wrong)}")
        self.__dict__.update(held)

    def __setattr__(self: T, name: str, value: object) -> None:
        raise AttributeError(f"{cls.__name__} is frozen: {name}")

    def values_of(self: object) -> tuple[object, ...]:
        return tuple([self.__dict__[name] for name in fields])

    def __eq__(self: T, other: object) -> bool:
        return values_of(self) == values_of(other) if type(other) is cls else NotImplemented

    def __repr__(self: T) -> str:
        return f"{cls.__name__}({', '.join(f'{n}={self.__dict__[n]!r}' for n in fields)})"

    for method in (__init__, __setattr__, __eq__, __repr__):
        setattr(cls, method.__name__, method)
    cls.__hash__ = lambda self: hash(values_of(self))  # type: ignore[method-assign]
    cls.__match_args__ = fields  # type: ignore[attr-defined,misc]
    return cls


def replace(item: T, **changes: object) -> T:
    """A copy of a record with some fields changed."""
    return type(item)(**{**item.__dict__, **changes})
