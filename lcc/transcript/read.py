"""Recognising a transcript's format by its content, and reading it."""

from __future__ import annotations

import re
from typing import Final

import orjson

from lcc.transcript.collector import without_collector
from lcc.transcript.document import kind, loads, refuse, refuse_foreign_encoding
from lcc.transcript.formats import codex, messages_api, payload
from lcc.transcript.formats.claude import reader as claude_code
from lcc.transcript.lines import BOM
from lcc.transcript.model import Format, Json, Message, Path, Transcript, TranscriptError
from lcc.transcript.soundness import check_objects, checked
from lcc.transcript.splice import skip_value

_ONLY_SPACE: Final = re.compile(rb"[ \t\r\n]*+\Z")
_NONE_OF_THEM: Final = (
    "this is none of the known transcript formats (a messages array, an object with messages, "
    "a Claude Code session, a Codex rollout)"
)


def read_transcript(raw: bytes, *, format: Format | None = None, name: str = "input") -> Transcript:
    """Read a transcript from a file's bytes.

    ``format`` is recognised by content when it is None. ``name`` stands for the input where an error has no
    place inside it. Raises TranscriptError for what is none of the formats, or malformed.
    """
    with without_collector():
        return checked(_read(raw, format, name))


def _read(raw: bytes, format: Format | None, name: str) -> Transcript:
    refuse_foreign_encoding(raw, name)
    if format in ("payload", "messages-api"):
        return _parse(loads(raw), format, raw, name)
    first, is_whole = _first_value(raw)
    if format is None:
        if not isinstance(first, dict) or "messages" in first:
            return _parse(first if is_whole else loads(raw), None, raw, name)
        if "type" not in first:
            raise TranscriptError(_NONE_OF_THEM, name)
        format = "codex" if _is_codex_line(first) else "claude-code"
    transcript = codex.read(raw) if format == "codex" else claude_code.read(raw)
    if not transcript.messages and not (isinstance(first, dict) and _starts(first, format)):
        raise TranscriptError(_NONE_OF_THEM, name)
    return transcript


def parse_payload(payload: Json) -> Transcript:
    """Read a transcript from objects: the seed's payload, or a Messages API request.

    ``Message.source`` is the caller's own message object. Raises TranscriptError with the JSON path.
    """
    with without_collector():
        transcript = _parse(payload, None, None, "payload")
        check_objects(transcript.messages, ("messages",) if isinstance(payload, dict) else ())
    return transcript


def _first_value(raw: bytes) -> tuple[Json, bool]:
    """The first line's value, and whether it is all there is; None where the line does not start with one.

    A document written on one line is parsed here, and not again.
    """
    start = len(BOM) if raw.startswith(BOM) else 0
    while raw[start : start + 1] in (b" ", b"\t", b"\r", b"\n"):
        start += 1
    line_end = raw.find(b"\n", start)
    end = line_end if line_end >= 0 else len(raw)
    value: Json
    try:
        value = orjson.loads(memoryview(raw)[start:end])
    except orjson.JSONDecodeError:
        if end - start < 2:
            return None, False
        try:
            return orjson.loads(memoryview(raw)[start : skip_value(raw, start)]), False
        except ValueError:
            return None, False
    return value, raw[:3] != BOM and _ONLY_SPACE.match(raw, end) is not None


def _is_codex_line(first: dict[str, Json]) -> bool:
    return first.get("type") in codex.LINE_TYPES and "payload" in first


def _starts(first: dict[str, Json], form: Format) -> bool:
    """Whether a file that holds no message so far is a session's beginning."""
    if form == "codex":
        return _is_codex_line(first)
    return "sessionId" in first or "uuid" in first or first.get("type") == "file-history-snapshot"


def _parse(document: Json, form: Format | None, raw: bytes | None, name: str) -> Transcript:
    above: Path = ()
    messages = document
    if isinstance(document, dict):
        if "messages" not in document:
            raise TranscriptError(_NONE_OF_THEM, name)
        above, messages = ("messages",), document["messages"]
    if not isinstance(messages, list):
        if above:
            refuse(f"must be an array, not {kind(messages)}", above)
        raise TranscriptError(f"{_NONE_OF_THEM}, but {kind(messages)}", name)
    if form is None:
        form = "messages-api" if _has_blocks(messages) else "payload"
    parse = messages_api.parse_messages if form == "messages-api" else payload.parse_messages
    parsed: tuple[Message, ...] = parse(messages, above)
    cwd = document.get("cwd") if isinstance(document, dict) else None
    return Transcript(form, parsed, cwd if isinstance(cwd, str) else None, raw=raw)


def _has_blocks(messages: list[Json]) -> bool:
    """Whether the first message that shows its shape is of the Messages API."""
    for message in messages:
        if isinstance(message, dict):
            if not payload.MESSAGE_KEYS.isdisjoint(message):
                return False
            if "content" in message:
                return True
    return False
