"""Reading transcripts of every supported format, and writing them back with a pass's edits."""

from lcc.transcript.model import (
    Edits,
    Format,
    Json,
    Message,
    Pair,
    Path,
    Role,
    ToolResult,
    ToolUse,
    Transcript,
    TranscriptError,
)

__all__ = [
    "Edits",
    "Format",
    "Json",
    "Message",
    "Pair",
    "Path",
    "Role",
    "ToolResult",
    "ToolUse",
    "Transcript",
    "TranscriptError",
]
