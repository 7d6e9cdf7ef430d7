"""A session's rounds: its context over time, what a compaction took, what was had back, what it saved."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from cli.cli_world import World
from cli.rounds_session import FREED, SESSION, cost_by_hand, saved_by_hand, write_session
from cli.test_narrow import on_a_terminal

from lcc.client_folders import folder_name
from lcc.commands.rounds_text import rounds_lines
from lcc.commands.watch import layout
from lcc.contract.options import PassOptions
from lcc.log.recalls import Recall, note_recall, recalls_path
from lcc.sessions.spent import read_savings
from lcc.sessions.watch import Watched
from lcc.tokens.requests import Boundary, Request, Spending
from lcc.tokens.savings import Savings, savings


def test_watch_tells_every_round(world: World) -> None:
    """In JSON for programs: measured and estimated are told apart, and both can be reckoned by hand."""
    write_session(world.folder / "rounds.jsonl")

    found = json.loads(world.lcc("watch", "rounds.jsonl", "--json", "--once").out)["savings"]

    assert found["cost_measured"] == round(cost_by_hand())
    assert found["saved_estimated"] == round(saved_by_hand())
    assert found["cost_without_estimated"] == round(cost_by_hand() + saved_by_hand())
    start, compaction = found["rounds"]
    assert (start["begins_with"], start["requests"], start["context_last"]) == ("start", 10, 100_000)
    assert (compaction["begins_with"], compaction["freed"], compaction["recalls"]) == ("compaction", FREED, 1)
    assert found["full_in_requests_estimated"] == round((200_000 - 33_000 - 46_000) / 2_000)


def test_watch_says_it_in_words(world: World) -> None:
    """What went, what came since, what was had back, and that the next is an estimate."""
    write_session(world.folder / "rounds.jsonl")

    text = world.lcc("watch", "rounds.jsonl").text

    assert "60,000 of 100,000 tokens went, 60.0 %" in text
    assert "since then 40,000 → 46,000 tokens in 4 requests" in text
    assert "1 output since the last compaction" in text
    assert "in ~60 requests, if it goes on growing as since then (estimated)" in text
    assert f"{round(cost_by_hand()):,} tokens at the plain input price (measured)" in text
    assert f"~{round(saved_by_hand()):,}" in text


def test_recalls_are_those_that_were_noted(world: World) -> None:
    """With their bytes; of this session, and since the compaction."""
    write_session(world.folder / "rounds.jsonl")
    path = recalls_path(world.environment())
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for session, time in ((SESSION, now), (SESSION, now), (SESSION, "2026-01-01T10:05:00Z"), ("other", now)):
        note_recall(Recall(session, "0123456789ab", 700, 900, "tool", time), path)

    ran = world.lcc("watch", "rounds.jsonl")

    assert "2 outputs since the last compaction, 1,400 bytes" in ran.text


@pytest.mark.parametrize("columns", [80, 120])
def test_nothing_is_cut_or_folded(world: World, columns: int) -> None:
    """Every line fits, and none is shortened."""
    write_session(world.folder / "rounds.jsonl")

    lines = on_a_terminal(world, columns, "watch", "rounds.jsonl", "--once")

    assert max(map(len, lines)) <= columns
    assert not any("…" in line for line in lines)
    labels = [line[:16].strip() for line in lines if line[:1] not in ("", " ")]
    wanted = ["over time", "start", "compaction", "had back", "next", "input cost", "without lcc", "saved"]
    assert labels[-len(wanted) :] == wanted


def many_rounds(rounds: int) -> Savings:
    """As many compactions, each from 100,000 tokens to 40,000, and two requests after each."""
    row = [Request("m", "claude", None, None, 0, False, 0, size, 0, 0, 1) for size in (40_000, 100_000)]
    boundaries = tuple(Boundary(2 * at, None, summary=False) for at in range(1, rounds + 1))
    return savings(Spending(tuple(row * (rounds + 1)), (), boundaries, ()))


def test_of_many_rounds_the_newest_are_shown() -> None:
    """How many came before is said."""
    lines = [line.plain for line in rounds_lines(many_rounds(20), (), 80, 3)]

    assert sum(line.startswith("compaction") for line in lines) == 3
    assert sum("18 earlier rounds" in line for line in lines) == 1
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("height", [60, 22, 18])
def test_a_low_terminal_shows_what_fits(world: World, height: int) -> None:
    """The largest results and the oldest rounds go first; the sums stay."""
    watched = Watched(world.session, PassOptions(provider="rules"))
    watched.poll()
    measured = replace(watched.measure(), savings=many_rounds(20))

    lines = [line.plain for line in layout(measured, world.session, 80, height)]

    assert len(lines) <= height
    assert any(line.startswith("saved") for line in lines)
    assert any(line.startswith("compaction") for line in lines)


def in_its_project(world: World, name: str, session: str) -> None:
    """A session where Claude Code keeps those of the folder ``name``; empty: the one that lcc is started in."""
    folder = name or folder_name(str(world.folder))
    kept = world.folder / "home" / ".claude" / "projects" / folder
    write_session(kept / f"{session}.jsonl", session=session)


def test_the_log_says_what_was_saved_here_and_everywhere(world: World) -> None:
    """Of this folder's sessions; with the summary of all projects. Sessions without a compaction are left out."""
    in_its_project(world, "", SESSION)
    in_its_project(world, "-elsewhere", SESSION.replace("5a3f", "6b4e"))
    (world.folder / "home" / ".claude" / "projects" / "-elsewhere" / "plain.jsonl").write_bytes(
        world.session.read_bytes()
    )

    here, everywhere = world.lcc("log").text, world.lcc("log", "--summary").text
    sums = json.loads(world.lcc("log", "--summary", "--json").out)["savings"]

    cost, saved = round(cost_by_hand()), round(saved_by_hand())
    assert "Compacted sessions of this folder: 1." in here
    assert f"Together {cost:,}, measured; without the compactions ~{cost + saved:,}" in here
    assert "Compacted sessions in all projects: 2." in everywhere
    assert (sums["sessions"], sums["compactions"], sums["recalls"]) == (2, 2, 2)
    assert (sums["cost_measured"], sums["saved_estimated"]) == (2 * cost, 2 * saved)
    assert f"{2 * cost:,} input tokens" in world.lcc("log", "--markdown").text


