"""What a format of transcripts is: everything that the rest of lcc asks of one.

A format is a module (or a folder) under ``formats/`` and one line in ``formats/__init__.py``; nothing else
knows its name. ``one_document.py`` and ``many_lines.py`` there hold what formats of a kind have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from lcc.transcript.model import Edits, Json, Message, Path, ToolResult, Transcript
from lcc.transcript.source import Source


class Format(Protocol):
    """One format. Its object has no state: two formats are the same when they are the same object."""

    @property
    def name(self) -> str:
        """As ``--format`` and the report spell it."""

    @property
    def what(self) -> str:
        """What such an input is, with its article, for people: ``a Codex rollout``."""

    @property
    def can_fork(self) -> bool:
        """Whether its client can resume a fork of the session."""

    def recognises(self, source: Source) -> bool:
        """Whether the input looks like one of this format. Raises TranscriptError for what no format can be."""

    def read(self, source: Source) -> Transcript:
        """The whole transcript. Raises TranscriptError with the place."""

    def begins(self, source: Source) -> bool:
        """Whether an input that holds no message so far is the beginning of a transcript all the same."""

    def edited_source(self, message: Message, edits: Edits) -> dict[str, Json] | None:
        """The message's own object (``Message.source``) with the edits made; None where it has none."""

    def render(self, transcript: Transcript, changed: Iterable[Message], edits: Edits, ascii_only: bool) -> bytes:
        """The transcript's bytes with the edits of the ``changed`` messages made, every other byte as it was.

        ``ascii_only``: new texts escape what is not ASCII. Raises ValueError for a transcript without bytes,
        KeyError for the new text of a result that is not exactly one text.
        """

    def parts(
        self, transcript: Transcript, message: Message, result: ToolResult
    ) -> Iterator[tuple[Path, dict[str, Json]]]:
        """The parts of a result whose content is a list of them, each with its path; none for any other result."""

    def image_data(self, part: Mapping[str, Json]) -> str | None:
        """The base64 text of the image that a result's part holds; None for any other part."""

    def image_part(self, media_type: str, data: str) -> dict[str, Json]:
        """The part that the client writes for an image: ``media_type`` as ``image/png``, ``data`` in base64."""

    def text_part(self, text: str) -> dict[str, Json]:
        """The part that the client writes for a text."""

    def second_copies(self, transcript: Transcript) -> dict[str, list[str]]:
        """What the file itself repeats of the outputs, beside what the model is sent, by call id."""
