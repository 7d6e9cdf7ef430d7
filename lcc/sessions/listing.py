"""A project's sessions: how large each is, what it holds in tokens, and what a compaction would free.

Who else writes these files: the client, while a session runs. They are only read, one after the other, and
what is found is what was there at that moment.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from lcc.compaction.compact import compact
from lcc.contract.options import PassOptions
from lcc.private_files import read_bounded
from lcc.relevance.ports import Ports
from lcc.sessions.fork import whole_lines, why_live
from lcc.tokens import context_tokens
from lcc.transcript import Json, Transcript, TranscriptError, read_transcript
from lcc.transcript.formats.claude import CLAUDE_CODE

MAX_SESSION_BYTES = 512 * 1024 * 1024
_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Session:
    """One session file. Figures are None where the file cannot be read; ``problem`` then says why."""

    id: str
    path: Path
    size: int
    modified: float
    """Seconds since the epoch."""
    live: str | None
    """Why a client may be using it; None when nothing says so."""
    title: str = ""
    """The user's first words."""
    folder: str | None = None
    """Where it began."""
    messages: int | None = None
    reached: int | None = None
    """Bytes of the lines that the conversation can still reach: not rewound, not summarised, not damaged."""
    damaged: int | None = None
    """Lines that are damaged, and kept as they are."""
    context: int | None = None
    """Input tokens of the last request, as the API counted them; None where the file does not say."""
    tokens: int | None = None
    """Tokens of the conversation itself, without what the client adds (its tools, its system prompt)."""
    frees: int | None = None
    """Tokens that a compaction would remove."""
    problem: str | None = None


def session_files(folders: Iterable[Path]) -> list[Path]:
    """The session files in ``folders``, the newest first; of one that is in several, as in a copy of a profile, the
    newest alone. Raises ``OSError``."""
    found: dict[str, tuple[float, Path]] = {}
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl") and not entry.name.startswith("agent-") and entry.is_file():
                    known = (-entry.stat().st_mtime, Path(entry.path))
                    found[entry.name] = min(found.get(entry.name, known), known)
    return [path for _, path in sorted(found.values())]


def look_at(path: Path, options: PassOptions, now: float) -> Session:
    """What the session holds, and what a dry run of the pass with ``options`` would free.

    Never raises for what the file holds or for one that cannot be read: ``problem`` says it.
    """
    status = path.stat()
    session = Session(path.stem, path, status.st_size, status.st_mtime, why_live(path, now))
    if status.st_size > MAX_SESSION_BYTES:
        return replace(session, problem=f"larger than {MAX_SESSION_BYTES} bytes")
    try:
        transcript = read_transcript(whole_lines(read_bounded(path, MAX_SESSION_BYTES)), format=CLAUDE_CODE)
    except TranscriptError as error:
        return replace(session, problem=str(error))
    except OSError as error:
        return replace(session, problem=error.strerror or str(error))
    report = compact(transcript, options, Ports(dry_run=True), rendered=False).report
    before, after = report["tokens_before"], report["tokens_after"]
    return replace(
        session,
        title=_title(transcript),
        folder=transcript.cwd,
        messages=len(transcript.messages),
        reached=_reached_bytes(transcript),
        damaged=transcript.damaged,
        context=context_tokens(_documents(transcript)),
        tokens=before,
        frees=before - after,
    )


def _reached_bytes(transcript: Transcript) -> int:
    reached = {document for message in transcript.messages for document in message.documents}
    return sum(end - start for start, end in map(transcript.documents.__getitem__, reached))


def _documents(transcript: Transcript) -> Iterator[dict[str, Json]]:
    """The lines that can say what a request held; damaged ones say nothing."""
    raw = transcript.raw or b""
    for start, end in transcript.documents:
        if b'"usage"' in raw[start:end]:
            try:
                value = orjson.loads(raw[start:end])
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def _title(transcript: Transcript) -> str:
    mine = (message for message in transcript.messages if message.role == "user" and not message.by_client)
    words = (message.text for message in mine if message.text)
    first = next((text for text in words if not text.startswith("<")), "")
    return " ".join(first[:_TITLE_CHARS].split())
