"""The seed's sections 6 and 7, at the Python API: what an option does, and what the report says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from making import MadeSession, long_text, numbered

from lcc.relevance import RequestError, TranscriptCompactionRequest

TEXT = long_text("log", 60)

KEYS = (
    "schema_version mode objective provider_requested provider_used rules_mode lossless_violations "
    "recoverability_check stash_dir degraded degradation_reason semantic_guarantee jev_model_requested "
    "jev_model_resolved threshold trim_threshold trim_head_chars preserve_recent blocks_total blocks_scored "
    "blocks_protected calls latency_ms chars_before chars_after reduction_ratio worth_it min_reduction "
    "tool_chars_before tool_chars_after tool_reduction_ratio tokens_before tokens_after token_count_method "
    "state_tokens state_fit_stage requests messages_before messages_after tool_calls_total tool_calls_kept "
    "tool_calls_trimmed tool_calls_dropped tool_calls_deduped tool_calls_replaced tool_calls_stashed decisions warnings"
).split()
RECORD_KEYS = ("id decision score keep_call keep_result source reason message_index tool chars chars_after").split()
JUDGE_KEYS = (
    "jev_model_requested jev_model_resolved threshold trim_head_chars calls state_tokens state_fit_stage requests"
)


def session() -> MadeSession:
    """Calls of which every kind of decision takes some, and a pinned first message's call does not exist."""
    made = MadeSession(cwd="/w")
    made.read("/w/a.py", numbered(long_text("a.py")))
    made.bash("make", TEXT)
    made.bash("make", TEXT)
    made.bash("make all", "x\n" + TEXT)
    made.call("Bash", {"command": "wait"}, None)
    made.filler(2)
    return made


MODES = ["lossless", "recoverable", "lossy"]


@pytest.mark.parametrize("mode", MODES)
def test_the_report_has_every_key_in_every_mode(mode: str) -> None:
    """§7: the same keys for every provider and mode; null where a key does not apply; it can be written as JSON."""
    report = session().compact(mode, question="Mend it", preserve_recent=2).report

    assert not set(KEYS) - report.keys()
    assert report.keys() == session().compact("lossless").report.keys()
    assert json.loads(json.dumps(report)) == report
    assert report["schema_version"] == "transcript-compaction-1.0"
    assert report["mode"] == "tool-calls"
    assert report["objective"] == "Mend it"
    assert report["provider_requested"] == report["provider_used"] == "rules"
    assert report["rules_mode"] == mode
    assert report["preserve_recent"] == 2
    assert {key: report[key] for key in JUDGE_KEYS.split()} == dict.fromkeys(JUDGE_KEYS.split())


@pytest.mark.parametrize("mode", MODES)
def test_a_block_is_a_pair(mode: str) -> None:
    """§7: blocks_* count a call pair as one block: scored, protected, and all of them."""
    answer = session().compact(mode, preserve_recent=2)
    report, records = answer.report, list(answer.records.values())

    assert report["blocks_total"] == report["tool_calls_total"] == len(records) == 6
    assert report["blocks_protected"] == sum(record["source"] == "pin" for record in records) == 1
    assert report["blocks_scored"] == 5
    assert [record["id"] for record in records] == ["c1", "c2", "c3", "c4", "c6", "c7"]


