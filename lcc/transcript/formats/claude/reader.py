"""Claude Code session files: JSONL that the client appends to while it runs.

A message is what the API is sent: all lines of one ``message.id`` are one assistant message, and the results
of its calls are one user message, although each stands on a line of its own. Shapes: see the README beside.
"""

from __future__ import annotations

from collections.abc import Iterable

from lcc.transcript.building import MessageBuilder, duplicate_ids, placed_in_line, warnings_of
from lcc.transcript.collector import without_collector
from lcc.transcript.document import BOM, kind
from lcc.transcript.formats.claude.entry import Checkpoint, Entry, Kept, Kind
from lcc.transcript.formats.claude.tree import Tree, active_branch, live_tree, plain_list
from lcc.transcript.formats.messages_api import Content, read_content
from lcc.transcript.lines import KEPT, UNREAD, Document, split
from lcc.transcript.model import Format, Message, ToolResult, Transcript
from lcc.transcript.values import Json, TranscriptError


def read_state(raw: bytes, *, strict: bool = False) -> SessionState:
    """What a whole file says. ``strict``: raises TranscriptError for damage, and for a torn last line."""
    state = SessionState(strict)
    state.take_all(split(raw, len(BOM) if raw.startswith(BOM) else 0, strict=strict), 0)
    return state


def read_tree(raw: bytes) -> Tree:
    """The tree of a session's lines; without a walk where the file has no parent links."""
    state = read_state(raw)
    if not state.has_parents:
        return Tree(state.entries, [], {})
    return live_tree(state.placed_entries(), state.checkpoint)


