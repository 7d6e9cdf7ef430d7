"""`recoverable`: an old file read becomes a pointer to the file, once it is proven (the seed's section 5).

With a workspace the disk decides: the file must hold exactly what goes. Without one, the transcript is the
proxy: no later call can have written the file. Pointers to read-only commands are off unless asked for.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from lcc.contract.decision import CommandAgain, Decision, FileByTranscript, FileOnDisk, Keep, Pointer
from lcc.contract.notes import REMINDER_START, Note, find_note, reread_note, rerun_note
from lcc.contract.reasons import (
    COMMAND_OUTPUT_CHANGED_LATER,
    COMMAND_POINTERS_DISABLED,
    FAILED_RESULT,
    FILE_WRITTEN_LATER,
    KEEP_DISK_MISMATCH,
    KEEP_DISK_UNREADABLE,
    NOT_RECOVERABLE,
    READ_RANGE_EMPTY,
    READ_RANGE_UNKNOWN,
    RECOVERABLE_FILE_READ,
    RECOVERABLE_READ_ONLY_COMMAND,
    REPLACE_DISK_VERIFIED,
    SHORT_RESULT_KEPT_WHOLE,
    Reason,
)
from lcc.relevance.evidence.disk import read_file
from lcc.relevance.evidence.failures import is_no_file
from lcc.relevance.evidence.later_writes import LaterWrites
from lcc.relevance.evidence.proofs import FileText, ProvenPart, prove_read
from lcc.relevance.evidence.timeline import timeline_of
from lcc.relevance.reading.calls import FileRead, command_of, cwd_of, file_read_of, full_path
from lcc.relevance.reading.commands import command_effect
from lcc.relevance.reading.headers import comparable, header_length, is_json_output, is_only_header, still_runs
from lcc.relevance.reading.rows import READ_LIMIT, begins_with_row, content_end, parse_rows
from lcc.relevance.transcript_lossless import dedupe_note, dedupe_violations
from lcc.relevance.verification import NO_INPUTS, Change, Violation, changed_results, untouched_violations
from lcc.transcript import Json, Message, Pair, Path, ToolUse, Transcript, parse_payload

# What a client puts in or behind a command's output: where it cut, where it went, what it wants the model to know.
_CLIENT_WORDS = re.compile(
    r"\.\.\. \[[0-9]+ (?:lines|characters) truncated\] \.\.\.|…[0-9]+ (?:tokens|lines|chars) truncated…"
    r"|^Total output lines: |^Shell cwd was reset to |^<system-reminder>",
    re.MULTILINE,
)


# A command that went to the background: the result is its task, and no output.
_TASK = re.compile(r"Command (?:is )?(?:running in|(?:was )?(?:\w+ )?(?:moved to|sent to|backgrounded))")
# Rows as another host's read tool numbers them, which are no lines of a file.
_FOREIGN_ROW = re.compile(r"[ \t]*L?[0-9]{1,7}[ \t]*(?:[|:│→\t]|-> )")


@dataclass(frozen=True)
class Surroundings:
    """What the rules look at beside a call: the whole session, and what the caller allows."""

    pairs: Sequence[Pair]
    """Every call with its result, pinned ones too, in call order."""
    transcript: Transcript
    """All of it, what is not sent any more too."""
    reads: Mapping[str, FileRead]
    """The calls of ``pairs`` that read a single file, by id."""
    guarded: Mapping[str, Reason]
    """The calls that a guard keeps, by id, and why."""
    failed: Collection[str]
    """The calls that failed: no file and no command gives back what they printed."""
    session_cwd: str | None
    workspace_root: str | None
    disk_check: bool
    allow_command_pointers: bool

    @cached_property
    def running(self) -> frozenset[str]:
        """The calls whose results say that what they started was still running."""
        return frozenset(pair.use.id for pair in self.pairs if still_runs(pair.use.tool, pair.result.text))

    @property
    def asks_disk(self) -> bool:
        """Whether the disk decides about file reads."""
        return self.workspace_root is not None and self.disk_check


class _Read:
    """A candidate that reads one file, on its way to a verdict."""

    __slots__ = ("header", "pair", "path", "read")

    def __init__(self, pair: Pair, read: FileRead, path: str, header: int) -> None:
        self.pair = pair
        self.read = read
        self.path = path
        self.header = header


def recoverable_decisions(candidates: Sequence[Pair], around: Surroundings) -> dict[str, Decision]:
    """The verdict on every candidate, by text id: ``replace`` with its proof, or ``keep`` with the reason."""
    decisions: dict[str, Decision] = {}
    reads: list[_Read] = []
    commands: list[Pair] = []
    for pair in candidates:
        reason = around.guarded.get(pair.use.id)
        if reason is None:
            found = _classify(pair, around)
            if isinstance(found, _Read):
                reads.append(found)
                continue
            if found == "command":
                commands.append(pair)
                continue
            reason = found
        decisions[pair.text_id] = _keep(reason)
    by_file = _disk_decisions(reads, around) if around.asks_disk else _proxy_decisions(reads, around)
    decisions.update(by_file)
    decisions.update(_command_decisions(commands, around))
    return decisions


def _classify(pair: Pair, around: Surroundings) -> _Read | Reason | Literal["command"]:
    """A file read, "command" for an allowlisted command, or the reason why the result is neither."""
    use, text = pair.use, pair.result.text
    if use.id in around.failed:
        return FAILED_RESULT
    read = around.reads.get(use.id)
    if read is None:
        command = command_of(use)
        if command is None or command_effect(command) != "read_only":
            return NOT_RECOVERABLE
        if not around.allow_command_pointers:
            return COMMAND_POINTERS_DISABLED
        return "command"
    header = header_length(use.tool, text)
    if (not read.by_tool and _TASK.match(text)) or is_json_output(use.tool, text):
        return NOT_RECOVERABLE
    if use.id in around.running:
        return NOT_RECOVERABLE
    if len(text) == header or (read.by_tool and text.startswith(REMINDER_START.strip())):
        return READ_RANGE_EMPTY
    return _Read(pair, read, full_path(read.path, read.cwd, around.session_cwd, around.workspace_root), header)


def _disk_decisions(reads: Sequence[_Read], around: Surroundings) -> Iterator[tuple[str, Decision]]:
    """Verdicts by what the disk holds now. Each file is opened once, and held only while its reads are compared."""
    by_path: dict[str, list[_Read]] = {}
    for item in reads:
        by_path.setdefault(item.path, []).append(item)
    for path, group in by_path.items():
        found = read_file(path)
        if isinstance(found, Reason):
            yield from ((item.pair.text_id, _keep(found)) for item in group)
            continue
        try:
            file = FileText(found.data.decode())
        except UnicodeDecodeError:
            yield from ((item.pair.text_id, _keep(KEEP_DISK_UNREADABLE)) for item in group)
            continue
        digest: str | None = None
        for item in group:
            part = prove_read(item.read, item.pair.result.text, item.header, file)
            if part is None:
                yield item.pair.text_id, _keep(KEEP_DISK_MISMATCH)
                continue
            digest = digest or found.sha256()
            proof = FileOnDisk(_named(item, around), item.read.cwd, part.lines, path, found.real, digest)
            yield item.pair.text_id, _point(item, part, proof)


def _named(item: _Read, around: Surroundings) -> str:
    """The path that a note names: as the call wrote it, where that leads to the same file from the session's folder;
    else the whole path, for whoever follows the note does not stand where the call did."""
    read = item.read
    from_here = full_path(read.path, None, around.session_cwd, around.workspace_root)
    return read.path if os.path.normpath(from_here) == os.path.normpath(item.path) else os.path.normpath(item.path)


def _proxy_decisions(reads: Sequence[_Read], around: Surroundings) -> Iterator[tuple[str, Decision]]:
    """Verdicts by what later calls can have done to each file."""
    if not reads:
        return
    paths = (item.path for item in reads)
    moments = timeline_of(around.transcript)
    writes = LaterWrites(moments, around.reads, around.running, paths, around.session_cwd)
    several = _several_bodies(around.pairs)
    for item in reads:
        text_id, call_id = item.pair.text_id, item.pair.use.id
        if writes.may_have_written(item.path, call_id):
            yield text_id, _keep(FILE_WRITTEN_LATER)
            continue
        part = None if call_id in several else _asked_part(item)
        if part is None:
            yield text_id, _keep(READ_RANGE_UNKNOWN)
            continue
        yield text_id, _point(item, part, FileByTranscript(_named(item, around), item.read.cwd, part.lines))


def _several_bodies(pairs: Sequence[Pair]) -> frozenset[str]:
    """The calls whose results have more than one text that is no header: which is the file's only the disk can say."""
    return frozenset(
        pair.use.id
        for pair in pairs
        if sum(not is_only_header(pair.use.tool, part.text) for part in pair.result.parts) > 1
    )


