"""Files that are covered where somebody but root could swap them: bwrap, which follows links out of the jail, never gets to see one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.plan import Cover, Data
from agent_sandbox.launcher.stage import Shelf, StageError, cover_files
from tests.unit.launcher.test_orders import ORDERS

SWAPS = ("a link", "a link on the way", "gone")


def swapped(top: Path, how: str) -> Path:
    """What was a program when the plan was made."""
    (top / "bin").mkdir()
    if how == "a link":
        (top / "bin/sbatch").symlink_to(f"/oldroot{top}/made")
    if how == "a link on the way":
        (top / "bin").rename(top / "other")
        (top / "other/sbatch").touch()
        (top / "bin").symlink_to("other")
    return top / "bin/sbatch"


def cover(path: Path, *, movable: bool) -> frozenset[int]:
    plan, one = ORDERS.plan, Cover(path=str(path), word=3, movable=movable)
    return cover_files(replace(plan, data=(Data(fd=12, content=b"", label=one.path),), stage=replace(plan.stage, covers=(one,))), Unused())


class Unused(Shelf):
    def handle(self) -> int:
        raise StageError("nothing was to be laid out")


@pytest.mark.parametrize("how", SWAPS)
def test_what_was_swapped_stops_the_launch_before_anything_is_made(tmp_path: Path, how: str) -> None:
    with pytest.raises(StageError, match="changed while the jail was being built"):
        cover(swapped(tmp_path.resolve(), how), movable=True)
