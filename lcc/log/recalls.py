"""What was recalled, in which session: one line for each recall, in a private file of the state folder.

``recalls.jsonl`` holds ids and sizes, never a text, so that a session's savings can be reckoned with what was had
back, and a note that is wanted again is known. Of 2 MiB at most, with what was set aside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lcc.config import state_folder
from lcc.log.lines import append_line, read_lines

FILE_NAME = "recalls.jsonl"
MAX_BYTES = 1024 * 1024
"""A file this large is set aside as ``recalls.jsonl.1``, in the place of an older one."""
SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
"""Where Claude Code names the session to what it starts."""


@dataclass(frozen=True, slots=True)
class Recall:
    """One recall. ``session`` is empty where it is not known (a person's own terminal)."""

    session: str
    note: str
    """The first 12 digits of the object's sha256, as they stand in its note."""
    given_bytes: int
    """What the agent was given: of text, in UTF-8."""
    of_bytes: int
    """The object's size."""
    by: str
    """``tool`` (the client's own), ``shell`` or ``mcp``."""
    time: str = ""
    """UTC, as ``2026-01-31T23:59:59Z``; the time of writing where it is empty."""


def recalls_path(env: Mapping[str, str]) -> Path:
    """Where recalls are noted."""
    return state_folder(env) / FILE_NAME


def note_recall(recall: Recall, path: Path) -> None:
    """Add the recall to the file at ``path``. Raises LogError; no recall may fail for it."""
    append_line(
        path,
        {
            "time": recall.time or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "session": recall.session,
            "note": recall.note,
            "given_bytes": recall.given_bytes,
            "of_bytes": recall.of_bytes,
            "by": recall.by,
        },
        MAX_BYTES,
    )


def recalls_in(path: Path, session: str | None = None) -> Iterator[Recall]:
    """The recalls of a session (of all where none is named), oldest first. Raises LogError for an unreadable file."""
    for line in read_lines(path, MAX_BYTES):
        found = line.get("session"), line.get("note"), line.get("by"), line.get("time")
        given, of = line.get("given_bytes"), line.get("of_bytes")
        if not all(isinstance(text, str) for text in found) or not isinstance(given, int) or not isinstance(of, int):
            continue
        whose, note, by, time = map(str, found)
        if session is None or whose == session:
            yield Recall(whose, note, given, of, by, time)


def asking_session(env: Mapping[str, str] | None = None) -> str:
    """The session that a program of ours was started in, as Claude Code names it; empty outside of one."""
    return (os.environ if env is None else env).get(SESSION_VARIABLE, "")[:80]
