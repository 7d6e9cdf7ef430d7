"""Putting back the strings of calls' inputs that `auto` turned into notes, each proven by its sha256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lcc.contract.notes import Note, find_note
from lcc.contract.reasons import Reason
from lcc.contract.report import Report
from lcc.recovery.restore import Failure
from lcc.relevance.evidence.disk import read_file
from lcc.relevance.need.inputs import input_strings_by_path
from lcc.stash import Stash, StashError, bytes_of_text, text_of_bytes
from lcc.transcript import Path, Transcript


@dataclass(frozen=True, slots=True)
class RestoredInputs:
    """The original strings by call id and path within the input, and the notes that could not be followed."""

    strings: dict[str, dict[Path, str]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many strings came back."""
        return sum(len(of_call) for of_call in self.strings.values())


@dataclass(frozen=True, slots=True)
class _Gone:
    """What a report says of one string that went."""

    sha256: str
    file: str | None
    """The file that held exactly it; None: the stash has it."""


def restore_inputs(transcript: Transcript, reports: Sequence[Report], stash: Stash) -> RestoredInputs:
    """Follow every note in the inputs of ``transcript``, on all of its branches.

    With reports only what they wrote is a note. Without one a string that is a note of the stash, whole, is
    followed, and what comes back is proven by the digits that the note names.
    """
    known = dict(_gone(reports))
    found = RestoredInputs()
    for message in (*transcript.messages, *transcript.aside):
        for use in message.tool_uses:
            for path, text in input_strings_by_path(use.input):
                note = find_note(text)
                if note is None or note.text != text or note.kind not in ("stash", "file"):
                    continue
                gone = known.get((use.id, path))
                if gone is None and (reports or note.kind != "stash"):
                    continue
                restored = _follow(note, gone, stash)
                if isinstance(restored, Failure):
                    found.failures.append(restored._replace(id=use.id))
                else:
                    found.strings.setdefault(use.id, {})[path] = restored
    return found


def _gone(reports: Sequence[Report]) -> Iterator[tuple[tuple[str, Path], _Gone]]:
    for report in reports:
        for record in report["decisions"]:
            for each in record["inputs"] or ():
                file = each["disk"]["path"] if "disk" in each else None
                yield (record["id"], tuple(each["path"])), _Gone(each["sha256"], file)


def _follow(note: Note, gone: _Gone | None, stash: Stash) -> str | Failure:
    """The string that ``note`` stands for."""
    content: bytes
    if gone is not None and gone.file is not None:
        file = read_file(gone.file)
        if isinstance(file, Reason):
            return Failure("", note.text, f"{gone.file}: {file.words}")
        content = file.data
    else:
        try:
            content = stash.get(gone.sha256 if gone is not None else note.target or "")
        except (StashError, OSError) as error:
            return Failure("", note.text, str(error))
    text = text_of_bytes(content)
    if text is None or (gone is not None and hashlib.sha256(bytes_of_text(text)).hexdigest() != gone.sha256):
        return Failure("", note.text, "what it points at is not what was removed")
    return text