def _asked_part(item: _Read) -> ProvenPart | None:
    """The part of the text that is the file's, and its lines, as the call and the row numbers say."""
    text, read = item.pair.result.text, item.read
    if read.tail is not None or is_json_output(item.pair.use.tool, text):
        return None
    rows = parse_rows(text) if read.numbered and item.header == 0 else None
    if rows:
        lines = (rows.first_line, rows.first_line + rows.total - 1)
        whole = read.span is None and read.by_tool and rows.total < READ_LIMIT
        return ProvenPart(None if whole else lines, 0, rows.end)
    if read.numbered and (not read.by_tool or begins_with_row(text)):
        return None  # something besides rows is in it
    if read.by_tool and (read.always_rows or is_no_file(text) or _FOREIGN_ROW.match(text)):
        return None  # words of the tool's own, or numbered in a way that is not known here
    if not read.by_tool and _CLIENT_WORDS.search(text):
        return None
    end = content_end(text) if read.by_tool else len(text)
    if read.span is None and (read.by_tool or text.endswith("\n")):
        return ProvenPart(None, item.header, end)
    # A client may have stripped the newlines that end a command's output: its lines are there, the rest is unknown.
    if not read.by_tool and text.endswith("\n"):
        end -= 1
    first = read.span.first if read.span else 1
    return ProvenPart((first, first + text.count("\n", item.header, end)), item.header, end)


