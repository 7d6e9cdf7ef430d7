"""Claude Code session files: JSONL that the client appends to while it runs.

A message is what the API is sent: all lines of one ``message.id`` are one assistant message, and the results
of its calls are one user message, although each stands on a line of its own. Shapes: see the README beside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

from lcc.transcript.claude_tree import Entry, Segment, active_branch
from lcc.transcript.document import kind
from lcc.transcript.lines import Document, split
from lcc.transcript.messages_api import Content, read_content
from lcc.transcript.model import Json, Message, Role, ToolResult, ToolUse, Transcript, TranscriptError

_BOM: Final = b"\xef\xbb\xbf"


class SessionReader:
    """Reads a session file as it grows: what has been fed once is not parsed again.

    The file must only have been appended to; when it was cut or replaced, start a new reader.
    """

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._tail = b""
        self._line = 1
        self._state = _State()

    def feed(self, appended: bytes) -> None:
        """Take in the bytes that follow those fed before. An unfinished last line is kept until it is whole.

        Raises TranscriptError, with line and column, for what no client writes; the reader is of no further use.
        """
        appended = self._tail + appended
        cut = appended.rfind(b"\n") + 1
        whole, self._tail = (appended, b"") if cut == len(appended) else (appended[:cut], appended[cut:])
        if whole:
            self._take(whole)

    def transcript(self) -> Transcript:
        """The session as far as it has been fed, leaving out an unfinished last line."""
        if self._tail:
            try:
                documents = list(split(self._tail, 0, self._line))
            except TranscriptError:
                documents = []
            if documents:
                raw = b"".join((*self._chunks, self._tail))
                state = self._state.copy()
                state.take_all(documents, self._size)
                return state.transcript(raw)
        raw = b"".join(self._chunks)
        self._chunks = [raw]
        return self._state.transcript(raw)

    def _take(self, whole: bytes) -> None:
        start = len(_BOM) if not self._size and whole.startswith(_BOM) else 0
        self._state.take_all(split(whole, start, self._line), self._size)
        self._chunks.append(whole)
        self._size += len(whole)
        self._line += whole.count(b"\n")


def read(raw: bytes) -> Transcript:
    """A whole session file. Raises TranscriptError; a torn last line is an error here."""
    state = _State()
    state.take_all(split(raw, len(_BOM) if raw.startswith(_BOM) else 0), 0)
    return state.transcript(raw)


class _State:
    """What has been read so far: the tree's lines, and what the file says of the session."""

    def __init__(self) -> None:
        self.offsets: list[tuple[int, int]] = []
        self.entries: list[Entry] = []
        self.unplaced: list[tuple[int, int]] = []
        self.cleared: set[str] = set()
        self.warnings: list[str] = []
        self.cwd: str | None = None
        self.session_id: str | None = None
        self.version: str | None = None
        self.has_parents = False
        self.conversation = 0

    def copy(self) -> _State:
        """An independent copy; the entries themselves are shared, being immutable."""
        other = _State()
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, list | set) else value)
        return other

    def take_all(self, documents: Iterable[Document], base: int) -> None:
        """Take in documents whose offsets count from ``base``."""
        for start, end, line, value, damage in documents:
            index = len(self.offsets)
            self.offsets.append((base + start, base + end))
            if damage is not None:
                self.warnings.append(damage)
            try:
                self._take(value, index, line, damage is not None)
            except TranscriptError as error:
                place = error.place.removeprefix(f"[{index}].")
                raise TranscriptError(error.problem, f"line {line}, {place}") from None

    def _take(self, value: dict[str, Json], index: int, line: int, damaged: bool) -> None:
        entry_type = value.get("type")
        sidechain = value.get("isSidechain") is True
        cwd = value.get("cwd")
        if isinstance(cwd, str):
            if not sidechain:
                self.cwd = cwd
        else:
            cwd = None
        if isinstance(session_id := value.get("sessionId"), str):
            self.session_id = session_id
        if isinstance(version := value.get("version"), str):
            self.version = version
        uuid, parent = value.get("uuid"), value.get("parentUuid")
        if entry_type in ("user", "assistant"):
            speaker: Literal["user", "assistant"] = "user" if entry_type == "user" else "assistant"
            message_id, content = _message(value, index, cwd, damaged)
            source = value.get("sourceToolAssistantUUID")
            self.conversation += 1
            if not isinstance(uuid, str):
                self.unplaced.append((index, line))
                uuid = f"line {line}"
            self._add(value, index, uuid, parent, speaker, sidechain, message_id, source, content)
        elif isinstance(uuid, str):
            boundary = entry_type == "system" and value.get("subtype") == "compact_boundary"
            self._add(value, index, uuid, parent, "boundary" if boundary else "other", sidechain, None, None, None)
            if entry_type == "system" and value.get("subtype") == "microcompact_boundary":
                self.cleared |= _cleared(value)

    def _add(
        self,
        value: dict[str, Json],
        index: int,
        uuid: str,
        parent: Json,
        entry_kind: Literal["user", "assistant", "boundary", "other"],
        sidechain: bool,
        message_id: str | None,
        source: Json,
        content: Content | None,
    ) -> None:
        if "parentUuid" in value:
            self.has_parents = True
        self.entries.append(
            Entry(
                index,
                uuid,
                parent if isinstance(parent, str) else None,
                entry_kind,
                sidechain,
                message_id,
                source if isinstance(source, str) else None,
                content,
                _segment(value) if entry_kind == "boundary" else None,
            )
        )

    def transcript(self, raw: bytes) -> Transcript:
        """The messages of the live branch."""
        if self.has_parents:
            if self.unplaced:
                line = self.unplaced[0][1]
                raise TranscriptError("a user or assistant entry without uuid", f"line {line}, uuid")
            branch = active_branch(self.entries)
        else:
            branch = _plain_list(self.entries)
        messages = _messages(branch)
        return Transcript(
            "claude-code",
            messages,
            self.cwd,
            self.session_id,
            self.version,
            frozenset(self.cleared),
            duplicate_ids(messages),
            raw,
            tuple(self.offsets),
            tuple(self.warnings),
        )


