"""Edits by path, carried out on a transcript's bytes: inside its one document, or inside and between its lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lcc.transcript.model import Transcript
from lcc.transcript.splice import Cut, Splices, splice
from lcc.transcript.values import Path


class FileEdits:
    """What is to change in a transcript's file. Raises ValueError where it was read from objects."""

    def __init__(self, transcript: Transcript) -> None:
        if transcript.raw is None:
            raise ValueError("the transcript was read from objects: there are no bytes to splice into")
        self.raw = transcript.raw
        self._documents = transcript.documents
        self._splices: dict[int, Splices] = {}
        self._removed: set[int] = set()

    def add(self, path: Path, edit: bytes | object) -> None:
        """Take in one edit: the value's new bytes, or ``REMOVE`` for an element of an array."""
        if self._documents:
            self._splices.setdefault(int(path[0]), Splices()).add(path[1:], edit)
        else:
            self._splices.setdefault(0, Splices()).add(path, edit)

    def remove(self, documents: Iterable[int]) -> None:
        """Take documents of the file away, whatever else was to change in them; a line with nothing left goes."""
        self._removed.update(documents)

    @property
    def removed(self) -> frozenset[int]:
        """The documents that are taken away."""
        return frozenset(self._removed)

    def write(self) -> bytes:
        """The file's bytes with the edits made. Raises LookupError for a path that leads to no value."""
        if self._documents:
            return splice(self.raw, self._cuts())
        return self._splices[0].apply(self.raw) if self._splices else self.raw

    def _cuts(self) -> Iterator[Cut]:
        done = 0
        ends_line = True  # what is kept of the file up to ``done``
        for document in sorted(self._removed | self._splices.keys()):
            start, end = self._documents[document]
            if start > done:
                ends_line = self.raw[start - 1] == 0x0A
            done = end
            if document not in self._removed:
                yield from self._splices[document].cuts(self.raw, start)
                ends_line = False
                continue
            if ends_line:
                done += next((len(e) for e in (b"\r\n", b"\n") if self.raw.startswith(e, end)), 0)
            yield start, done, b""


def splice_values(transcript: Transcript, values: Iterable[tuple[Path, bytes]]) -> bytes:
    """The transcript's bytes with the values at the paths replaced. Raises as ``FileEdits`` does."""
    edits = FileEdits(transcript)
    for path, new in values:
        edits.add(path, new)
    return edits.write()
