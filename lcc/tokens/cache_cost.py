"""What a compaction costs in the prompt cache, against what it saves afterwards.

Providers cache a request's prefix. A change writes everything behind it to the cache again, at more than the
price of plain input; without the change all of it would have been read at a fraction of that price. So a
compaction costs at the next request and saves at each one after it, and whether it pays is a matter of how many
follow. When the cache has gone cold in the meantime, everything is written again anyway, and a compaction saves
at once. Pure: it is given the transcript, the edits and a way to count.

Costs are in units of one token at the plain input price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from lcc.contract.record import input_chars

if TYPE_CHECKING:
    from lcc.contract.report import CacheCostRecord
    from lcc.transcript import Edits, Message, Transcript

Advice = Literal["compact", "wait_for_cold_cache", "nothing_freed"]

FEW_TURNS = 10.0
"""A compaction that pays for itself within so many requests is not worth waiting for a cold cache."""


class Estimates(Protocol):
    """What is needed of ``lcc.tokens.TokenEstimator``."""

    def estimate(self, text: str, tool: str | None = None) -> int: ...

    def estimate_chars(self, characters: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Prices:
    """What caching costs, as multiples of the plain input price, and how long an unused entry lives (seconds)."""

    write: float = 1.25
    read: float = 0.1
    ttl_s: float = 300.0


FIVE_MINUTES = Prices()
ONE_HOUR = Prices(write=2.0, ttl_s=3600.0)


@dataclass(frozen=True, slots=True)
class CacheCost:
    """``kept_tokens`` stand before the first change and stay cached; ``rewrite_tokens`` stand behind it after the
    compaction and are written again; ``freed_tokens`` are gone.

    ``next_request`` is what the compaction adds to the next request's cost (negative: it saves at once),
    ``saved_per_turn`` what it saves at each later one. ``break_even_turns`` is how many later requests pay it back:
    0 at once, None where nothing was freed.
    """

    kept_tokens: int
    rewrite_tokens: int
    freed_tokens: int
    cold: bool
    next_request: float
    saved_per_turn: float
    break_even_turns: float | None
    advice: Advice

    def as_json(self) -> CacheCostRecord:
        """The report's ``cache_cost``."""
        return {
            "kept_tokens": self.kept_tokens,
            "rewrite_tokens": self.rewrite_tokens,
            "freed_tokens": self.freed_tokens,
            "cold": self.cold,
            "next_request": round(self.next_request, 1),
            "saved_per_turn": round(self.saved_per_turn, 1),
            "break_even_turns": None if self.break_even_turns is None else round(self.break_even_turns, 1),
            "advice": self.advice,
        }


def cache_cost(
    transcript: Transcript,
    edits: Edits,
    tokens: Estimates,
    *,
    tokens_before: int,
    tokens_after: int,
    idle_seconds: float | None = None,
    prices: Prices = FIVE_MINUTES,
) -> CacheCost:
    """The cost of ``edits``. ``tokens_before`` and ``tokens_after`` are the report's, counted by ``tokens``.

    ``idle_seconds`` is how long ago the last request was, where that is known; unknown counts as warm, which is
    the dearer case. Linear in the messages before the first change.
    """
    freed = max(tokens_before - tokens_after, 0)
    kept = min(prefix_tokens(transcript, edits, tokens) if edits else tokens_before, tokens_before)
    behind_before = tokens_before - kept
    behind_after = max(behind_before - freed, 0)
    cold = idle_seconds is not None and idle_seconds > prices.ttl_s
    if cold:
        next_request = -prices.write * freed
    else:
        next_request = prices.write * behind_after - prices.read * behind_before if freed else 0.0
    saved = prices.read * freed
    turns = None if not freed else max(next_request, 0.0) / saved
    return CacheCost(kept, behind_after, freed, cold, next_request, saved, turns, _advice(turns))


def _advice(turns: float | None) -> Advice:
    if turns is None:
        return "nothing_freed"
    return "compact" if turns <= FEW_TURNS else "wait_for_cold_cache"


def prefix_tokens(transcript: Transcript, edits: Edits, tokens: Estimates) -> int:
    """The tokens of the messages before the first one that ``edits`` changes."""
    tools: dict[str, str] = {}
    total = 0
    for message in transcript.messages:
        if _changes(message, edits):
            return total
        total += tokens.estimate(message.text)
        for use in message.tool_uses:
            tools[use.id] = use.tool
            total += tokens.estimate_chars(input_chars(use.input))
        for result in message.tool_results:
            total += tokens.estimate(result.text, tools.get(result.tool_use_id))
    return total


def _changes(message: Message, edits: Edits) -> bool:
    return any(use.id in edits.dropped for use in message.tool_uses) or any(
        result.tool_use_id in edits.texts or result.tool_use_id in edits.dropped for result in message.tool_results
    )
