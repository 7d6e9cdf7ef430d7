"""Rebuilding the original session from a compacted one: every note is followed, and what it gives is proven.

A note is followed to the kept result that it names, to the stash, or to the file. Where a file has changed,
the second copies that a session file itself keeps (Claude Code's ``toolUseResult``, Codex's events) are asked.
What the note does not tell (Codex's header, how the lines were numbered, the sha256 of the whole) comes from
the reports of the passes; without a report the session's other reads tell the numbering.

Nothing is written here, and nothing of the compacted session is changed but the notes.
"""

from __future__ import annotations

import hashlib
import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lcc.contract.notes import Note, find_note
from lcc.contract.reasons import Reason
from lcc.contract.record import Removed
from lcc.contract.report import Report
from lcc.recovery.recall import media_type
from lcc.relevance.evidence.disk import read_file
from lcc.relevance.reading.calls import file_read_of, writes_codex_header
from lcc.relevance.reading.headers import header_length
from lcc.relevance.reading.rows import Rows, number_lines, parse_rows
from lcc.stash import Stash, StashError, bytes_of_text, text_of_bytes
from lcc.transcript import Edits, Pair, ToolResult, ToolUse, Transcript, read_transcript, render
from lcc.transcript.model import part_id

_TRIMMED = re.compile(r"^\[trimmed: [0-9]+ characters of this [^\n]* output were removed\]$", re.MULTILINE)
_STYLES = (Rows(1, 0, 6, "→", 0), Rows(1, 0, 0, "\t", 0))


_ESCAPED = re.compile(rb"(?<!\\)(?:\\\\)*+\\u(?:00[89A-Fa-f]|0[1-9A-Fa-f]|[1-9A-Ca-cEe]|[Dd][0-7]|[Ff])")
_UNKNOWN_CALL = ToolUse("", "", None, None, ())  # of a result whose call is not in the file
_HEADER_UNKNOWN = "the lines ahead of its output (exit code, time) are in the report alone: give it with --report"


class RestoreError(ValueError):
    """A session that cannot be restored at all; the message says why."""


class Failure(NamedTuple):
    """A note that can no longer be followed. ``problem`` says why, in words for the user."""

    id: str
    note: str
    problem: str


@dataclass(frozen=True, slots=True)
class Restored:
    """The new texts of the results whose notes were followed.

    ``proven`` are those that the stash, a kept result or a report's sha256 vouches for; ``unproven`` are read from
    files as they are now, without a report that says what they held.

    ``left`` are results that look like notes, and that were there before every pass that has a report: outputs
    of tools, or notes of a pass whose report was not given.
    """

    edits: Edits
    failures: tuple[Failure, ...]
    proven: frozenset[str]
    unproven: frozenset[str]
    left: frozenset[str]


def removed_by(reports: Sequence[Report]) -> dict[str, Removed]:
    """What the reports say of every removed output, by text id.

    Raises ``RestoreError`` for a report of a pass that cannot be undone (`lossy`, or a judge's trims and drops).
    """
    found: dict[str, Removed] = {}
    for report in reports:
        lost = sum(record["decision"] in ("trim", "drop") for record in report["decisions"])
        if lost:
            raise RestoreError(
                f"{lost} outputs were trimmed or dropped by the {report['rules_mode'] or 'judge'} pass, which keeps "
                "them nowhere: what it removed cannot be restored"
            )
        for record in report["decisions"]:
            if "parts" in record:
                for part in record["parts"]:
                    if "removed" in part:
                        found[part_id(record["id"], part["part"])] = Removed(**part["removed"])
            elif (record["decision"] == "dedupe" or record["decision"] == "replace") and "removed" in record:
                found[record["id"]] = Removed(**record["removed"])
    return found


def restored_bytes(transcript: Transcript, edits: Edits, removed: Mapping[str, Removed] | None = None) -> bytes:
    """The file with the texts put back, each escaped as the reports say, else as the file's other texts are."""
    raw = transcript.raw or b""
    known = {text_id: removed[text_id].escaped for text_id in edits.texts if removed and text_id in removed}
    # A file without any character beyond ASCII says nothing about how it would write one: clients do not escape.
    escapes = raw.isascii() and (_ESCAPED.search(raw) is not None or any(known.values()))
    otherwise = {text_id: text for text_id, text in edits.texts.items() if known.get(text_id, escapes) is not escapes}
    if not otherwise:
        return render(_everywhere(transcript), edits, ascii_only=escapes)
    rest = {text_id: text for text_id, text in edits.texts.items() if text_id not in otherwise}
    content = render(_everywhere(transcript), replace(edits, texts=rest), ascii_only=escapes)
    again = read_transcript(content, format=transcript.format)
    return render(_everywhere(again), Edits(otherwise), ascii_only=not escapes)


def _everywhere(transcript: Transcript) -> Transcript:
    """The transcript with the messages of its other branches, which can be edited too."""
    return replace(transcript, messages=(*transcript.messages, *transcript.aside))


