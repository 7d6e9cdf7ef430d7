"""When a compaction of a session whose prompt cache has run out is worth it."""

from __future__ import annotations

import pytest

from lcc.compaction.worth import LEAST_CONTEXT, LEAST_FREED, LEAST_SHARE, is_cold, worth_when_cold
from lcc.tokens.cache_cost import FIVE_MINUTES, ONE_HOUR, Prices

LARGE = 10 * LEAST_CONTEXT
ENOUGH = round(LARGE * LEAST_SHARE) + LEAST_FREED


@pytest.mark.parametrize(
    ("idle", "prices", "cold"),
    [
        (301.0, FIVE_MINUTES, True),
        (299.0, FIVE_MINUTES, False),
        (None, FIVE_MINUTES, False),
        (3599.0, ONE_HOUR, False),
        (3601.0, ONE_HOUR, True),
    ],
)
def test_a_cache_is_cold_after_its_life(idle: float | None, prices: Prices, cold: bool) -> None:
    """Five minutes or an hour after the last request; unknown counts as warm."""
    assert is_cold(idle, prices) is cold


@pytest.mark.parametrize(
    ("context", "freed", "why"),
    [
        (LARGE, ENOUGH, "cache_cold"),
        (LEAST_CONTEXT - 1, LEAST_CONTEXT // 2, "context_small"),
        (LEAST_CONTEXT, LEAST_FREED - 1, "frees_little"),
        (LARGE, round(LARGE * LEAST_SHARE) - 1, "frees_little"),
        (LARGE, 0, "frees_little"),
    ],
)
def test_a_cold_session_is_worth_it_where_enough_goes(context: int, freed: int, why: str) -> None:
    """It is worth it as soon as the context is large enough and enough of it goes."""
    assert worth_when_cold(context, freed) == why
