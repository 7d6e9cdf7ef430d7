"""The token figures of the one line that the user reads: the session's own, not the pass's estimate.

A session file records the true size of every request, so `before` is what Claude Code itself shows, and what was
removed is counted by the vocabulary where that was done ahead of time, scaled to what the session's requests grew
by. The report keeps the pass's own estimate, which is the same whoever runs it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from lcc.contract.report import Report
from lcc.private_files import open_regular
from lcc.tokens import Calibration, TokenCache, TokenEstimator, calibrate, context_tokens, counter, usage_steps
from lcc.tokens.thinking import kept_thinking
from lcc.transcript import Edits, Json, Message, Transcript, value_in

TAIL_BYTES = 2_000_000
"""How much of a session file's end is looked through for its newest request."""
CALIBRATED_BYTES = 4_000_000
"""How much of a session's end its calibration is measured on."""
LEAST_CREDIBLE = 0.5
"""A request cannot be smaller than this share of what its text is counted at: then nobody has said its size."""
SESSIONS_KEPT = 64


class Figures(NamedTuple):
    """Tokens of the session before and after; ``is_real`` where `before` is the newest request's true size."""

    before: int
    after: int
    is_real: bool


class Measured(NamedTuple):
    """What is known of one session's tokens ahead of its compaction."""

    model: str | None
    calibration: Calibration
    thinking: int = 0
    """Tokens of thinking that its context holds: a replacement has none."""


class TokenBook:
    """Counts of texts and calibrations of sessions, made while nobody waits. Safe to use from several threads."""

    def __init__(self) -> None:
        self._cache = TokenCache()
        self._sessions: dict[str, Measured] = {}
        self._guard = threading.Lock()

    def measure(self, session_id: str, transcript: Transcript, give_way: Callable[[], None]) -> None:
        """Count a followed session's texts and calibrate on its requests. ``give_way`` is called between texts."""
        raw = transcript.raw or b""
        documents = list(_documents(raw[-CALIBRATED_BYTES:]))
        model = next((model for model in map(_model, reversed(documents)) if model), None)
        counts = counter(model)
        calibration = calibrate(usage_steps(documents), counts)
        self._keep(session_id, Measured(model, calibration))
        self._cache.warm(_texts(transcript.messages, give_way), counts)
        tokens = TokenEstimator(self._cache, calibration, model)
        thinking = sum(kept_thinking(_since_compaction(documents), tokens))
        self._keep(session_id, Measured(model, calibration, thinking))

    def _keep(self, session_id: str, measured: Measured) -> None:
        with self._guard:
            self._sessions.pop(session_id, None)
            self._sessions[session_id] = measured
            while len(self._sessions) > SESSIONS_KEPT:
                del self._sessions[next(iter(self._sessions))]

    def figures(
        self, session_id: str, real: int | None, transcript: Transcript, edits: Edits, report: Report
    ) -> Figures:
        """Before and after. ``real`` is the context's true size in tokens, None where nobody knows it.

        Some servers between a client and the API report next to no usage: that is no size of this text.
        """
        with self._guard:
            known = self._sessions.get(session_id, Measured(None, Calibration()))
        tokens = TokenEstimator(self._cache, known.calibration, known.model)
        removed = known.thinking
        for message in transcript.messages:
            for result in message.tool_results:
                new = edits.texts.get(result.tool_use_id)
                if new is not None or result.tool_use_id in edits.dropped:
                    removed += tokens.estimate(result.text) - tokens.estimate(new or "")
            for use in message.tool_uses:
                for path, note in edits.inputs.get(use.id, {}).items():
                    removed += tokens.estimate(str(value_in(use.input, path))) - tokens.estimate(note)
        before, after = report["tokens_before"], report["tokens_after"]
        if real is None or real < LEAST_CREDIBLE * before:
            return Figures(before, after, False)
        # A count that is off must not say that next to nothing is left: the share that stays is not smaller than
        # that of the pass's own estimate, which is of the text alone.
        least = round(real * after / before) if before else real
        return Figures(real, min(real, max(real - removed, least)), True)


def _since_compaction(documents: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """The documents behind the last compaction: what stood before it is not in the context any more."""
    places = (at for at, document in enumerate(documents) if document.get("subtype") == "compact_boundary")
    return documents[max(places, default=-1) + 1 :]


def newest_context(file: Path) -> int | None:
    """The true size, in tokens, of the newest request of a session file; None where its end does not say."""
    try:
        fd = open_regular(file)
    except OSError:
        return None
    try:
        size = os.fstat(fd).st_size
        tail = os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES))
    except OSError:
        return None
    finally:
        os.close(fd)
    end = len(tail)
    while end > 0:  # from the end: the newest line with a figure is mostly among the last ten
        start = tail.rfind(b"\n", 0, end) + 1
        found = context_tokens(_documents(tail[start:end])) if b'"usage"' in tail[start:end] else None
        if found is not None:
            return found
        end = start - 1
    return None


def _documents(raw: bytes) -> Iterator[dict[str, Json]]:
    """The lines that are whole JSON objects; a torn one, at either end, is left out."""
    for line in raw.split(b"\n"):
        if line.startswith(b"{"):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            yield value


def _model(document: dict[str, Json]) -> str | None:
    message = document.get("message")
    model = message.get("model") if isinstance(message, dict) else None
    return model if isinstance(model, str) and not model.startswith("<") else None


def _texts(messages: Iterable[Message], give_way: Callable[[], None]) -> Iterator[str]:
    for message in messages:
        for result in message.tool_results:
            give_way()
            yield result.text
