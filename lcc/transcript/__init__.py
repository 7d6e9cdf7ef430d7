"""Reading transcripts of every supported format, and writing them back with a pass's edits."""

from lcc.transcript.edit import apply_edits, input_with, messages_to_payload
from lcc.transcript.formats import FORMATS
from lcc.transcript.formats.claude.growing import SessionReader
from lcc.transcript.formats.recognition import parse_payload, read_transcript
from lcc.transcript.model import Edits, Format, Message, Pair, Role, ToolResult, ToolUse, Transcript
from lcc.transcript.render import render
from lcc.transcript.values import Json, Path, TranscriptError, value_in

__all__ = [
    "FORMATS",
    "Edits",
    "Format",
    "Json",
    "Message",
    "Pair",
    "Path",
    "Role",
    "SessionReader",
    "ToolResult",
    "ToolUse",
    "Transcript",
    "TranscriptError",
    "apply_edits",
    "input_with",
    "messages_to_payload",
    "parse_payload",
    "read_transcript",
    "render",
    "value_in",
]