def restore(
    transcript: Transcript, removed: Mapping[str, Removed] | None, stash: Stash, workspace_root: str | None = None
) -> Restored:
    """Follow every note of ``transcript``, on every branch of the file.

    Relative paths count from the call's folder, as in the pass.

    ``removed`` is what the reports say, None where there is no report. Raises ``RestoreError`` when a result
    was trimmed, as far as that can be seen: it is no pointer, and nothing brings its rest back.
    """
    work = _Restoring(transcript, removed or {}, stash, workspace_root)
    left: set[str] = set()
    for text_id, results in _results_by_id(transcript).items():
        pair = work.pairs.get(text_id) or Pair(_UNKNOWN_CALL._replace(id=text_id), results[0], -1, -1)
        if removed is None and any(_TRIMMED.search(result.text) for result in results):
            raise RestoreError(f"the result of {text_id} was trimmed (lossy or a judge), and its rest is nowhere")
        notes = dict.fromkeys(note for result in results if (note := find_note(result.text)) is not None)
        for note in notes:
            if note.kind == "stash" and text_id not in work.removed and work.is_image(note):
                continue  # no text went; the image is put back into its block by `restore_images`
            if removed is not None and text_id not in removed:
                left.add(text_id)
            else:
                work.follow_all(pair, note, results)
    return Restored(
        Edits(work.texts),
        tuple(Failure(text_id, note.text, problem) for text_id, (note, problem) in work.problems.items()),
        frozenset(work.proven),
        frozenset(work.texts.keys() - work.proven),
        frozenset(left),
    )


