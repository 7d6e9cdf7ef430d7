"""Images and PDFs in old results: each becomes a text block with a stash note, its bytes kept as they are.

The pass decides about texts; images stand beside them in a result's content, and are sent again with every
request. A PDF that was read is treated as an image is. This works on the bytes of a rendered session (Claude
Code's and the Messages API's) and changes nothing but those parts. An image is touched only when its block can be
rebuilt from its bytes exactly.
"""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from lcc.contract.notes import find_note, stash_note
from lcc.contract.reasons import STASH_WRITE_FAILED
from lcc.contract.report import Report
from lcc.recovery.recall import image_type, media_type
from lcc.stash import Stash, StashError, Stored
from lcc.transcript import Format, Json, Path, Transcript, read_transcript
from lcc.transcript.edit import encode_value
from lcc.transcript.file_edits import splice_values

_PIXELS_PER_TOKEN = 750
_MOST_TOKENS = 1600
_RECENT_MESSAGES = 12
"""Images in this many of the newest messages stay."""


@dataclass(frozen=True, slots=True)
class Images:
    """A session's old images, stashed: the note for each by its path, their calls, and what could not be stored."""

    format: Format
    notes: tuple[tuple[Path, str], ...] = ()
    calls: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    def noted(self, content: bytes) -> bytes:
        """The session's bytes, whatever else was edited in them, with a text part that holds its note for each image.

        Paths lead to the same parts there: nothing is dropped where there is a stash.
        """
        if not self.notes:
            return content
        ascii_only = content.isascii()
        parts = [(path, encode_value(self.format.text_part(note), ascii_only)) for path, note in self.notes]
        return splice_values(read_transcript(content, format=self.format), parts)


class _Part(NamedTuple):
    """One part of a result's content: its call, its path in the session, and its value."""

    call_id: str
    path: Path
    value: dict[str, Json]


def stash_images(transcript: Transcript, stash: Stash | None, kept: Collection[str]) -> Images:
    """Put the images of old results into the stash; the notes that are to take their place.

    The images of the calls that a guard keeps (``kept``) stay as they are, and those of the newest 12 messages; so
    do images that cannot be stored. With ``stash`` None nothing is written.
    """
    form, raw = transcript.format, transcript.raw or b""
    if b'image"' not in raw and b'"document"' not in raw:
        return Images(form)
    until = len(transcript.messages) - _RECENT_MESSAGES
    found: list[tuple[_Part, bytes]] = []
    for part in _parts(transcript, until):
        image = None if part.call_id in kept else _image_of(form, part.value)
        if image is not None and _stands_as_we_write(transcript, part, raw):
            found.append((part, image))
    outcomes = stash.put_many([image for _, image in found]) if stash is not None else [None] * len(found)
    notes: list[tuple[Path, str]] = []
    calls: set[str] = set()
    errors: dict[str, int] = {}
    for (part, image), outcome in zip(found, outcomes, strict=True):
        if isinstance(outcome, OSError):
            name = errno.errorcode.get(outcome.errno or 0, type(outcome).__name__)
            errors[name] = errors.get(name, 0) + 1
            continue
        sha256 = outcome.sha256 if isinstance(outcome, Stored) else hashlib.sha256(image).hexdigest()
        notes.append((part.path, stash_note(_tokens(image), sha256)))
        calls.add(part.call_id)
    warnings = tuple(f"stash_write_failed:{name}: {count} images were kept" for name, count in errors.items())
    return Images(form, tuple(notes), frozenset(calls), warnings)


def _stands_as_we_write(transcript: Transcript, part: _Part, raw: bytes) -> bool:
    """Whether the file holds the part byte for byte as it will be written when it is put back."""
    start, end = transcript.documents[int(part.path[0])] if transcript.documents else (0, len(raw))
    return raw.find(orjson.dumps(part.value), start, end) >= 0


def note_images(report: Report, images: Images) -> None:
    """Add to a pass's report what became of the images: ``images_stashed``, and warnings where any were kept."""
    report["images_stashed"] = len(images.notes)
    if images.warnings:
        report["warnings"] = [*report["warnings"], *images.warnings]
        report["degraded"] = True
        report["degradation_reason"] = report["degradation_reason"] or STASH_WRITE_FAILED.code


def restore_images(content: bytes, stash: Stash) -> tuple[bytes, int, list[tuple[str, str]]]:
    """Put stashed images back: the bytes, how many images, and (note, problem) of those that cannot be had."""
    transcript = read_transcript(content)
    form = transcript.format
    edits: list[tuple[Path, bytes]] = []
    problems: list[tuple[str, str]] = []
    everywhere = replace(transcript, messages=(*transcript.messages, *transcript.aside))
    for part in _parts(everywhere, len(everywhere.messages)):
        text = part.value.get("text")
        note = find_note(text) if isinstance(text, str) else None
        if note is None or note.kind != "stash" or note.target is None or note.text != text:
            continue
        try:
            image = stash.get(note.target)
        except (StashError, OSError) as error:
            problems.append((note.text, str(error)))
            continue
        if media_type(image):
            edits.append((part.path, orjson.dumps(_image_part(form, image))))
    return splice_values(transcript, edits), len(edits), problems


def _parts(transcript: Transcript, until: int) -> Iterator[_Part]:
    """The parts of the results in the first ``until`` messages that are a list of several, or no single text."""
    for message in transcript.messages[: max(until, 0)]:
        for result in message.tool_results:
            if result.is_error or result.tool_use_id in transcript.cleared:
                continue
            if result.text_path is not None and find_note(result.text) is None:
                continue
            for path, part in transcript.format.parts(transcript, message, result):
                yield _Part(result.tool_use_id, path, part)


def _image_of(form: Format, part: Mapping[str, Json]) -> bytes | None:
    """The image that a part holds, where the part can be rebuilt from its bytes; else None."""
    data = form.image_data(part)
    if data is None:
        return None
    try:
        image = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    # Compared as written: the order of the members counts too.
    return image if media_type(image) and orjson.dumps(_image_part(form, image)) == orjson.dumps(part) else None


def _image_part(form: Format, image: bytes) -> dict[str, Json]:
    return form.image_part(media_type(image) or "", base64.b64encode(image).decode())


def _tokens(image: bytes) -> int:
    """About what the image counts: by its pixels where they are easily read, else the most that one counts."""
    if image_type(image) == "png" and len(image) >= 24:
        width, height = int.from_bytes(image[16:20], "big"), int.from_bytes(image[20:24], "big")
        return max(1, min(_MOST_TOKENS, width * height // _PIXELS_PER_TOKEN))
    return _MOST_TOKENS
