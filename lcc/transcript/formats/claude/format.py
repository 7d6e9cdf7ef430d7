"""Session files of Claude Code, as the rest of lcc asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lcc.transcript.formats.claude.reader import read_state
from lcc.transcript.formats.claude.rendering import render_session
from lcc.transcript.formats.many_lines import ManyLines, document_value, strings_of
from lcc.transcript.formats.messages_api import image_data, image_part
from lcc.transcript.model import Edits, Message, ToolUse, Transcript
from lcc.transcript.source import Source
from lcc.transcript.values import Json, Path


class ClaudeCode(ManyLines):
    """A session that the client can resume."""

    name = "claude-code"
    what = "a Claude Code session"
    can_fork = True

    def recognises(self, source: Source) -> bool:
        """Every line of it has a type; which types there are changes with the client's versions."""
        return not source.is_one_document and "type" in source.fields

    def begins(self, source: Source) -> bool:
        first = source.fields
        return "sessionId" in first or "uuid" in first or first.get("type") == "file-history-snapshot"

    def read(self, source: Source) -> Transcript:
        return read_state(source.raw, strict=source.strict).transcript(self, source.raw)

    def input_path(self, use: ToolUse) -> Path | None:
        return (*use.path, "input")

    def render(self, transcript: Transcript, changed: Iterable[Message], edits: Edits, ascii_only: bool) -> bytes:
        return render_session(transcript, changed, edits, ascii_only)

    def image_data(self, part: Mapping[str, Json]) -> str | None:
        return image_data(part)

    def image_part(self, media_type: str, data: str) -> dict[str, Json]:
        return image_part(media_type, data)

    def second_copies(self, transcript: Transcript) -> dict[str, list[str]]:
        """The line of a result keeps the tool's own answer beside the message."""
        return {
            result.tool_use_id: list(strings_of(document_value(transcript, int(result.path[0])).get("toolUseResult")))
            for result in transcript.all_results()
        }
