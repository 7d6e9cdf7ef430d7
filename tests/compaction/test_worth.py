"""When a compaction before the window is full is worth it."""

from __future__ import annotations

import pytest

from lcc.compaction.worth import LEAST_CONTEXT, LEAST_FREED, LEAST_SHARE, worth_when_cold
from lcc.tokens.cache_cost import FIVE_MINUTES, ONE_HOUR, Prices

LARGE = 10 * LEAST_CONTEXT
ENOUGH = round(LARGE * LEAST_SHARE) + LEAST_FREED


@pytest.mark.parametrize(
    ("context", "freed", "idle", "prices", "why"),
    [
        (LARGE, ENOUGH, 301.0, FIVE_MINUTES, "worth_it"),
        (LARGE, ENOUGH, 299.0, FIVE_MINUTES, "cache_not_cold"),
        (LARGE, ENOUGH, 3599.0, ONE_HOUR, "cache_not_cold"),
        (LARGE, ENOUGH, 3601.0, ONE_HOUR, "worth_it"),
        (LEAST_CONTEXT - 1, LEAST_CONTEXT // 2, 1e6, FIVE_MINUTES, "context_small"),
        (LEAST_CONTEXT, LEAST_FREED - 1, 1e6, FIVE_MINUTES, "frees_little"),
        (LARGE, round(LARGE * LEAST_SHARE) - 1, 1e6, FIVE_MINUTES, "frees_little"),
        (LARGE, 0, 1e6, FIVE_MINUTES, "frees_little"),
    ],
)
def test_the_rule(context: int, freed: int, idle: float, prices: Prices, why: str) -> None:
    """A cold cache, a context that is large enough, and enough that goes."""
    found = worth_when_cold(context, freed, idle, prices)

    assert found.why == why
    assert found.worth_it == (why == "worth_it")


def test_what_went_is_neither_written_nor_read_again() -> None:
    """At the next request it would have been written, at every later one read."""
    found = worth_when_cold(100_000, 50_000, 4000.0, ONE_HOUR)

    assert found.saved_next == 100_000
    assert found.saved_each == pytest.approx(5_000)
