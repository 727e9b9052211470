"""Every shape of input is tried on each backend."""

from __future__ import annotations

from tests.escapes.conftest import backend

__all__ = ["backend"]
