"""What an agent's tool asks of the stash, and what it is given: one answer for every tool that recalls.

The fields come from a model, so each is checked here and named where it is wrong. What is given is bounded: a page of
text, or one image. Reads the stash; changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lcc.contract.notes import count_lines
from lcc.recovery.recall import PAGE_CHARS, Part, RecallError, id_in, page_of, parse_lines, recall
from lcc.stash import Stash, StashError, bytes_of_text
from lcc.transcript import Json

MAX_IMAGE_BYTES = 3_000_000
"""An image above 5 MB of base64 is refused by the Messages API, and a hook's program may print 4 MiB."""
WHOLE = Part()
MOST_PAGE_CHARS = 30_000
"""The client puts an answer of more than about 50,000 characters, as JSON, into a file of its own."""
MOST_CHARS = 1000
"""Of a field of text: longer is no expression that anybody means."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An object of the stash, the part of it, and how many characters at most."""

    id: str
    part: Part = WHOLE
    limit: int = PAGE_CHARS

    @property
    def is_whole(self) -> bool:
        """Whether no part was asked for."""
        return self.part == WHOLE


@dataclass(frozen=True, slots=True)
class Given:
    """What an agent is given: a text with words about it (empty where it is all of it), or an image's bytes.

    ``of_bytes`` is the object's size, ``given_bytes`` what of it went out.
    """

    sha256: str
    of_bytes: int
    text: str = ""
    about: str = ""
    image: bytes = b""
    image_type: str = ""

    @property
    def given_bytes(self) -> int:
        """In bytes of UTF-8, or of the image."""
        return len(self.image) or len(bytes_of_text(self.text))


def read_asked(value: Json) -> Asked:
    """The fields of a tool's input: id, and lines, grep, offset, limit if they are there. Raises ``RecallError``."""
    if not isinstance(value, dict):
        raise RecallError("the input is no object; give an id")
    lines, grep = _text(value, "lines"), _text(value, "grep")
    return Asked(
        _id(value),
        Part(parse_lines(lines) if lines else None, grep or None, _number(value, "offset", 0, 0)),
        min(_number(value, "limit", PAGE_CHARS, 1), MOST_PAGE_CHARS),
    )


def give(stash: Stash, asked: Asked) -> Given:
    """What ``asked`` names, from ``stash``. Raises ``RecallError`` with what to do instead."""
    try:
        found = recall(stash, asked.id)
    except StashError as error:
        raise RecallError(str(error)) from None
    except OSError as error:
        raise RecallError(f"the stash cannot be read: {error}") from None
    size = len(found.content)
    if found.image:
        if size > MAX_IMAGE_BYTES:
            way = f"run lcc recall {found.sha256[:12]} -o FILE"
            raise RecallError(f"the image has {size} bytes, too many for one answer: {way}")
        return Given(found.sha256, size, image=found.content, image_type=found.image)
    if found.text is None:
        raise RecallError(f"{asked.id} holds {size} bytes that are no text: run lcc recall {asked.id} -o FILE")
    page = page_of(found.text, asked.part, asked.limit)
    about = ""
    if page.next is not None:
        lines = f", {count_lines(found.text)} lines" if asked.is_whole else ""
        about = f"[characters {page.start}-{page.end} of {page.total}{lines}; for the next page add offset={page.next}]"
    elif page.start:
        about = f"[characters {page.start}-{page.end} of {page.total}; this is the end]"
    return Given(found.sha256, size, page.text, about)


def takes_long(asked: Asked) -> bool:
    """Whether the answer may take seconds: a search with an expression."""
    return asked.part.grep is not None


def _id(value: Mapping[str, Json]) -> str:
    given = _text(value, "id")
    if not given:
        raise RecallError("id is missing: give the 12 hex digits of the note")
    return id_in(given)


def _text(value: Mapping[str, Json], name: str) -> str | None:
    found = value.get(name)
    if found is None:
        return None
    if isinstance(found, int) and not isinstance(found, bool):  # a model's 120 for "120"
        return str(found)
    if not isinstance(found, str):
        raise RecallError(f"{name} is no text")
    if len(found) > MOST_CHARS:
        raise RecallError(f"{name} has {len(found)} characters; {MOST_CHARS} at most")
    return found


def _number(value: Mapping[str, Json], name: str, otherwise: int, least: int) -> int:
    found = value.get(name)
    if found is None:
        return otherwise
    if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) <= 12:
        found = int(found)
    if not isinstance(found, int) or isinstance(found, bool) or found < least:
        raise RecallError(f"{name} is {found!r:.40}; give a whole number, {least} or more")
    return found
