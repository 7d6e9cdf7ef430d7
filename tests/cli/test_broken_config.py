"""A configuration that cannot be used is told by every command that reads it, in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.cli_world import Ran, World

BROKEN = {
    'provder = "rules"': "provder: no such setting; did you mean provider?",
    'provider = "x"': "provider: 'x' is not one of",
    "a = = 3": "no valid TOML",
}
READERS = [
    "stash list",
    "stash verify",
    "recall 000000000000",
    "compact session.jsonl --rules-mode stashed --dry-run",
    "restore session.jsonl",
    "watch session.jsonl --once",
    "log",
    "log --json",
]


def run(world: World, words: str, content: str) -> tuple[Ran, Path]:
    file = world.folder / "home" / ".config" / "lcc" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    return world.lcc(*words.split(), env={"LCC_STASH_DIR": ""}), file


@pytest.mark.parametrize("words", READERS)
def test_a_command_that_reads_it_names_the_file_and_the_way_out(world: World, words: str) -> None:
    """One line, exit 2."""
    content, problem = 'provder = "rules"', BROKEN['provder = "rules"']
    ran, file = run(world, words, content)
    assert ran.code == 2
    assert ran.err == f"lcc: {file}: {problem}; mend it; lcc doctor shows what is set\n"


@pytest.mark.parametrize("content", list(BROKEN))
def test_what_is_wrong_is_named(world: World, content: str) -> None:
    """An unknown key, a value that is not allowed, no TOML."""
    ran, file = run(world, "stash list", content)
    assert ran.code == 2
    assert ran.err.startswith(f"lcc: {file}: {BROKEN[content]}")


@pytest.mark.parametrize("content", list(BROKEN))
def test_doctor_shows_it_among_its_checks(world: World, content: str) -> None:
    """As a failed one, with every other check beside it."""
    ran, file = run(world, "doctor", content)
    assert ran.code == 1
    assert f"{file}: {BROKEN[content]}" in ran.text
    assert "  disk  " in ran.text
