"""Passes over messages in the seed's payload form, for the benchmarks: lcc's modes, and the other program's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench_compare import Program

from lcc.compaction.compact import compact
from lcc.contract.modes import RulesMode
from lcc.contract.options import PassOptions
from lcc.relevance.evidence.guards import GuardFacts, guards_of
from lcc.relevance.need import LEAST_SAVED, Need, needs_of
from lcc.relevance.ports import Ports
from lcc.relevance.reading.calls import file_reads
from lcc.transcript import Edits, Json, messages_to_payload, parse_payload

Payload = list[dict[str, Json]]


def edits_of(
    messages: Payload,
    mode: RulesMode,
    root: Path | None = None,
    stash: Path | None = None,
    min_reduction: float | None = None,
) -> Edits:
    """What a mode of lcc changes. Without ``root`` no file is read, without ``stash`` nothing is written."""
    options = PassOptions(
        provider="rules",
        rules_mode=mode,
        workspace_root=None if root is None else str(root),
        disk_check=root is not None,
    )
    if min_reduction is not None:
        options = replace(options, min_reduction=min_reduction)
    ports = Ports(stash_folder=stash, dry_run=stash is None)
    return compact(parse_payload(list(messages)), options, ports, rendered=False).edits


def compacted(mode: RulesMode) -> Callable[[Payload], Payload]:
    """A mode of lcc over messages alone, written nowhere."""

    def run(messages: Payload) -> Payload:
        options = PassOptions(provider="rules", rules_mode=mode, disk_check=False)
        answer = compact(parse_payload(list(messages)), options, Ports(dry_run=True), rendered=False)
        return messages_to_payload(answer.result.messages)

    return run


def compacted_by(program: Program, mode: str) -> Callable[[Payload], Payload]:
    """A mode of the other program, in its own environment."""

    def run(messages: Payload) -> Payload:
        source = program.folder / "payload.json"
        source.write_text(json.dumps(messages), encoding="utf-8")
        figures = program.run_pass(source, mode, str(program.folder), 1)
        if figures is None:
            raise TimeoutError(f"{program.name} took longer than {program.limit:.0f} s")
        found: Payload = figures["messages"]
        return found

    return run


def scores_of(messages: Payload) -> dict[str, Need]:
    """How likely each result that no guard keeps is needed again, as the pass says it."""
    transcript = parse_payload(list(messages))
    pairs = tuple(transcript.pairs())
    reads = file_reads(pairs)
    guards = guards_of(GuardFacts(transcript, PassOptions(provider="rules", rules_mode="stashed"), pairs, reads))
    candidates = {pair.use.id for pair in pairs if len(pair.result.text) >= LEAST_SAVED} - guards.kept.keys()
    return needs_of(transcript.messages, pairs, candidates, guards.kept, reads, guards.facts.errors)
