"""Rendering a Claude Code session: edits inside lines, and lines taken out when nothing is left of them.

A removed line's children get its nearest surviving ancestor as their parent, so the tree stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lcc.transcript.edit import apply_to_message, block_edits, encode_value, removed_blocks
from lcc.transcript.file_edits import FileEdits
from lcc.transcript.formats.claude.entry import Entry
from lcc.transcript.formats.claude.reader import read_tree
from lcc.transcript.formats.claude.tree import Tree
from lcc.transcript.formats.claude.walk import kept_lines
from lcc.transcript.formats.many_lines import document_value
from lcc.transcript.formats.messages_api import THINKING
from lcc.transcript.model import Edits, Message, Transcript
from lcc.transcript.splice import REMOVE
from lcc.transcript.values import Json

_LINKS: Final = ("parentUuid", "logicalParentUuid", "sourceToolAssistantUUID", "leafUuid")
_NULLABLE: Final = frozenset(("parentUuid", "logicalParentUuid"))
_LINK: Final = re.compile(rb'"(' + "|".join(_LINKS).encode() + rb')"[ \t]*+:[ \t]*+"([^"\\]*+)"')


def render_session(transcript: Transcript, changed: Iterable[Message], edits: Edits, ascii_only: bool) -> bytes:
    """The file with the edits of the ``changed`` messages made."""
    plan = _Rendering(transcript, edits, ascii_only)
    for message in changed:
        plan.take(message)
    if plan.file.removed:
        plan.relink()
    return plan.file.write()


class _Rendering:
    """What happens to each line of the file: an edit inside it, or its removal."""

    def __init__(self, transcript: Transcript, edits: Edits, ascii_only: bool) -> None:
        self.transcript = transcript
        self.file = FileEdits(transcript)
        self.edits = edits
        self.ascii_only = ascii_only

    def take(self, message: Message) -> None:
        """Plan the edits of one message."""
        if self.edits.dropped and apply_to_message(message, self.edits, self.transcript.format) is None:
            self.file.remove(message.documents)
            return
        for path, edit in block_edits(message, self.edits, self.transcript.format, self.ascii_only):
            self.file.add(path, edit)
        if self.edits.dropped:
            self._take_empty_lines(message)

    def _take_empty_lines(self, message: Message) -> None:
        """Remove the lines that lost all their blocks, and thinking that the message would now end in."""
        gone: dict[int, set[int]] = {}
        for path in removed_blocks(message, self.edits):
            gone.setdefault(int(path[0]), set()).add(int(path[-1]))
        if not gone:
            return
        ending = True
        for document in reversed(message.documents):
            blocks = self._content(document)
            left = set(range(len(blocks))) - gone.get(document, set())
            for index in sorted(left, reverse=True) if ending else ():
                block = blocks[index]
                if not (isinstance(block, dict) and block.get("type") in THINKING):
                    ending = False
                    break
                left.discard(index)
                self.file.add((document, "message", "content", index), REMOVE)
            if not left and blocks:
                self.file.remove([document])

    def _content(self, document: int) -> list[Json]:
        message = document_value(self.transcript, document).get("message")
        content = message.get("content") if isinstance(message, dict) else None
        return content if isinstance(content, list) else [content]

    def relink(self) -> None:
        """Give what points at a removed line its nearest surviving ancestor."""
        raw, removed = self.file.raw, self.file.removed
        tree = read_tree(raw)
        gone = {entry.uuid: entry.parent for entry in tree.entries if entry.document in removed}
        ancestors = _surviving(gone)
        bridges = self._bridges(tree)
        documents = {entry.document for entry in tree.entries if entry.uuid in bridges}
        written = {uuid.encode() for uuid in gone}
        starts = iter(enumerate(self.transcript.documents))
        document, (_, end) = next(starts)
        for link in _LINK.finditer(raw):
            if link[2] in written:
                while link.start() >= end:
                    document, (_, end) = next(starts)
                documents.add(document)
        for document in documents - removed:
            self._relink_document(document, ancestors, bridges)
        self._relink_boundary(tree.entries, gone)

    def _bridges(self, tree: Tree) -> dict[str, str | None]:
        """New parents for the lines of the live walk that lost the one above them.

        Where a message loses its lines on the walk but keeps some beside it, which are found through the walk
        alone, one of those takes the removed ones' place.
        """
        removed = self.file.removed
        walked = {entry.message_id for entry in tree.walk if entry.document not in removed}
        beside: dict[str | None, str] = {
            entry.message_id: entry.uuid
            for entry in reversed(tree.live.values())
            if entry.kind == "assistant"
            and entry.message_id is not None
            and entry.message_id not in walked
            and entry.document not in removed
        }
        bridges: dict[str, str | None] = {}
        above: str | None = None
        passed: dict[str, None] = {}
        broken = False
        for entry in tree.walk:
            if entry.document in removed:
                broken = True
                if entry.message_id in beside:
                    passed[beside[entry.message_id]] = None
                continue
            for uuid in (*passed, entry.uuid) if broken else ():
                bridges[uuid] = above
                above = uuid
            passed.clear()
            broken = False
            above = entry.uuid
        return bridges

    def _relink_boundary(self, entries: Sequence[Entry], gone: Mapping[str, str | None]) -> None:
        """Take removed lines out of those that the last compact boundary says it kept."""
        boundary = next((entry for entry in reversed(entries) if entry.kind == "boundary"), None)
        if boundary is None or boundary.kept is None:
            return
        kept = boundary.kept
        lines = kept_lines(kept, {entry.uuid: entry for entry in entries})
        left = [uuid for uuid in lines if uuid not in gone]
        if not left or len(left) == len(lines):
            return
        if kept.uuids:
            for index, uuid in enumerate(kept.uuids):
                if uuid in gone:
                    self.file.add((boundary.document, "compactMetadata", "preservedMessages", "uuids", index), REMOVE)
            return
        for key, old, new in (("headUuid", kept.head, left[0]), ("tailUuid", kept.tail, left[-1])):
            if old != new:
                path = (boundary.document, "compactMetadata", "preservedSegment", key)
                self.file.add(path, encode_value(new, self.ascii_only))

    def _relink_document(
        self, document: int, ancestors: Mapping[str, str | None], bridges: Mapping[str, str | None]
    ) -> None:
        value = document_value(self.transcript, document)
        uuid = value.get("uuid")
        for key in _LINKS:
            target = value.get(key)
            if key not in value:
                continue
            if key == "parentUuid" and isinstance(uuid, str) and uuid in bridges:
                ancestor = bridges[uuid]
            elif isinstance(target, str) and target in ancestors:
                ancestor = ancestors[target]
            else:
                continue
            if ancestor is not None:
                new = encode_value(ancestor, self.ascii_only)
            elif key in _NULLABLE:
                new = b"null"
            else:
                continue
            self.file.add((document, key), new)


def _surviving(parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """For each removed line, its nearest ancestor that is not removed; None where there is none."""
    ancestors: dict[str, str | None] = {}
    for uuid in parents:
        trail: dict[str, None] = {}
        step: str | None = uuid
        while step is not None and step in parents and step not in ancestors and step not in trail:
            trail[step] = None
            step = parents[step]
        found = None if step is None or step in trail else ancestors.get(step, step)
        ancestors.update(dict.fromkeys(trail, found))
    return ancestors
