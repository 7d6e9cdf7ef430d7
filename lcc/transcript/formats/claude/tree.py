"""Which lines of a Claude Code session the model is still sent, and in what order.

The lines form a tree by ``parentUuid``: a rewind, a parallel call or a progress line makes a branch. The
live branch ends in the newest line of the conversation; what it is sent is found by walking up from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lcc.transcript.formats.claude.entry import Checkpoint, Entry
from lcc.transcript.formats.claude.parallel import with_parallel_lines
from lcc.transcript.formats.claude.walk import Walk


class Tree(NamedTuple):
    """A session's lines; the walk from the newest one up, oldest first, lines of every kind; and by uuid the
    user and assistant lines that may have been sent, of which some stand beside the walk."""

    entries: Sequence[Entry]
    walk: list[Entry]
    live: dict[str, Entry]


def active_branch(tree: Tree) -> list[Entry]:
    """The user and assistant lines that the model is still sent, oldest first."""
    on_walk = [entry for entry in tree.walk if entry.uuid in tree.live]
    return with_parallel_lines(on_walk, tree.live.values())


def branch_lines(tree: Tree) -> list[tuple[Entry, str | None]]:
    """The lines of every kind on the live branch, oldest first, each with the uuid of the line it follows there."""
    follows: dict[str, str | None] = {entry.uuid: entry.parent for entry in tree.live.values()}
    above: str | None = None
    for entry in tree.walk:
        follows[entry.uuid] = above
        above = entry.uuid
    return [(entry, follows[entry.uuid]) for entry in with_parallel_lines(tree.walk, tree.live.values())]


def live_tree(entries: Sequence[Entry], checkpoint: Checkpoint | None) -> Tree:
    """Find the walk and what may have been sent.

    Lines ahead of the last compact boundary are out, save those that it kept. Side chains are out, unless
    the file holds nothing else (a sub-agent's own file). Of lines with one uuid the last counts.
    """
    side_file = all(entry.sidechain for entry in entries if entry.content is not None)
    boundary: Entry | None = None
    leaf: Entry | None = None
    by_uuid: dict[str, Entry] = {}
    for entry in entries:
        by_uuid[entry.uuid] = entry
        if entry.sidechain and not side_file:
            continue
        if entry.kind == "boundary":
            boundary = leaf = entry
        elif entry.kind != "other":
            leaf = entry
    if leaf is None:
        return Tree(entries, [], {})
    if checkpoint is not None and checkpoint.document > leaf.document:
        leaf = by_uuid.get(checkpoint.leaf, leaf)
    walk = Walk(by_uuid, boundary)
    chain = walk.up_from(leaf)
    live = {
        uuid: entry
        for uuid, entry in by_uuid.items()
        if entry.content is not None and (side_file or not entry.sidechain) and not walk.is_cut(entry)
    }
    if "" in live and live[""] not in chain:  # a line without uuid has no place beside the walk
        del live[""]
    return Tree(entries, chain, live)


def plain_list(entries: Sequence[Entry]) -> list[Entry]:
    """The same for a file without any parent links: its lines after the last boundary, in their order."""
    side_file = all(e.sidechain for e in entries if e.content is not None)
    boundary = max((e.document for e in entries if e.kind == "boundary"), default=-1)
    return [e for e in entries if e.content is not None and e.document > boundary and (side_file or not e.sidechain)]
