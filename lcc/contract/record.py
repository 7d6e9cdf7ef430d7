"""The record of one decision, as the report has it (the report-format page): its forms, and how each is made.

A record that points at something is made from a `Pointer`, which holds its proof, and from what went with it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

import orjson

from lcc.contract.checked import Count
from lcc.contract.decision import (
    Check,
    CommandAgain,
    Drop,
    FileByTranscript,
    FileOnDisk,
    InputNote,
    InStash,
    Keep,
    KeptLater,
    Pointer,
    Source,
    Trim,
)
from lcc.contract.notes import find_note
from lcc.transcript import Json, Pair, input_with

_SUBJECT_CHARS = 120
_SUBJECT_KEYS = (
    "file_path",
    "command",
    "cmd",
    "pattern",
    "path",
    "notebook_path",
    "url",
    "query",
    "description",
    "subject",
    "task_id",
    "bash_id",
    "skill",
)


class DiskRecord(TypedDict):
    """The file that was read for the proof: as named, as resolved, and the sha256 of all of its bytes."""

    path: str
    real: str
    sha256: str


class InputNoteRecord(TypedDict):
    """One string of the call's input that became a note: where it stood in the input, and what went."""

    path: list[str | int]
    note: str
    sha256: str
    chars: Count
    recoverability_check: Literal["disk", "stash"]
    disk: NotRequired[DiskRecord]


class _About(TypedDict):
    """What every record says of its call and of the decision."""

    score: float | None
    keep_call: float | None
    keep_result: float | None
    source: Source
    reason: str
    message_index: Count
    tool: str
    subject: str | None
    chars: Count
    chars_after: Count
    points: float | None
    """How likely the result is needed again, where that was asked: the sum of the table in `lcc.relevance.need`."""
    why: str | None
    """The same in one line of words."""
    inputs: list[InputNoteRecord] | None
    """What became of the call's input, where something of it went."""
    parts: NotRequired[list[PartRecord]]
    """Where the result is several parts and a pointer stands for one at least: what became of each of its texts."""


class _Call(_About):
    id: str


class RemovedRecord(TypedDict):
    """What a note stands for: the sha256 of the whole result, its characters, and what the note does not give."""

    sha256: str
    chars: Count
    header: NotRequired[str]
    rows: NotRequired[str]
    escaped: NotRequired[bool]


class FileRecovery(TypedDict):
    """Re-read ``path`` (relative to ``cwd``); ``lines`` are the first and the last, None for the whole file."""

    kind: Literal["file"]
    path: str
    cwd: str | None
    lines: list[int] | None


class CommandRecovery(TypedDict):
    """Run ``command`` again in ``cwd``."""

    kind: Literal["command"]
    command: str
    cwd: str | None


class StashRecovery(TypedDict):
    """Recall the object ``sha256`` from the stash."""

    kind: Literal["stash"]
    sha256: str


class StashRecord(TypedDict):
    """The object in the stash, and the tokens and bytes that left."""

    sha256: str
    tokens: Count
    bytes: Count


class PartRecord(TypedDict):
    """What became of one text of a result that is several parts; ``part`` counts all of its parts, from 1.

    The keys of a pointer are those of a record, and are there where one stands in for the part.
    """

    part: Count
    decision: Literal["keep", "dedupe", "replace"]
    reason: str
    chars: Count
    chars_after: Count
    points: NotRequired[float]
    why: NotRequired[str]
    kept_at: NotRequired[str]
    note: NotRequired[str]
    recover: NotRequired[FileRecovery | CommandRecovery | StashRecovery]
    recoverability_check: NotRequired[Check]
    disk: NotRequired[DiskRecord]
    stash: NotRequired[StashRecord]
    removed: NotRequired[RemovedRecord]


class PlainRecord(_Call):
    """Nothing stands in for the result: it stayed, a part of it stayed, or it went with its call."""

    decision: Literal["keep", "trim", "drop"]


class DedupeRecord(_Call):
    decision: Literal["dedupe"]
    kept_at: str
    note: str
    removed: NotRequired[RemovedRecord]


class _Replace(_Call):
    decision: Literal["replace"]
    note: str
    removed: NotRequired[RemovedRecord]


class DiskReplaceRecord(_Replace):
    recover: FileRecovery
    recoverability_check: Literal["disk"]
    disk: DiskRecord


class ProxyReplaceRecord(_Replace):
    recover: FileRecovery
    recoverability_check: Literal["transcript_proxy"]


class CommandReplaceRecord(_Replace):
    recover: CommandRecovery
    recoverability_check: Literal["read_only_allowlist"]


