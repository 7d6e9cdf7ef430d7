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
    text_path: Path | None = None
    """Where the input stands in the document, where it is one string that can be replaced (a Codex script or patch)."""


class TextPart(NamedTuple):
    """One text of a result that is a list of parts. ``number`` counts all of its parts, from 1."""

    number: int
    text: str
    path: Path


class ToolResult(NamedTuple):
    """One result. ``path`` is the place of its block or object; ``text_path`` that of its only text.

    What a note can stand in for, and what a pointer can point at, is a text: the only one of a result that
    is exactly one text, or each part of one that is several parts. In a damaged document there is none.
    """

    tool_use_id: str
    text: str
    """All of its text parts, joined with a newline where there are several."""
    is_error: bool | None
    """None where the host did not say."""
    path: Path
    text_path: Path | None
    """Where the text stands, when the result is exactly one text and its document is sound; else None."""
    parts: tuple[TextPart, ...] = ()
    """Its texts, when it is a list of several parts, or of one text beside others (an image), in a sound document."""

    def with_texts(self, texts: Mapping[str, str]) -> ToolResult:
        """The result with new texts, by text id. Raises KeyError for its call's id where it is not one text."""
        new = self.new_texts(texts)
        if not new:
            return self
        if not self.parts:
            return self._replace(text=new[0][1])
        by_path = dict(new)
        parts = tuple(part._replace(text=by_path.get(part.path, part.text)) for part in self.parts)
        return self._replace(text="\n".join(part.text for part in parts), parts=parts)

    def new_texts(self, texts: Mapping[str, str]) -> list[tuple[Path, str]]:
        """What of ``texts``, by text id, is of this result, with where it stands. Raises as ``with_texts`` does."""
        if self.text_path is None and self.tool_use_id in texts:
            raise KeyError(f"the result of {self.tool_use_id} is not one text and cannot be replaced")
        return [(path, texts[text_id]) for text_id, path in self._text_paths() if text_id in texts]

    def texts(self) -> tuple[tuple[str, int | None, ToolResult], ...]:
        """Each of its texts: the text id, the part's number, the result as that text alone. Without parts, itself."""
        if not self.parts:
            return ((self.tool_use_id, None, self),)
        return tuple(
            (
                part_id(self.tool_use_id, part.number),
                part.number,
                self._replace(text=part.text, text_path=part.path, parts=()),
            )
            for part in self.parts
        )

    def text_ids(self) -> tuple[str, ...]:
        """The text ids of ``texts``."""
        if not self.parts:
            return (self.tool_use_id,)
        return tuple(part_id(self.tool_use_id, part.number) for part in self.parts)

    def untouchable(self) -> ToolResult:
        """The result as one of a damaged document, in which nothing may be changed."""
        return self._replace(text_path=None, parts=())

    def _text_paths(self) -> Iterator[tuple[str, Path]]:
        """Each of its texts: its text id, and where it stands."""
        if self.text_path is not None:
            yield self.tool_use_id, self.text_path
        for part in self.parts:
            yield part_id(self.tool_use_id, part.number), part.path


def part_id(call_id: str, number: int) -> str:
    """The text id of one part of a result. That of a result which is one text is its call's id alone."""
    return f"{call_id} part {number}"


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
    by_client: bool = False
    """Whether the client wrote it in the user's place (a skill's text, a notice): sent, and no words of the user."""


class Pair(NamedTuple):
    """A call with its result, and the indexes of the messages that hold them.

    Where a result is several parts, ``texts`` gives a pair for each, whose result is that one text alone.
    """

    use: ToolUse
    result: ToolResult
    use_message: int
    result_message: int
    part: int | None = None
    """Which part of the call's result this is, counted from 1; None for the whole result."""

    @property
    def text_id(self) -> str:
        """The id that edits, decisions and notes know this text by: its call's, or that and the part."""
        return self.use.id if self.part is None else part_id(self.use.id, self.part)

    def texts(self) -> tuple[Pair, ...]:
        """A pair for each text of the result; itself where that is not several parts."""
        if not self.result.parts:
            return (self,)
        return tuple(self._replace(result=result, part=number) for _, number, result in self.result.texts())


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
    """What was read around, with its place: a damaged line that is kept as it stands. Of very many the first ones."""
    damaged: int = 0
    """How many such places there are."""
    changed_files: tuple[tuple[int, str], ...] = field(default=(), repr=False)
    """Files that the client said were changed outside of the calls, each with the index of the document."""
    aside: tuple[Message, ...] = field(default=(), repr=False)
    """What stands in the file and is not sent any more (rewound, summarised, of a side chain), in the file's order."""

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

    def aside_pairs(self) -> Iterator[Pair]:
        """Every other call of the file with its result; neither has a place among the messages (index -1)."""
        if not self.aside:
            return
        sent = {pair.use.id for pair in self.pairs()} | self.duplicates
        results: dict[str, ToolResult] = {}
        for result in self.all_results():
            results.setdefault(result.tool_use_id, result)
        for message in (*self.messages, *self.aside):
            for use in message.tool_uses:
                if use.id in results and use.id not in sent:
                    sent.add(use.id)
                    yield Pair(use, results[use.id], -1, -1)

    def all_results(self) -> Iterator[ToolResult]:
        """Every result of the file, those that are still sent first."""
        for message in (*self.messages, *self.aside):
            yield from message.tool_results


@dataclass(frozen=True, slots=True)
class Edits:
    """What a pass changes: new texts in results, by text id; by call id, strings in inputs and the calls that go."""

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
        """The base64 text of the image or document that a result's part holds; None for any other part."""

    def image_part(self, media_type: str, data: str) -> dict[str, Json]:
        """The part that the client writes for an image or a PDF: ``media_type`` as ``image/png``, base64 ``data``."""

    def text_part(self, text: str) -> dict[str, Json]:
        """The part that the client writes for a text."""

    def second_copies(self, transcript: Transcript) -> dict[str, list[str]]:
        """What the file itself repeats of the outputs, beside what the model is sent, by call id."""