def _message(value: dict[str, Json], index: int, cwd: str | None, damaged: bool) -> tuple[str | None, Content]:
    """The API's message in a user or assistant entry: its id and content."""
    message = value.get("message")
    if not isinstance(message, dict):
        problem = f"must be an object, is {kind(message) if 'message' in value else 'absent'}"
        raise TranscriptError(problem, f"[{index}].message")
    message_id = message.get("id")
    content = read_content(message.get("content"), (index, "message", "content"), cwd)
    if damaged:
        content = content._replace(results=[r._replace(text_path=None) for r in content.results])
    return message_id if isinstance(message_id, str) else None, content


def _cleared(value: dict[str, Json]) -> set[str]:
    """The results that a micro-compaction has cleared."""
    meta = value.get("microcompactMetadata")
    ids = meta.get("compactedToolIds") if isinstance(meta, dict) else None
    return {i for i in ids if isinstance(i, str)} if isinstance(ids, list) else set()


def _segment(value: dict[str, Json]) -> Segment | None:
    """The lines that a compact boundary kept, where it names them."""
    meta = value.get("compactMetadata")
    kept = meta.get("preservedSegment") if isinstance(meta, dict) else None
    if not isinstance(kept, dict):
        return None
    head, anchor, tail = kept.get("headUuid"), kept.get("anchorUuid"), kept.get("tailUuid")
    if isinstance(head, str) and isinstance(anchor, str) and isinstance(tail, str):
        return Segment(head, anchor, tail)
    return None


def _plain_list(entries: list[Entry]) -> list[Entry]:
    """A file without any parent links: the lines in their order."""
    side_file = all(e.sidechain for e in entries if e.content is not None)
    start = max((e.document for e in entries if e.kind == "boundary"), default=-1)
    return [e for e in entries if e.content is not None and e.document > start and e.sidechain == side_file]


class _Building:
    """A message that lines are being added to."""

    __slots__ = ("documents", "more", "results", "role", "texts", "uses")

    def __init__(self, role: Role) -> None:
        self.role = role
        self.texts: list[str] = []
        self.uses: list[ToolUse] = []
        self.results: list[ToolResult] = []
        self.documents: list[int] = []
        self.more = False

    def add(self, entry: Entry, content: Content) -> None:
        if content.text:
            self.texts.append(content.text)
        self.uses += content.uses
        self.results += content.results
        self.documents.append(entry.document)
        self.more = self.more or content.more

    def build(self) -> Message:
        return Message(
            self.role,
            "\n".join(self.texts),
            tuple(self.uses),
            tuple(self.results),
            None,
            tuple(self.documents),
            self.more,
        )


def _messages(branch: list[Entry]) -> tuple[Message, ...]:
    """Lines to messages: a step's assistant lines are one, and the result lines that answer it are one."""
    building: list[_Building] = []
    step_id: str | None = None
    step: _Building | None = None
    answers: _Building | None = None
    for entry in branch:
        content = entry.content
        if content is None:
            continue
        if entry.kind == "assistant":
            if step is None or entry.message_id is None or entry.message_id != step_id:
                step, step_id, answers = _Building("assistant"), entry.message_id, None
                building.append(step)
            step.add(entry, content)
        elif content.results and answers is not None:
            answers.add(entry, content)
        else:
            message = _Building("user")
            building.append(message)
            message.add(entry, content)
            if content.results:
                answers = message
    return tuple(message.build() for message in building)


def duplicate_ids(messages: Iterable[Message]) -> frozenset[str]:
    """Call ids that occur more than once among the calls, or among the results."""
    uses: Counter[str] = Counter()
    results: Counter[str] = Counter()
    for message in messages:
        uses.update(use.id for use in message.tool_uses)
        results.update(result.tool_use_id for result in message.tool_results)
    return frozenset(i for ids in (uses, results) for i, count in ids.items() if count > 1)
