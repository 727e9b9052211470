"""A missing tool skips a test, or fails it where nothing may be missing."""

from __future__ import annotations

import pytest

from tests.machines.needs import need


def test_a_tool_that_is_there_is_returned_with_its_path() -> None:
    assert need("sh") in ("/usr/bin/sh", "/bin/sh")


def test_a_missing_tool_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SANDBOX_TESTS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-tool is not installed"):
        need("no-such-tool")


def test_a_missing_tool_fails_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX_TESTS", "required")
    with pytest.raises(pytest.fail.Exception, match="no-such-tool is not installed"):
        need("no-such-tool")
