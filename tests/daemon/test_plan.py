"""The plan and the line that the user reads."""

from __future__ import annotations

import json
import math
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from daemon.daemon_world import World, make_event, wait_until
from hypothesis import given
from hypothesis import strategies as st

from lcc.config import Config
from lcc.relevance import TranscriptCompactionResult
from lcc.relevance.ports import Ports
from lcc_daemon.compaction import Event, EventContext, compact_event, read_event
from lcc_daemon.figures import Figures, TokenBook, newest_context
from lcc_daemon.plan import PART_BYTES, STDOUT_LIMIT, HandOver, Replace, remove_old_parts, to_stdout


@given(st.dictionaries(st.text(), st.text(st.characters(codec=None))), st.text(st.characters(codec=None)))
def test_every_text_survives_the_plans_json(results: dict[str, str], say: str) -> None:
    """Whatever a note holds, half a surrogate pair too, is what JSON.parse gives the module."""
    plan = json.loads(Replace(results, frozenset(), {"c": {("edits", 0, "old"): "[note]"}}, say, None).encode())
    assert plan["results"] == results
    assert plan["say"] == say


def test_a_hand_over_is_one_line(tmp_path: Path) -> None:
    """A reason with a newline in it (a path can hold one) stays one line."""
    plan = json.loads(HandOver("config", "a\nb\r\n c").encode())
    assert plan == {"v": 1, "action": "hand-over", "reason": "config", "say": "left to the built-in summary: a b c"}


