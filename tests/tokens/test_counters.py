"""Counters: what a count is, what a budget may trust, and what happens without a vocabulary."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc.tokens import (
    HeuristicCounter,
    TokenCache,
    TokenEstimator,
    budget_counter,
    counter,
    exact,
    heuristic_counter,
    vocabulary,
)
from lcc.tokens.calibration import Calibration
from lcc.tokens.counters import _best
from lcc.tokens.families import FAMILIES, family_of
from lcc.tokens.vocabulary import RUN, pieces, run_counter

OLDER = "claude-opus-4-5-20251101"
NEWER = "claude-sonnet-5"
CODE = "def parse(text: str) -> Node:\n    return Parser(text).run()\n" * 20


class TestFamilies:
    @pytest.mark.parametrize(
        ("model", "family"),
        [
            ("claude-3-5-sonnet-20241022", "older"),
            ("claude-3-opus-20240229", "older"),
            ("claude-sonnet-4-20250514", "older"),
            ("claude-opus-4-5-20251101", "older"),
            ("claude-opus-4-6", "older"),
            ("us.anthropic.claude-opus-4-1-20250805-v1:0", "older"),
            ("claude-opus-4-7", "newer"),
            ("claude-opus-4-8", "newer"),
            ("claude-sonnet-5", "newer"),
            ("claude-fable-5-20260301", "newer"),
            ("some-other-model", "newer"),
            (None, "newer"),
        ],
    )
    def test_a_model_id_names_its_family(self, model: str | None, family: str) -> None:
        """Models from 4.7 on share the newer vocabulary; what cannot be placed counts as newest."""
        assert family_of(model).name == family


class TestCounter:
    def test_newer_models_need_more_tokens_for_the_same_code(self) -> None:
        """The newer vocabulary spells what the older one knows as a word."""
        assert counter(NEWER).count(CODE) > 1.1 * counter(OLDER).count(CODE)

    def test_the_same_counter_comes_back_for_the_same_family(self) -> None:
        """Loading a vocabulary happens once a process."""
        assert counter(NEWER) is counter("claude-opus-4-8")

    def test_a_count_repeats_and_adds_up_over_lines(self) -> None:
        """Counting again, or the lines apart, gives the same sum: runs do not depend on what is near."""
        lines = CODE.splitlines(keepends=True)
        whole = counter(NEWER).count(CODE)
        assert counter(NEWER).count(CODE) == whole
        assert sum(map(counter(NEWER).count, lines)) == pytest.approx(whole, rel=0.05)

    def test_nothing_is_no_tokens(self) -> None:
        """An empty text costs nothing with any counter."""
        for made in (counter(), budget_counter(), heuristic_counter()):
            assert made.count("") == 0

    @settings(deadline=None)
    @given(st.text(max_size=300))
    def test_any_text_can_be_counted(self, text: str) -> None:
        """Lone surrogates, controls and every script give a number, never an error."""
        assert counter(NEWER).count(text) >= 0
        assert budget_counter(OLDER).count(text) >= counter(OLDER).count(text) >= 0
        assert counter(NEWER).count("\ud800 \udfff" + text) > 0

    def test_threads_agree(self) -> None:
        """One counter serves several threads at once."""
        texts = [f"{CODE}{number} value_{number}" for number in range(50)]
        expected = [counter(NEWER).count(text) for text in texts]
        _best.cache_clear()
        found: list[list[int]] = []
        threads = [
            threading.Thread(target=lambda: found.append([counter(NEWER).count(text) for text in texts]))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 4

    def test_a_large_text_is_counted_in_pieces(self) -> None:
        """A text of megabytes counts as its parts do."""
        line = "const answer = compute(input, 42);\n"
        assert counter(NEWER).count(line * 60_000) == pytest.approx(60_000 * counter(NEWER).count(line), rel=0.1)


class TestBudgets:
    def test_a_budget_is_above_the_plain_count(self) -> None:
        """The seed's section 9: what may be too low for one text must not build a request that is refused."""
        assert budget_counter(NEWER).count(CODE) > counter(NEWER).count(CODE)
        assert budget_counter(NEWER).method != counter(NEWER).method

    def test_without_a_vocabulary_the_heuristic_is_inflated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No tokenizer: the plain counter guesses and says so, the budget's guess is well above it."""

        def missing(_: object) -> None:
            raise ImportError("tokenizers")

        monkeypatch.setattr(exact, "run_counter", lambda _: None)
        monkeypatch.setattr(vocabulary, "load", missing)
        _best.cache_clear()
        try:
            plain, budget = counter(NEWER), budget_counter(NEWER)
            assert isinstance(plain, HeuristicCounter)
            assert plain.method.startswith("~")
            assert budget.method.startswith("~")
            assert budget.count(CODE) > 1.5 * plain.count(CODE)
        finally:
            _best.cache_clear()


