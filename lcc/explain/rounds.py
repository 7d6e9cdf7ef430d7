"""A session's rounds as the page draws them: the context over time, and a row for each compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lcc.tokens.savings import RESERVED

if TYPE_CHECKING:
    from lcc.tokens.savings import Round, Savings
    from lcc.transcript import Json

MOST_POINTS = 1200
"""More requests than this are drawn in groups, each as high as its highest context."""


def rounds_data(found: Savings) -> Json:
    """What the page needs of ``found``; None where the session says nothing of its requests."""
    if not found.requests:
        return None
    size = -(-found.requests // MOST_POINTS)
    marks, at = [], 0
    for before in found.rounds[:-1]:
        at += before.requests
        marks.append(at / size)
    contexts: list[Json] = [max(found.contexts[start : start + size]) for start in range(0, found.requests, size)]
    shown: list[Json] = [_row(each) for each in found.rounds[1:]]
    return {
        "contexts": contexts,
        "each": size,
        "requests": found.requests,
        "marks": list(marks),
        "full": found.window - RESERVED,
        "rows": shown,
        "next": _next(found),
        "cost": _cost(found),
        "without": round(found.without) if found.compactions else None,
        "saved": round(found.saved) if found.compactions else None,
    }


def _row(each: Round) -> Json:
    return {
        "kind": "summary by the client" if each.summary else "compaction, notes left",
        "before": each.before,
        "freed": each.freed,
        "requests": each.requests,
        "first": each.first,
        "last": each.last,
        "recalls": each.recalls,
        "saved": None if each.summary else round(each.saved),
    }


def _next(found: Savings) -> str:
    if found.full_in is None:
        return "When the window will be full cannot be told from what was seen"
    return (
        f"The window is full in about {found.full_in:,} requests if the context goes on growing as since the last "
        f"compaction: an estimate. The client compacts {RESERVED:,} tokens before its end"
    )


def _cost(found: Savings) -> dict[str, Json]:
    return {
        "sum": round(found.cost),
        "new": found.new,
        "read": found.read,
        "written": found.written,
        "written_hour": found.written_hour,
    }
