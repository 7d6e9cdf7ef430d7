"""What a compaction costs in the prompt cache, and when it pays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import MadeSession

from lcc.tokens import TokenEstimator
from lcc.tokens.cache_cost import FEW_TURNS, ONE_HOUR, Prices, cache_cost, prefix_tokens
from lcc.transcript import Edits, Transcript


class Characters:
    """One token for each character, so that the sums can be done by hand."""

    def estimate(self, text: str, tool: str | None = None) -> int:
        return len(text)

    def estimate_chars(self, characters: int) -> int:
        return characters


def session(*sizes: int) -> Transcript:
    """A prompt of 100 characters, then a call of 12 and a result of each size."""
    made = MadeSession("p" * 100)
    for number, size in enumerate(sizes):
        made.call("Bash", {"a": "bcdef"}, "r" * size, id=f"t{number}")
    return made.transcript


class TestPrefix:
    def test_it_ends_at_the_first_change(self) -> None:
        """What stands before the first changed result is read from the cache as before."""
        transcript = session(1000, 2000, 3000)
        assert prefix_tokens(transcript, Edits({"t0": "note"}), Characters()) == 100 + 13
        assert prefix_tokens(transcript, Edits({"t1": "note"}), Characters()) == 100 + 13 + 1000 + 13

    def test_a_dropped_call_changes_its_own_message(self) -> None:
        """A call that goes is the change, not its result after it."""
        transcript = session(1000, 2000)
        assert prefix_tokens(transcript, Edits(dropped=frozenset({"t1"})), Characters()) == 100 + 13 + 1000

    def test_without_a_change_it_is_everything(self) -> None:
        """No edit, no end."""
        assert prefix_tokens(session(1000), Edits(), Characters()) == 100 + 13 + 1000


class TestCost:
    def test_a_warm_cache_is_paid_for_and_won_back(self) -> None:
        """Behind the change 3,026 tokens become 2,026: written at 1.25 where they were read at 0.1."""
        transcript = session(1000, 1000, 1000)
        edits = Edits({"t1": ""})
        cost = cache_cost(transcript, edits, Characters(), tokens_before=3139, tokens_after=2139)
        assert (cost.kept_tokens, cost.rewrite_tokens, cost.freed_tokens) == (1126, 1013, 1000)
        assert cost.next_request == pytest.approx(1.25 * 1013 - 0.1 * 2013)
        assert cost.saved_per_turn == pytest.approx(100)
        assert cost.break_even_turns == pytest.approx((1.25 * 1013 - 201.3) / 100)
        assert cost.advice == ("compact" if cost.break_even_turns <= FEW_TURNS else "wait_for_cold_cache")

    def test_a_cold_cache_makes_it_free(self) -> None:
        """After the time to live everything is written again anyway, and there is less of it."""
        edits = Edits({"t0": ""})
        cost = cache_cost(
            session(1000, 90_000), edits, Characters(), tokens_before=91_126, tokens_after=90_126, idle_seconds=301
        )
        assert cost.cold
        assert cost.next_request == pytest.approx(-1250)
        assert (cost.break_even_turns, cost.advice) == (0, "compact")

    def test_little_freed_far_back_waits(self) -> None:
        """An early change in a long session rewrites all of it: dear while the cache is warm."""
        edits = Edits({"t0": ""})
        cost = cache_cost(session(1000, 90_000), edits, Characters(), tokens_before=91_126, tokens_after=90_126)
        assert cost.break_even_turns is not None
        assert cost.break_even_turns > 100
        assert cost.advice == "wait_for_cold_cache"

    def test_nothing_freed_costs_nothing(self) -> None:
        """A pass that changes nothing leaves the cache as it is."""
        cost = cache_cost(session(1000), Edits(), Characters(), tokens_before=1113, tokens_after=1113)
        assert (cost.next_request, cost.break_even_turns, cost.advice) == (0, None, "nothing_freed")
        assert cost.rewrite_tokens == 0

    def test_a_longer_life_is_dearer_to_write(self) -> None:
        """The one-hour cache costs twice the input to write, and stays warm longer."""
        edits = Edits({"t0": ""})
        five = cache_cost(session(500, 500), edits, Characters(), tokens_before=1126, tokens_after=626)
        hour = cache_cost(
            session(500, 500),
            edits,
            Characters(),
            tokens_before=1126,
            tokens_after=626,
            idle_seconds=600,
            prices=ONE_HOUR,
        )
        assert not hour.cold
        assert hour.next_request > five.next_request

    @settings(deadline=None)
    @given(
        st.lists(st.integers(0, 5000), min_size=1, max_size=8),
        st.integers(0, 7),
        st.integers(0, 5000),
        st.one_of(st.none(), st.floats(0, 10_000)),
    )
    def test_the_parts_add_up(self, sizes: list[int], which: int, after: int, idle: float | None) -> None:
        """Kept, rewritten and freed tokens are the whole session, whatever is cut; nothing is below zero."""
        transcript = session(*sizes)
        which %= len(sizes)
        note = "n" * min(after, sizes[which])
        before = 100 + sum(13 + size for size in sizes)
        total_after = before - sizes[which] + len(note)
        edits = Edits({f"t{which}": note})
        cost = cache_cost(
            transcript, edits, Characters(), tokens_before=before, tokens_after=total_after, idle_seconds=idle
        )
        assert cost.kept_tokens + cost.rewrite_tokens + cost.freed_tokens == before
        assert min(cost.kept_tokens, cost.rewrite_tokens, cost.freed_tokens) >= 0
        assert cost.break_even_turns is None or cost.break_even_turns >= 0

    def test_it_takes_the_estimator_of_a_pass(self) -> None:
        """The report's own estimator serves, and the result goes into the report as JSON."""
        tokens = TokenEstimator()
        cost = cache_cost(session(5000, 100), Edits({"t0": "x"}), tokens, tokens_before=2500, tokens_after=300)
        assert cost.as_json()["freed_tokens"] == 2200

    def test_prices_decide(self) -> None:
        """Free caching makes every compaction pay at once."""
        edits = Edits({"t0": ""})
        free = Prices(write=0.0)
        cost = cache_cost(session(500, 500), edits, Characters(), tokens_before=1126, tokens_after=626, prices=free)
        assert cost.break_even_turns == 0