class TestRuns:
    @settings(deadline=None)
    @given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
    def test_runs_are_the_whole_text(self, text: str) -> None:
        """Cutting a text into runs loses and doubles nothing."""
        assert "".join(RUN.findall(text)) == text

    @pytest.mark.parametrize(
        ("run", "newer"),
        [
            ("1234567", ["1", "234", "567"]),
            ("word ", ["word"]),
            ("Title", ["Title"]),
            ("fooBar", ["foo", "B", "ar"]),
            ("  \t\t ", ["  ", "\t\t", " "]),
            ("): ", ["):"]),
        ],
    )
    def test_what_is_encoded_of_a_run(self, run: str, newer: list[str]) -> None:
        """Digits go in threes from the right, a seam's space is free, inner capitals stand alone."""
        assert pieces(run, FAMILIES["newer"]) == newer

    def test_common_words_are_one_token(self) -> None:
        """The shipped vocabularies know everyday words of code and English."""
        for family in FAMILIES.values():
            count = run_counter(family)
            for word in ("the ", "return ", "import ", "def ", "const "):
                assert 0.8 <= count(word) <= 1.3, (family.name, word)


class TestCache:
    def test_a_full_cache_lets_the_oldest_half_go(self) -> None:
        """The cache stays within its size and keeps the newest counts."""
        cache = TokenCache(10)
        for number in range(25):
            cache.put(f"text {number}", number)
        assert len(cache) <= 10
        assert cache.get("text 24") == 24
        assert cache.get("text 0") is None

    def test_warming_counts_each_text_once(self) -> None:
        """What is known is not counted again."""
        cache = TokenCache()
        assert cache.warm(["a b", "c d", "a b"], counter()) == 2
        assert cache.warm(["a b"], counter()) == 0
        assert cache.get("c d") == counter().count("c d")

    def test_a_size_below_one_is_refused(self) -> None:
        """A cache that could hold nothing is a mistake of the caller."""
        with pytest.raises(ValueError, match="size"):
            TokenCache(0)


class TestEstimator:
    def test_what_is_not_counted_is_estimated_and_marked(self) -> None:
        """A guess carries the mark in the method."""
        estimator = TokenEstimator()
        assert estimator.estimate(CODE, "Read") > 0
        assert estimator.method.startswith("~")

    def test_counted_texts_are_exact_and_unmarked(self) -> None:
        """With a warm cache the count of the vocabulary is used."""
        cache = TokenCache()
        cache.warm([CODE], counter())
        estimator = TokenEstimator(cache)
        assert estimator.estimate(CODE, "Read") == counter().count(CODE)
        assert not estimator.method.startswith("~")
        estimator.estimate("something new", None)
        assert estimator.method.startswith("~")

    def test_an_estimate_is_near_the_count(self) -> None:
        """Code as the Read tool shows it is estimated within a third."""
        text = "".join(f"{number}\t{line}" for number, line in enumerate(CODE.splitlines(keepends=True), 1))
        for model in (OLDER, NEWER):
            assert TokenEstimator(model=model).estimate(text, "Read") == pytest.approx(
                counter(model).count(text), rel=0.34
            )

    def test_calibration_scales_estimates_and_counts_alike(self) -> None:
        """A session whose tokens are a quarter more gets a quarter more, and the method says why."""
        cache = TokenCache()
        cache.warm([CODE], counter())
        calibration = Calibration(1.25, 24.0, "usage")
        estimator = TokenEstimator(cache, calibration)
        assert estimator.estimate(CODE) == round(1.25 * counter().count(CODE))
        assert "usage" in estimator.method
        plain, scaled = TokenEstimator(), TokenEstimator(calibration=calibration)
        assert scaled.estimate("x" * 1000, "Bash") == pytest.approx(1.25 * plain.estimate("x" * 1000, "Bash"), rel=0.01)

    def test_totals_are_the_sum(self) -> None:
        """A total is its texts' estimates added up."""
        texts = [(CODE, "Read"), ("hello there", None), ("", "Bash")]
        estimator = TokenEstimator()
        assert estimator.total(texts) == sum(estimator.estimate(text, tool) for text, tool in texts)
