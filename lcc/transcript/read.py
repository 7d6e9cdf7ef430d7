"""Recognising a transcript's format by its content, and reading it."""

from __future__ import annotations

import orjson

from lcc.transcript import claude_code, codex, messages_api, payload
from lcc.transcript.document import kind, loads, refuse, refuse_foreign_encoding
from lcc.transcript.lines import BOM
from lcc.transcript.model import Format, Json, Message, Path, Transcript, TranscriptError
from lcc.transcript.splice import skip_value

_NONE_OF_THEM = (
    "this is none of the known transcript formats (a messages array or an object with messages, "
    "a Claude Code session, a Codex rollout)"
)


def read_transcript(raw: bytes, *, format: Format | None = None, name: str = "input") -> Transcript:
    """Read a transcript from a file's bytes.

    ``format`` is recognised by content when it is None. ``name`` stands for the input where an error has no
    place inside it. Raises TranscriptError for what is none of the formats, or malformed.
    """
    refuse_foreign_encoding(raw, name)
    if format is None:
        first, lines = _first_object(raw)
        if lines:
            format = "codex" if _is_codex(first) else "claude-code"
            transcript = codex.read(raw) if format == "codex" else claude_code.read(raw)
            if not transcript.messages and not _is_entry(first):
                raise TranscriptError(_NONE_OF_THEM, name)
            return transcript
    if format == "claude-code":
        return claude_code.read(raw)
    if format == "codex":
        return codex.read(raw)
    document = loads(raw)
    return _parse(document, format, raw, name)


def parse_payload(payload: Json) -> Transcript:
    """Read a transcript from objects: the seed's payload, or a Messages API request.

    ``Message.source`` is the caller's own message object. Raises TranscriptError with the JSON path.
    """
    return _parse(payload, None, None, "payload")


def _first_object(raw: bytes) -> tuple[dict[str, Json], bool]:
    """The first line's object, and whether the file is one object a line."""
    start = 3 if raw.startswith(BOM) else 0
    while start < len(raw) and raw[start] in b" \t\r\n":
        start += 1
    if raw[start : start + 1] != b"{":
        return {}, False
    try:
        first = orjson.loads(memoryview(raw)[start : skip_value(raw, start)])
    except (ValueError, orjson.JSONDecodeError):
        return {}, False
    return first, "type" in first and "messages" not in first


def _is_codex(first: dict[str, Json]) -> bool:
    return first.get("type") in codex.LINE_TYPES and "payload" in first


def _is_entry(first: dict[str, Json]) -> bool:
    return _is_codex(first) or "sessionId" in first or "uuid" in first


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