def _command_decisions(commands: Sequence[Pair], around: Surroundings) -> Iterator[tuple[str, Decision]]:
    """Pointers to allowlisted commands whose later runs, if any, printed the same."""
    if not commands:
        return
    several = _several_bodies(around.pairs)
    candidates = {pair.use.id: pair for pair in commands if pair.use.id not in several}
    yield from ((pair.text_id, _keep(NOT_RECOVERABLE)) for pair in commands if candidates.get(pair.use.id) is not pair)
    later: dict[tuple[str, str | None], str | None] = {}
    for pair in reversed(around.pairs):
        command = command_of(pair.use)
        if command is None:
            continue
        key = (command, cwd_of(pair.use))
        text = comparable(pair.use.tool, pair.result.text)
        same = later.get(key, text) == text
        later[key] = text if same else None  # None: the outputs differ, and no text equals it
        candidate = candidates.get(pair.use.id)
        if candidate is not None:
            yield candidate.text_id, _rerun(candidate, command) if same else _keep(COMMAND_OUTPUT_CHANGED_LATER)


def _rerun(pair: Pair, command: str) -> Decision:
    note = rerun_note(command)
    if note is None or len(note) >= len(pair.result.text):
        return _keep(NOT_RECOVERABLE if note is None else SHORT_RESULT_KEPT_WHOLE)
    return Pointer(CommandAgain(command, cwd_of(pair.use)), RECOVERABLE_READ_ONLY_COMMAND, note, note)


def _point(item: _Read, part: ProvenPart, proof: FileOnDisk | FileByTranscript) -> Decision:
    text = item.pair.result.text
    on_disk = isinstance(proof, FileOnDisk)
    note = reread_note(proof.path, proof.lines, verified=on_disk)
    if note is None:
        return _keep(NOT_RECOVERABLE)
    if len(note) >= part.end:
        return _keep(SHORT_RESULT_KEPT_WHOLE)
    reason = REPLACE_DISK_VERIFIED if on_disk else RECOVERABLE_FILE_READ
    return Pointer(proof, reason, note, note + text[part.end :])


