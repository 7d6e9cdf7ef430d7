"""The report has every key of its format, the same for every provider and mode, and its figures add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.cli_world import World
from cli.report_world import ONE_OF_EACH, pair, report_of
from making import SESSIONS

from lcc.contract.decision import Keep
from lcc.contract.reasons import NOT_RECOVERABLE
from lcc.contract.record import decision_record, input_chars, subject
from lcc.contract.report import JudgeFacts, Report
from lcc.contract.report_reader import read_report
from lcc.contract.request import TranscriptCompactionRequest

PAGE_KEYS = """
schema_version mode objective provider_requested provider_used rules_mode lossless_violations recoverability_check
stash_dir degraded degradation_reason semantic_guarantee jev_model_requested jev_model_resolved threshold
trim_threshold trim_head_chars preserve_recent blocks_total blocks_scored blocks_protected calls latency_ms
chars_before chars_after reduction_ratio worth_it min_reduction tool_chars_before tool_chars_after
tool_reduction_ratio tokens_before tokens_after token_count_method state_tokens state_fit_stage requests
messages_before messages_after tool_calls_total tool_calls_kept tool_calls_trimmed tool_calls_dropped
tool_calls_deduped tool_calls_replaced tool_calls_stashed decisions warnings
""".split()
OUR_KEYS = """
tool_calls_unanswered images_stashed format session_id workspace_root workspace_root_source cache_cost
rules_mode_requested rungs context
""".split()
JUDGE_KEYS = """
jev_model_requested jev_model_resolved threshold trim_threshold trim_head_chars calls state_tokens state_fit_stage
requests
""".split()
RECORD_KEYS = """
id decision score keep_call keep_result source reason message_index tool subject chars chars_after
points why inputs
""".split()

WAYS: list[tuple[str, ...]] = [
    ("--provider", "rules", "--rules-mode", "lossless"),
    ("--provider", "rules", "--rules-mode", "recoverable"),
    ("--provider", "rules", "--rules-mode", "recoverable", "--no-disk-check"),
    ("--provider", "rules", "--rules-mode", "stashed"),
    ("--provider", "rules", "--rules-mode", "lossy"),
    ("--provider", "jev"),
    ("--provider", "laya"),
    ("--provider", "auto"),
    ("--provider", "jev", "--rules-mode", "recoverable"),
]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_the_keys_are_the_same_for_every_provider_and_mode(world: World, way: tuple[str, ...]) -> None:
    """Every key of the format's page, then this project's own; the records too."""
    ran = world.lcc("compact", "session.jsonl", *way, "--dry-run", "-r", "-")
    report: dict[str, Any] = json.loads(ran.out)

    assert ran.code == 0, ran.err
    assert set(report) == {*PAGE_KEYS, *OUR_KEYS} == set(Report.__annotations__)
    assert read_report(ran.out) == report
    assert report["schema_version"] == "transcript-compaction-1.0"
    for record in report["decisions"]:
        assert list(record)[: len(RECORD_KEYS)] == RECORD_KEYS
        assert set(record) - set(RECORD_KEYS) <= set(_extra_keys(record["decision"]))


def _extra_keys(decision: str) -> list[str]:
    extra = {"dedupe": ["kept_at", "note", "removed"], "replace": ["note", "recover", "recoverability_check"]}
    return extra.get(decision, []) + (["disk", "stash", "removed", "excerpt"] if decision == "replace" else [])


def test_keys_of_a_judge_are_null_where_none_was_asked(world: World) -> None:
    """Null, not a default, in a rules pass and where no judge could be reached."""
    for way in (("--provider", "rules"), ("--provider", "jev")):
        report = json.loads(world.lcc("compact", "session.jsonl", *way, "--dry-run", "-r", "-").out)
        assert {key: report[key] for key in JUDGE_KEYS} == dict.fromkeys(JUDGE_KEYS)


def test_keys_of_a_judge_are_what_it_was_asked_with() -> None:
    """The model that was asked for and the one that answered, the budgets, the requests."""
    request = TranscriptCompactionRequest({}, provider="jev", threshold=0.7, trim_head_chars=99)
    judge = JudgeFacts("jev-latest", "jev-1.13.0", calls=5, requests=4, state_tokens=900, state_fit_stage="full")

    report = report_of(ONE_OF_EACH, request=request, judge=judge)

    assert [report[key] for key in JUDGE_KEYS] == ["jev-latest", "jev-1.13.0", 0.7, None, 99, 5, 900, "full", 4]


def test_the_counts_add_up() -> None:
    """Each call is one block, decided in one way; characters are those of the texts and of the records."""
    report = report_of(ONE_OF_EACH)
    records = report["decisions"]
    decided = ("kept", "trimmed", "dropped", "deduped", "replaced")

    assert report["tool_calls_total"] == report["blocks_total"] == len(ONE_OF_EACH)
    assert [report[f"tool_calls_{name}"] for name in decided] == [3, 1, 1, 1, 3]
    assert report["tool_calls_stashed"] == 1
    assert report["blocks_protected"] == 1
    assert report["blocks_scored"] == len(ONE_OF_EACH) - 1
    gone = sum(record["chars"] - record["chars_after"] for record in records)
    assert report["chars_before"] - report["chars_after"] == gone
    assert report["tool_chars_before"] - report["tool_chars_after"] == gone
    assert report["reduction_ratio"] == pytest.approx(gone / report["chars_before"], abs=1e-6)


@pytest.mark.parametrize("session", sorted(SESSIONS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_characters_before_are_those_of_the_messages(session: Path) -> None:
    """Over real sessions: texts, inputs as JSON, and results, each once."""
    from lcc.relevance import compact_transcript
    from lcc.transcript import messages_to_payload, read_transcript

    transcript = read_transcript(session.read_bytes())
    payload = messages_to_payload(transcript.messages)
    report = compact_transcript(TranscriptCompactionRequest(payload, provider="rules")).report
    expected = sum(
        len(message.text)
        + sum(input_chars(use.input) for use in message.tool_uses)
        + sum(len(result.text) for result in message.tool_results)
        for message in transcript.messages
    )

    assert report["chars_before"] == expected
    assert report["messages_before"] == len(transcript.messages)


def test_shared_sessions_are_there() -> None:
    """Says when the real sessions are missing and the test above had nothing to do."""
    if not SESSIONS.is_dir():
        pytest.skip("the shared sessions are not beside this checkout")
    assert sorted(SESSIONS.glob("*.jsonl"))


def test_worth_it_needs_something_removed() -> None:
    """Asking for nothing does not make nothing worth it."""
    request = TranscriptCompactionRequest({}, provider="rules", min_reduction=0.0)
    nothing = report_of([(pair("t", "Read", {}, "x"), Keep(NOT_RECOVERABLE))], request=request)

    assert nothing["reduction_ratio"] == 0
    assert nothing["worth_it"] is False


def test_an_empty_session_has_a_report() -> None:
    """No division by nothing."""
    report = report_of([])

    assert report["tool_reduction_ratio"] == 0
    assert report["decisions"] == []


@pytest.mark.parametrize(
    ("given", "chars"),
    [
        ({"a": 1}, 7),
        ({"a": "ü"}, 9),
        ({"a": "\u2028😀"}, 10),
        ({"a": 2**70}, 6 + len(str(2**70))),
        ("*** Begin Patch", 17),
        (None, 4),
        ({"a": "\ud800"}, 9),
    ],
)
def test_the_characters_of_an_input_are_those_of_its_compact_json(given: Any, chars: int) -> None:
    """Characters, not bytes; also for integers and texts that not every JSON writer takes."""
    assert input_chars(given) == chars


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"file_path": "a.py", "offset": 3}, "a.py"),
        ({"command": "ls\n-la\t x"}, "ls -la x"),
        ({"command": ["bash", "-lc", "ls"]}, "bash -lc ls"),
        ({"pattern": "x", "path": "/a"}, "x"),
        ({"command": "\x1b[31mred\u202e"}, "\ufffd[31mred\ufffd"),
        ({"command": "a" * 500}, "a" * 119 + "…"),
        ({"unknown": 1}, None),
        ({"file_path": 7}, None),
        ([], None),
        ("", None),
    ],
)
def test_a_subject_is_one_printable_line(given: Any, expected: str | None) -> None:
    """Whatever the input holds."""
    assert subject(given) == expected


def test_a_record_of_a_judged_call_has_its_probabilities() -> None:
    """Score and both answers, as they came."""
    found, decision = ONE_OF_EACH[5]
    record = decision_record(found, decision)

    assert (record["keep_call"], record["keep_result"], record["chars_after"]) == (0.1, 0.2, 0)
