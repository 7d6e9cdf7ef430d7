"""Rendering the line-based formats: edits inside lines, and lines taken out when nothing is left of them.

A removed line's children get its nearest surviving ancestor as their parent, so the tree stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from lcc.transcript.edit import apply_to_message, block_edits, encode_string, removed_blocks
from lcc.transcript.formats.claude.entry import Entry
from lcc.transcript.formats.claude.reader import read_tree
from lcc.transcript.formats.claude.tree import Tree
from lcc.transcript.formats.claude.walk import kept_lines
from lcc.transcript.formats.messages_api import THINKING
from lcc.transcript.lines import split
from lcc.transcript.model import Edits, Json, Message, Transcript
from lcc.transcript.splice import REMOVE, Cut, Splices, splice

_LINKS: Final = ("parentUuid", "logicalParentUuid", "sourceToolAssistantUUID", "leafUuid")
_NULLABLE: Final = frozenset(("parentUuid", "logicalParentUuid"))
_LINK: Final = re.compile(rb'"(' + "|".join(_LINKS).encode() + rb')"[ \t]*+:[ \t]*+"([^"\\]*+)"')


def render_lines(
    transcript: Transcript, changed: Iterable[Message], edits: Edits, raw: bytes, ascii_only: bool
) -> bytes:
    """The file with the edits of the ``changed`` messages made."""
    plan = _Plan(transcript, edits, raw, ascii_only)
    for message in changed:
        plan.take(message)
    if plan.removed and transcript.format == "claude-code":
        plan.relink()
    return plan.write()


class _Plan:
    """What happens to each document of the file: an edit inside it, or its removal."""

    def __init__(self, transcript: Transcript, edits: Edits, raw: bytes, ascii_only: bool) -> None:
        self.raw = raw
        self.edits = edits
        self.form = transcript.format
        self.documents = transcript.documents
        self.ascii_only = ascii_only
        self.splices: dict[int, Splices] = {}
        self.removed: set[int] = set()

    def take(self, message: Message) -> None:
        """Plan the edits of one message."""
        if (
            self.form == "claude-code"
            and self.edits.dropped
            and apply_to_message(message, self.edits, self.form) is None
        ):
            self.removed.update(message.documents)
            return
        for path, edit in block_edits(message, self.edits, self.ascii_only):
            document = int(path[0])
            if path[1:] == ("payload",):
                self.removed.add(document)
            else:
                self.splices.setdefault(document, Splices()).add(path[1:], edit)
        if self.edits.dropped and self.form == "claude-code":
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
                self.splices.setdefault(document, Splices()).add(("message", "content", index), REMOVE)
            if not left and blocks:
                self.removed.add(document)
                self.splices.pop(document, None)

    def _value(self, document: int) -> dict[str, Json]:
        start, end = self.documents[document]
        return next(split(self.raw[start:end])).value

    def _content(self, document: int) -> list[Json]:
        message = self._value(document).get("message")
        content = message.get("content") if isinstance(message, dict) else None
        return content if isinstance(content, list) else [content]

    def relink(self) -> None:
        """Give what points at a removed line its nearest surviving ancestor."""
        tree = read_tree(self.raw)
        gone = {entry.uuid: entry.parent for entry in tree.entries if entry.document in self.removed}
        ancestors = _surviving(gone)
        bridges = self._bridges(tree)
        documents = {entry.document for entry in tree.entries if entry.uuid in bridges}
        written = {uuid.encode() for uuid in gone}
        starts = iter(enumerate(self.documents))
        document, (_, end) = next(starts)
        for link in _LINK.finditer(self.raw):
            if link[2] in written:
                while link.start() >= end:
                    document, (_, end) = next(starts)
                documents.add(document)
        for document in documents - self.removed:
            self._relink_document(document, ancestors, bridges)
        self._relink_boundary(tree.entries, gone)

    def _bridges(self, tree: Tree) -> dict[str, str | None]:
        """New parents for the lines of the live walk that lost the one above them.

        Where a message loses its lines on the walk but keeps some beside it, which are found through the walk
        alone, one of those takes the removed ones' place.
        """
        walked = {entry.message_id for entry in tree.walk if entry.document not in self.removed}
        beside: dict[str | None, str] = {
            entry.message_id: entry.uuid
            for entry in reversed(tree.live.values())
            if entry.kind == "assistant"
            and entry.message_id is not None
            and entry.message_id not in walked
            and entry.document not in self.removed
        }
        bridges: dict[str, str | None] = {}
        above: str | None = None
        passed: dict[str, None] = {}
        broken = False
        for entry in tree.walk:
            if entry.document in self.removed:
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
        splices = self.splices.setdefault(boundary.document, Splices())
        if kept.uuids:
            for index, uuid in enumerate(kept.uuids):
                if uuid in gone:
                    splices.add(("compactMetadata", "preservedMessages", "uuids", index), REMOVE)
            return
        for key, old, new in (("headUuid", kept.head, left[0]), ("tailUuid", kept.tail, left[-1])):
            if old != new:
                path = ("compactMetadata", "preservedSegment", key)
                splices.add(path, encode_string(new, self.ascii_only))

    def _relink_document(
        self, document: int, ancestors: Mapping[str, str | None], bridges: Mapping[str, str | None]
    ) -> None:
        value = self._value(document)
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
                new = encode_string(ancestor, self.ascii_only)
            elif key in _NULLABLE:
                new = b"null"
            else:
                continue
            self.splices.setdefault(document, Splices()).add((key,), new)

    def write(self) -> bytes:
        """The file's bytes with the plan carried out."""
        return splice(self.raw, self._cuts())

    def _cuts(self) -> Iterator[Cut]:
        done = 0
        ends_line = True  # what is kept of the file up to ``done``
        for document in sorted(self.removed | self.splices.keys()):
            start, end = self.documents[document]
            if start > done:
                ends_line = self.raw[start - 1] == 0x0A
            done = end
            if document not in self.removed:
                yield from self.splices[document].cuts(self.raw, start)
                ends_line = False
                continue
            if ends_line:
                done += next((len(e) for e in (b"\r\n", b"\n") if self.raw.startswith(e, end)), 0)
            yield start, done, b""


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
