"""`lcc explain`: the report in plain words, on the same terms whatever the report holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.cli_world import World
from cli.report_world import ONE_OF_EACH, pair, report_of
from making import SESSIONS

from lcc.contract.decision import Drop, Keep
from lcc.contract.reasons import REASONS, SUPERSEDED_BY_LATER_CALL, Reason, family, in_words
from lcc.contract.report import CacheCostRecord
from lcc.contract.report_reader import ReportError, read_report
from lcc.explain.grouped import cache_words, explain, way_back
from lcc.explain.html import page

SNAPSHOT = Path(__file__).parent / "explanation.txt"
HOSTILE = "\x1b[2J\x07<script>alert(1)</script>\u202e[bold]\nnew line"


def write(world: World, report: dict[str, Any]) -> str:
    (world.folder / "report.json").write_text(json.dumps(report))
    return "report.json"


def test_the_text_is_the_one_that_was_agreed(world: World) -> None:
    """A snapshot: one call of each fate. After a change that is meant, write it anew with the command below.

    python -c "from cli.test_explain import renew; renew()"   (in tests/)
    """
    ran = world.lcc("explain", write(world, report_of(ONE_OF_EACH)))

    assert ran.code == 0, ran.err
    assert ran.text == SNAPSHOT.read_text()


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (
            {"tokens": 31_000, "window": 200_000, "share": 0.155},
            "62,000 of 200,000 tokens (31%) before, 31,000 (16%) after.",
        ),
        (None, "62,000 of 200,000 tokens (31%) before; not measured after it yet."),
    ],
)
def test_the_clients_own_figures_are_told(world: World, after: dict[str, Any] | None, said: str) -> None:
    """Of a live session, before and after; a report without them, also an older one, says nothing of it."""
    report: dict[str, Any] = {**report_of(ONE_OF_EACH)}
    report["context"] = {"before": {"tokens": 62_000, "window": 200_000, "share": 0.31}, "after": after}
    told = " ".join(world.lcc("explain", write(world, report)).text.split())
    assert f"Context, by the client's own figures: {said}" in told
    del report["context"]
    assert "own figures" not in world.lcc("explain", write(world, report)).text


def renew() -> None:
    """Writes the snapshot anew."""
    import subprocess

    from programs import LCC

    given = json.dumps(report_of(ONE_OF_EACH)).encode()
    SNAPSHOT.write_bytes(subprocess.run([LCC, "explain", "-"], input=given, capture_output=True, check=True).stdout)


def test_it_groups_by_decision_and_reason() -> None:
    """What was removed first, most freed first; reasons with a detail are one group."""
    more = [(pair(f"t{n}", "Read", {}, "x" * 900), Drop(SUPERSEDED_BY_LATER_CALL(f"t{n + 1}"))) for n in range(3)]

    explanation = explain(report_of([*ONE_OF_EACH, *more]))

    freed = [group.chars_before - group.chars_after for group in explanation.removed]
    assert freed == sorted(freed, reverse=True)
    superseded = next(group for group in explanation.removed if group.reason == "superseded_by_later_call")
    assert (superseded.decision, superseded.calls) == ("drop", 3)
    assert {group.decision for group in explanation.kept} == {"keep"}
    total = sum(group.calls for group in (*explanation.removed, *explanation.kept))
    assert total == len(ONE_OF_EACH) + 3


def test_largest_removals_and_what_could_not_be_freed_are_listed(world: World) -> None:
    """--limit sets how many."""
    ran = world.lcc("explain", write(world, report_of(ONE_OF_EACH)), "--limit", "1", "--json")
    found = json.loads(ran.out)

    assert [call["id"] for call in found["largest_removals"]] == ["toolu_2"]
    assert [call["id"] for call in found["largest_kept"]] == ["toolu_8"]
    assert found["largest_kept"][0]["because"] == "the file on disk no longer holds exactly this output"


def test_what_the_score_says_of_a_call_is_told(world: World) -> None:
    """Its points and what they are made of, in one line, of what went and of what stayed."""
    report = report_of(ONE_OF_EACH)
    gone, kept = report["decisions"][3], report["decisions"][8]
    gone["points"], gone["why"] = -0.75, "test or build output, a turn ago"
    kept["points"], kept["why"] = 1.25, "file read, holds words that stand nowhere else"
    name = write(world, report)

    told = json.loads(world.lcc("explain", name, "--json").out)

    removed = {call["id"]: call["why"] for call in told["largest_removals"]}
    assert removed["toolu_4"] == "-0.75 points: test or build output, a turn ago"
    assert removed["toolu_2"] is None
    text = " ".join(world.lcc("explain", name).text.split())
    assert "(-0.75 points: test or build output, a turn ago)" in text
    assert "(+1.25 points: file read, holds words that stand nowhere else)" in text
    assert "-0.75 points: test or build output, a turn ago" in page(read_report(json.dumps(report).encode()))


def test_json_is_for_programs(world: World) -> None:
    """The report's own keys without the decisions, and the groups."""
    report = report_of(ONE_OF_EACH)
    found = json.loads(world.lcc("explain", write(world, report), "--json").out)

    assert found["schema_version"] == "transcript-explanation-1.0"
    assert found["report"] == {key: value for key, value in report.items() if key != "decisions"}
    assert sum(row["calls"] for row in found["by_tool"]) == len(ONE_OF_EACH)


