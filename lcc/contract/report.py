"""The report of a pass, `transcript-compaction-1.0` (the seed's section 7; every key is defined in lcc/README.md).

Pure: it is given what the pass found and counts it, once, in one walk over the calls and one over the messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

import orjson

from lcc.contract.decision import (
    CommandAgain,
    Decision,
    Drop,
    FileByTranscript,
    FileOnDisk,
    InStash,
    Keep,
    KeptLater,
    Pointer,
    Trim,
)
from lcc.contract.modes import Guarantee

if TYPE_CHECKING:
    from lcc.contract.options import PassOptions
    from lcc.transcript import Json, Message, Pair, Transcript

SCHEMA_VERSION = "transcript-compaction-1.0"
MODE = "tool-calls"

Record: TypeAlias = "dict[str, Json]"
Report: TypeAlias = "dict[str, Json]"
RootSource = Literal["option", "session", "payload"]

_SUBJECT_CHARS = 120
_SUBJECT_KEYS = (
    "file_path",
    "command",
    "cmd",
    "pattern",
    "path",
    "notebook_path",
    "url",
    "query",
    "description",
    "subject",
    "task_id",
    "bash_id",
    "skill",
)


class Removed(NamedTuple):
    """What a dedupe or replace took away: the sha256 (64 hex digits) of the whole result, and its characters."""

    sha256: str
    chars: int
    header: str = ""
    """The header lines (Codex) that went with it and that what the note points at does not repeat."""
    rows: str | None = None
    """How its lines were numbered: the first row as it began, such as ``"     1→"`` or ``"12\t"``."""


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

    request: PassOptions
    transcript: Transcript
    records: Sequence[Record]
    messages_after: int
    provider_used: str
    semantic_guarantee: Guarantee
    rules_mode: str | None = None
    """The rules that were run; None where only a judge decided."""
    lossless_violations: Sequence[str] | None = None
    recoverability_check: Literal["disk", "transcript_proxy"] | None = None
    stash_dir: str | None = None
    degraded: bool = False
    degradation_reason: str | None = None
    judge: JudgeFacts | None = None
    latency_ms: float = 0.0
    tokens_before: int | None = None
    tokens_after: int | None = None
    token_count_method: str | None = None
    warnings: Sequence[str] = ()
    workspace_root: str | None = None
    workspace_root_source: RootSource | None = None
    cache_cost: Mapping[str, Json] | None = None


def decision_record(pair: Pair, decision: Keep | Trim | Drop) -> Record:
    """The record of one call that no pointer stands in for."""
    size = input_chars(pair.use.input)
    if isinstance(decision, Keep):
        return _record(pair, decision, size, size + len(pair.result.text))
    if isinstance(decision, Drop):
        return _record(pair, decision, size, 0)
    return _record(pair, decision, size, size + len(decision.text))


def pointer_record(pair: Pair, pointer: Pointer, removed: Removed) -> Record:
    """The record of one call whose result a pointer stands in for, with its proof and what went."""
    size = input_chars(pair.use.input)
    record = _record(pair, pointer, size, size + len(pointer.text))
    proof = pointer.proof
    if isinstance(proof, KeptLater):
        record["kept_at"] = proof.kept_at
        record["note"] = pointer.note
    else:
        record["note"] = pointer.note
        _add_proof(record, proof)
    gone: dict[str, Json] = {"sha256": removed.sha256, "chars": removed.chars}
    if removed.header:
        gone["header"] = removed.header
    if removed.rows is not None:
        gone["rows"] = removed.rows
    record["removed"] = gone
    return record


def _record(pair: Pair, decision: Decision, input_size: int, chars_after: int) -> Record:
    use, result, use_message = pair.use, pair.result, pair.use_message
    verdict = decision.verdict
    return {
        "id": use.id,
        "decision": decision.action,
        "score": verdict.score if verdict else None,
        "keep_call": verdict.keep_call if verdict else None,
        "keep_result": verdict.keep_result if verdict else None,
        "source": decision.source,
        "reason": decision.reason.code,
        "message_index": use_message,
        "tool": use.tool,
        "subject": subject(use.input),
        "chars": input_size + len(result.text),
        "chars_after": chars_after,
    }


def _add_proof(record: Record, proof: FileOnDisk | FileByTranscript | CommandAgain | InStash) -> None:
    if isinstance(proof, InStash):
        record["recover"] = {"kind": "stash", "sha256": proof.sha256}
        record["recoverability_check"] = "stash"
        record["stash"] = {"sha256": proof.sha256, "tokens": proof.tokens, "bytes": proof.size}
    elif isinstance(proof, CommandAgain):
        record["recover"] = {"kind": "command", "command": proof.command, "cwd": proof.cwd}
        record["recoverability_check"] = "read_only_allowlist"
    else:
        lines: Json = list(proof.lines) if proof.lines else None
        record["recover"] = {"kind": "file", "path": proof.path, "cwd": proof.cwd, "lines": lines}
        if isinstance(proof, FileOnDisk):
            record["recoverability_check"] = "disk"
            record["disk"] = {"path": proof.named, "real": proof.real, "sha256": proof.sha256}
        else:
            record["recoverability_check"] = "transcript_proxy"


def input_chars(value: Json) -> int:
    """The characters of a call's input as compact JSON."""
    try:
        written = orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits, or a lone surrogate
        return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return len(written) if written.isascii() else len(written.decode())


