"""Whether a compaction before the window is full is worth it: one rule, its thresholds in one place.

A compaction changes the prompt's prefix, so what stands behind the first change is written to the prompt cache again
(`lcc.tokens.cache_cost`). Where the cache has run out, everything is written again anyway: then what was removed need
not be, and the compaction saves at once. While the cache is warm it costs at the next request and saves at each later
one. How many will follow nobody knows, but a session that has had many requests mostly has many before it: it is worth
it where it pays itself back within a part of what the session has had already.

What speaks against it is that something removed may be wanted again, which costs a request and the text, so a little
is not worth it. The thresholds were chosen on half of the projects and tried on the others: `scripts/bench_cost.py`.
Pure. Tokens are the model's; costs are in tokens at the plain input price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lcc.tokens.cache_cost import Prices

LEAST_CONTEXT = 25_000
"""Tokens in the context (the client's system prompt and tools included) from which a compaction pays."""
LEAST_FREED = 4_000
"""Tokens that must go."""
LEAST_SHARE_COLD = 0.10
"""The share of the context that must go where the cache has run out."""
LEAST_SHARE_WARM = 0.30
"""The share that must go while the cache is warm."""
PAID_BACK_IN = 30.0
"""While the cache is warm it must have paid itself back after so many requests,"""
PAID_BACK_SHARE = 0.5
"""and after this share of as many requests as the session has had."""

Why = Literal["cache_cold", "pays_back", "context_small", "frees_little", "pays_back_late"]


@dataclass(frozen=True, slots=True)
class Worth:
    """The answer. ``saved_next`` is what the compaction saves at the next request (below 0: what it costs there),
    ``saved_each`` what it saves at each later one."""

    why: Why
    saved_next: float
    saved_each: float

    @property
    def worth_it(self) -> bool:
        """Whether to compact."""
        return self.why in ("cache_cold", "pays_back")

    @property
    def paid_back_in(self) -> float:
        """After how many requests behind the next one it has paid itself back; 0 where it saves at once."""
        return max(-self.saved_next, 0.0) / self.saved_each if self.saved_each else float("inf")


def is_cold(idle_seconds: float | None, prices: Prices) -> bool:
    """Whether the prompt cache has run out, ``idle_seconds`` after the last request; unknown counts as warm."""
    return idle_seconds is not None and idle_seconds > prices.ttl_s


def worth_between_turns(
    *,
    context_tokens: float,
    freed_tokens: float,
    kept_tokens: float = 0.0,
    requests: int = 0,
    idle_seconds: float | None = None,
    prices: Prices,
) -> Worth:
    """Whether to compact a session that is between two turns.

    Its context holds ``context_tokens`` (the true figure), of which ``freed_tokens`` would go; ``kept_tokens`` stand
    before the first change and stay cached. The first request's context is a good figure for them, since all behind
    the client's system prompt and tools may change; 0, the dearest case, where it is not known. ``requests`` is how
    many the session has had, ``idle_seconds`` how long ago the last one was, ``prices`` those of its own cache
    entries: for five minutes, or for an hour where its usage shows such writes (`lcc.tokens.requests.prices_of`).
    """
    saved_each = prices.read * freed_tokens
    cold = is_cold(idle_seconds, prices)
    if cold:
        saved_next = prices.write * freed_tokens
    else:
        behind = max(context_tokens - kept_tokens, 0.0)
        saved_next = prices.read * behind - prices.write * max(behind - freed_tokens, 0.0)
    found = Worth("cache_cold" if cold else "pays_back", saved_next, saved_each)
    if context_tokens < LEAST_CONTEXT:
        return Worth("context_small", saved_next, saved_each)
    if freed_tokens < max(LEAST_FREED, (LEAST_SHARE_COLD if cold else LEAST_SHARE_WARM) * context_tokens):
        return Worth("frees_little", saved_next, saved_each)
    if found.paid_back_in > min(PAID_BACK_IN, PAID_BACK_SHARE * requests):
        return Worth("pays_back_late", saved_next, saved_each)
    return found
