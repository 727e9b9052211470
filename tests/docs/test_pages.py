"""What people read agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_sandbox.launcher.__main__ import main
from agent_sandbox.launcher.cli import OPTIONS, RESERVED, WORDS, help_page
from tests.machines.jail import Jail

TOP = Path(__file__).resolve().parents[2]
PAGES = [TOP / "README.md", TOP / "SECURITY.md", TOP / "CHANGELOG.md", *sorted((TOP / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def snippets(page: Path) -> list[str]:
    """TOML in fences, or indented with a table's header in it."""
    text = page.read_text()
    indented = [re.sub(r"^ {4}", "", part, flags=re.MULTILINE) for part in re.findall(r"(?:^ {4}.*\n(?:\n(?= {4}))?)+", text, re.MULTILINE)]
    fenced = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    return [*fenced, *(part for part in indented if re.search(r"^\[+[a-z.]+\]+", part, re.MULTILINE))]


SNIPPETS = [(page.name, number, text) for page in PAGES for number, text in enumerate(snippets(page))]


def test_there_are_snippets_to_try() -> None:
    assert len(SNIPPETS) > 12


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: f"{snippet[0]}-{snippet[1]}")
def test_a_file_that_a_page_shows_is_understood(snippet: tuple[str, int, str], jail: Jail) -> None:
    place = jail.user.home / ".config/agent-sandbox/conf.d" if "/conf.d/" in snippet[2] and "~/.config" in snippet[2] else jail.project
    file = jail.write(place / "shown.toml", snippet[2])
    assert jail.ask("config", "check", file).out == f"{file}: understood\n"


def test_the_readme_uses_options_and_words_that_exist() -> None:
    text = (TOP / "README.md").read_text()
    commands = re.findall(r"^ {4,}(?:\./)?agent-sandbox (.*)$", text, re.MULTILINE)
    assert len(commands) > 5
    given = {option for command in commands for option in re.findall(r"(?<!\S)--[a-z-]+", command.split("#")[0])}
    assert given <= {option.name for option in OPTIONS} | {"--follow"}  # the last belongs to `network log`
    words = {word for line in text.splitlines() for word in re.findall(r"agent-sandbox (explain|config|doctor|ps|audit|network)\b", line)}
    assert words == set(WORDS) - {"help", "version"}


@pytest.mark.parametrize("word", sorted(set(WORDS) - {"help", "version"}))
def test_every_word_has_a_page_that_fits_a_terminal(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "--help"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("usage: agent-sandbox ") and word in page and max(map(len, page.splitlines())) <= 80


def test_help_names_every_option_and_word_and_fits_a_terminal() -> None:
    page = help_page()
    assert all(option.name in page for option in OPTIONS)
    assert all(word in page for word in WORDS)
    assert max(map(len, page.splitlines())) <= 80
    assert not set(RESERVED) & set(WORDS)
