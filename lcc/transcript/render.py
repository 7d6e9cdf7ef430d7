"""The output file: the input's bytes with only the edits spliced in."""

from __future__ import annotations

from lcc.transcript.collector import without_collector
from lcc.transcript.edit import apply_to_message, block_edits, ending_thinking, removed_blocks, touches
from lcc.transcript.model import Edits, Message, Transcript
from lcc.transcript.render_lines import render_lines
from lcc.transcript.splice import REMOVE, Splices


def render(transcript: Transcript, edits: Edits, *, ascii_only: bool | None = None) -> bytes:
    """The transcript's file with the edits made; every other byte is as it was.

    ``ascii_only`` says whether new texts escape what is not ASCII; None: when the whole file is ASCII.
    Raises ValueError for a transcript that was not read from bytes, KeyError for the new text of a result
    that is not exactly one text.
    """
    raw = transcript.raw
    if raw is None:
        raise ValueError("the transcript was read from objects: there are no bytes to splice into")
    if not edits:
        return raw
    escaped = raw.isascii() if ascii_only is None else ascii_only
    with without_collector():
        changed = [message for message in transcript.messages if touches(message, edits)]
        if transcript.format in ("claude-code", "codex"):
            return render_lines(transcript, changed, edits, raw, escaped)
        return _render_document(transcript, changed, edits, raw, escaped)


def _render_document(
    transcript: Transcript, changed: list[Message], edits: Edits, raw: bytes, ascii_only: bool
) -> bytes:
    splices = Splices()
    for message in changed:
        block = (message.tool_uses or message.tool_results)[0].path
        message_path = block[: 1 if isinstance(block[0], int) else 2]
        if edits.dropped and apply_to_message(message, edits, transcript.format) is None:
            splices.add(message_path, REMOVE)
            continue
        for path, edit in block_edits(message, edits, ascii_only):
            splices.add(path, edit)
        content = message.source.get("content") if message.source is not None else None
        if transcript.format == "messages-api" and edits.dropped and isinstance(content, list):
            gone = [int(path[-1]) for path in removed_blocks(message, edits)]
            for index in ending_thinking(content, gone):
                splices.add((*message_path, "content", index), REMOVE)
    return splices.apply(raw)