@pytest.mark.parametrize("text", ["a", "é", "€", "𝄞", "a€é𝄞"])
def test_parts_are_whole_characters_and_the_plan_in_order(tmp_path: Path, text: str) -> None:
    """However wide the characters, each part is valid UTF-8 under the limit."""
    encoded = Replace({"t": text * (9_000_000 // len(text.encode()))}, frozenset(), {}, "", None).encode()
    answer = json.loads(to_stdout(encoded, tmp_path / "parts"))
    parts = [Path(path).read_bytes() for path in answer["parts"]]
    assert answer["action"] == "parts"
    assert b"".join(parts) == encoded
    for part in parts:
        part.decode("utf-8")
        assert 0 < len(part) <= PART_BYTES


def test_a_plan_under_the_limit_goes_to_stdout_as_it_is(tmp_path: Path) -> None:
    """No file is made for it."""
    encoded = Replace({"t": "x" * (STDOUT_LIMIT - 200)}, frozenset(), {}, "", None).encode()
    assert len(encoded) < STDOUT_LIMIT
    assert to_stdout(encoded, tmp_path / "parts") == encoded
    assert not (tmp_path / "parts").exists()


def test_old_parts_go_and_new_ones_stay(tmp_path: Path) -> None:
    """Parts are read at once; after a while nobody needs them. What is no part is somebody else's."""
    old, new, foreign = (tmp_path / name for name in (f"{'0a' * 8}-0.json", f"{'0b' * 8}-12.json", "old.json"))
    for path in (old, new, foreign):
        path.write_text("x")
    for path in (old, foreign):
        os.utime(path, (time.time() - 10_000, time.time() - 10_000))
    remove_old_parts(tmp_path)
    remove_old_parts(tmp_path / "nowhere")
    assert sorted(tmp_path.iterdir()) == [new, foreign]


def event_of(world: World, **fields: object) -> Event:
    return read_event(make_event(world, **fields))  # type: ignore[arg-type]


def test_the_line_says_what_was_kept_and_removed(world: World) -> None:
    """Counts of results, the share of the text, tokens before and after; no word of jargon, no path, one line."""
    real = EventContext(figures=lambda result: Figures(182_400, 61_000, True))
    done = compact_event(event_of(world), Config(rules_mode="recoverable"), real)
    assert isinstance(done.plan, Replace)
    assert done.report is not None
    share = math.floor(100 * done.report["reduction_ratio"])
    assert done.plan.say == (
        "kept every message and 0 of 8 tool results; 8 can be had back and left a pointer: "
        f"{share} % less text, 182k to ~61k tokens"
    )
    estimated = compact_event(event_of(world), Config(rules_mode="recoverable")).plan
    assert "~" in estimated.say.split(" less text, ")[1].split(" to ")[0]


def test_the_share_that_is_shown_is_the_one_that_is_asked_for(world: World) -> None:
    """`min_reduction` just above what goes is told the same share that the line of a replacement has."""
    done = compact_event(event_of(world), Config())
    assert done.report is not None
    share = done.report["reduction_ratio"]
    told = re.search(r"(\d+) % less text", done.plan.say)
    refused = compact_event(event_of(world), Config(min_reduction=round(share + 0.001, 3))).plan
    assert told is not None
    assert refused.say.startswith(f"only {told[1]} % can be removed, and {100 * round(share + 0.001, 3):g} % is asked")


@pytest.mark.parametrize("mode", ["lossless", "recoverable"])
def test_a_hand_over_says_what_would_help(world: World, mode: Literal["lossless", "recoverable"]) -> None:
    """Where another mode would free enough, the line names it and its share; nothing is put into the stash for that."""
    event = event_of(world)
    for path in world.project.glob("module_*.py"):
        path.unlink()
    plan = compact_event(event, Config(rules_mode=mode)).plan
    assert isinstance(plan, HandOver)
    told = re.search(r"; rules_mode stashed would free (\d+) %$", plan.say)
    assert told is not None
    assert list(world.root.rglob("stash/*")) == []
    stashed = EventContext(Ports(stash_folder=world.root / "s"))
    report = compact_event(event, Config(rules_mode="stashed"), stashed).report
    assert report is not None
    assert int(told[1]) == math.floor(100 * report["reduction_ratio"])
    helpless = compact_event(event, Config(rules_mode=mode, min_reduction=0.9999)).plan
    assert "would free" not in helpless.say
    cannot = compact_event(replace(event, can_recall=False), Config(rules_mode=mode)).plan
    assert isinstance(cannot, HandOver)
    assert cannot.say.endswith("% where the session can recall, which this one has not shown")


@pytest.mark.parametrize(("real", "is_credible"), [(10, False), (100, False), (60_000, True)])
def test_the_line_never_says_that_less_stays_than_does(
    world: World, tmp_path: Path, real: int, is_credible: bool
) -> None:
    """The share that stays is not smaller than the text's; a request smaller than its own text is no figure."""
    file = tmp_path / "session.jsonl"
    usage = {"input_tokens": real, "output_tokens": 1}
    file.write_text(json.dumps({"type": "assistant", "message": {"model": "claude-opus-4-8", "usage": usage}}) + "\n")
    book, seen = TokenBook(), list[tuple[Figures, int, int]]()

    def figures(result: TranscriptCompactionResult) -> Figures:
        made = book.figures("s", newest_context(file), result.transcript, result.edits, result.report)
        seen.append((made, result.report["tokens_before"], result.report["tokens_after"]))
        return made

    compact_event(event_of(world), Config(), EventContext(figures=figures))
    ((made, counted, stays),) = seen
    assert made.is_real is is_credible
    assert made.before == (real if is_credible else counted)
    assert made.before * stays / counted - 1 <= made.after <= made.before


def test_what_stands_against_a_replacement_is_said(world: World) -> None:
    """Each hand-over has its own word; a pass before, on the same session, makes `nothing-new` of nothing."""
    pinned = Config(preserve_recent=100)
    cases = [
        (event_of(world), Config(enabled=False), EventContext(), "disabled"),
        (event_of(world, trigger="precompute"), Config(), EventContext(), "unknown-trigger"),
        (event_of(world), pinned, EventContext(), "nothing-to-remove"),
        (event_of(world), pinned, EventContext(seen_before=True), "nothing-new"),
        (event_of(world), Config(min_reduction=0.999), EventContext(), "too-little"),
        (event_of(world, cwd="relative"), Config(), EventContext(), "bad-event"),
    ]
    for event, config, context, reason in cases:
        plan = compact_event(event, config, context).plan
        assert isinstance(plan, HandOver), reason
        assert plan.reason == reason


def test_a_file_that_changes_while_the_plan_is_made_is_kept(world: World) -> None:
    """The last hash comes after the plan was built: what changed meanwhile is no part of the plan that goes out."""
    victim = world.project / "module_3.py"
    touched = []

    def change(result: TranscriptCompactionResult) -> Figures:
        if not touched:
            touched.append(victim.write_text("something else\n"))
        return Figures(2, 1, False)

    done = compact_event(event_of(world), Config(rules_mode="recoverable"), EventContext(figures=change))
    plan = json.loads(done.encoded)
    assert touched
    assert "toolu_0003" not in plan["results"]
    assert len(plan["results"]) == 7


def test_a_hand_over_leaves_its_report_and_a_line_in_the_log(world: World) -> None:
    """Why nothing was removed can be looked up: the pass's report, and session, trigger and reason in the log."""
    world.start()
    event = make_event(world, trigger="plugin")
    assert world.plan(event, LCC_MIN_REDUCTION="0.999")["reason"] == "too-little"
    assert wait_until(lambda: len(list((world.state / "reports").glob("*.json"))) == 1)
    (report,) = (world.state / "reports").glob("*.json")
    assert json.loads(report.read_bytes())["worth_it"] is False
    session = json.loads(event)["session_id"]
    assert f"compact: too-little, session {session}, plugin, " in (world.state / "daemon.log").read_text()


def test_the_plan_of_the_second_compaction_finds_nothing_new(world: World) -> None:
    """The event after a replacement holds the notes: nothing is removed twice, and the client is told to go on."""
    event = json.loads(make_event(world))
    world.start()
    first = world.plan(json.dumps(event).encode())
    results = first["results"]
    assert isinstance(results, dict)
    for message in event["messages"]:
        for result in message.get("toolResults", []):
            result["text"] = results.get(result["tool_use_id"], result["text"])
        for use in message["toolUses"]:
            use["text"] = results.get(use["tool_use_id"], use.get("text"))
    assert world.plan(json.dumps(event).encode())["reason"] == "nothing-new"


def test_the_same_plan_with_and_without_a_daemon(world: World) -> None:
    """`lcc compact` on the event's messages gives the texts that the plan gives, and the same decisions.

    Who does not say how a note can be followed gets none of the stash: the ladder is `recoverable` alone.
    """
    from lcc.relevance import TranscriptCompactionRequest, compact_transcript

    event = make_event(world)
    plan = world.plan(event)
    result = compact_transcript(
        TranscriptCompactionRequest(
            payload={"messages": json.loads(event)["messages"]},
            provider="rules",
            rules_mode="recoverable",
            workspace_root=str(world.project),
        )
    )
    assert plan["results"] == dict(result.edits.texts)
    from daemon.daemon_world import wait_until

    report_file = Path(str(plan["report"]))
    assert wait_until(report_file.exists)
    report = json.loads(report_file.read_text())
    assert report_file.stat().st_mode & 0o777 == 0o600
    assert report["decisions"] == json.loads(json.dumps(result.report["decisions"]))
    assert report["tokens_after"] == result.report["tokens_after"]
