"""The report of a pass, `transcript-compaction-1.0` (the seed's section 7; every key is defined in lcc/README.md).

Pure: it is given what the pass found and counts it, once, in one walk over the calls and one over the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypedDict

from lcc.contract.checked import Count
from lcc.contract.decision import Action
from lcc.contract.modes import Guarantee, Provider, RulesMode
from lcc.contract.record import Record, input_chars

if TYPE_CHECKING:
    from lcc.contract.options import PassOptions
    from lcc.transcript import Message, Transcript

SCHEMA_VERSION: Final = "transcript-compaction-1.0"

FileCheck = Literal["disk", "transcript_proxy"]
RootSource = Literal["option", "session", "payload"]


class CacheCostRecord(TypedDict):
    """What the compaction costs in the prompt cache; `lcc.tokens.cache_cost` says how it is reckoned."""

    kept_tokens: int
    rewrite_tokens: int
    freed_tokens: int
    cold: bool
    next_request: float
    saved_per_turn: float
    break_even_turns: float | None
    advice: str


class RungRecord(TypedDict):
    """What one rung of `auto` did: how many results or strings of inputs went, and the characters that they freed."""

    rung: Literal["results", "inputs"]
    replaced: Count
    chars: Count


class MeasuredRecord(TypedDict):
    """How full the context was, by the client's own figures."""

    tokens: Count
    window: Count
    share: float


class ContextRecord(TypedDict):
    """The context at the compaction, and at the first measure behind it; null until the client has made one."""

    before: MeasuredRecord
    after: MeasuredRecord | None


class Report(TypedDict):
    """The report, every key of it."""

    schema_version: Literal["transcript-compaction-1.0"]
    mode: Literal["tool-calls"]
    objective: str
    provider_requested: Provider
    provider_used: str
    rules_mode: RulesMode | None
    rules_mode_requested: RulesMode | None
    rungs: list[RungRecord] | None
    lossless_violations: list[str] | None
    recoverability_check: FileCheck | None
    stash_dir: str | None
    degraded: bool
    degradation_reason: str | None
    semantic_guarantee: Guarantee
    jev_model_requested: str | None
    jev_model_resolved: str | None
    threshold: float | None
    trim_threshold: float | None
    trim_head_chars: Count | None
    preserve_recent: Count
    blocks_total: Count
    blocks_scored: Count
    blocks_protected: Count
    calls: Count | None
    latency_ms: float
    chars_before: Count
    chars_after: Count
    reduction_ratio: float
    worth_it: bool
    min_reduction: float
    tool_chars_before: Count
    tool_chars_after: Count
    tool_reduction_ratio: float
    tokens_before: Count
    tokens_after: Count
    token_count_method: str
    state_tokens: Count | None
    state_fit_stage: str | None
    requests: Count | None
    messages_before: Count
    messages_after: Count
    tool_calls_total: Count
    tool_calls_kept: Count
    tool_calls_trimmed: Count
    tool_calls_dropped: Count
    tool_calls_deduped: Count
    tool_calls_replaced: Count
    tool_calls_stashed: Count
    tool_calls_unanswered: Count | None
    images_stashed: Count | None
    format: str | None
    session_id: str | None
    workspace_root: str | None
    workspace_root_source: RootSource | None
    cache_cost: CacheCostRecord | None
    context: ContextRecord | None
    decisions: list[Record]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class JudgeFacts:
    """What there is to say only when a judge was asked; without one, every key of it is null."""

    model_requested: str
    model_resolved: str | None = None
    calls: int = 0
    """HTTP requests that were sent, retries included."""
    requests: int = 0
    """Batches that the questions were split into."""
    state_tokens: int | None = None
    state_fit_stage: str | None = None


@dataclass(frozen=True, slots=True)
class PassFacts:
    """Everything that `build_report` needs. ``records`` hold one entry for each call that has its result."""

    options: PassOptions
    transcript: Transcript
    records: list[Record]
    messages_after: int
    provider_used: str
    semantic_guarantee: Guarantee
    tokens_before: int
    tokens_after: int
    token_count_method: str
    rules_mode: RulesMode | None = None
    """The rules that were run; None where only a judge decided."""
    rules_mode_requested: RulesMode | None = None
    rungs: list[RungRecord] | None = None
    lossless_violations: Sequence[str] | None = None
    recoverability_check: FileCheck | None = None
    stash_dir: str | None = None
    degraded: bool = False
    degradation_reason: str | None = None
    judge: JudgeFacts | None = None
    latency_ms: float = 0.0
    warnings: Sequence[str] = ()
    workspace_root: str | None = None
    workspace_root_source: RootSource | None = None
    cache_cost: CacheCostRecord | None = None


def measured(tokens: int, window: int) -> MeasuredRecord:
    """The client's figures as the report holds them."""
    return {"tokens": tokens, "window": window, "share": round(tokens / window, 4)}


