"""What the formats have in common that are files of JSON lines, to which a client appends while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lcc.transcript.edit import block_edits
from lcc.transcript.file_edits import FileEdits
from lcc.transcript.lines import split
from lcc.transcript.model import Edits, Format, Message, ToolResult, ToolUse, Transcript
from lcc.transcript.values import Json, Path, value_in


class ManyLines(Format):
    """A format of lines. A result's content stands at ``content_path``, as a text or as a list of parts."""

    can_fork = False

    def edited_source(self, message: Message, edits: Edits) -> dict[str, Json] | None:
        return None

    def render(self, transcript: Transcript, changed: Iterable[Message], edits: Edits, ascii_only: bool) -> bytes:
        """A call or a result that is a line of its own goes with its line."""
        planned = FileEdits(transcript)
        for message in changed:
            for path, edit in block_edits(message, edits, self, ascii_only):
                if self.is_own_line(path):
                    planned.remove([int(path[0])])
                else:
                    planned.add(path, edit)
        return planned.write()

    def input_path(self, use: ToolUse) -> Path | None:
        return None

    def is_own_line(self, path: Path) -> bool:
        """Whether a call or result at ``path`` has its document for itself."""
        return False

    def content_path(self, result: ToolResult) -> Path:
        """Where a result's content stands."""
        return (*result.path, "content")

    def parts(
        self, transcript: Transcript, message: Message, result: ToolResult
    ) -> Iterator[tuple[Path, dict[str, Json]]]:
        path = self.content_path(result)
        content = value_at(transcript, path)
        for index, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict):
                yield (*path, index), part

    def image_data(self, part: Mapping[str, Json]) -> str | None:
        return None

    def image_part(self, media_type: str, data: str) -> dict[str, Json]:
        raise NotImplementedError

    def text_part(self, text: str) -> dict[str, Json]:
        return {"type": "text", "text": text}

    def second_copies(self, transcript: Transcript) -> dict[str, list[str]]:
        return {}


def document_value(transcript: Transcript, document: int) -> dict[str, Json]:
    """The object that a document of the file holds."""
    start, end = transcript.documents[document]
    return next(split((transcript.raw or b"")[start:end])).value


def value_at(transcript: Transcript, path: Path) -> Json:
    """The value at a path of the file; None where there is none."""
    return value_in(document_value(transcript, int(path[0])), path[1:])


def strings_of(copy: Json) -> Iterator[str]:
    """The texts of a second copy that can be an output, wherever its tool puts them."""
    if isinstance(copy, str):
        yield copy
    elif isinstance(copy, dict):
        for key in ("stdout", "content", "aggregated_output", "formatted_output", "output", "result", "text", "file"):
            if key in copy:
                yield from strings_of(copy[key])
    elif isinstance(copy, list):
        for part in copy:
            yield from strings_of(part)