class StashReplaceRecord(_Replace):
    recover: StashRecovery
    recoverability_check: Literal["stash"]
    stash: StashRecord
    excerpt: list[str] | None
    """Words of the result that stand behind its note."""


ReplaceRecord: TypeAlias = DiskReplaceRecord | ProxyReplaceRecord | CommandReplaceRecord | StashReplaceRecord
Record: TypeAlias = PlainRecord | DedupeRecord | ReplaceRecord


class Removed(NamedTuple):
    """What a dedupe or replace took away: the sha256 (64 hex digits) of the whole result, and its characters."""

    sha256: str
    chars: int
    header: str = ""
    """The header lines (Codex) that went with it and that what the note points at does not repeat."""
    rows: str | None = None
    """How its lines were numbered: the first row as it began, such as ``"     1→"`` or ``"12\t"``."""
    escaped: bool = False
    """Whether its characters beyond ASCII stood in the file as JSON escapes."""

    def record(self) -> RemovedRecord:
        """The record's ``removed``."""
        found: RemovedRecord = {"sha256": self.sha256, "chars": self.chars}
        if self.header:
            found["header"] = self.header
        if self.rows is not None:
            found["rows"] = self.rows
        if self.escaped:
            found["escaped"] = True
        return found


def decision_record(pair: Pair, decision: Keep | Trim | Drop) -> PlainRecord:
    """The record of one call that no pointer stands in for."""
    use, text, verdict = pair.use, pair.result.text, decision.verdict
    size = input_chars(use.input)
    chars = size + len(text)
    if isinstance(decision, Keep):
        chars_after = chars
    else:
        chars_after = 0 if isinstance(decision, Drop) else size + len(decision.text)
    return {
        "id": use.id,
        "decision": decision.action,
        "score": verdict.score if verdict else None,
        "keep_call": verdict.keep_call if verdict else None,
        "keep_result": verdict.keep_result if verdict else None,
        "source": decision.source,
        "reason": decision.reason.code,
        "message_index": pair.use_message,
        "tool": use.tool,
        "subject": subject(use.input),
        "chars": chars,
        "chars_after": chars_after,
        "points": None,
        "why": None,
        "inputs": None,
    }


def pointer_record(pair: Pair, pointer: Pointer, removed: Removed) -> DedupeRecord | ReplaceRecord:
    """The record of one call whose result a pointer stands in for, with its proof and what went."""
    about = _about(pair, pointer)
    if isinstance(pointer.proof, KeptLater):
        return {
            "id": pair.use.id,
            "decision": "dedupe",
            **about,
            "kept_at": pointer.proof.kept_at,
            "note": pointer.note,
            "removed": removed.record(),
        }
    return _replace_record(pair.use.id, pointer, pointer.proof, about, removed.record())


def parts_record(
    pair: Pair, decided: Sequence[tuple[Pair, Keep | Pointer, Removed | None]]
) -> PlainRecord | DedupeRecord | ReplaceRecord:
    """The record of one call whose result is several parts, from what became of each of its texts, in order.

    It is that of the largest text for which a pointer stands, with ``chars`` of the whole call and a record of every
    part beside it; where none does, that of the largest text.
    """
    pointed = [each for each in decided if isinstance(each[1], Pointer)]
    text, decision, removed = max(pointed or decided, key=lambda each: len(each[0].result.text))
    if not isinstance(decision, Pointer) or removed is None:
        return decision_record(pair, Keep(decision.reason, decision.source, decision.verdict))
    record = pointer_record(text, decision, removed)
    record["parts"] = [_part_record(*each) for each in decided]
    size = input_chars(pair.use.input)
    went = sum(part["chars"] - part["chars_after"] for part in record["parts"])
    record["chars"] = size + len(pair.result.text)
    record["chars_after"] = record["chars"] - went
    return record


def _part_record(text: Pair, decision: Keep | Pointer, removed: Removed | None) -> PartRecord:
    chars = len(text.result.text)
    found: PartRecord = {
        "part": text.part or 0,
        "decision": decision.action,
        "reason": decision.reason.code,
        "chars": chars,
        "chars_after": len(decision.text) if isinstance(decision, Pointer) else chars,
    }
    if not isinstance(decision, Pointer) or removed is None:
        return found
    record = pointer_record(text, decision, removed)
    found["note"], found["removed"] = record["note"], removed.record()
    if record["decision"] == "dedupe":
        found["kept_at"] = record["kept_at"]
        return found
    found["recover"], found["recoverability_check"] = record["recover"], record["recoverability_check"]
    if record["recoverability_check"] == "disk":
        found["disk"] = record["disk"]
    elif record["recoverability_check"] == "stash":
        found["stash"] = record["stash"]
    return found