_KEEPS: dict[Reason, Keep] = {}


def _keep(reason: Reason) -> Keep:
    """The keep with this reason; one value serves all calls."""
    found = _KEEPS.get(reason)
    if found is None:
        found = _KEEPS[reason] = Keep(reason)
    return found


def verify_recoverable(original: Json, compacted: Json, *, allow_command_pointers: bool = False) -> list[Violation]:
    """Whether texts and inputs are unchanged and every pointer names its own call's file or command.

    Both are the seed's payload. Lossless pointers are checked as `verify_lossless` does. The disk is not
    asked. Returns what is wrong, [] when nothing is. Raises ``TranscriptError`` for a payload that cannot be read.
    """
    return recoverable_violations(
        parse_payload(original).messages,
        parse_payload(compacted).messages,
        allow_command_pointers=allow_command_pointers,
    )


def recoverable_violations(
    original: Sequence[Message],
    compacted: Sequence[Message],
    *,
    allow_command_pointers: bool = False,
    stashed: Mapping[str, str] | None = None,
    inputs: Mapping[str, Mapping[Path, str]] = NO_INPUTS,
) -> list[Violation]:
    """`verify_recoverable` over parsed messages; ``stashed`` are the new texts that another check answers for, and
    ``inputs`` the strings of inputs that became notes."""
    found = untouched_violations(original, compacted, inputs)
    if found:
        return found
    changes = list(changed_results(original, compacted))
    uses = {use.id: use for message in original for use in message.tool_uses}
    dedupes: list[tuple[Change, Note]] = []
    for change in changes:
        note = dedupe_note(change)
        if note is not None:
            dedupes.append((change, note))
            continue
        if stashed is not None and stashed.get(change.id) == change.after.text:
            continue
        problem = _pointer_problem(change, uses.get(change.before.tool_use_id), allow_command_pointers)
        if problem:
            found.append(Violation(change.id, problem))
    return found + dedupe_violations(original, dedupes, changes)


def _pointer_problem(change: Change, use: ToolUse | None, allow_command_pointers: bool) -> str | None:
    note = find_note(change.after.text)
    if note is None or use is None:
        return "its new text is no pointer"
    rest = change.after.text[len(note.text) :]
    if not change.before.text.endswith(rest):
        return "what stands behind its pointer is not what stood behind the output"
    if note.kind == "command":
        if not allow_command_pointers or rest:
            return "it points at a command, which was not allowed"
        command = command_of(use)
        if command != note.target or command_effect(command) != "read_only":
            return "its pointer names another command, or one that is not read-only"
        return None
    read = file_read_of(use)
    if note.kind != "file" or read is None or not _leads_to(read, note.target or ""):
        return "its pointer names another file than its own call"
    return _range_problem(change, note, read, rest)


def _leads_to(read: FileRead, target: str) -> bool:
    """Whether a note's path is that of the call, as it wrote it or from where it ran."""
    whole = os.path.normpath(os.path.join(read.cwd or "", read.path))
    # Where the call's folder is not known whole, the path must at least end as it does.
    return target in (read.path, whole) or (os.path.isabs(target) and target.endswith("/" + whole.lstrip("./")))


def _range_problem(change: Change, note: Note, read: FileRead, rest: str) -> str | None:
    """Whether the pointer's lines are as many as went, and those that the row numbers say."""
    text = change.before.text
    if note.lines is None:
        return None if read.span is None and read.tail is None else "its pointer names the whole file, its call a part"
    first, last = note.lines
    rows = parse_rows(text) if read.numbered else None
    if rows and (first, last) == (rows.first_line, rows.first_line + rows.total - 1):
        return None
    if read.tail is None and first != (read.span.first if read.span else 1):
        return "its pointer names other lines than its call read"
    gone = text.count("\n", header_length(change.tool, text), len(text) - len(rest)) + 1
    return None if last - first + 1 == gone else "its pointer names more or fewer lines than went"
