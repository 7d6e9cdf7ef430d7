"""Whether a compaction of a session whose prompt cache has run out is worth it: one rule, its thresholds in one place.

A compaction changes the prompt's prefix, so what stands behind the first change is written to the prompt cache again
(`lcc.tokens.cache_cost`). Where the cache has run out, everything is written again anyway: then what was removed need
not be, and the compaction saves at once. What speaks against it is that something removed may be wanted again, which
costs a request and the text, so a little is not worth it. The thresholds were chosen on half of the projects and tried
on the others: `scripts/bench_cost.py`. Pure. Tokens are the model's.
"""

from __future__ import annotations

from typing import Literal

from lcc.tokens.cache_cost import Prices

LEAST_CONTEXT = 25_000
"""Tokens in the context (the client's system prompt and tools included) from which a compaction pays."""
LEAST_FREED = 4_000
"""Tokens that must go."""
LEAST_SHARE = 0.10
"""The share of the context that must go."""

Worth = Literal["cache_cold", "context_small", "frees_little"]


def is_cold(idle_seconds: float | None, prices: Prices) -> bool:
    """Whether the prompt cache has run out, ``idle_seconds`` after the last request; unknown counts as warm."""
    return idle_seconds is not None and idle_seconds > prices.ttl_s


def worth_when_cold(context_tokens: float, freed_tokens: float) -> Worth:
    """Whether to compact (``cache_cold``) a session whose context holds so many tokens, of which so many would go."""
    if context_tokens < LEAST_CONTEXT:
        return "context_small"
    return "cache_cold" if freed_tokens >= max(LEAST_FREED, LEAST_SHARE * context_tokens) else "frees_little"
