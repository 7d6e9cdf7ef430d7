"""A look at a live session between two turns: what a pass would do to it now. Nothing is changed or written."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from lcc.compaction.compact import CompactionError, compact
from lcc.compaction.worth import worth_between_turns
from lcc.config import Config
from lcc.contract.report import Report
from lcc.private_files import read_bounded
from lcc.relevance.ports import Ports
from lcc.stash import StashFolderError
from lcc.tokens.cache_cost import Prices
from lcc.tokens.requests import Spending, SpendingReader, prices_of, sent_at
from lcc.transcript import Json, TranscriptError, parse_payload
from lcc_daemon.compaction import Event
from lcc_daemon.figures import Figures, newest_context
from lcc_daemon.services import Services
from lcc_daemon.sessions import FOLLOW_LIMIT

_STARTED = re.compile(rb"running in background with ID: ([\w-]+)")
_ENDED = re.compile(rb'<task-id>([\w-]+)</task-id>|"(?:shell_id|task_id|bash_id)": ?"([\w-]+)"')
_MARKS = (b"running in background with ID: ", b"<task-id>", b'"shell_id"', b'"task_id"', b'"bash_id"')


class LookError(Exception):
    """The session cannot be looked at; the text says why."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a pass would do now."""

    report: Report
    figures: Figures
    """Tokens of the session before and after."""

    @property
    def freed(self) -> int:
        """Tokens that would go."""
        return max(self.figures.before - self.figures.after, 0)

    @property
    def rung(self) -> str:
        """The rules mode that it would take."""
        return self.report["rules_mode"] or ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to compact between turns. ``wait_s``: ask again after so many seconds, None: not for this content."""

    act: bool
    why: str
    saves: str = ""
    """What it saves, for the line that the user reads."""
    wait_s: float | None = None


def look_at(event: Event, config: Config, ports: Ports, services: Services) -> Look:
    """The pass that `session.compact` would run, by the rules alone. Raises LookError."""
    try:
        transcript = replace(
            parse_payload({"messages": event.messages}), cwd=event.cwd, session_id=event.session_id or None
        )
        ports = replace(
            ports,
            dry_run=True,
            can_recall=event.can_recall,
            context_tokens=event.context_tokens,
            window_tokens=event.window_tokens,
        )
        done = compact(transcript, replace(config, provider="rules"), ports, rendered=False)
    except TranscriptError as error:
        raise LookError(f"the session cannot be read at {error.place or 'its top'}") from None
    except (CompactionError, StashFolderError) as error:
        raise LookError(str(error)) from None
    file, real = session_file(event), event.context_tokens
    if real is None and file is not None:
        real = newest_context(file)
    figures = services.book.figures(event.session_id, real, done.result.transcript, done.edits, done.report)
    return Look(done.report, figures)


def session_file(event: Event) -> Path | None:
    """The session's own file, where the event names it."""
    return Path(event.transcript_path) if event.transcript_path.startswith("/") else None


def read_lines(file: Path | None) -> list[bytes]:
    """The lines of a session file; none of one that cannot be read or is too large."""
    try:
        return read_bounded(file, FOLLOW_LIMIT).split(b"\n") if file is not None else []
    except OSError:
        return []


def spending_of(lines: Iterable[bytes]) -> Spending:
    """The session's requests."""
    reader = SpendingReader()
    reader.take_lines(lines)
    return reader.spending()


def background_work(lines: Iterable[bytes], since: float) -> set[bytes]:
    """The ids of shells that were started in the background after ``since`` (seconds since 1970) and have not ended."""
    running: set[bytes] = set()
    for line in lines:
        if not any(mark in line for mark in _MARKS) or _when(line) < since:
            continue
        running.update(_STARTED.findall(line))
        running.difference_update(*map(set, _ENDED.findall(line)))
    return running


def _when(line: bytes) -> float:
    try:
        row: Json = orjson.loads(line)
    except orjson.JSONDecodeError:
        return 0.0
    return (sent_at(row) if isinstance(row, dict) else None) or 0.0


def life_of(config: Config, spending: Spending) -> Prices:
    """The prices of the session's cache entries, and how long they live."""
    prices = prices_of(spending.requests)
    return replace(prices, ttl_s=config.cache_life_s) if config.cache_life_s else prices


def idle_seconds(spending: Spending) -> float | None:
    """How long ago the newest request was answered; None where nothing says so."""
    ended = [request.ended for request in (*spending.requests, *spending.aside) if request.ended is not None]
    return max(time.time() - max(ended), 0.0) if ended else None


def verdict_on(found: Look, event: Event, config: Config, spending: Spending) -> Verdict:
    """Whether to compact now, as `proactive` says."""
    context = event.context_tokens or found.figures.before
    if config.proactive == "early":
        window = event.window_tokens or 0
        if not window or context < config.early_share * window:
            return Verdict(False, "the window is not so full")
        return Verdict(found.report["worth_it"], "early", f"~{_tokens(found.freed)} tokens less in every request")
    prices, idle = life_of(config, spending), idle_seconds(spending)
    if idle is None:
        return Verdict(False, "nothing says when the last request was")
    if idle <= prices.ttl_s:
        return Verdict(False, "the prompt cache still lives", wait_s=prices.ttl_s - idle + 1)
    worth = worth_between_turns(
        context_tokens=context,
        freed_tokens=found.freed,
        requests=len(spending.requests),
        idle_seconds=idle,
        prices=prices,
    )
    saves = f"the prompt cache had run out, so the next request writes ~{_tokens(found.freed)} tokens less"
    return Verdict(worth.worth_it, worth.why, saves)


def _tokens(count: int) -> str:
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"