class SessionState:
    """What has been read so far: the tree's lines, and what the file says of the session.

    What cannot be read stands aside, with a warning, as the client lets it; ``strict`` refuses it.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.offsets: list[tuple[int, int]] = []
        self.entries: list[Entry] = []
        self.cleared: set[str] = set()
        self.changed_files: list[tuple[int, str]] = []
        self.warnings: list[str] = []
        self.cwd: str | None = None
        self.session_id: str | None = None
        self.version: str | None = None
        self.checkpoint: Checkpoint | None = None
        self.has_parents = False
        self.any_read = False
        self.nameless: dict[str, int] = {}
        """The user and assistant lines without uuid: the id they are given here, with the number of the line."""

    @property
    def is_unreadable(self) -> bool:
        """Whether there are lines, and none of them could be read."""
        return bool(self.offsets) and not self.any_read

    def copy(self) -> SessionState:
        """An independent copy; the entries themselves are shared, being immutable."""
        other = SessionState()
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, list | set | dict) else value)
        return other

    def take_all(self, documents: Iterable[Document], base: int) -> None:
        """Take in documents whose offsets count from ``base``."""
        for start, end, line, value, damage in documents:
            index = len(self.offsets)
            self.offsets.append((base + start, base + end))
            self.any_read = self.any_read or bool(value)
            if damage is not None:
                self.warnings.append(damage)
            try:
                self._take(value, index, line, damage is not None)
            except TranscriptError as error:
                misread = placed_in_line(error, index, line)
                if self.strict:
                    raise misread from None
                self.warnings.append(f"{misread}; {UNREAD}")
                self._take({**value, "type": None}, index, line, True)  # its place in the tree is known

    def _take(self, value: dict[str, Json], index: int, line: int, damaged: bool) -> None:
        entry_type = value.get("type")
        sidechain = value.get("isSidechain") is True
        cwd = self._take_session(value, sidechain)
        uuid = _string(value, "uuid")
        message_id: str | None = None
        content: Content | None = None
        kept: Kept | None = None
        entry_kind: Kind = "other"
        by_client = value.get("isMeta") is True
        if entry_type in ("user", "assistant") and not _is_never_sent(value):
            entry_kind = "user" if entry_type == "user" else "assistant"
            message_id, content = _message(value, index, cwd, damaged)
            if uuid is None:
                uuid = f"line {line}, document {index}"
                self.nameless[uuid] = line
        elif entry_type == "system":
            if value.get("subtype") == "compact_boundary":
                entry_kind, kept = "boundary", _kept(value)
            elif value.get("subtype") == "microcompact_boundary":
                self.cleared |= _cleared(value)
        elif entry_type == "attachment":
            content = _queued_prompt(value, index, cwd)
            entry_kind = "other" if content is None else "user"
            by_client = _is_from_elsewhere(value.get("attachment"))
            attachment = value.get("attachment")
            if isinstance(attachment, dict) and attachment.get("type") == "edited_text_file":
                name = attachment.get("filename")
                self.changed_files += [(index, name)] if isinstance(name, str) else []
        elif entry_type == "last-prompt":
            self._take_checkpoint(value, index)
        if uuid is None:
            return
        if "parentUuid" in value:
            self.has_parents = True
        parent, time = _string(value, "parentUuid"), _string(value, "timestamp")
        source = _string(value, "sourceToolAssistantUUID")
        self.entries.append(
            Entry(index, uuid, parent, entry_kind, sidechain, message_id, source, content, kept, time, by_client)
        )

    def _take_session(self, value: dict[str, Json], sidechain: bool) -> str | None:
        """What a line says of the session; most say what the one before it said. Returns the line's folder."""
        cwd = value.get("cwd")
        if not isinstance(cwd, str):
            cwd = None
        elif not sidechain:
            self.cwd = cwd or self.cwd
        session_id, version = value.get("sessionId"), value.get("version")
        if session_id != self.session_id and isinstance(session_id, str):
            self.session_id = session_id or self.session_id
        if version != self.version and isinstance(version, str):
            self.version = version or self.version
        return cwd

    def branch(self) -> list[Entry]:
        """The lines that the model is still sent, in order."""
        if self.has_parents:
            return active_branch(live_tree(self.placed_entries(), self.checkpoint))
        return plain_list(self.entries)

    def placed_entries(self) -> list[Entry]:
        """The lines with their places in the tree.

        In a file with links between its lines, one without uuid is found by its time alone, and of several the
        last: the client keeps them all under one missing name. Nothing in it is changed.
        """
        if not self.has_parents or not self.nameless:
            return self.entries
        return [_unnamed(entry) if entry.uuid in self.nameless else entry for entry in self.entries]

    def _take_checkpoint(self, value: dict[str, Json], index: int) -> None:
        """The client notes a rewind at once; the next prompt then hangs on that line."""
        leaf = _string(value, "leafUuid")
        if leaf is not None and (value.get("rewound") is True or value.get("explicit") is True):
            self.checkpoint = Checkpoint(index, leaf)

    def transcript(self, form: Format, raw: bytes) -> Transcript:
        """The messages of the live branch of ``raw``.

        ``strict``: raises TranscriptError for a line that cannot be placed in the tree.
        """
        unplaced = [
            TranscriptError("a user or assistant entry without uuid", f"line {line}, uuid")
            for line in (self.nameless.values() if self.has_parents else ())
        ]
        if unplaced and self.strict:
            raise unplaced[0]
        damage = [*self.warnings, *(f"{problem}; {KEPT}" for problem in unplaced)]
        with without_collector():
            branch = self.branch()
            messages = _messages(branch)
            sent = {entry.document for entry in branch}
            aside = tuple(
                _alone(entry, entry.content)
                for entry in self.placed_entries()
                if entry.content is not None and entry.document not in sent
            )
        return Transcript(
            form,
            messages,
            self.cwd,
            self.session_id,
            self.version,
            frozenset(self.cleared),
            duplicate_ids(messages),
            raw,
            tuple(self.offsets),
            warnings_of(damage),
            len(damage),
            tuple(self.changed_files),
            aside,
        )


def _unnamed(entry: Entry) -> Entry:
    return entry._replace(uuid="", content=_untouchable(entry.content) if entry.content else None)


def _untouchable(content: Content) -> Content:
    return content._replace(results=[result.untouchable() for result in content.results])


def _string(value: dict[str, Json], key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) else None


def _message(value: dict[str, Json], index: int, cwd: str | None, damaged: bool) -> tuple[str | None, Content]:
    """The API's message in a user or assistant entry: its id and content."""
    message = value.get("message")
    if not isinstance(message, dict):
        problem = f"must be an object, is {kind(message) if 'message' in value else 'absent'}"
        raise TranscriptError(problem, f"[{index}].message")
    message_id = message.get("id")
    content = read_content(message.get("content"), (index, "message", "content"), cwd)
    if damaged:
        content = _untouchable(content)
    return message_id if isinstance(message_id, str) else None, content


