"""A session's rounds: its context over time, what a compaction took, what was had back, what it saved."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from cli.cli_world import World
from cli.rounds_session import FREED, SESSION, cost_by_hand, saved_by_hand, write_session
from cli.test_narrow import on_a_terminal

from lcc.log.recalls import Recall, note_recall, recalls_path


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


def test_a_session_without_usage_has_no_rounds(world: World) -> None:
    """Rows without figures, as other programs write them: the rest is shown as ever."""
    path = write_session(world.folder / "rounds.jsonl")
    path.write_text(path.read_text().replace('"usage"', '"used"'))

    ran = world.lcc("watch", "rounds.jsonl")

    assert ran.code == 0
    assert "over time" not in ran.text
    assert "with the stash" in ran.text
