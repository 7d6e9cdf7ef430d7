"""The pass: one transcript in, the compacted messages and the report out (the seed's sections 2 to 8).

The order never changes: pins and standing results first, then one policy with its own verification, then the
counting and the report, and last of all the hash of every file that a note calls verified.
"""

from __future__ import annotations

import hashlib
import os.path
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lcc.contract.decision import Decision, Drop, FileOnDisk, InputNote, InStash, Keep, KeptLater, Pointer, Trim
from lcc.contract.modes import MODES, RulesMode
from lcc.contract.options import PassOptions
from lcc.contract.reasons import DUPLICATE_TOOL_USE_ID, KEEP_DISK_CHANGED_BEFORE_EMIT, OUTPUT_LINES_OF_LATER
from lcc.contract.record import Record, Removed, add_inputs, decision_record, parts_record, pointer_record
from lcc.contract.report import PassFacts, Report, RootSource, RungRecord, build_report
from lcc.contract.request import TranscriptCompactionRequest
from lcc.relevance.choice import Scored
from lcc.relevance.evidence.disk import changed_files
from lcc.relevance.evidence.guards import GuardFacts, guards_of
from lcc.relevance.evidence.stranded import Followed, with_stranded_notes_followed
from lcc.relevance.ladder import Rung, on_rung
from lcc.relevance.need import why
from lcc.relevance.policies import decide, edits_of
from lcc.relevance.ports import Ports
from lcc.relevance.reading.calls import file_read_of, file_reads
from lcc.relevance.reading.headers import header_length
from lcc.relevance.reading.rows import parse_rows
from lcc.relevance.session import Outcome, Session
from lcc.tokens import TokenEstimator
from lcc.tokens.cache_cost import cache_cost
from lcc.transcript import (
    Edits,
    Message,
    Pair,
    ToolResult,
    Transcript,
    apply_edits,
    messages_to_payload,
    parse_payload,
)
from lcc.transcript.collector import without_collector
from lcc.transcript.model import part_id

T = TypeVar("T")

DUPLICATE = Keep(DUPLICATE_TOOL_USE_ID)
CHANGED_BEFORE_EMIT = Keep(KEEP_DISK_CHANGED_BEFORE_EMIT)


@dataclass(frozen=True, slots=True)
class TranscriptCompactionResult:
    """What a pass hands over: the compacted messages, the report, and the edits that a writer applies."""

    transcript: Transcript
    messages: tuple[Message, ...]
    edits: Edits
    report: Report
    kept_images: frozenset[str] = frozenset()
    """The calls whose results a guard keeps, the images beside their texts among them."""

    @property
    def decisions(self) -> list[Record]:
        """The report's decision records."""
        return self.report["decisions"]


def compact_transcript(request: TranscriptCompactionRequest) -> TranscriptCompactionResult:
    """One pass over ``request.payload`` (the seed's section 8).

    Raises ``TranscriptError`` for a payload that cannot be read, ``TranscriptFitError`` when a judge's state
    cannot be fitted into its budget. Everything else is a result, with what went wrong in its report.
    """
    client = request.client
    ports = Ports(judge_client=None if client is None else lambda: client)
    return run_pass(parse_payload(request.payload), request, lambda result: result, ports)


def run_pass(
    transcript: Transcript,
    options: PassOptions,
    emit: Callable[[TranscriptCompactionResult], T],
    ports: Ports | None = None,
    root_source: RootSource | None = None,
) -> T:
    """One pass over a parsed transcript: the room inside `lcc.compaction.compact`, which callers go through.

    ``root_source`` says who named the options' ``workspace_root``, for the report (None: the options).
    ``emit`` makes the answer that is handed over, and may be called again, so it keeps nothing that it cannot
    replace. After ``emit`` has
    returned, every file that the answer calls verified is hashed once more; when one has changed, its results
    are kept and ``emit`` is called again. What the last call returned is returned.
    """
    started = time.perf_counter()
    with without_collector():
        ports = ports or Ports()
        followed = with_stranded_notes_followed(transcript)
        session = _session_of(followed.transcript, on_rung(options, ports), ports, options.rules_mode)
        outcome = decide(session)
        pins, whole = session.guards.facts.pins, session.guards.whole
        decisions: dict[str, Decision] = {
            call_id: Keep(reason, "pin" if call_id in pins else "rules") for call_id, reason in whole.items()
        }
        decisions.update(outcome.decisions)
        inputs = dict(outcome.inputs)
    while True:
        with without_collector():
            result = _result(session, followed, outcome, decisions, inputs, started, root_source)
        answer = emit(result)
        claims = {
            call_id: decision.proof
            for call_id, decision in decisions.items()
            if isinstance(decision, Pointer) and isinstance(decision.proof, FileOnDisk)
        }
        written = [note.proof for notes in inputs.values() for note in notes if isinstance(note.proof, FileOnDisk)]
        changed = changed_files({(proof.named, proof.sha256) for proof in (*claims.values(), *written)})
        if not changed:
            return answer
        for call_id, proof in claims.items():
            if proof.named in changed:
                decisions[call_id] = CHANGED_BEFORE_EMIT
        for call_id, notes in inputs.items():
            inputs[call_id] = tuple(
                note for note in notes if not (isinstance(note.proof, FileOnDisk) and note.proof.named in changed)
            )
        outcome = replace(outcome, messages=None)