def subject(value: Json) -> str | None:
    """What a call was about, in one line of at most 120 characters: its path, command, pattern or the like."""
    if isinstance(value, dict):
        for key in _SUBJECT_KEYS:
            found = value.get(key)
            if found:
                break
        else:
            return None
        value = found
        if isinstance(value, list):  # a Codex shell call's argument vector
            value = " ".join(part for part in value if isinstance(part, str))
    if not isinstance(value, str):
        return None
    if len(value) <= _SUBJECT_CHARS and value.isprintable():
        return value or None
    line = " ".join(value[: 4 * _SUBJECT_CHARS].split())
    line = "".join(c if c.isprintable() else "�" for c in line)
    return line if len(line) <= _SUBJECT_CHARS else line[: _SUBJECT_CHARS - 1] + "…"


def build_report(facts: PassFacts) -> Report:
    """The report. The same keys for every provider and mode; null where a key does not apply."""
    request, transcript, judge = facts.request, facts.transcript, facts.judge
    counts = _count(facts.records)
    rest, unanswered = _outside(transcript.messages, facts.records)
    chars_before = rest + counts.chars
    chars_after = rest + counts.chars_after
    reduction = _ratio(chars_before, chars_after)
    decided = counts.decisions
    report: Report = {
        "schema_version": SCHEMA_VERSION,
        "mode": MODE,
        "objective": request.question,
        "provider_requested": request.provider,
        "provider_used": facts.provider_used,
        "rules_mode": facts.rules_mode,
        "lossless_violations": None if facts.lossless_violations is None else list(facts.lossless_violations),
        "recoverability_check": facts.recoverability_check,
        "stash_dir": facts.stash_dir,
        "degraded": facts.degraded,
        "degradation_reason": facts.degradation_reason,
        "semantic_guarantee": facts.semantic_guarantee,
        "jev_model_requested": judge.model_requested if judge else None,
        "jev_model_resolved": judge.model_resolved if judge else None,
        "threshold": request.threshold if judge else None,
        "trim_threshold": None,
        "trim_head_chars": request.trim_head_chars if judge else None,
        "preserve_recent": request.preserve_recent,
        "blocks_total": len(facts.records),
        "blocks_scored": counts.scored,
        "blocks_protected": counts.protected,
        "calls": judge.calls if judge else None,
        "latency_ms": round(facts.latency_ms, 3),
        "chars_before": chars_before,
        "chars_after": chars_after,
        "reduction_ratio": reduction,
        "worth_it": reduction >= request.min_reduction and chars_after < chars_before,
        "min_reduction": request.min_reduction,
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
        "cache_cost": None if facts.cache_cost is None else dict(facts.cache_cost),
        "decisions": cast("Json", list(facts.records)),
        "warnings": list(facts.warnings),
    }
    return report


class _Counts(NamedTuple):
    decisions: dict[str, int]
    scored: int
    protected: int
    stashed: int
    chars: int
    chars_after: int
    pinned_chars: int
    """Of both, what is pinned: it is no part of the payload that was decided about."""


def _count(records: Iterable[Record]) -> _Counts:
    decisions = {"keep": 0, "trim": 0, "drop": 0, "dedupe": 0, "replace": 0}
    unscored = protected = stashed = chars = chars_after = pinned_chars = total = 0
    for record in records:
        total += 1
        decision = cast("str", record["decision"])
        decisions[decision] += 1
        source = record["source"]
        if source == "pin":
            protected += 1
            pinned_chars += cast("int", record["chars"])
        elif source == "fail_safe":
            unscored += 1
        chars += cast("int", record["chars"])
        chars_after += cast("int", record["chars_after"])
        if "stash" in record:
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