def test_without_a_compaction_the_log_says_so(world: World) -> None:
    """No project folder, and one that cannot be read: no error."""
    assert "no session of this folder" in world.lcc("log").text
    (world.folder / "home" / ".claude").mkdir(parents=True, exist_ok=True)
    (world.folder / "home" / ".claude" / "projects").write_text("no folder")
    assert "no session in all projects" in world.lcc("log", "--summary").text


@pytest.mark.parametrize("columns", [80, 120])
def test_the_log_fits(world: World, columns: int) -> None:
    """No figure is cut."""
    in_its_project(world, "", SESSION)

    lines = on_a_terminal(world, columns, "log")

    assert max(map(len, lines)) <= columns
    assert any("without the compactions ~321,600" in line for line in lines)


def test_a_session_without_usage_has_no_rounds(world: World) -> None:
    """Rows without figures, as other programs write them: the rest is shown as ever."""
    path = write_session(world.folder / "rounds.jsonl")
    path.write_text(path.read_text().replace('"usage"', '"used"'))

    ran = world.lcc("watch", "rounds.jsonl")

    assert ran.code == 0
    assert "over time" not in ran.text
    assert "with the stash" in ran.text


def test_sub_agents_stand_apart(world: World) -> None:
    """What the files of sub-agents beside the session cost is a sum of its own."""
    path = write_session(world.folder / "rounds.jsonl")
    write_session(world.folder / "rounds" / "subagents" / "agent-a1.jsonl")

    found = read_savings(path)

    assert (found.cost, found.aside) == (pytest.approx(cost_by_hand()), pytest.approx(cost_by_hand()))