def _session_of(transcript: Transcript, options: PassOptions, ports: Ports, asked: RulesMode) -> Session:
    root = options.workspace_root
    if root is not None and not os.path.isabs(root):
        options = replace(options, workspace_root=os.path.abspath(root))
    stash = ports.open_stash(transcript.session_id) if MODES[options.rules_mode].stashes else None
    folder = None if stash is None else stash.folder
    if ports.dry_run:
        stash = None
    tokens = ports.tokens or TokenEstimator(model=options.model)
    pairs = tuple(transcript.pairs())
    guards = guards_of(GuardFacts(transcript, options, pairs, file_reads(pairs)))
    all_texts = tuple(text for pair in pairs for text in pair.texts())
    texts = tuple(text for text in all_texts if guards.whole.keys().isdisjoint((text.use.id, text.text_id)))
    guarded = {text.use.id for text in all_texts if text.text_id in guards.whole}
    candidates = tuple(pair for pair in pairs if pair.use.id not in guards.whole and pair.use.id not in guarded)
    return Session(
        transcript, options, ports, stash, folder, tokens, pairs, guards, candidates, all_texts, texts, asked
    )


def _result(
    session: Session,
    followed: Followed,
    outcome: Outcome,
    decisions: Mapping[str, Decision],
    inputs: Mapping[str, tuple[InputNote, ...]],
    started: float,
    root_source: RootSource | None,
) -> TranscriptCompactionResult:
    edits = edits_of(decisions, inputs)
    if followed.texts:
        edits = replace(edits, texts={**followed.texts, **edits.texts})
    messages = apply_edits(session.transcript, edits) if outcome.messages is None else outcome.messages
    records = list(_records(session, outcome, decisions, inputs))
    tokens_before, tokens_after = _count_tokens(session, records, decisions, inputs)
    cost = cache_cost(session.transcript, edits, session.tokens, tokens_before=tokens_before, tokens_after=tokens_after)
    root = session.options.workspace_root
    if root is not None and root_source is None and MODES[session.options.rules_mode].reads_files:
        root_source = "option"
    facts = PassFacts(
        options=session.options,
        transcript=session.transcript,
        records=records,
        messages_after=len(messages),
        provider_used=outcome.provider_used,
        semantic_guarantee=outcome.semantic_guarantee,
        rules_mode=outcome.rules_mode,
        rules_mode_requested=session.asked if outcome.rules_mode is not None else None,
        rungs=None if outcome.rungs is None else [_rung_record(rung) for rung in outcome.rungs],
        lossless_violations=outcome.violations,
        recoverability_check=outcome.recoverability_check,
        stash_dir=None if session.stash_folder is None else str(session.stash_folder),
        degraded=outcome.degraded,
        degradation_reason=outcome.degradation_reason.code if outcome.degradation_reason else None,
        judge=outcome.judge,
        latency_ms=(time.perf_counter() - started) * 1000,
        tokens_before=tokens_before,
        tokens_after=tokens_after,
        token_count_method=session.tokens.method,
        warnings=(*session.transcript.warnings, *followed.warnings, *outcome.warnings),
        workspace_root=root,
        workspace_root_source=root_source,
        cache_cost=cost.as_json(),
    )
    images = session.guards.images
    return TranscriptCompactionResult(session.transcript, messages, edits, build_report(facts), images)


def _records(
    session: Session,
    outcome: Outcome,
    decisions: Mapping[str, Decision],
    inputs: Mapping[str, Sequence[InputNote]],
) -> Iterator[Record]:
    """A record for every call with its result, in call order; then the calls whose id is not theirs alone."""
    in_ascii = _standing_in_ascii(session.transcript)
    for pair in session.pairs:
        decision = decisions.get(pair.use.id)
        record: Record
        if decision is None:
            record = parts_record(pair, _decided_texts(pair, decisions, in_ascii(pair)))
        elif isinstance(decision, Pointer):
            record = pointer_record(pair, decision, _removed(pair, decision, in_ascii(pair)))
        else:
            record = decision_record(pair, decision)
        if outcome.scored:
            _add_points(record, pair, decisions, outcome.scored)
        notes = inputs.get(pair.use.id)
        if notes:
            add_inputs(record, pair, notes)
        yield record
    if session.transcript.duplicates:
        for pair in _duplicate_pairs(session.transcript):
            yield decision_record(pair, DUPLICATE)


def _add_points(record: Record, pair: Pair, decisions: Mapping[str, Decision], scored: Mapping[str, Scored]) -> None:
    """How likely the result is needed again: that of the text that the record is of, and of each part beside it."""
    texts = [text for text in pair.texts() if text.text_id in scored]
    if not texts:
        return
    went = [text for text in texts if isinstance(decisions.get(text.text_id), Pointer)]
    largest = max(went or texts, key=lambda text: len(text.result.text))
    record["points"], record["why"] = _in_points(scored[largest.text_id])
    for part in record.get("parts", ()):
        found = scored.get(part_id(pair.use.id, part["part"]))
        if found is not None:
            part["points"], part["why"] = _in_points(found)


