"""When a compaction between two turns is worth it: the prompt cache has run out, or it soon pays itself back."""

from __future__ import annotations

import pytest

from lcc.compaction.worth import (
    LEAST_CONTEXT,
    LEAST_FREED,
    LEAST_SHARE,
    LEAST_SHARE_WARM,
    PAID_BACK_IN,
    PAID_BACK_SHARE,
    PayBack,
    is_cold,
    pay_back,
    worth_when_cold,
    worth_when_warm,
)
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


def warm(kept: int = 0) -> PayBack:
    return pay_back(100_000, 60_000, kept, FIVE_MINUTES)


def test_a_warm_cache_must_pay_itself_back() -> None:
    """40,000 tokens are written (50,000) that would have been read with the rest (10,000): 40,000 at 6,000 each."""
    assert warm().saved_next == pytest.approx(10_000 - 50_000)
    assert warm().requests == pytest.approx(40_000 / 6_000)
    assert warm().is_soon(1000)


def test_a_young_session_may_end_before_it_is_paid_back() -> None:
    """It must be paid back within a share of the requests that the session has had."""
    needed = warm().requests / PAID_BACK_SHARE

    assert not warm().is_soon(int(needed))
    assert warm().is_soon(int(needed) + 1)


def test_what_stands_before_the_first_change_stays_cached() -> None:
    """So the same compaction costs less where the first change comes late."""
    assert warm(kept=40_000).saved_next == pytest.approx(6_000)
    assert warm(kept=40_000).is_soon(0)


def test_no_session_is_so_long_that_it_may_take_for_ever() -> None:
    """However many requests there were, it must be paid back after `PAID_BACK_IN`."""
    dear = pay_back(400_000, 125_000, 0, ONE_HOUR)

    assert dear.requests > PAID_BACK_IN
    assert not dear.is_soon(100_000)


@pytest.mark.parametrize(
    ("context", "freed", "requests", "why"),
    [
        (LARGE, LARGE // 2, 1000, "pays_back"),
        (LARGE, LARGE // 2, 0, "pays_late"),
        (LEAST_CONTEXT - 1, LEAST_CONTEXT // 2, 1000, "context_small"),
        (LARGE, round(LARGE * LEAST_SHARE_WARM) - 1, 1000, "frees_little"),
        (LEAST_CONTEXT, LEAST_FREED - 1, 1000, "frees_little"),
    ],
)
def test_a_warm_session_is_worth_it_where_it_soon_pays(context: int, freed: int, requests: int, why: str) -> None:
    """Large enough, a larger share than when cold, and paid back soon."""
    assert worth_when_warm(context, freed, 0, requests, FIVE_MINUTES) == why