def _is_never_sent(value: dict[str, Json]) -> bool:
    """Whether the client shows a line as a message and never sends it: an error of the API, or for the screen alone."""
    if "isVirtual" in value and value["isVirtual"] is True:
        return True
    if value.get("isApiErrorMessage") is not True:
        return False
    message = value.get("message")
    return isinstance(message, dict) and message.get("model") == "<synthetic>"


def _is_from_elsewhere(attachment: Json) -> bool:
    """Whether a queued prompt came from a program or another session, and not from the user."""
    if not isinstance(attachment, dict):
        return False
    origin = attachment.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return attachment.get("isMeta") is True or kind not in (None, "human")


def _queued_prompt(value: dict[str, Json], index: int, cwd: str | None) -> Content | None:
    """The user's words, where they were typed while the assistant worked: the client sends them as an attachment."""
    attachment = value.get("attachment")
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
        return None
    prompt = attachment.get("prompt")
    if not isinstance(prompt, str | list) or attachment.get("commandMode", "prompt") != "prompt":
        return None
    content = read_content(prompt, (index, "attachment", "prompt"), cwd)
    return content._replace(uses=[], results=[])


def _cleared(value: dict[str, Json]) -> set[str]:
    """The results that a micro-compaction has cleared."""
    meta = value.get("microcompactMetadata")
    ids = meta.get("compactedToolIds") if isinstance(meta, dict) else None
    return {i for i in ids if isinstance(i, str)} if isinstance(ids, list) else set()


def _kept(value: dict[str, Json]) -> Kept | None:
    """The lines that a compact boundary kept, where it names them."""
    meta = value.get("compactMetadata")
    if not isinstance(meta, dict):
        return None
    listed, segment = meta.get("preservedMessages"), meta.get("preservedSegment")
    if isinstance(listed, dict):
        uuids, anchor = listed.get("uuids"), listed.get("anchorUuid")
        if isinstance(uuids, list) and isinstance(anchor, str):
            return Kept(anchor, tuple(uuid for uuid in uuids if isinstance(uuid, str)))
    elif isinstance(segment, dict):
        head, anchor, tail = segment.get("headUuid"), segment.get("anchorUuid"), segment.get("tailUuid")
        if isinstance(head, str) and isinstance(anchor, str) and isinstance(tail, str):
            return Kept(anchor, (), head, tail)
    return None


def _alone(entry: Entry, content: Content) -> Message:
    """One line as a message of its own."""
    return Message(
        "assistant" if entry.kind == "assistant" else "user",
        content.text,
        tuple(content.uses),
        tuple(content.results),
        None,
        (entry.document,),
        content.more,
        entry.by_client and entry.kind != "assistant",
    )


def _messages(branch: list[Entry]) -> tuple[Message, ...]:
    """Lines to messages: a step's assistant lines are one, and the result lines that answer it are one."""
    building: list[MessageBuilder] = []
    step_id: str | None = None
    step: MessageBuilder | None = None
    answers: MessageBuilder | None = None
    for entry in branch:
        content = entry.content
        if content is None:
            continue
        if entry.kind == "assistant":
            if step is None or entry.message_id is None or entry.message_id != step_id:
                step, step_id, answers = MessageBuilder("assistant"), entry.message_id, None
                building.append(step)
            message = step
        elif content.results and answers is not None:
            message = answers
        else:
            message = MessageBuilder("user")
            message.by_client = entry.by_client
            building.append(message)
            if content.results:
                answers = message
        if content.text:
            message.texts.append(content.text)
        message.uses += content.uses
        message.results += content.results
        message.documents.append(entry.document)
        message.more = message.more or content.more
    for message in building:
        message.results.sort(key=_document_of)
    return tuple(message.build() for message in building)


def _document_of(result: ToolResult) -> int:
    """Results stand in the file in the order in which the tools ended."""
    return int(result.path[0])
