"""Rows of cells → lines that fit a width. Pure."""

from __future__ import annotations

import textwrap

GAP = 2
LEAST = 12  # columns that a cell needs to be read at all


def layout(rows: list[tuple[str, ...]], width: int) -> list[str]:
    """Aligned columns; a cell that is too long for its column goes on in the next line, in the same column."""
    widths = _widths(rows, width)
    lines = []
    for row in rows:
        cells = [_wrap(cell, size) for cell, size in zip(row, widths, strict=True)]
        for number in range(max(map(len, cells))):
            parts = [cell[number] if number < len(cell) else "" for cell in cells]
            lines.append((" " * GAP).join(part.ljust(size) for part, size in zip(parts, widths, strict=True)).rstrip())
    return lines


def _widths(rows: list[tuple[str, ...]], width: int) -> list[int]:
    """The widest columns give way first, and the first one last: its names are there to be copied."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    while sum(widths) + GAP * (len(widths) - 1) > width and max(widths) > LEAST:
        others = widths[1:] if max(widths[1:], default=0) > LEAST else widths
        widths[widths.index(max(others), len(widths) - len(others))] -= 1
    return widths


def _wrap(cell: str, size: int) -> list[str]:
    return textwrap.wrap(cell, max(size, 1), break_on_hyphens=False) or [""]
