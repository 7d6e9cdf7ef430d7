"""Whether a compaction before the window is full is worth it: one rule, its thresholds in one place.

A compaction changes the prompt's prefix, so what stands behind the first change is written to the prompt cache again
(`lcc.tokens.cache_cost`). Where the cache has run out, everything is written again anyway: then what was removed need
not be, and the compaction saves at once. What speaks against it is that something removed may be wanted again, which
costs a request and the text; so little is not worth it, and a small context is not. The thresholds are measured:
`scripts/bench_cost.py`. Pure. Tokens are the model's; costs are in tokens at the plain input price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lcc.tokens.cache_cost import Prices

LEAST_CONTEXT = 25_000
"""Tokens in the context (the client's system prompt and tools included) from which a compaction pays."""
LEAST_FREED = 4_000
"""Tokens that must go."""
LEAST_SHARE = 0.10
"""The share of the context that must go."""

Why = Literal["worth_it", "cache_not_cold", "context_small", "frees_little"]


@dataclass(frozen=True, slots=True)
class Worth:
    """The answer. ``saved_next`` is what the compaction saves at the next request, ``saved_each`` at each later one."""

    why: Why
    saved_next: float
    saved_each: float

    @property
    def worth_it(self) -> bool:
        """Whether to compact."""
        return self.why == "worth_it"


def is_cold(idle_seconds: float, prices: Prices) -> bool:
    """Whether the prompt cache has run out, ``idle_seconds`` after the last request was sent."""
    return idle_seconds > prices.ttl_s


def worth_when_cold(context_tokens: int, freed_tokens: int, idle_seconds: float, prices: Prices) -> Worth:
    """Whether to compact an idle session whose context holds ``context_tokens`` and would lose ``freed_tokens``.

    ``prices`` are those of the session's own cache entries: five minutes, or one hour where its usage shows writes
    for an hour.
    """
    saved_next, saved_each = prices.write * freed_tokens, prices.read * freed_tokens
    if not is_cold(idle_seconds, prices):
        return Worth("cache_not_cold", 0.0, saved_each)
    if context_tokens < LEAST_CONTEXT:
        return Worth("context_small", saved_next, saved_each)
    if freed_tokens < max(LEAST_FREED, LEAST_SHARE * context_tokens):
        return Worth("frees_little", saved_next, saved_each)
    return Worth("worth_it", saved_next, saved_each)
