"""Recognising a transcript's format by its content, and reading it."""

from __future__ import annotations

from lcc.transcript.collector import without_collector
from lcc.transcript.document import refuse_foreign_encoding
from lcc.transcript.formats import FORMATS
from lcc.transcript.formats.messages_api import MESSAGES_API
from lcc.transcript.formats.one_document import messages_of
from lcc.transcript.formats.payload import PAYLOAD
from lcc.transcript.model import Format, Transcript
from lcc.transcript.soundness import check_objects, checked
from lcc.transcript.source import Source
from lcc.transcript.values import Json, TranscriptError


def read_transcript(
    raw: bytes, *, format: Format | None = None, name: str = "input", strict: bool = False
) -> Transcript:
    """Read a transcript from a file's bytes.

    ``format`` is recognised by content when it is None. ``name`` stands for the input where an error has no
    place inside it. A damaged line of a session file is not read and is a warning; with ``strict`` it is an error.
    Raises TranscriptError for what is none of the formats, or malformed.
    """
    with without_collector():
        refuse_foreign_encoding(raw, name)
        source = Source(raw, name, strict=strict)
        form = format or _recognised(source)
        transcript = form.read(source)
        if not transcript.messages and not form.begins(source):
            raise _none_of_them(source)
        return checked(transcript, strict=strict)


def parse_payload(payload: Json) -> Transcript:
    """Read a transcript from objects: the seed's payload, or a Messages API request.

    ``Message.source`` is the caller's own message object. Raises TranscriptError with the JSON path.
    """
    with without_collector():
        form = MESSAGES_API if MESSAGES_API.has_shape(messages_of(payload) or []) else PAYLOAD
        transcript = form.parse(payload, None, "payload")
        check_objects(transcript.messages, ("messages",) if isinstance(payload, dict) else ())
    return transcript


def _recognised(source: Source) -> Format:
    for form in FORMATS.values():
        if form.recognises(source):
            return form
    raise _none_of_them(source)


def _none_of_them(source: Source) -> TranscriptError:
    known = ", ".join(form.what for form in FORMATS.values())
    return TranscriptError(f"this is none of the known transcript formats ({known})", source.name)
