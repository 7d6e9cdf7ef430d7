"""The one message model that every format is read into and every decision is taken over.

The values are NamedTuples: immutable like a frozen dataclass, at a quarter of its cost to build, and a
long session builds several of them for each call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from lcc.transcript.format import Format

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Role = Literal["user", "assistant", "system", "developer", "tool"]

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands: object keys and array indexes from the root of its JSON document.

In a line-based format the first element is the 0-based index of the JSON document in the file (a line
may hold two), so ``(17, "message", "content", 0)`` is a block of document 17.
"""


class TranscriptError(ValueError):
    """Input that cannot be read as a transcript. ``place`` says where: a JSON path, or line and column."""

    def __init__(self, problem: str, place: str) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place


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
    """What a pass changes: the new text of results, by call id, and the calls removed with their results."""

    texts: Mapping[str, str] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.texts) or bool(self.dropped)
