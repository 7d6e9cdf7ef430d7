"""Forking a Claude Code session: a new session file that holds the live branch with compacted outputs.

Who else writes these files: the client appends to a session while it runs, so the source is opened for
reading alone, and one that a client has open is refused unless a snapshot is asked for. The fork is a file
of our own until the client is told to resume it; it is written beside its place, synced and renamed.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import orjson

from lcc.contract.notes import find_note
from lcc.private_files import open_regular, read_all, read_bounded, write_private
from lcc.transcript import Json, Message, Transcript, TranscriptError, read_transcript
from lcc.transcript.formats.claude import CLAUDE_CODE
from lcc.transcript.formats.claude.entry import Entry
from lcc.transcript.formats.claude.reader import read_tree
from lcc.transcript.formats.claude.tree import branch_lines
from lcc.transcript.lines import split
from lcc.transcript.splice import Splices

QUIET_SECONDS = 30.0
"""A client of before the register of running sessions shows only by the file's last change."""
MAX_BYTES = 1 << 30
_REGISTER_BYTES = 64 * 1024
_LINKS = ("logicalParentUuid", "sourceToolAssistantUUID")
_SECOND_COPY = "toolUseResult"
_NEWEST = ("custom-title", "ai-title", "tag", "agent-name", "agent-color")
_SHOWN = "content-replacement"
_CARRIED = re.compile("|".join((*_NEWEST, _SHOWN)).encode())


class ForkError(ValueError):
    """A session that cannot be forked; the message says why and what to do."""


def fork_bytes(compacted: bytes, changed: Collection[str], session_id: str) -> bytes:
    """The new session file: the live branch of ``compacted``, under ``session_id`` and with uuids of its own.

    ``compacted`` is a session file with the edits made; ``changed`` are the call ids whose results were
    edited, whose second copy (``toolUseResult``) is left out. The same arguments give the same bytes. Raises
    ``ForkError`` for a file that is no session of its own, ``TranscriptError`` for one that cannot be read.
    """
    transcript = read_transcript(compacted, format=CLAUDE_CODE)
    tree = read_tree(compacted)
    if not tree.walk:
        raise ForkError("the file has no links between its lines, so the client could not resume a fork of it")
    if all(entry.sidechain for entry in tree.entries if entry.content is not None):
        raise ForkError("the file is a sub-agent's; fork the session that started it")
    lines = branch_lines(tree)
    shorten = {
        entry.document
        for entry, _ in lines
        if entry.content is not None and any(result.tool_use_id in changed for result in entry.content.results)
    }
    renamed = _new_uuids([entry.uuid for entry, _ in lines], session_id)
    rows = [
        _row(compacted, transcript.documents[entry.document], renamed, parent, session_id, entry.document in shorten)
        for entry, parent in _with_parents(lines, renamed)
    ]
    forked = b"".join(row + b"\n" for row in [*rows, *carried_rows(transcript, changed, session_id)])
    _check_same(transcript, read_transcript(forked, format=CLAUDE_CODE))
    return forked


def carried_rows(transcript: Transcript, changed: Collection[str], session_id: str) -> list[bytes]:
    """What the client itself takes into a branch of a session: its newest title and names, and what it shows in place
    of results that it has put into files (`content-replacement`), but for the calls ``changed``, which hold notes now.
    """
    raw = transcript.raw or b""
    newest: dict[str, dict[str, Json]] = {}
    shown: list[Json] = []
    for start, end in transcript.documents:
        if not _CARRIED.search(raw, start, end):
            continue
        try:
            value = orjson.loads(raw[start:end])
        except orjson.JSONDecodeError:
            continue
        kind = value.get("type") if isinstance(value, dict) else None
        if kind in _NEWEST:
            newest[kind] = value
        elif kind == _SHOWN and not value.get("agentId") and isinstance(value.get("replacements"), list):
            shown += [each for each in value["replacements"] if not _is_of(each, changed)]
    rows: list[dict[str, Json]] = [{**value, "sessionId": session_id} for value in newest.values()]
    if shown:
        rows.insert(0, {"type": _SHOWN, "sessionId": session_id, "replacements": shown})
    return [orjson.dumps(value) for value in rows]