@pytest.mark.parametrize("mode", MODES)
def test_the_counts_are_those_of_the_decisions(mode: str) -> None:
    """§7: tool_calls_total, kept, trimmed, dropped (and deduped, replaced) add up to the records."""
    answer = session().compact(mode)
    decisions = [record["decision"] for record in answer.records.values()]

    for name, decision in (
        ("kept", "keep"),
        ("trimmed", "trim"),
        ("dropped", "drop"),
        ("deduped", "dedupe"),
        ("replaced", "replace"),
    ):
        assert answer.report[f"tool_calls_{name}"] == decisions.count(decision)
    assert answer.report["tool_calls_stashed"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_the_figures_are_those_of_the_messages(mode: str) -> None:
    """§7: chars, messages and reduction before and after are those of what went in and what came out."""
    made = session()
    answer = made.compact(mode)
    report = answer.report

    assert report["messages_before"] == len(made.messages)
    assert report["messages_after"] == len(answer.messages)
    assert report["chars_before"] == _chars(made.messages)
    assert report["chars_after"] == _chars(answer.messages)
    assert report["reduction_ratio"] == pytest.approx(1 - report["chars_after"] / report["chars_before"], abs=1e-6)
    assert 0 < report["tokens_after"] < report["tokens_before"]
    assert report["token_count_method"]


def _chars(messages: list[dict[str, Any]]) -> int:
    """Characters of texts, of inputs as compact JSON, and of results."""
    total = 0
    for message in messages:
        total += len(message.get("text", ""))
        for use in message.get("toolUses", []):
            total += len(json.dumps(use["input"], separators=(",", ":"), ensure_ascii=False))
        total += sum(len(result["text"]) for result in message.get("toolResults", []))
    return total


@pytest.mark.parametrize("mode", MODES)
def test_each_record_has_its_keys_and_its_characters(mode: str) -> None:
    """§7: decisions keep the block schema, so that `lcc explain` works on the report offline."""
    made = session()
    answer = made.compact(mode)
    before = made.compact("lossless", preserve_recent=99).texts
    inputs = {use["tool_use_id"]: use["input"] for m in made.messages for use in m.get("toolUses", [])}

    for call, record in answer.records.items():
        assert not set(RECORD_KEYS) - record.keys()
        size = len(json.dumps(inputs[call], separators=(",", ":")))
        assert record["chars"] == size + len(before[call])
        assert record["chars_after"] == (size + len(answer.texts[call]) if call in answer.texts else 0)
        assert record["score"] is record["keep_call"] is record["keep_result"] is None
        assert record["message_index"] == next(
            i for i, m in enumerate(made.messages) if call in str(m.get("toolUses", ""))
        )


def test_the_tool_figures_are_of_the_judged_payload_only() -> None:
    """§7: tool_chars and tool_reduction_ratio are those of the judged payload: pinned calls do not count."""
    made = session()
    report = made.compact("lossless", preserve_recent=4).report
    records = made.compact("lossless", preserve_recent=4).records.values()
    judged = [record for record in records if record["source"] != "pin"]

    assert len(judged) < len(records)
    assert report["tool_chars_before"] == sum(record["chars"] for record in judged)
    assert report["tool_chars_after"] == sum(record["chars_after"] for record in judged)
    assert report["tool_reduction_ratio"] == pytest.approx(
        1 - report["tool_chars_after"] / report["tool_chars_before"], abs=1e-6
    )


def test_nothing_to_decide_is_said() -> None:
    """§5, §7: with every call pinned there are no candidates: nothing degraded, no guarantee claimed."""
    made = session()
    answer = made.compact("lossless", preserve_recent=99)

    assert answer.messages == made.messages
    assert answer.report["degraded"] is False
    assert answer.report["degradation_reason"] == "no_candidates"
    assert answer.report["semantic_guarantee"] == "none"
    assert answer.report["blocks_scored"] == 0


@pytest.mark.parametrize("messages", [[], [{"role": "user", "text": "go"}]])
@pytest.mark.parametrize("mode", MODES)
def test_a_session_without_calls(messages: list[Any], mode: str) -> None:
    """§7: nothing at all is a report too."""
    made = MadeSession()
    made.messages = messages
    answer = made.compact(mode)

    assert answer.messages == messages
    assert answer.report["decisions"] == []
    assert answer.report["reduction_ratio"] == 0
    assert answer.report["worth_it"] is False


def test_min_reduction_sets_worth_it() -> None:
    """§6: --min-reduction sets worth_it: whether at least that share of the characters went."""
    made = session()
    ratio = made.compact().report["reduction_ratio"]
    assert 0.1 < ratio < 0.9

    assert made.compact(min_reduction=ratio - 0.01).report["worth_it"] is True
    assert made.compact(min_reduction=ratio + 0.01).report["worth_it"] is False
    assert made.compact(min_reduction=ratio + 0.01).messages == made.compact().messages


def test_the_question_is_the_goal() -> None:
    """§6: --question is the goal of the pass."""
    made = session()

    assert made.compact("recoverable").decision("c1") == "keep"  # make may have written it
    assert made.compact("lossy", question="a.py").reason("c1") == "named_in_goal"
    assert made.compact("lossy", question="b.py").reason("c1") != "named_in_goal"


def test_mechanical_is_refused() -> None:
    """§5: mechanical is refused in this mode: a lexical scorer cannot answer a semantic question."""
    with pytest.raises(RequestError, match="semantic question"):
        TranscriptCompactionRequest(payload=[], provider="mechanical")


@pytest.mark.parametrize(
    "options",
    [
        {"provider": "other"},
        {"rules_mode": "other"},
        {"threshold": 1.1},
        {"threshold": -0.1},
        {"min_reduction": 2},
        {"preserve_recent": -1},
        {"trim_head_chars": -1},
        {"max_state_tokens": 0},
        {"max_request_tokens": 0},
        {"batch_calls": 0},
        {"max_workers": 0},
    ],
)
def test_an_option_out_of_range_is_refused(options: dict[str, Any]) -> None:
    """§6: an option is honoured or refused, with its name; it is never silently ignored."""
    with pytest.raises(RequestError) as raised:
        TranscriptCompactionRequest(**{"payload": [], "provider": "rules", **options})

    assert raised.value.option in options
    assert isinstance(raised.value, ValueError)


def test_the_defaults() -> None:
    """§2, §3, §4, §6: threshold 0.5, trim head 300, six recent messages, 25000 and 30000 tokens, provider auto."""
    request = TranscriptCompactionRequest(payload=[])

    assert (request.threshold, request.trim_head_chars, request.preserve_recent) == (0.5, 300, 6)
    assert (request.max_state_tokens, request.max_request_tokens) == (25000, 30000)
    assert (request.provider, request.rules_mode) == ("auto", "lossless")
    assert (request.workspace_root, request.disk_check, request.allow_command_pointers) == (None, True, False)
