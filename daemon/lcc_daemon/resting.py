"""When a session that rests between two turns is worth a compaction. Pure but for the clock."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import orjson

from lcc.compaction.worth import is_cold, pay_back, worth_when_cold, worth_when_warm
from lcc.config import Config
from lcc.contract.report import Report
from lcc.tokens.cache_cost import FIVE_MINUTES, Prices
from lcc.tokens.requests import Spending, prices_of, sent_at
from lcc.transcript import Json
from lcc_daemon.figures import Figures
from lcc_daemon.plan import thousands

PAUSE_S = 10.0
"""A user who answers sooner than this after a turn is still reading along: there is no time for a compaction."""
_STARTED = re.compile(rb"running in background with ID: ([\w-]+)")
_ENDED = re.compile(rb'<task-id>([\w-]+)</task-id>|"(?:shell_id|task_id|bash_id)": ?"([\w-]+)"')
_MARKS = (b"running in background with ID: ", b"<task-id>", b'"shell_id"', b'"task_id"', b'"bash_id"')


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to compact between turns. ``wait_s``: ask again after so many seconds, None: not for this content."""

    act: bool
    why: str
    saves: str = ""
    """What it saves, for the line that the user reads."""
    wait_s: float | None = None


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


def rest_of(config: Config) -> float:
    """Seconds after a turn for which nothing need be asked."""
    if config.proactive == "cold":
        return config.cache_life_s or FIVE_MINUTES.ttl_s
    return PAUSE_S if config.early_share is None else 0.0


def idle_seconds(spending: Spending) -> float | None:
    """How long ago the conversation's newest request was answered; None where nothing says so."""
    ended = [request.ended for request in spending.requests if request.ended is not None]
    return max(time.time() - max(ended), 0.0) if ended else None


def before_a_look(config: Config, lines: Sequence[bytes], spending: Spending, since: float) -> Verdict | None:
    """What speaks against a compaction now, whatever a pass would free; None where nothing does.

    ``lines`` are the session file's, ``spending`` its requests; ``since`` is when the client began, since 1970.
    """
    if background_work(lines, since):
        return Verdict(False, "background work is under way", wait_s=FIVE_MINUTES.ttl_s)
    if config.proactive == "early":
        return None if spending.requests or config.early_share is not None else Verdict(False, "no request yet")
    prices, idle = life_of(config, spending), idle_seconds(spending)
    if idle is None:
        return Verdict(False, "nothing says when the last request was")
    if not is_cold(idle, prices):
        return Verdict(False, "the prompt cache still lives", wait_s=prices.ttl_s - idle + 1)
    return None


def verdict_on(report: Report, figures: Figures, config: Config, spending: Spending) -> Verdict:
    """Whether to compact now, of what a pass would do to the session with that ``spending``."""
    freed = max(figures.before - figures.after, 0)
    if config.proactive == "early" and config.early_share is not None:
        return Verdict(report["worth_it"], "early", f"~{thousands(freed)} tokens less in every request")
    prices = life_of(config, spending)
    if is_cold(idle_seconds(spending), prices) or config.proactive == "cold":
        why = worth_when_cold(figures.before, freed)
        saves = f"the prompt cache had run out, so the next request writes ~{thousands(freed)} tokens less"
        return Verdict(why == "cache_cold", why, saves)
    requests = spending.requests
    why = worth_when_warm(figures.before, freed, requests[0].context, len(requests), prices)
    later = pay_back(figures.before, freed, requests[0].context, prices).requests
    saves = f"~{thousands(freed)} tokens less in every request, paid back after {math.ceil(later)}"
    return Verdict(why == "pays_back" and report["worth_it"], why, saves)