def _is_of(replacement: Json, calls: Collection[str]) -> bool:
    return isinstance(replacement, dict) and replacement.get("toolUseId") in calls


def copy_agents(source: Path, fork: Path) -> None:
    """Give the ``fork`` of a session file ``source`` copies of its sub-agents' files: the client writes on in them.

    Raises ``OSError`` where one cannot be read or written.
    """
    folder = source.with_suffix("") / "subagents"
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base, name)
            if path.is_file() and not path.is_symlink():
                target = fork.with_suffix("") / "subagents" / path.relative_to(folder)
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_private(target, read_bounded(path, MAX_BYTES))


def note_ids(messages: Sequence[Message]) -> list[str]:
    """The ids (12 hex digits) that the stash notes among the results name."""
    found: dict[str, None] = {}
    for message in messages:
        for _, _, result in (text for whole in message.tool_results for text in whole.texts()):
            note = find_note(result.text)
            if note is not None and note.kind == "stash" and note.target is not None:
                found[note.target] = None
    return list(found)


def why_live(path: Path, now: float) -> str | None:
    """Why a client may be writing to the session ``path`` at ``now``; None when nothing says so.

    The client's register of running sessions, a process that has the file open for writing, and its last
    change are asked. Raises ``OSError`` when the file cannot be looked at.
    """
    pid = _registered_pid(path)
    if pid is not None:
        return f"the client with process id {pid} has it open"
    pid = _writer_pid(path)
    if pid is not None:
        return f"process {pid} has it open for writing"
    age = now - path.stat().st_mtime
    if age < QUIET_SECONDS:
        return f"it was written to {max(age, 0):.0f} s ago"
    return None


def new_session_id() -> str:
    """A session id as the client makes them."""
    return str(uuid.uuid4())


def _new_uuids(uuids: Sequence[str], session_id: str) -> dict[str, str]:
    """The new uuid of each line: by the session's id and the old uuid, so that no two forks share one."""
    space = uuid.UUID(session_id)
    return {old: str(uuid.uuid5(space, old)) for old in uuids}


def _with_parents(
    lines: Sequence[tuple[Entry, str | None]], renamed: Mapping[str, str]
) -> Iterator[tuple[Entry, str | None]]:
    """Each line with its new parent, in the order of the file, which is the order in which parallel tools ended."""
    parents: dict[int, str | None] = {}
    before: str | None = None
    for entry, follows in lines:
        parents[entry.document] = renamed.get(follows or "", before)
        before = renamed[entry.uuid]
    for entry in sorted((entry for entry, _ in lines), key=lambda entry: entry.document):
        yield entry, parents[entry.document]


