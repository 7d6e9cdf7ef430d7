"""The output file: the input's bytes with only the edits spliced in."""

from __future__ import annotations

import json

import orjson

from lcc.transcript.edit import apply_to_message, touches
from lcc.transcript.model import Edits, Message, Transcript
from lcc.transcript.splice import REMOVE, Splices


def render(transcript: Transcript, edits: Edits) -> bytes:
    """The transcript's file with the edits made; every other byte is as it was.

    Raises ValueError for a transcript that was not read from bytes.
    """
    raw = transcript.raw
    if raw is None:
        raise ValueError("the transcript was read from objects: there are no bytes to splice into")
    if not edits:
        return raw
    changed = [message for message in transcript.messages if touches(message, edits)]
    if transcript.format in ("payload", "messages-api"):
        return _render_document(transcript, changed, edits, raw)
    return _render_lines(transcript, changed, edits, raw)


def encode_string(text: str, ascii_only: bool) -> bytes:
    """A JSON string literal: as JSON.stringify writes it, or with every non-ASCII character escaped."""
    return json.dumps(text).encode() if ascii_only else orjson.dumps(text)


def _render_document(transcript: Transcript, changed: list[Message], edits: Edits, raw: bytes) -> bytes:
    splices = Splices()
    ascii_only = raw.isascii()
    for message in changed:
        if apply_to_message(message, edits, transcript.format) is None:
            block = (message.tool_uses or message.tool_results)[0].path
            above = 1 if isinstance(block[0], str) else 0
            splices.add(block[: above + 1], REMOVE)
        else:
            _add_blocks(splices, message, edits, ascii_only, 0)
    return splices.apply(raw)


def _add_blocks(splices: Splices, message: Message, edits: Edits, ascii_only: bool, cut: int) -> None:
    """The edits of one message's blocks; ``cut`` leading steps are taken off their paths."""
    for use in message.tool_uses:
        if use.id in edits.dropped:
            splices.add(use.path[cut:], REMOVE)
    for result in message.tool_results:
        if result.tool_use_id in edits.dropped:
            splices.add(result.path[cut:], REMOVE)
        elif (text := edits.texts.get(result.tool_use_id)) is not None:
            if result.text_path is None:
                raise KeyError(f"the result of {result.tool_use_id} is not one text and cannot be replaced")
            splices.add(result.text_path[cut:], encode_string(text, ascii_only))


def _render_lines(transcript: Transcript, changed: list[Message], edits: Edits, raw: bytes) -> bytes:
    ascii_only = raw.isascii()
    by_document: dict[int, Splices] = {}
    for message in changed:
        for result in message.tool_results:
            text = edits.texts.get(result.tool_use_id)
            if text is not None and result.text_path is not None:
                splices = by_document.setdefault(int(result.path[0]), Splices())
                splices.add(result.text_path[1:], encode_string(text, ascii_only))
    pieces: list[bytes] = []
    position = 0
    for document in sorted(by_document):
        start, end = transcript.documents[document]
        pieces.append(raw[position:start])
        pieces.append(by_document[document].apply(raw, start, end))
        position = end
    pieces.append(raw[position:])
    return b"".join(pieces)
