"""The output file: the input's bytes with only the edits spliced in."""

from __future__ import annotations

from lcc.transcript.collector import without_collector
from lcc.transcript.edit import touches
from lcc.transcript.model import Edits, Transcript


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
        return transcript.format.render(transcript, changed, edits, escaped)