@dataclass(slots=True)
class _Restoring:
    """The state of one run: what has been followed so far."""

    transcript: Transcript
    removed: Mapping[str, Removed]
    stash: Stash
    workspace_root: str | None
    pairs: dict[str, Pair] = field(init=False)
    texts: dict[str, str] = field(default_factory=dict)
    proven: set[str] = field(default_factory=set)
    problems: dict[str, tuple[Note, str]] = field(default_factory=dict)
    following: set[str] = field(default_factory=set)
    copies: dict[str, list[str]] | None = None
    style: Rows | None = None

    def __post_init__(self) -> None:
        pairs = (*self.transcript.pairs(), *self.transcript.aside_pairs())
        self.pairs = {text.text_id: text for pair in pairs for text in pair.texts()}
        self.style = next(filter(None, map(_style_of, self.pairs.values())), None)

    def follow_all(self, pair: Pair, note: Note, results: Sequence[ToolResult]) -> None:
        """As ``follow``, for a call whose results may be several: one text must be that of all of them."""
        noted = next(result for result in results if result.text.startswith(note.text))
        self.follow(pair._replace(result=noted), note)
        text = self.texts.get(pair.text_id)
        if text is None:
            return
        problem = None
        if any(result.text_path is None for result in results):
            problem = "its line is damaged, or its result is not one text: nothing in it can be changed"
        elif any(result.text not in (noted.text, text) for result in results):
            problem = "the file has several results of this call, and they differ"
        if problem is not None:
            del self.texts[pair.text_id]
            self.proven.discard(pair.text_id)
            self.problems[pair.text_id] = (note, problem)

    def follow(self, pair: Pair, note: Note) -> None:
        """Put the original text into ``texts``, or the reason why there is none into ``problems``."""
        text_id = pair.text_id
        known = self.removed.get(text_id)
        self.following.add(text_id)
        problem = "what it points at is not what was removed"
        try:
            for text in self._candidates(pair, note, known):
                if known is None or _sha256(text) == known.sha256:
                    self.texts[text_id] = text
                    if known is not None or note.kind != "file":
                        self.proven.add(text_id)
                    return
        except _CannotFollowError as error:
            problem = str(error)
        for text in self._second_copies(pair, note, known):
            self.texts[text_id] = text
            self.proven.add(text_id)
            return
        self.problems[text_id] = (note, problem)

    def _candidates(self, pair: Pair, note: Note, known: Removed | None) -> Iterator[str]:
        """What the note may stand for, the likeliest first."""
        rest = pair.result.text[len(note.text) :]
        header = known.header if known else ""
        if note.kind == "stash":
            # The report has the whole address, also where the note's digits have become those of another object too.
            yield self._stashed(known.sha256 if known and not rest else note.target or "") + rest
        elif note.kind in ("identical", "lines"):
            target = self._kept(note)
            if note.kind == "identical":
                length = header_length(target.use.tool, target.result.text)
                if length and known is None:
                    raise _CannotFollowError(_HEADER_UNKNOWN)
                yield header + target.result.text[length:]
            else:
                first, last = note.lines or (1, 0)
                yield "\n".join(target.result.text.split("\n")[first - 1 : last])
        elif note.kind == "file":
            # A header of a result of several parts is a part of its own, and still there.
            if known is None and pair.part is None and writes_codex_header(pair.use.tool):
                raise _CannotFollowError(_HEADER_UNKNOWN)
            lines = self._file_lines(pair, note)
            for body in self._shown(pair, lines, (note.lines or (1, 0))[0], known):
                yield header + body + rest
        else:
            raise _CannotFollowError(f"it is a command's output: run {note.target} again to see it as it is now")

    def is_image(self, note: Note) -> bool:
        """Whether a stash note stands for an image or a document."""
        try:
            return media_type(self.stash.get(note.target or "")) is not None
        except (StashError, OSError):
            return False

    def _stashed(self, object_id: str) -> str:
        try:
            text = text_of_bytes(self.stash.get(object_id))
        except (StashError, OSError) as error:
            raise _CannotFollowError(str(error)) from None
        if text is None:
            raise _CannotFollowError(f"the stash holds bytes that are no text for {object_id}")
        return text

    def _kept(self, note: Note) -> Pair:
        target = self.pairs.get(note.target or "")
        if target is None:
            raise _CannotFollowError(f"the session has no call {note.target}")
        further = find_note(target.result.text)
        if further is None:
            return target
        if target.text_id not in self.texts and target.text_id not in self.following:
            self.follow(target, further)
        if target.text_id not in self.texts:
            raise _CannotFollowError(f"the output of {note.target} is a note itself, which leads nowhere")
        return target._replace(result=target.result._replace(text=self.texts[target.text_id]))

    def _file_lines(self, pair: Pair, note: Note) -> list[str]:
        """The lines that the note names, as the file holds them now."""
        read = file_read_of(pair.use)
        folder = (read.cwd if read else None) or self.transcript.cwd or self.workspace_root or ""
        path = os.path.join(self.workspace_root or "", folder, note.target or "")
        found = read_file(path)
        if isinstance(found, Reason):
            raise _CannotFollowError(f"{path}: {found.code.removeprefix('keep_disk_').replace('_', ' ')}")
        try:
            lines = found.data.decode().split("\n")
        except UnicodeDecodeError:
            raise _CannotFollowError(f"{path}: not UTF-8") from None
        if note.lines is None:
            return lines
        first, last = note.lines
        if last > len(lines):
            raise _CannotFollowError(f"{path}: it has {len(lines)} lines now, fewer than the note names")
        return lines[first - 1 : last]

    def _shown(self, pair: Pair, lines: Sequence[str], first: int, known: Removed | None) -> Iterator[str]:
        """How the call may have shown the lines: as the report says; else as its tool does."""
        if known is not None:
            rows = parse_rows(known.rows) if known.rows else None
            yield number_lines(lines, rows) if rows else "\n".join(lines)
            return
        read = file_read_of(pair.use)
        if read is not None and read.by_tool:
            for style in filter(None, (self.style, *_STYLES)):
                yield number_lines(lines, style._replace(first=_first_number(pair, first)))
        yield "\n".join(lines)

    def _second_copies(self, pair: Pair, note: Note, known: Removed | None) -> Iterator[str]:
        """What the session file's own copies of the output give, where the report's sha256 proves it."""
        if known is None or self.transcript.raw is None:
            return
        if self.copies is None:
            self.copies = self.transcript.format.second_copies(self.transcript)
        rest = pair.result.text[len(note.text) :]
        for copy in self.copies.get(pair.use.id, ()):
            lines = copy.split("\n")
            rows = parse_rows(known.rows) if known.rows else None
            bodies = [number_lines(lines, rows)] if rows else [copy, copy + "\n", copy.removesuffix("\n")]
            if rows and lines[-1] == "":
                bodies.append(number_lines(lines[:-1], rows))
            for body in bodies:
                for text in (known.header + body + rest, known.header + body, body):
                    if _sha256(text) == known.sha256:
                        yield text


def _results_by_id(transcript: Transcript) -> dict[str, list[ToolResult]]:
    """Every text of a result of the file, by its text id; mostly one each."""
    found: dict[str, list[ToolResult]] = {}
    for result in transcript.all_results():
        for text_id, _, text in result.texts():
            found.setdefault(text_id, []).append(text)
    return found


class _CannotFollowError(Exception):
    """Why a note leads nowhere."""


def _style_of(pair: Pair) -> Rows | None:
    """How a read that is still whole numbers its lines."""
    read = file_read_of(pair.use)
    if read is None or not read.by_tool or find_note(pair.result.text) is not None:
        return None
    return parse_rows(pair.result.text)


def _first_number(pair: Pair, first: int) -> int:
    """The number of the first row: a read that asks for offset 0 is shown from row 0."""
    given = pair.use.input.get("offset") if isinstance(pair.use.input, dict) else None
    return 0 if given == 0 and not isinstance(given, bool) else first


def _sha256(text: str) -> str:
    return hashlib.sha256(bytes_of_text(text)).hexdigest()