def build_report(facts: PassFacts) -> Report:
    """The report. The same keys for every provider and mode; null where a key does not apply."""
    options, transcript, judge = facts.options, facts.transcript, facts.judge
    counts = _count(facts.records)
    rest, unanswered = _outside(transcript.messages, facts.records)
    chars_before = rest + counts.chars
    chars_after = rest + counts.chars_after
    reduction = _ratio(chars_before, chars_after)
    decided = counts.decisions
    return {
        "schema_version": SCHEMA_VERSION,
        "mode": "tool-calls",
        "objective": options.question,
        "provider_requested": options.provider,
        "provider_used": facts.provider_used,
        "rules_mode": facts.rules_mode,
        "rules_mode_requested": facts.rules_mode_requested,
        "rungs": facts.rungs,
        "lossless_violations": None if facts.lossless_violations is None else list(facts.lossless_violations),
        "recoverability_check": facts.recoverability_check,
        "stash_dir": facts.stash_dir,
        "degraded": facts.degraded,
        "degradation_reason": facts.degradation_reason,
        "semantic_guarantee": facts.semantic_guarantee,
        "jev_model_requested": judge.model_requested if judge else None,
        "jev_model_resolved": judge.model_resolved if judge else None,
        "threshold": options.threshold if judge else None,
        "trim_threshold": None,
        "trim_head_chars": options.trim_head_chars if judge else None,
        "preserve_recent": options.preserve_recent,
        "blocks_total": len(facts.records),
        "blocks_scored": counts.scored,
        "blocks_protected": counts.protected,
        "calls": judge.calls if judge else None,
        "latency_ms": round(facts.latency_ms, 3),
        "chars_before": chars_before,
        "chars_after": chars_after,
        "reduction_ratio": reduction,
        "worth_it": reduction >= options.min_reduction and chars_after < chars_before,
        "min_reduction": options.min_reduction,
        "tool_chars_before": counts.chars - counts.pinned_chars,
        "tool_chars_after": counts.chars_after - counts.pinned_chars,
        "tool_reduction_ratio": _ratio(counts.chars - counts.pinned_chars, counts.chars_after - counts.pinned_chars),
        "tokens_before": facts.tokens_before,
        "tokens_after": facts.tokens_after,
        "token_count_method": facts.token_count_method,
        "state_tokens": judge.state_tokens if judge else None,
        "state_fit_stage": judge.state_fit_stage if judge else None,
        "requests": judge.requests if judge else None,
        "messages_before": len(transcript.messages),
        "messages_after": facts.messages_after,
        "tool_calls_total": len(facts.records),
        "tool_calls_kept": decided["keep"],
        "tool_calls_trimmed": decided["trim"],
        "tool_calls_dropped": decided["drop"],
        "tool_calls_deduped": decided["dedupe"],
        "tool_calls_replaced": decided["replace"],
        "tool_calls_stashed": counts.stashed,
        "tool_calls_unanswered": unanswered,
        "images_stashed": None,
        "format": transcript.format.name,
        "session_id": transcript.session_id,
        "workspace_root": facts.workspace_root,
        "workspace_root_source": facts.workspace_root_source,
        "cache_cost": facts.cache_cost,
        "context": None,
        "decisions": facts.records,
        "warnings": list(facts.warnings),
    }


class _Counts(NamedTuple):
    decisions: dict[Action, int]
    scored: int
    protected: int
    stashed: int
    chars: int
    chars_after: int
    pinned_chars: int
    """Of both, what is pinned: it is no part of the payload that was decided about."""


def _count(records: Iterable[Record]) -> _Counts:
    decisions: dict[Action, int] = {"keep": 0, "trim": 0, "drop": 0, "dedupe": 0, "replace": 0}
    unscored = protected = stashed = chars = chars_after = pinned_chars = total = 0
    for record in records:
        total += 1
        decisions[record["decision"]] += 1
        source = record["source"]
        if source == "pin":
            protected += 1
            pinned_chars += record["chars"]
        elif source == "fail_safe":
            unscored += 1
        chars += record["chars"]
        chars_after += record["chars_after"]
        if record["decision"] == "replace" and record["recoverability_check"] == "stash":
            stashed += 1
    return _Counts(decisions, total - protected - unscored, protected, stashed, chars, chars_after, pinned_chars)


def _outside(messages: Iterable[Message], records: Iterable[Record]) -> tuple[int, int]:
    """Characters of the texts and of every call or result without a record, and how many such calls."""
    recorded = {record["id"] for record in records}
    chars = unanswered = 0
    for message in messages:
        chars += len(message.text)
        for use in message.tool_uses:
            if use.id not in recorded:
                chars += input_chars(use.input)
                unanswered += 1
        for result in message.tool_results:
            if result.tool_use_id not in recorded:
                chars += len(result.text)
    return chars, unanswered


def _ratio(before: int, after: int) -> float:
    """The share that was removed, 0 to 1, to six places; 0 for nothing at all."""
    return round((before - after) / before, 6) if before else 0.0
