"""What the formats have in common that are one JSON document with a list of messages.

A message keeps the object that it came as, so that its shape and its unknown fields come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lcc.transcript.document import kind, refuse
from lcc.transcript.edit import apply_to_message, block_edits
from lcc.transcript.file_edits import FileEdits
from lcc.transcript.model import Edits, Format, Message, ToolResult, ToolUse, Transcript
from lcc.transcript.source import Source
from lcc.transcript.splice import REMOVE
from lcc.transcript.values import Json, Path, TranscriptError


class OneDocument(Format):
    """A format of one document: ``messages``, or an object that holds them and may hold the session's ``cwd``."""

    can_fork = False

    def has_shape(self, messages: list[Json]) -> bool:
        """Whether messages look like this format's."""
        raise NotImplementedError

    def parse_messages(self, messages: list[Json], above: Path) -> tuple[Message, ...]:
        """The messages, one to one. ``above`` is the path of the array. Raises TranscriptError."""
        raise NotImplementedError

    def recognises(self, source: Source) -> bool:
        if not source.is_one_document:
            return False
        messages = messages_of(source.document)
        return messages is not None and self.has_shape(messages)

    def read(self, source: Source) -> Transcript:
        return self.parse(source.document, source.raw, source.name)

    def parse(self, document: Json, raw: bytes | None, name: str) -> Transcript:
        """The transcript of a document that is parsed already; ``name`` stands for it as in ``Source``.

        Raises TranscriptError with the JSON path.
        """
        messages = messages_of(document)
        if messages is None:
            raise TranscriptError(f"neither a messages array nor an object with messages, but {kind(document)}", name)
        parsed = self.parse_messages(messages, ("messages",) if isinstance(document, dict) else ())
        cwd = document.get("cwd") if isinstance(document, dict) else None
        return Transcript(self, parsed, cwd if isinstance(cwd, str) else None, raw=raw)

    def begins(self, source: Source) -> bool:
        return True

    def render(self, transcript: Transcript, changed: Iterable[Message], edits: Edits, ascii_only: bool) -> bytes:
        planned = FileEdits(transcript)
        for message in changed:
            path = message_path(message)
            if edits.dropped and apply_to_message(message, edits, self) is None:
                planned.add(path, REMOVE)
                continue
            for place, edit in (*block_edits(message, edits, self, ascii_only), *self.more_edits(message, edits)):
                planned.add(place, edit)
        return planned.write()

    def input_path(self, use: ToolUse) -> Path | None:
        return (*use.path, "input")

    def more_edits(self, message: Message, edits: Edits) -> Iterator[tuple[Path, object]]:
        """What goes from a message beside the blocks that the edits name."""
        yield from ()

    def parts(
        self, transcript: Transcript, message: Message, result: ToolResult
    ) -> Iterator[tuple[Path, dict[str, Json]]]:
        yield from ()

    def image_data(self, part: Mapping[str, Json]) -> str | None:
        return None

    def image_part(self, media_type: str, data: str) -> dict[str, Json]:
        raise NotImplementedError

    def text_part(self, text: str) -> dict[str, Json]:
        raise NotImplementedError

    def second_copies(self, transcript: Transcript) -> dict[str, list[str]]:
        return {}


def message_path(message: Message) -> Path:
    """Where a message with a call or a result stands in its document."""
    block = (message.tool_uses or message.tool_results)[0].path
    return block[: 1 if isinstance(block[0], int) else 2]


def messages_of(document: Json) -> list[Json] | None:
    """The document's messages; None where it has none. Raises TranscriptError where they are no array."""
    messages = document.get("messages") if isinstance(document, dict) else document
    if isinstance(messages, list):
        return messages
    if isinstance(document, dict) and "messages" in document:
        refuse(f"must be an array, not {kind(messages)}", ("messages",))
    return None
