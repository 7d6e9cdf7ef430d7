"""What `stashed` and `auto` choose: by score, whatever the proof; and what stays whatever its score."""

from __future__ import annotations

import pytest

from lcc.contract.reasons import (
    LIKELY_NEEDED_AGAIN,
    NOT_STASH_ELIGIBLE,
    SHORT_RESULT_KEPT_WHOLE,
    TARGET_REACHED,
)
from lcc.relevance.choice import Choice, StashedReason, choose
from lcc.relevance.reading.calls import file_reads
from lcc.transcript import Json, parse_payload

LONG = "some line of output without anything special in it at all\n" * 200
TELLING = "\n".join(f"def build_widget_{number}(node): return tree_{number}.walk()" for number in range(120))
FILLER = 40
Call = tuple[str, dict[str, Json], str]


def chosen(*calls: Call, kept: frozenset[str] = frozenset(), free: int | None = None) -> Choice:
    """The choice among these calls (``c0``, ``c1``, …), which lie far behind the newest messages."""
    messages: list[Json] = [{"role": "user", "text": "do the work"}]
    rest: list[Call] = [("Bash", {"command": "true"}, "ok")] * FILLER
    for number, (tool, given, text) in enumerate([*calls, *rest]):
        use: Json = {"tool_use_id": f"c{number}", "tool": tool, "input": given}
        messages.append({"role": "assistant", "text": "", "toolUses": [use]})
        messages.append({"role": "user", "toolResults": [{"tool_use_id": f"c{number}", "text": text}]})
    transcript = parse_payload(messages)
    pairs = list(transcript.pairs())
    return choose(transcript.messages, pairs, kept, file_reads(pairs), frozenset(), free)


@pytest.mark.parametrize(
    ("tool", "given", "reason"),
    [
        ("Bash", {"command": "make"}, "old_command_output"),
        ("Read", {"file_path": "/p/a.py"}, "old_file_read"),
        ("Grep", {"pattern": "x"}, "old_search"),
        ("WebFetch", {"url": "https://example.org"}, "old_web_page"),
        ("Edit", {"file_path": "/p/a.py"}, "old_edit_output"),
        ("Task", {"prompt": "look"}, "old_agent_report"),
        ("mcp__tracker__list", {}, "old_tool_output"),
    ],
)
def test_an_old_long_result_goes_with_the_reason_of_its_kind(
    tool: str, given: dict[str, Json], reason: StashedReason
) -> None:
    assert chosen((tool, given, LONG)).chosen["c0"] == reason


@pytest.mark.parametrize(("tool", "given"), [("AskUserQuestion", {"question": "which?"}), ("Skill", {"skill": "x"})])
def test_what_the_user_answered_and_skills_stay(tool: str, given: dict[str, Json]) -> None:
    assert chosen((tool, given, LONG)).kept["c0"] == NOT_STASH_ELIGIBLE


def test_short_results_stay_whole() -> None:
    """Where the note and its excerpt would save next to nothing."""
    paths = "\n".join(f"src/part_{number}/module_{number}.py" for number in range(20))
    found = chosen(("Bash", {"command": "m"}, "x" * 240), ("Glob", {"pattern": "*"}, paths))
    assert found.kept["c0"] == found.kept["c1"] == SHORT_RESULT_KEPT_WHOLE


def test_what_is_likely_needed_again_stays_in_a_small_context() -> None:
    """Its words stand nowhere else; a repeat of the same size goes."""
    small = TELLING[:1500]
    found = chosen(("Read", {"file_path": "/p/a.py"}, small), ("Bash", {"command": "make"}, LONG))
    assert found.kept["c0"] == LIKELY_NEEDED_AGAIN
    assert "c1" in found.chosen
    assert found.scored["c0"].key > found.scored["c1"].key


def test_more_goes_the_larger_the_context_is() -> None:
    """The same result, among a hundred times as many characters."""
    small: Call = ("Read", {"file_path": "/p/a.py"}, TELLING[:1500])
    alone = chosen(small)
    among = chosen(small, *[("Bash", {"command": "make"}, LONG + "x" * number * 900) for number in range(40)])
    assert "c0" in alone.kept
    assert "c0" in among.chosen


def test_what_a_guard_keeps_is_not_asked() -> None:
    found = chosen(("Bash", {"command": "m"}, LONG), kept=frozenset({"c0"}))
    assert "c0" not in found.chosen
    assert "c0" not in found.kept
    assert "c0" not in found.scored


def test_a_target_takes_the_least_needed_first_and_stops() -> None:
    larger: Call = ("WebFetch", {"url": "https://example.org"}, LONG + LONG)
    smaller: Call = ("WebFetch", {"url": "https://example.com"}, LONG)
    found = chosen(smaller, larger, free=len(LONG))
    assert list(found.chosen) == ["c1"]
    assert found.kept["c0"] == TARGET_REACHED
