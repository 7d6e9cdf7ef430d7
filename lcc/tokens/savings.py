"""What the compactions of a session have saved, from its own requests: a sum that can be checked against the bill.

Measured is what was sent: every request's tokens at cache prices, and by how much the context was smaller at the first
request after a compaction than at the last one before it. Estimated is what the same requests would have cost without
that: the same tokens again at each later request, read from the prompt cache where most of that request's context was
read, and written where most was written. Not counted, and so saved by no compaction here: requests that a larger
context would have cost, the summary that a full window would have asked for, and output. From the request on at which
the window would have been full without the compactions nothing more is counted. Pure and linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from lcc.tokens.cache_cost import FIVE_MINUTES, ONE_HOUR
from lcc.tokens.requests import prices_of

if TYPE_CHECKING:
    from lcc.tokens.requests import Boundary, Request, Spending
    from lcc.transcript import Json

WINDOWS = (200_000, 1_000_000)
"""The context windows that clients use, in tokens; the smallest that fits what was seen is taken."""
RESERVED = 33_000
"""Tokens at the end of the window that the client keeps free: it compacts before them (the client's contract)."""
COLD_SHARE = 0.5
"""A request that read less than this share of the context that could be cached found the prompt cache gone."""


class Round(NamedTuple):
    """The session from one compaction (or its start) to the next (or its end). Tokens as the API counted them."""

    sent: float | None
    """When the compaction came, in seconds since 1970; None for the session's start, or where no row says."""
    summary: bool
    """The client's own summary; else what was removed stands as notes."""
    before: int
    """The context at the last request before it; 0 at the start."""
    first: int
    """The context at the first request after it; 0 where there was none yet."""
    last: int
    """The context at its last request."""
    requests: int
    recalls: int
    """How often the agent had a removed output back."""
    saved: float
    """What the compaction that it begins with, and those before it, saved in it (below 0: cost), estimated."""

    @property
    def freed(self) -> int:
        """Tokens that the compaction took out of the context."""
        return max(self.before - self.first, 0) if self.first else 0


@dataclass(frozen=True, slots=True)
class Savings:
    """The sums. Costs are in tokens at the plain input price, without output."""

    requests: int
    new: int
    read: int
    written: int
    written_hour: int
    output: int
    aside: float
    """What sub-agents' requests in the same file cost; not in ``cost``."""
    cost: float
    """Measured: what the conversation's requests cost."""
    saved: float
    """Estimated: what they would have cost more without the compactions."""
    window: int
    rounds: tuple[Round, ...]
    contexts: tuple[int, ...]
    """The context at each request, oldest first."""

    @property
    def without(self) -> float:
        """Estimated: what the same requests would have cost without the compactions."""
        return self.cost + self.saved

    @property
    def saved_share(self) -> float:
        """The share of ``without`` that was saved."""
        return self.saved / self.without if self.without > 0 else 0.0

    @property
    def compactions(self) -> tuple[Round, ...]:
        """The rounds that begin with a compaction that left notes, not a summary."""
        return tuple(each for each in self.rounds[1:] if not each.summary)

    @property
    def recalls(self) -> int:
        """How often the agent had a removed output back."""
        return sum(each.recalls for each in self.rounds)

    @property
    def full_in(self) -> int | None:
        """Estimated: after how many requests the window is full, by the growth since the last compaction.

        None where too little was seen, or where the context does not grow.
        """
        now = self.rounds[-1] if self.rounds else None
        if now is None or now.requests < 2 or now.last <= now.first:
            return None
        slope = (now.last - now.first) / (now.requests - 1)
        return max(0, round((self.window - RESERVED - now.last) / slope))

    def as_json(self) -> dict[str, Json]:
        """One JSON object, for programs."""
        return {
            "requests": self.requests,
            "tokens": {
                "new": self.new,
                "read": self.read,
                "written_5m": self.written,
                "written_1h": self.written_hour,
                "output": self.output,
            },
            "cost_measured": round(self.cost),
            "cost_without_estimated": round(self.without),
            "saved_estimated": round(self.saved),
            "sub_agents_cost_measured": round(self.aside),
            "window_tokens": self.window,
            "full_in_requests_estimated": self.full_in,
            "rounds": [
                {
                    "sent": each.sent,
                    "begins_with": "start" if not at else "summary" if each.summary else "compaction",
                    "context_before": each.before,
                    "context_first": each.first,
                    "context_last": each.last,
                    "freed": each.freed,
                    "requests": each.requests,
                    "recalls": each.recalls,
                    "saved_estimated": round(each.saved),
                }
                for at, each in enumerate(self.rounds)
            ],
        }


def savings(spending: Spending, window: int | None = None) -> Savings:
    """The sums and rounds of a session. ``window`` in tokens; without it the smallest that fits what was seen."""
    requests = spending.requests
    largest = max((request.context for request in requests), default=0)
    fits = window or next((size for size in WINDOWS if size >= largest), WINDOWS[-1])
    saved = _saved_by_request(spending, fits - RESERVED)
    return Savings(
        requests=len(requests),
        new=sum(request.new for request in requests),
        read=sum(request.read for request in requests),
        written=sum(request.written for request in requests),
        written_hour=sum(request.written_hour for request in requests),
        output=sum(request.output for request in requests),
        aside=sum(request.cost for request in spending.aside),
        cost=sum(request.cost for request in requests),
        saved=sum(saved),
        window=fits,
        rounds=_rounds(spending, saved),
        contexts=tuple(request.context for request in requests),
    )


def _saved_by_request(spending: Spending, full: int) -> list[float]:
    """What each request would have cost more without the compactions that left notes."""
    prices = prices_of(spending.requests)
    by_place = {boundary.requests: boundary for boundary in spending.boundaries}
    gone = 0
    """Tokens that stand in the context no more."""
    found: list[float] = [0.0] * len(spending.requests)
    for at, (previous, request) in enumerate(pairwise(spending.requests), 1):
        boundary, drop = by_place.get(at), previous.context - request.context
        rate = _write_rate(request, prices.write)
        if boundary is not None and boundary.summary:
            gone = 0
        elif boundary is not None:
            gone += max(drop, 0)
            cold = request.sent is not None and previous.ended is not None
            if cold and (request.sent or 0.0) - (previous.ended or 0.0) > prices.ttl_s:
                found[at] = rate * gone
            else:
                found[at] = prices.read * (request.context + gone) - (request.cost - request.new)
        else:
            gone = max(gone - max(drop, 0), 0)  # what the client dropped by itself may be what went before
            warm = request.read >= COLD_SHARE * min(previous.context, request.context)
            found[at] = gone * (prices.read if warm else rate)
        if gone and request.context + gone > full:
            found[at], gone = min(found[at], 0.0), 0
    return found


def _write_rate(request: Request, otherwise: float) -> float:
    """What a token that this request wrote to the cache cost."""
    written = request.written + request.written_hour
    spent = FIVE_MINUTES.write * request.written + ONE_HOUR.write * request.written_hour
    return spent / written if written else otherwise


def _rounds(spending: Spending, saved: list[float]) -> tuple[Round, ...]:
    """The rounds; a compaction behind which nothing was sent yet begins one without requests."""
    begins: list[tuple[int, Boundary | None]] = [(0, None), *((each.requests, each) for each in spending.boundaries)]
    ends = [at for at, _ in begins[1:]] + [len(spending.requests)]
    found = []
    for (start, boundary), end in zip(begins, ends, strict=True):
        inside = spending.requests[start:end]
        found.append(
            Round(
                sent=boundary.sent if boundary is not None else None,
                summary=boundary is not None and boundary.summary,
                before=spending.requests[start - 1].context if start and boundary is not None else 0,
                first=inside[0].context if inside else 0,
                last=inside[-1].context if inside else 0,
                requests=len(inside),
                recalls=sum(start < at <= end for at in spending.recalls),
                saved=sum(saved[start:end]),
            )
        )
    return tuple(found) if spending.requests or spending.boundaries else ()
