"""The one message model that every format is read into and every decision is taken over, and what a format is.

The values are NamedTuples: immutable like a frozen dataclass, at a quarter of its cost to build, and a
long session builds several of them for each call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from lcc.transcript.source import Source
from lcc.transcript.values import Json, Path

Role = Literal["user", "assistant", "system", "developer", "tool"]


class ToolUse(NamedTuple):
    """One call. ``path`` is the place of its block or object in the document."""

    id: str
    tool: str
    input: Json
    """As parsed. A Codex ``function_call``'s arguments are decoded; free text (a patch) stays a string."""
    cwd: str | None
    """The working directory the transcript records for this call, where it records one."""
    path: Path


class ToolResult(NamedTuple):
    """One result. ``path`` is the place of its block or object; ``text_path`` that of its only text."""

    tool_use_id: str
    text: str
    """All of its text parts, joined with a newline where there are several."""
    is_error: bool | None
    """None where the host did not say."""
    path: Path
    text_path: Path | None
    """Where the text stands, when the result is exactly one text and its document is sound; else None.

    A result without it cannot be replaced by a note, and its ``text`` is no target for a pointer either.
    """


class Message(NamedTuple):
    """One message of the conversation, in the order the model was sent it."""

    role: Role
    text: str
    """The words of the user or the assistant (not results, not thinking), text blocks joined with a newline."""
    tool_uses: tuple[ToolUse, ...]
    tool_results: tuple[ToolResult, ...]
    source: dict[str, Json] | None
    """The object as it came, for the one-document formats, whose shape and unknown fields come back; else None."""
    documents: tuple[int, ...] = ()
    """Line-based formats: the indexes of the JSON documents it was read from. Else its index in ``messages``."""
    more: bool = False
    """Whether it holds content besides text, calls, results and thinking (an image, a server tool's block)."""


class Pair(NamedTuple):
    """A call with its result, and the indexes of the messages that hold them."""

    use: ToolUse
    result: ToolResult
    use_message: int
    result_message: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """A parsed session: the messages that the model is still sent, and what the file says about them."""

    format: Format
    messages: tuple[Message, ...]
    cwd: str | None = None
    """The session's working directory, where the file records one (the last one it names)."""
    session_id: str | None = None
    client_version: str | None = None
    cleared: frozenset[str] = frozenset()
    """Ids of results that the client has already cleared in its live context (micro-compaction)."""
    duplicates: frozenset[str] = frozenset()
    """Call ids that occur more than once, on either side. Nothing is decided about them but keep."""
    raw: bytes | None = field(default=None, repr=False)
    """The file's bytes, where it was read from bytes: the output is these bytes with the edits spliced in."""
    documents: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    """For line-based formats: start and end offset in ``raw`` of each JSON document."""
    warnings: tuple[str, ...] = ()
    """What was read around, with its place: a damaged line that is kept as it stands."""

    def pairs(self) -> Iterator[Pair]:
        """Every call that has its result after it, in the order of the calls, without ``duplicates``."""
        results: dict[str, tuple[ToolResult, int]] = {}
        for index, message in enumerate(self.messages):
            for result in message.tool_results:
                results[result.tool_use_id] = (result, index)
        for index, message in enumerate(self.messages):
            for use in message.tool_uses:
                found = results.get(use.id)
                if found is not None and found[1] >= index and use.id not in self.duplicates:
                    yield Pair(use, found[0], index, found[1])


@dataclass(frozen=True, slots=True)
class Edits:
    """What a pass changes, by call id: the new text of results, strings in inputs, and the calls that go whole."""

    texts: Mapping[str, str] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    """The calls that are removed together with their results."""
    inputs: Mapping[str, Mapping[Path, str]] = field(default_factory=dict)
    """The new strings of a call's input, each by its path within the input."""

    def __bool__(self) -> bool:
        return bool(self.texts) or bool(self.dropped) or bool(self.inputs)


class Format(Protocol):
    """One format of transcripts: everything that the rest of lcc asks of one.

    A format is a module (or a folder) under ``formats/`` and one line in ``formats/__init__.py``; nothing else
    knows its name. ``one_document.py`` and ``many_lines.py`` there hold what formats of a kind have in common.
    Its object has no state: two formats are the same when they are the same object."""

    @property
    def name(self) -> str:
        """As ``--format`` and the report spell it."""

    @property
    def what(self) -> str:
        """What such an input is, with its article, for people: ``a Codex rollout``."""

    @property
    def can_fork(self) -> bool:
        """Whether its client can resume a fork of the session."""

    def recognises(self, source: Source) -> bool:
        """Whether the input looks like one of this format. Raises TranscriptError for what no format can be."""

    def read(self, source: Source) -> Transcript:
        """The whole transcript. Raises TranscriptError with the place."""

    def begins(self, source: Source) -> bool:
        """Whether an input that holds no message so far is the beginning of a transcript all the same."""

    def input_path(self, use: ToolUse) -> Path | None:
        """Where the call's input stands as a value of its own; None where a string in it cannot be replaced."""

    def edited_source(self, message: Message, edits: Edits) -> dict[str, Json] | None:
        """The message's own object (``Message.source``) with the edits made; None where it has none."""

    def render(self, transcript: Transcript, changed: Iterable[Message], edits: Edits, ascii_only: bool) -> bytes:
        """The transcript's bytes with the edits of the ``changed`` messages made, every other byte as it was.

        ``ascii_only``: new texts escape what is not ASCII. Raises ValueError for a transcript without bytes,
        KeyError for the new text of a result that is not exactly one text.
        """

    def parts(
        self, transcript: Transcript, message: Message, result: ToolResult
    ) -> Iterator[tuple[Path, dict[str, Json]]]:
        """The parts of a result whose content is a list of them, each with its path; none for any other result."""

    def image_data(self, part: Mapping[str, Json]) -> str | None:
        """The base64 text of the image that a result's part holds; None for any other part."""

    def image_part(self, media_type: str, data: str) -> dict[str, Json]:
        """The part that the client writes for an image: ``media_type`` as ``image/png``, ``data`` in base64."""

    def text_part(self, text: str) -> dict[str, Json]:
        """The part that the client writes for a text."""

    def second_copies(self, transcript: Transcript) -> dict[str, list[str]]:
        """What the file itself repeats of the outputs, beside what the model is sent, by call id."""