def _in_points(scored: Scored) -> tuple[float, str]:
    return round(scored.need.points, 3), why(scored.need)


def _standing_in_ascii(transcript: Transcript) -> Callable[[Pair], bool]:
    """Whether the document of the file that holds a pair's result has no character beyond ASCII.

    A session's lines may be written by different programs, and each escapes in its own way.
    """
    raw = transcript.raw
    if raw is None:
        return lambda pair: False
    if raw.isascii() or not transcript.documents:
        whole = raw.isascii()
        return lambda pair: whole

    def in_ascii(pair: Pair) -> bool:
        spans = map(transcript.documents.__getitem__, transcript.messages[pair.result_message].documents)
        return all(raw[start:end].isascii() for start, end in spans)

    return in_ascii


def _rung_record(rung: Rung) -> RungRecord:
    return {"rung": rung.name, "replaced": rung.replaced, "chars": rung.chars}


def _decided_texts(
    pair: Pair, decisions: Mapping[str, Decision], ascii_only: bool
) -> list[tuple[Pair, Keep | Pointer, Removed | None]]:
    """What became of each text of a result that is several parts. A policy that decides about whole calls leaves one
    alone that has a guarded text: then that guard's reason is the reason of all of them."""
    texts = pair.texts()
    guarded = next(decision for text in texts if (decision := decisions.get(text.text_id)) is not None)
    found: list[tuple[Pair, Keep | Pointer, Removed | None]] = []
    for text in texts:
        decision = decisions.get(text.text_id, guarded)
        if isinstance(decision, Pointer) and text.text_id in decisions:
            found.append((text, decision, _removed(text, decision, ascii_only)))
        else:
            found.append((text, Keep(decision.reason, decision.source, decision.verdict), None))
    return found


def _removed(pair: Pair, pointer: Pointer, ascii_only: bool) -> Removed:
    """What went with the note, and what of it the note alone does not give back (`lcc restore` needs it).

    ``ascii_only``: where it stands, the file escapes all characters beyond ASCII.
    """
    text = pair.result.text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    escaped = ascii_only and not text.isascii()
    if isinstance(pointer.proof, InStash) or pointer.reason is OUTPUT_LINES_OF_LATER:
        return Removed(digest, len(text), escaped=escaped)
    header = text[: header_length(pair.use.tool, text)]
    read = None if header or isinstance(pointer.proof, KeptLater) else file_read_of(pair.use)
    rows = parse_rows(text) if read is not None and read.numbered else None
    first = f"{rows.first:{rows.width or 1}d}{rows.separator}" if rows else None
    return Removed(digest, len(text), header, first, escaped)


def _duplicate_pairs(transcript: Transcript) -> Iterator[Pair]:
    """The calls with a repeated id, the first with the first result of that id, and so on."""
    waiting: dict[str, list[tuple[ToolResult, int]]] = {call_id: [] for call_id in transcript.duplicates}
    for index, message in enumerate(transcript.messages):
        for result in message.tool_results:
            if result.tool_use_id in waiting:
                waiting[result.tool_use_id].append((result, index))
    taken = dict.fromkeys(waiting, 0)
    for index, message in enumerate(transcript.messages):
        for use in message.tool_uses:
            if use.id in waiting and taken[use.id] < len(waiting[use.id]):
                result, result_index = waiting[use.id][taken[use.id]]
                taken[use.id] += 1
                yield Pair(use, result, index, result_index)


def _count_tokens(
    session: Session,
    records: Sequence[Record],
    decisions: Mapping[str, Decision],
    inputs: Mapping[str, Sequence[InputNote]],
) -> tuple[int, int]:
    """The tokens of the whole transcript before and after; estimated where they have not been counted yet."""
    tokens = session.tokens
    before = removed = input_chars = 0
    dropped_chars = sum(note.chars - len(note.note) for notes in inputs.values() for note in notes)
    for message in session.transcript.messages:
        if message.text:
            before += tokens.estimate(message.text)
    for pair, record in zip(session.pairs, records, strict=False):
        text = pair.result.text
        size = tokens.estimate(text, pair.use.tool)
        before += size
        in_input = record["chars"] - len(text)
        input_chars += in_input
        decision = decisions.get(pair.use.id)
        if isinstance(decision, Drop):
            removed += size
            dropped_chars += in_input
            continue
        for part in pair.texts():
            decided = decisions.get(part.text_id)
            if isinstance(decided, Pointer | Trim):
                removed += tokens.estimate(part.result.text, pair.use.tool)
                removed -= tokens.estimate(decided.text, pair.use.tool) if decided.text else 0
    before += tokens.estimate_chars(input_chars)
    return before, before - removed - tokens.estimate_chars(dropped_chars)


__all__ = [
    "TranscriptCompactionResult",
    "compact_transcript",
    "messages_to_payload",
    "run_pass",
]
