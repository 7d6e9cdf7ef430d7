"""Whether a compaction between two turns is worth it: one rule, its thresholds in one place.

A compaction changes the prompt's prefix, so what stands behind the first change is written to the prompt cache again
(`lcc.tokens.cache_cost`). Where the cache has run out, everything is written again anyway: then what was removed need
not be, and the compaction saves at once. What speaks against it is that something removed may be wanted again, which
costs a request and the text, so a little is not worth it. While the cache is warm a compaction costs at once, and is
worth it where what it saves at each later request soon pays that back. The thresholds were chosen on half of the
projects and tried on the others: `scripts/bench_cost.py`. Pure. Tokens are the model's.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from lcc.tokens.cache_cost import Prices

LEAST_CONTEXT = 25_000
"""Tokens in the context (the client's system prompt and tools included) from which a compaction pays."""
LEAST_FREED = 4_000
"""Tokens that must go."""
LEAST_SHARE = 0.10
"""The share of the context that must go."""
LEAST_SHARE_WARM = 0.30
"""The share of it that must go while the cache is warm."""
PAID_BACK_IN = 30.0
"""While the cache is warm a compaction must have paid itself back after so many requests,"""
PAID_BACK_SHARE = 0.5
"""and after this share of as many requests as the session has had: one that is young may soon end."""

Worth = Literal["cache_cold", "pays_back", "context_small", "frees_little", "pays_late"]


class PayBack(NamedTuple):
    """What a compaction while the cache is warm comes to, in tokens at the plain input price."""

    saved_next: float
    """At the next request (below 0: what it costs there)."""
    saved_each: float
    """At each later one."""

    @property
    def requests(self) -> float:
        """After how many requests behind the next one it has paid itself back; 0 where it saves at once."""
        return max(-self.saved_next, 0.0) / self.saved_each if self.saved_each else math.inf

    def is_soon(self, requests: int) -> bool:
        """Whether that is soon enough in a session that has had so many requests."""
        return self.requests <= min(PAID_BACK_IN, PAID_BACK_SHARE * requests)


def pay_back(context_tokens: float, freed_tokens: float, kept_tokens: float, prices: Prices) -> PayBack:
    """``kept_tokens`` stand before the first change and stay cached."""
    behind = max(context_tokens - kept_tokens, 0.0)
    return PayBack(
        prices.read * behind - prices.write * max(behind - freed_tokens, 0.0),
        prices.read * freed_tokens,
    )


def is_cold(idle_seconds: float | None, prices: Prices) -> bool:
    """Whether the prompt cache has run out, ``idle_seconds`` after the last request; unknown counts as warm."""
    return idle_seconds is not None and idle_seconds > prices.ttl_s


def worth_when_cold(context_tokens: float, freed_tokens: float) -> Worth:
    """Whether to compact (``cache_cold``) a session whose context holds so many tokens, of which so many would go."""
    if context_tokens < LEAST_CONTEXT:
        return "context_small"
    return "cache_cold" if freed_tokens >= max(LEAST_FREED, LEAST_SHARE * context_tokens) else "frees_little"


def worth_when_warm(
    context_tokens: float, freed_tokens: float, kept_tokens: float, requests: int, prices: Prices
) -> Worth:
    """Whether to compact (``pays_back``) while the cache lives.

    ``kept_tokens`` stand before the first change and stay cached; the session has had so many ``requests``.
    """
    if context_tokens < LEAST_CONTEXT:
        return "context_small"
    if freed_tokens < max(LEAST_FREED, LEAST_SHARE_WARM * context_tokens):
        return "frees_little"
    soon = pay_back(context_tokens, freed_tokens, kept_tokens, prices).is_soon(requests)
    return "pays_back" if soon else "pays_late"