def _replace_record(
    call: str,
    pointer: Pointer,
    proof: FileOnDisk | FileByTranscript | CommandAgain | InStash,
    about: _About,
    removed: RemovedRecord,
) -> ReplaceRecord:
    note = pointer.note
    if isinstance(proof, FileOnDisk):
        return {
            "id": call,
            "decision": "replace",
            **about,
            "note": note,
            "recover": _file_recovery(proof),
            "recoverability_check": "disk",
            "disk": {"path": proof.named, "real": proof.real, "sha256": proof.sha256},
            "removed": removed,
        }
    if isinstance(proof, FileByTranscript):
        return {
            "id": call,
            "decision": "replace",
            **about,
            "note": note,
            "recover": _file_recovery(proof),
            "recoverability_check": "transcript_proxy",
            "removed": removed,
        }
    if isinstance(proof, CommandAgain):
        return {
            "id": call,
            "decision": "replace",
            **about,
            "note": note,
            "recover": {"kind": "command", "command": proof.command, "cwd": proof.cwd},
            "recoverability_check": "read_only_allowlist",
            "removed": removed,
        }
    return {
        "id": call,
        "decision": "replace",
        **about,
        "note": note,
        "recover": {"kind": "stash", "sha256": proof.sha256},
        "recoverability_check": "stash",
        "stash": {"sha256": proof.sha256, "tokens": proof.tokens, "bytes": proof.size},
        "excerpt": list(found.excerpt) if (found := find_note(pointer.text)) and found.excerpt else None,
        "removed": removed,
    }


def _file_recovery(proof: FileOnDisk | FileByTranscript) -> FileRecovery:
    lines = list(proof.lines) if proof.lines else None
    return {"kind": "file", "path": proof.path, "cwd": proof.cwd, "lines": lines}


def _about(pair: Pair, pointer: Pointer) -> _About:
    use, verdict = pair.use, pointer.verdict
    size = input_chars(use.input)
    return {
        "score": verdict.score if verdict else None,
        "keep_call": verdict.keep_call if verdict else None,
        "keep_result": verdict.keep_result if verdict else None,
        "source": pointer.source,
        "reason": pointer.reason.code,
        "message_index": pair.use_message,
        "tool": use.tool,
        "subject": subject(use.input),
        "chars": size + len(pair.result.text),
        "chars_after": size + len(pointer.text),
        "points": None,
        "why": None,
        "inputs": None,
    }


def input_chars(value: Json) -> int:
    """The characters of a call's input as compact JSON."""
    try:
        written = orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits, or a lone surrogate
        return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return len(written) if written.isascii() else len(written.decode())


def subject(value: Json) -> str | None:
    """What a call was about, in one line of at most 120 characters: its path, command, pattern or the like."""
    if isinstance(value, dict):
        for key in _SUBJECT_KEYS:
            found = value.get(key)
            if found:
                break
        else:
            return None
        value = found
        if isinstance(value, list):  # a Codex shell call's argument vector
            value = " ".join(part for part in value if isinstance(part, str))
    if not isinstance(value, str):
        return None
    if len(value) <= _SUBJECT_CHARS and value.isprintable():
        return value or None
    line = " ".join(value[: 4 * _SUBJECT_CHARS].split())
    if not line.isprintable():
        line = "".join(c if c.isprintable() else "�" for c in line)
    return line if len(line) <= _SUBJECT_CHARS else line[: _SUBJECT_CHARS - 1] + "…"


def add_inputs(record: Record, pair: Pair, notes: Sequence[InputNote]) -> None:
    """Say in ``record`` what became of the call's input, and count it."""
    after = input_chars(input_with(pair.use.input, {note.path: note.note for note in notes}))
    record["chars_after"] += after - input_chars(pair.use.input)
    record["inputs"] = [_input_note(note) for note in notes]


def _input_note(note: InputNote) -> InputNoteRecord:
    found: InputNoteRecord = {
        "path": list(note.path),
        "note": note.note,
        "sha256": note.sha256,
        "chars": note.chars,
        "recoverability_check": "stash",
    }
    if isinstance(note.proof, FileOnDisk):
        found["recoverability_check"] = "disk"
        found["disk"] = {"path": note.proof.named, "real": note.proof.real, "sha256": note.proof.sha256}
    return found
