"""Which lines of a Claude Code session the model is still sent, and in what order.

The lines form a tree by ``parentUuid``: a rewind, a parallel call or a progress line makes a branch. The
live branch ends in the newest line of the conversation; what it is sent is found by walking up from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from lcc.transcript.messages_api import Content

Kind: TypeAlias = Literal["user", "assistant", "boundary", "other"]


class Segment(NamedTuple):
    """Lines ahead of a compact boundary that it kept: ``head`` to ``tail``, now standing after ``anchor``."""

    head: str
    anchor: str
    tail: str


class Entry(NamedTuple):
    """One line that stands in the tree."""

    document: int
    uuid: str
    parent: str | None
    kind: Kind
    sidechain: bool
    message_id: str | None
    source: str | None
    """``sourceToolAssistantUUID``: for a result, the line that holds its call."""
    content: Content | None
    """For user and assistant lines."""
    kept: Segment | None
    """For a boundary, where it names the lines that it kept."""


def active_branch(entries: Sequence[Entry]) -> list[Entry]:
    """The user and assistant lines that the model is still sent, oldest first.

    Lines ahead of the last compact boundary are out, save the segment that it kept. Side chains are out,
    unless the file holds nothing else (a sub-agent's own file). Of lines with one uuid the last counts.
    """
    chain, live = live_chain(entries)
    return _with_parallel_lines([entry for entry in chain if entry.uuid in live], live.values())


def live_chain(entries: Sequence[Entry]) -> tuple[list[Entry], dict[str, Entry]]:
    """The walk from the newest line up, oldest first, lines of every kind; and the user and assistant lines
    that may have been sent, by uuid, of which some stand beside the walk."""
    side_file = all(entry.sidechain for entry in entries if entry.content is not None)
    boundary = -1
    segment: Segment | None = None
    leaf: Entry | None = None
    by_uuid: dict[str, Entry] = {}
    for entry in entries:
        by_uuid[entry.uuid] = entry
        if entry.sidechain and not side_file:
            continue
        if entry.kind == "boundary":
            boundary, segment, leaf = entry.document, entry.kept, entry
        elif entry.kind != "other":
            leaf = entry
    if leaf is None:
        return [], {}
    kept = _kept_lines(segment, by_uuid)
    live = {
        uuid: entry
        for uuid, entry in by_uuid.items()
        if entry.content is not None
        and (side_file or not entry.sidechain)
        and (entry.document > boundary or uuid in kept)
    }
    return _walk_up(leaf, by_uuid, boundary, segment, kept), live


def branch_lines(entries: Sequence[Entry]) -> list[tuple[Entry, str | None]]:
    """The lines of every kind on the live branch, oldest first, each with the uuid of the line it follows there."""
    chain, live = live_chain(entries)
    follows: dict[str, str | None] = {entry.uuid: entry.parent for entry in live.values()}
    above: str | None = None
    for entry in chain:
        follows[entry.uuid] = above
        above = entry.uuid
    return [(entry, follows[entry.uuid]) for entry in _with_parallel_lines(chain, live.values())]


def plain_list(entries: Sequence[Entry]) -> list[Entry]:
    """The same for a file without any parent links: its lines after the last boundary, in their order."""
    side_file = all(e.sidechain for e in entries if e.content is not None)
    boundary = max((e.document for e in entries if e.kind == "boundary"), default=-1)
    return [e for e in entries if e.content is not None and e.document > boundary and (side_file or not e.sidechain)]


def _kept_lines(segment: Segment | None, by_uuid: dict[str, Entry]) -> frozenset[str]:
    """The uuids from the segment's tail up to its head; empty where that walk does not arrive."""
    if segment is None or segment.anchor not in by_uuid:
        return frozenset()
    seen: set[str] = set()
    uuid: str | None = segment.tail
    while uuid is not None and uuid in by_uuid and uuid not in seen:
        seen.add(uuid)
        if uuid == segment.head:
            return frozenset(seen)
        uuid = by_uuid[uuid].parent
    return frozenset()


def _walk_up(
    leaf: Entry, by_uuid: dict[str, Entry], boundary: int, segment: Segment | None, kept: frozenset[str]
) -> list[Entry]:
    """From the leaf to the root, the boundary, or a parent that is not in the file; oldest first."""
    relink = segment if segment is not None and kept else None
    chain: list[Entry] = []
    seen: set[str] = set()
    entry: Entry | None = leaf
    while entry is not None and entry.uuid not in seen and (entry.document > boundary or entry.uuid in kept):
        seen.add(entry.uuid)
        chain.append(entry)
        parent = entry.parent
        if relink is not None:
            if entry.uuid == relink.head:
                parent = relink.anchor
            elif parent == relink.anchor:
                parent = relink.tail
        entry = by_uuid.get(parent) if parent is not None else None
    chain.reverse()
    return chain


def _with_parallel_lines(chain: list[Entry], live: Iterable[Entry]) -> list[Entry]:
    """Add what the walk passes by when calls ran in parallel: lines of the same API message, and results.

    They stand on branches of their own, but were sent. A message's lines then stand together in the order in
    which they were written, at its first line on the walk; added results stand behind its last one.
    """
    steps = _steps(chain)
    step_of_id = {step[0].message_id: number for number, step in enumerate(steps) if step[0].message_id is not None}
    step_of_line = {entry.uuid: number for number, step in enumerate(steps) for entry in step}
    on_chain = {entry.uuid for entry in chain}
    beside = [entry for entry in live if entry.uuid not in on_chain]
    lines: dict[int, list[Entry]] = {}
    for entry in beside:
        if entry.kind == "assistant" and entry.message_id in step_of_id:
            number = step_of_id[entry.message_id]
            step_of_line[entry.uuid] = number
            lines.setdefault(number, []).append(entry)
    results: dict[int, list[Entry]] = {}
    for entry in beside:
        if entry.kind == "user" and entry.content is not None and entry.content.results:
            found = step_of_line.get(entry.source or "", step_of_line.get(entry.parent or ""))
            if found is not None:
                results.setdefault(found, []).append(entry)
    if not lines and not results:
        return chain
    whole: list[Entry] = []
    for entry in chain:
        number = step_of_line.get(entry.uuid, -1)
        if number not in lines:
            whole.append(entry)
        elif entry is steps[number][0]:
            whole.extend(sorted((*steps[number], *lines[number]), key=lambda e: e.document))
        if number in results and entry is steps[number][-1]:
            whole.extend(results[number])
    return whole


def _steps(chain: Iterable[Entry]) -> list[list[Entry]]:
    """The assistant lines of each API message; an id that comes back after another one is another message."""
    steps: list[list[Entry]] = []
    message_id: str | None = None
    for entry in chain:
        if entry.kind == "assistant":
            if entry.message_id is None or entry.message_id != message_id:
                steps.append([])
            steps[-1].append(entry)
            message_id = entry.message_id
    return steps
