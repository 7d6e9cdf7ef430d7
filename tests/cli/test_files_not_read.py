"""What was not done is said: files that could not be read, and what a dry run did not put in the stash."""

from __future__ import annotations

import pytest
from cli.cli_world import World

UNREAD = "the files were not read"


@pytest.fixture
def far(world: World) -> World:
    """The sample session as it came from another machine: its folder is not there."""
    world.session.write_bytes(world.session.read_bytes().replace(str(world.workspace).encode(), b"/nowhere/ledger"))
    return world


@pytest.mark.parametrize("mode", ["recoverable", "stashed"])
def test_without_a_workspace_the_summary_and_explain_say_it(far: World, mode: str) -> None:
    """In both, with the way out."""
    ran = far.compact("-o", "out.jsonl", "-r", "report.json", mode=mode)
    explained = far.lcc("explain", "report.json")
    for said in (ran.err, explained.text):
        (line,) = [line for line in said.splitlines() if UNREAD in line]
        assert "--workspace-root" in line


def test_the_page_promises_no_file_that_was_not_read(far: World) -> None:
    """It says which pointers are proven and which are not."""
    far.compact("-o", "out.jsonl", "-r", "report.json")
    far.lcc("explain", "report.json", "--html", "page.html")
    page = (far.folder / "page.html").read_text()
    assert "Everything removed can be had back" not in page
    assert "he files were not read" in page


def test_no_disk_check_is_named_as_the_reason(world: World) -> None:
    """Where the workspace was named."""
    ran = world.compact("--dry-run", "--no-disk-check", "--workspace-root", "ledger")
    assert f"{UNREAD} (--no-disk-check)" in ran.err


def test_with_a_workspace_nothing_is_said_of_it(world: World) -> None:
    """The files were read, and everything can be had back."""
    ran = world.compact("-o", "out.jsonl", "-r", "report.json")
    world.lcc("explain", "report.json", "--html", "page.html")
    assert UNREAD not in ran.err + world.lcc("explain", "report.json").text
    assert "Everything removed can be had back" in (world.folder / "page.html").read_text()


def test_a_dry_run_says_what_would_be_stashed(world: World) -> None:
    """Nothing is in the stash yet; a real run says that it is."""
    world.session.write_bytes(world.session.read_bytes().replace(str(world.workspace).encode(), b"/nowhere/ledger"))
    dry, real = world.compact("--dry-run", mode="stashed"), world.compact("-o", "out.jsonl", mode="stashed")
    assert "would remove" in dry.err
    assert "would be put in the stash" in dry.err
    assert "are in the stash" not in dry.err
    assert "its bytes are in the stash" in real.err


@pytest.mark.parametrize("name", ["compact", "sessions", "restore"])
def test_the_help_of_a_command_says_what_its_docstring_says(world: World, name: str) -> None:
    """More than the one line of the overview."""
    words = {"compact": "config.toml", "sessions": "Only reads", "restore": "proven by its sha256"}
    assert words[name] in " ".join(world.lcc(name, "--help").text.split())