def _row(
    raw: bytes,
    span: tuple[int, int],
    renamed: Mapping[str, str],
    parent: str | None,
    session_id: str,
    without_copy: bool,
) -> bytes:
    """One line of the fork: the line as it stands, with only its ids changed and its second copy left out."""
    start, end = span
    document = next(split(raw[start:end]))
    value = document.value
    changes: dict[str, Json] = {"sessionId": session_id, "parentUuid": parent}
    changes |= {key: renamed.get(str(value.get(key))) for key in _LINKS if isinstance(value.get(key), str)}
    changes["uuid"] = renamed[str(value.get("uuid") or "")]
    missing = {key: changed for key, changed in changes.items() if key not in value and changed is not None}
    present = {key: changed for key, changed in changes.items() if key in value}
    without_copy = without_copy and _SECOND_COPY in value
    if document.damage is not None:
        kept = {key: old for key, old in value.items() if not (without_copy and key == _SECOND_COPY)}
        return json.dumps(kept | changes, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    splices = Splices()
    for key, changed in present.items():
        splices.add((key,), orjson.dumps(changed))
    mark = secrets.token_hex(16).encode()
    if without_copy:
        splices.add((_SECOND_COPY,), mark)
    row = splices.apply(raw, start, end)
    if without_copy:
        row = _without_member(row, mark)
    if missing:
        row = b"{" + orjson.dumps(missing)[1:-1] + b"," + row.lstrip()[1:]
    return row


def _without_member(row: bytes, mark: bytes) -> bytes:
    """The object without the member whose value is ``mark``, and without one of the commas beside it."""
    member = re.compile(rb'"(?:[^"\\]|\\.)*+"[ \t\n\r]*+:[ \t\n\r]*+' + mark)
    end = row.index(mark) + len(mark)
    start = row.rfind(b'"', 0, row.rfind(b'"', 0, end))
    found = member.match(row, start)
    if found is None:
        raise ForkError("a line's toolUseResult could not be taken out")
    before = row[:start].rstrip(b" \t\n\r")
    after = row[end:].lstrip(b" \t\n\r")
    if before.endswith(b","):
        return before[:-1] + row[end:]
    return before + (after[1:] if after.startswith(b",") else after)


def _check_same(compacted: Transcript, forked: Transcript) -> None:
    """The fork must say to the model exactly what the compacted session says."""
    if [_said(message) for message in compacted.messages] != [_said(message) for message in forked.messages]:
        raise ForkError("the fork would not hold the same messages as the session; nothing was written")


def _said(message: Message) -> tuple[object, ...]:
    uses = [(use.id, use.tool, use.input) for use in message.tool_uses]
    results = [(result.tool_use_id, result.text, result.is_error) for result in message.tool_results]
    return message.role, message.text, uses, results


def _registered_pid(path: Path) -> int | None:
    """The running client that says, in the register beside the projects folder, that the session is its own."""
    projects = path.resolve().parent.parent
    if projects.name != "projects":
        return None
    for file in (projects.parent / "sessions").glob("*.json"):
        try:
            entry = orjson.loads(read_bounded(file, _REGISTER_BYTES))
        except (OSError, ValueError):
            continue
        if not isinstance(entry, dict) or entry.get("sessionId") != path.stem:
            continue
        pid = entry.get("pid")
        if isinstance(pid, int) and pid > 0 and _is_running(pid, entry.get("procStart")):
            return pid
    return None


def _is_running(pid: int, started: object) -> bool:
    """Whether ``pid`` runs, and is the process that ``started`` then (a recycled id is another one)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    return started is None or len(after_name) < 20 or after_name[19] == str(started)


def _writer_pid(path: Path) -> int | None:
    """A process that has the file open for writing, where the system lists open files (Linux)."""
    try:
        wanted = path.stat()
        pids = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return None
    for pid in pids:
        try:
            descriptors = list(os.scandir(f"/proc/{pid}/fd"))
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                link = descriptor.stat(follow_symlinks=False)
                found = os.stat(descriptor.path)
            except OSError:
                continue
            if link.st_mode & 0o200 and (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                return int(pid)
    return None


def read_session(path: Path, *, snapshot: bool) -> bytes:
    """The session's bytes, for a fork; with ``snapshot`` also while it is written to, up to its last whole line.

    Raises ``ForkError`` when a client may be writing to it and no snapshot is asked for, ``OSError`` when it
    cannot be read.
    """
    live = None if snapshot else why_live(path, time.time())
    descriptor = open_regular(path)
    try:
        before = os.fstat(descriptor)
        raw = read_all(descriptor, MAX_BYTES, before.st_size)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if not snapshot and live is None and (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        live = "it changed while it was read"
    if live is not None:
        raise ForkError(
            f"{path}: a client seems to be using this session ({live}). Leave the session first, "
            "or give --snapshot to fork it as it stands now"
        )
    return whole_lines(raw) if snapshot else raw


def whole_lines(raw: bytes) -> bytes:
    """``raw`` without a last line that is not whole yet."""
    cut = raw.rfind(b"\n") + 1
    try:
        list(split(raw[cut:], strict=True))
    except TranscriptError:
        return raw[:cut]
    return raw
