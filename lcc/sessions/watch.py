"""A live session, measured while it grows: the context in use, and what a compaction could free now.

Who else writes the file: the client, all the time. It is only read; what was read once is not read again,
unless the file was replaced or cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from lcc.compaction.compact import compact
from lcc.contract.modes import FILE_MODES, RulesMode
from lcc.contract.options import PassOptions
from lcc.contract.report import Report
from lcc.explain.grouped import Listed, explain
from lcc.log.lines import LogError
from lcc.log.recalls import Recall, recalls_in, recalls_path
from lcc.private_files import NotRegularError, open_regular
from lcc.relevance.ports import Ports
from lcc.tokens import Calibration, TokenEstimator, calibrate, counter, usage_steps
from lcc.tokens.requests import SpendingReader
from lcc.tokens.savings import WINDOWS, Savings, savings
from lcc.transcript import Json, SessionReader, Transcript

MAX_SESSION_BYTES = 512 * 1024 * 1024
MODES = FILE_MODES
"""What the rules could free, without the stash and with it."""
CALIBRATED_BYTES = 4_000_000
"""How much of the session's end the token estimates are calibrated on."""
CALIBRATE_AFTER = 1.25
"""They are calibrated anew when the session has grown by this factor."""

_CHUNK = 4 * 1024 * 1024


class SessionTooLargeError(ValueError):
    """The session is larger than what is followed."""


class Freeable(NamedTuple):
    """What one rules mode could free now: tokens (estimated), and the calls whose results would go."""

    tokens: int
    calls: int


@dataclass(frozen=True, slots=True)
class Measured:
    """One look at a session. ``context`` is what the API counted at the last request, or None."""

    session_id: str | None
    cwd: str | None
    client_version: str | None
    messages: int
    calls: int
    context: int | None
    window: int
    tokens: int
    """Tokens of the conversation itself, estimated: without the client's tools and system prompt."""
    freeable: dict[RulesMode, Freeable]
    largest: tuple[Listed, ...]
    """The largest results that the wider of the modes would take out."""
    savings: Savings
    """What its requests cost, round by round, and what compactions saved of it."""
    recalled: tuple[Recall, ...]
    """What the agent had back since the last compaction, as it was noted."""

    @property
    def used(self) -> int:
        """The context in use: as the API counted it, else as estimated."""
        return self.context if self.context is not None else self.tokens

    def as_json(self) -> dict[str, Json]:
        """One JSON object, for programs."""
        return {
            "session_id": self.session_id,
            "cwd": self.cwd,
            "client_version": self.client_version,
            "messages": self.messages,
            "calls": self.calls,
            "context_tokens": self.context,
            "window_tokens": self.window,
            "conversation_tokens": self.tokens,
            "freeable": {mode: found._asdict() for mode, found in self.freeable.items()},
            "savings": self.savings.as_json(),
            "recalled": [
                {"time": each.time, "note": each.note, "given_bytes": each.given_bytes} for each in self.recalled
            ],
        }


class Watched:
    """A session file that is followed. `poll` reads what was appended; `measure` looks at all of it."""

    def __init__(self, path: Path, options: PassOptions, window: int | None = None) -> None:
        self.path = path
        self._options = options
        self._window = window
        self._restart()

    def _restart(self) -> None:
        self._reader = SessionReader()
        self._file: tuple[int, int] | None = None
        self._read = 0
        self._spending = SpendingReader()
        self._unfinished = b""
        self._model: str | None = None
        self._calibration = Calibration()
        self._calibrated_at = 0

    def poll(self) -> bool:
        """Take in what was appended since the last call; whether there was anything.

        Raises ``OSError``, ``SessionTooLargeError``, or ``TranscriptError`` for what is no session at all.
        """
        try:
            handle = open_regular(self.path)
        except NotRegularError as error:
            raise SessionTooLargeError("not a regular file") from error
        try:
            status = os.fstat(handle)
            if status.st_size > MAX_SESSION_BYTES:
                raise SessionTooLargeError(f"larger than {MAX_SESSION_BYTES:,} bytes")
            if self._file != (status.st_dev, status.st_ino) or status.st_size < self._read:
                self._restart()
                self._file = (status.st_dev, status.st_ino)
            if status.st_size == self._read:
                return False
            os.lseek(handle, self._read, os.SEEK_SET)
            for part in _parts(handle, status.st_size - self._read):
                self._read += len(part)
                self._reader.feed(part)
                self._take_usage(part)
            return True
        finally:
            os.close(handle)

    def _take_usage(self, part: bytes) -> None:
        lines = (self._unfinished + part).split(b"\n")
        self._unfinished = lines.pop()
        self._spending.take_lines(lines)

    def is_session(self) -> bool:
        """Whether what was read so far has anything of a Claude Code session in it."""
        transcript = self._reader.transcript()
        return bool(transcript.messages) or transcript.session_id is not None

    def measure(self) -> Measured:
        """What the session holds now, and what each of `MODES` could free. Writes nothing."""
        transcript = self._reader.transcript()
        if self._read > CALIBRATE_AFTER * self._calibrated_at:
            self._calibrate(transcript.raw or b"")
        reports = {mode: self._dry_run(transcript, mode) for mode in MODES}
        widest = reports[MODES[-1]]
        tokens = widest["tokens_before"]
        spending = self._spending.spending()
        context = spending.requests[-1].context if spending.requests else None
        window = self._window or next((w for w in WINDOWS if w >= (context or tokens)), WINDOWS[-1])
        return Measured(
            session_id=transcript.session_id,
            cwd=transcript.cwd,
            client_version=transcript.client_version,
            messages=len(transcript.messages),
            calls=widest["tool_calls_total"],
            context=context,
            window=window,
            tokens=tokens,
            freeable={mode: _freeable(report) for mode, report in reports.items()},
            largest=explain(widest, 5).largest_removals,
            savings=savings(spending, window),
            recalled=_recalled(transcript.session_id, spending.boundaries[-1].sent if spending.boundaries else None),
        )

    def _calibrate(self, raw: bytes) -> None:
        documents = list(_documents(raw[-CALIBRATED_BYTES:].split(b"\n")))
        models = (_object(document.get("message")).get("model") for document in reversed(documents))
        self._model = next((str(m) for m in models if m and not str(m).startswith("<")), None)
        self._calibration = calibrate(usage_steps(documents), counter(self._model))
        self._calibrated_at = self._read

    def _dry_run(self, transcript: Transcript, mode: RulesMode) -> Report:
        ports = Ports(dry_run=True, tokens=TokenEstimator(None, self._calibration, self._model))
        return compact(transcript, replace(self._options, rules_mode=mode), ports, rendered=False).report


def _recalled(session: str | None, since: float | None) -> tuple[Recall, ...]:
    """What was noted as had back in the session since then; nothing where the notes cannot be read."""
    if session is None:
        return ()
    begin = "" if since is None else datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        return tuple(each for each in recalls_in(recalls_path(os.environ), session) if each.time >= begin)
    except LogError:
        return ()


def _freeable(report: Report) -> Freeable:
    return Freeable(
        report["tokens_before"] - report["tokens_after"], report["tool_calls_total"] - report["tool_calls_kept"]
    )


def _parts(handle: int, size: int) -> Iterator[bytes]:
    while size > 0 and (part := os.read(handle, min(size, _CHUNK))):
        size -= len(part)
        yield part


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _documents(lines: list[bytes]) -> Iterator[dict[str, Json]]:
    """The objects in those lines. Damaged ones say nothing here; the reader tells of them."""
    for line in lines:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value