def test_a_report_can_come_by_standard_input(world: World) -> None:
    """As for a session, - is standard input."""
    given = json.dumps(report_of(ONE_OF_EACH)).encode()

    assert world.lcc("explain", "-", stdin=given).text == SNAPSHOT.read_text()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"schema_version": "transcript-compaction-9"}, "schema_version"),
        ({"schema_version": None}, "schema_version"),
        ({"decisions": {}}, "decisions"),
        ({"chars_before": "many"}, "chars_before"),
        ({"chars_after": -1}, "chars_after"),
        ({"reduction_ratio": None}, "reduction_ratio"),
        ({"warnings": [1]}, "warnings[0]"),
        ({"objective": []}, "objective"),
        ({"decisions": [7]}, "decisions[0]"),
        ({"decisions": [{"id": "x"}]}, "decisions[0].decision"),
    ],
)
def test_what_is_no_report_is_bad_input_with_the_place(world: World, change: dict[str, Any], place: str) -> None:
    """The file, and where in it."""
    ran = world.lcc("explain", write(world, {**report_of(ONE_OF_EACH), **change}))

    assert ran.code == 2
    assert f"report.json: not a report of `lcc compact`: {place}: " in ran.err
    assert ran.out == b""


@pytest.mark.parametrize("key", ["id", "decision", "reason", "tool", "source", "chars", "chars_after"])
@pytest.mark.parametrize("value", [None, [], {}, True, 1.5])
def test_a_record_of_the_wrong_shape_is_told_by_its_place(key: str, value: Any) -> None:
    """The key, in the record where it stands."""
    report = report_of(ONE_OF_EACH)
    report["decisions"][3][key] = value

    with pytest.raises(ReportError) as refused:
        read_report(json.dumps(report).encode())
    assert refused.value.place == f"decisions[3].{key}"


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b"nul", b'{"a": NaN}', b"7"])
def test_what_is_no_json_object_is_bad_input(world: World, raw: bytes) -> None:
    """Never a traceback."""
    (world.folder / "report.json").write_bytes(raw)

    ran = world.lcc("explain", "report.json")

    assert ran.code == 2
    assert ran.err.startswith("lcc: report.json: not a report")
    assert ran.err.count("\n") == 1


def test_nothing_in_a_report_reaches_the_terminal_as_a_control_code(world: World) -> None:
    """Tool names, subjects, reasons and paths are printed as text in one line."""
    found = pair(HOSTILE, HOSTILE, {"command": HOSTILE}, "x" * 500)
    report = report_of([(found, Keep(Reason(HOSTILE, "words")))], warnings=[HOSTILE], workspace_root=HOSTILE)
    report["objective"] = HOSTILE

    ran = world.lcc("explain", write(world, report))

    assert ran.code == 0
    assert not {c for c in ran.text if not c.isprintable()} - {"\n"}
    assert "[bold]" in ran.text
    assert all(not line.startswith("new line") for line in ran.text.splitlines())


def test_every_reason_of_a_real_pass_has_its_words() -> None:
    """All reasons that passes over real sessions give stand in the one table."""
    from lcc.relevance import TranscriptCompactionRequest, compact_transcript
    from lcc.transcript import messages_to_payload, read_transcript

    files = sorted(SESSIONS.glob("*.jsonl"))
    if not files:
        pytest.skip("the shared sessions are not beside this checkout")
    reasons = set()
    for file in files[::3]:
        payload = messages_to_payload(read_transcript(file.read_bytes()).messages)
        for mode in ("lossless", "recoverable", "lossy"):
            request = TranscriptCompactionRequest(payload, provider="rules", rules_mode=mode)
            reasons |= {str(record["reason"]) for record in compact_transcript(request).report["decisions"]}
    assert {reason for reason in reasons if in_words(reason) == family(reason)} == set()


@pytest.mark.parametrize("reason", list(REASONS))
def test_every_reason_is_one_clause(reason: str) -> None:
    """It completes "because …": no full stop, no capital, not its own name."""
    words = in_words(reason)

    assert words != reason
    assert words[0].islower()
    assert not words.endswith(".")


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (0, None),
        (1, "read src/cart.py"),
        (2, "the same output stands at toolu_8"),
        (3, "lcc recall 0123456789ab"),
        (4, "run `ls -la src` again"),
        (5, "gone, with its call"),
        (6, "its ends or its head stay; the rest is gone"),
    ],
)
def test_every_removal_says_how_it_is_had_back(index: int, words: str | None) -> None:
    """In words that a person can act on."""
    assert way_back(report_of(ONE_OF_EACH)["decisions"][index]) == words


def cost(kept: int, rewrite: int, turns: float | None, advice: str = "compact", cold: bool = False) -> CacheCostRecord:
    return {
        "kept_tokens": kept,
        "rewrite_tokens": rewrite,
        "freed_tokens": 500,
        "cold": cold,
        "next_request": 1.0,
        "saved_per_turn": 2.0,
        "break_even_turns": turns,
        "advice": advice,
    }


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, None),
        (cost(5, 7, None), None),
        (
            cost(1000, 4000, 3.2),
            "1,000 tokens stay cached, 4,000 are written again at the next request; paid back after 3.2 more requests",
        ),
        (
            cost(0, 4000, 31, advice="wait_for_cold_cache"),
            "0 tokens stay cached, 4,000 are written again at the next request; paid back after 31 more requests; "
            "it is cheaper to wait until the cache is cold",
        ),
        (
            cost(1000, 9, 0, cold=True),
            "1,000 tokens stay cached; the compaction saves from the next request on",
        ),
    ],
)
def test_the_cost_in_the_prompt_cache_is_said(world: World, found: CacheCostRecord | None, words: str | None) -> None:
    """What is written again, when it pays, and whether to wait."""
    assert cache_words(found) == words
    text = world.lcc("explain", write(world, {**report_of(ONE_OF_EACH), "cache_cost": found})).text
    assert (f"Prompt cache: {words}." in text) is (words is not None)
