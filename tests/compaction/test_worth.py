"""When a compaction before the window is full is worth it."""

from __future__ import annotations

import pytest

from lcc.compaction.worth import (
    LEAST_CONTEXT,
    LEAST_FREED,
    LEAST_SHARE_COLD,
    PAID_BACK_IN,
    PAID_BACK_SHARE,
    Worth,
    worth_between_turns,
)
from lcc.tokens.cache_cost import FIVE_MINUTES, ONE_HOUR, Prices

LARGE = 10 * LEAST_CONTEXT
ENOUGH = round(LARGE * LEAST_SHARE_COLD) + LEAST_FREED


@pytest.mark.parametrize(
    ("context", "freed", "idle", "prices", "why"),
    [
        (LARGE, ENOUGH, 301.0, FIVE_MINUTES, "cache_cold"),
        (LARGE, ENOUGH, 299.0, FIVE_MINUTES, "frees_little"),
        (LARGE, ENOUGH, None, FIVE_MINUTES, "frees_little"),
        (LARGE, ENOUGH, 3599.0, ONE_HOUR, "frees_little"),
        (LARGE, ENOUGH, 3601.0, ONE_HOUR, "cache_cold"),
        (LEAST_CONTEXT - 1, LEAST_CONTEXT // 2, 1e6, FIVE_MINUTES, "context_small"),
        (LEAST_CONTEXT, LEAST_FREED - 1, 1e6, FIVE_MINUTES, "frees_little"),
        (LARGE, round(LARGE * LEAST_SHARE_COLD) - 1, 1e6, FIVE_MINUTES, "frees_little"),
        (LARGE, 0, 1e6, FIVE_MINUTES, "frees_little"),
    ],
)
def test_a_cold_cache(context: int, freed: int, idle: float | None, prices: Prices, why: str) -> None:
    """Where the cache has run out it is worth it as soon as the context is large enough and enough goes."""
    found = worth_between_turns(context_tokens=context, freed_tokens=freed, idle_seconds=idle, prices=prices)

    assert found.why == why
    assert found.worth_it == (why == "cache_cold")


def test_what_went_is_neither_written_nor_read_again() -> None:
    """At the next request it would have been written, at every later one read."""
    found = worth_between_turns(context_tokens=100_000, freed_tokens=50_000, idle_seconds=4000.0, prices=ONE_HOUR)

    assert found.saved_next == 100_000
    assert found.saved_each == pytest.approx(5_000)
    assert found.paid_back_in == 0


def warm(requests: int, kept: int = 0, freed: int = 60_000) -> Worth:
    return worth_between_turns(
        context_tokens=100_000, freed_tokens=freed, kept_tokens=kept, requests=requests, prices=FIVE_MINUTES
    )


def test_a_warm_cache_must_pay_itself_back() -> None:
    """40,000 tokens are written (50,000) that would have been read with the rest (10,000): 40,000 at 6,000 each."""
    found = warm(requests=1000)

    assert found.saved_next == pytest.approx(10_000 - 50_000)
    assert found.paid_back_in == pytest.approx(40_000 / 6_000)
    assert found.why == "pays_back"


def test_a_young_session_may_end_before_it_is_paid_back() -> None:
    """It must be paid back within a share of the requests that the session has had."""
    needed = warm(requests=1000).paid_back_in / PAID_BACK_SHARE

    assert warm(requests=int(needed)).why == "pays_back_late"
    assert warm(requests=int(needed) + 1).why == "pays_back"


def test_what_stands_before_the_first_change_stays_cached() -> None:
    """So the same compaction costs less where the first change comes late."""
    assert warm(requests=1000, kept=40_000).saved_next == pytest.approx(6_000)
    assert warm(requests=1, kept=40_000).paid_back_in == 0


def test_no_session_is_so_long_that_it_may_take_for_ever() -> None:
    """However many requests there were, it must be paid back after `PAID_BACK_IN`."""
    dear = worth_between_turns(
        context_tokens=400_000, freed_tokens=125_000, requests=100_000, idle_seconds=10.0, prices=ONE_HOUR
    )

    assert dear.paid_back_in > PAID_BACK_IN
    assert dear.why == "pays_back_late"
