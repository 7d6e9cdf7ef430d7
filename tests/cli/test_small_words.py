"""Messages name the way out, and numbers are said as a person says them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.cli_world import World

from lcc.explain.grouped import cache_words


def test_a_torn_end_is_kept_and_named(world: World) -> None:
    """A session that is cut off in its last line, as it is while a client writes to it."""
    world.session.write_bytes(world.session.read_bytes()[:3000])
    ran = world.compact()
    assert ran.code == 0
    assert "the JSON document is cut off; this line is not read, and is kept as it is" in ran.err
    strict = world.compact("--strict")
    assert strict.code == 2
    assert "session.jsonl: line " in strict.err
    assert "without --strict" in strict.err


def test_a_folder_is_called_a_folder(world: World) -> None:
    """-o FOLDER."""
    ran = world.compact("-o", "ledger")
    assert ran.code == 2
    assert "-o ledger: a folder; name a file in it" in ran.err


@pytest.mark.parametrize("provider", ["auto", "jev", "laya"])
@pytest.mark.parametrize(("mode", "named"), [("stashed", "stashed"), ("lossless", "recoverable")])
def test_without_a_judge_the_mode_that_was_asked_for_is_named(
    world: World, provider: str, mode: str, named: str
) -> None:
    """Whichever judge did not answer; recoverable where no mode promises more than the session."""
    ran = world.lcc("compact", "session.jsonl", "--provider", provider, "--rules-mode", mode, "--dry-run")
    assert ran.code == 0
    assert f"without a judge: --provider rules --rules-mode {named}\n" in ran.err


def test_a_stash_that_cannot_be_written_is_named_with_the_way_out(world: World) -> None:
    """A file stands in its place: everything is kept, and the summary says where it failed."""
    (world.folder / "stash").write_text("no folder")
    ran = world.compact("-o", "out.jsonl", mode="stashed")
    assert ran.code == 0, ran.err
    assert f"{world.folder / 'stash'} could not be written to" in ran.err
    assert "LCC_STASH_DIR" in ran.err


def test_a_pasted_note_is_recalled_and_o_says_what_it_wrote(world: World) -> None:
    """The whole note, as it stands in the session."""
    records = world.report("--no-disk-check", mode="stashed")["decisions"]
    world.compact("-o", "out.jsonl", "--no-disk-check", mode="stashed")
    note = next(str(r["note"]) for r in records if r["decision"] == "replace" and "lcc recall" in str(r["note"]))
    sha = note.split("lcc recall ")[1].rstrip("]")
    by_note, by_id = world.lcc("recall", note, "--raw"), world.lcc("recall", sha, "-o", "back.txt")
    assert by_note.code == by_id.code == 0, by_note.err + by_id.err
    assert by_note.out == (world.folder / "back.txt").read_bytes()
    assert by_id.err == f"[{len(by_note.out):,} bytes written to back.txt]\n"


def test_compact_takes_an_id_that_sessions_prints(world: World) -> None:
    """Wherever the project is; an id that no session has is bad input."""
    session = "0f1e2d3c-4b5a-4697-8877-665544332211"
    unknown = world.lcc("compact", session, "--rules-mode", "recoverable", "-o", "by-id.jsonl")
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    assert "lcc sessions" in unknown.err
    project = world.folder / "home" / ".claude" / "projects" / "-any"
    project.mkdir(parents=True)
    (project / f"{session}.jsonl").write_bytes(world.session.read_bytes())
    ran = world.lcc("compact", session, "--rules-mode", "recoverable", "-o", "by-id.jsonl")
    world.compact("-o", "by-name.jsonl")
    assert ran.code == 0, ran.err
    assert (world.folder / "by-id.jsonl").read_bytes() == (world.folder / "by-name.jsonl").read_bytes()


def test_requests_are_counted_as_a_person_counts_them() -> None:
    """Tenths below ten, whole numbers with their thousands above."""
    cost = {"rewrite_tokens": 5, "kept_tokens": 6, "cold": False, "advice": "compact"}
    assert "after 5.9 more" in str(cache_words(cost | {"break_even_turns": 5.93}))
    assert "after 10,218 more" in str(cache_words(cost | {"break_even_turns": 10217.96}))


def test_a_number_of_lines_below_nothing_is_a_wrong_command_line() -> None:
    """lcc-daemon logs -n -1."""
    command = [sys.executable, "-m", "lcc_daemon", "logs", "-n"]
    assert subprocess.run([*command, "-1"], capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize("words", [["--version"], ["recall", "0123456789ab"]])
def test_the_shortest_commands_run_without_typer(words: list[str], tmp_path: Path) -> None:
    """A note's own command and the version: importing Typer would cost more than all they do."""
    seen = (
        "import atexit, sys; atexit.register(lambda: print('typer' in sys.modules)); from lcc.cli import main; main()"
    )
    env = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", seen, *words], capture_output=True, text=True, env=env, check=False)

    assert ran.stdout.splitlines()[-1] == "False"
    assert ran.returncode == (0 if words == ["--version"] else 2), ran.stderr
