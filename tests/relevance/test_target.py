"""How far a context is to come down (`target`), which rung that takes, and what the ladder does without a stash."""

from __future__ import annotations

import pytest

from lcc.contract.options import PassOptions
from lcc.relevance.ladder import Load, load_of, on_rung
from lcc.relevance.ports import Ports
from lcc.tokens import TokenEstimator
from lcc.transcript import Json, parse_payload

TEXT = "word " * 2000
MESSAGES: list[Json] = [
    {"role": "user", "text": "go"},
    {"role": "assistant", "toolUses": [{"tool_use_id": "a", "tool": "Bash", "input": {"command": "x"}}]},
    {"role": "user", "toolResults": [{"tool_use_id": "a", "text": TEXT}]},
]
TOTAL = len("go") + len('{"command":"x"}') + len(TEXT)


def load(target: float | None, **ports: int) -> Load:
    options = PassOptions(provider="rules", rules_mode="auto", target=target)
    return load_of(parse_payload(MESSAGES).messages, options, Ports(**ports), TokenEstimator())  # type: ignore[arg-type]


def test_without_a_target_nothing_is_asked_to_go() -> None:
    assert load(None) == Load(TOTAL, None)


def test_a_target_in_tokens_is_held_against_what_the_client_counts() -> None:
    assert load(2500, context_tokens=10_000) == Load(TOTAL, round(TOTAL * 0.75))
    assert load(20_000, context_tokens=10_000) == Load(TOTAL, 0)


def test_a_share_is_of_the_window_and_needs_one() -> None:
    assert load(0.25, context_tokens=10_000, window_tokens=20_000) == Load(TOTAL, round(TOTAL * 0.5))
    assert load(0.25, context_tokens=10_000) == Load(TOTAL, None)


def test_tokens_that_nobody_counted_are_estimated() -> None:
    tokens = TokenEstimator().estimate_chars(TOTAL)
    assert load(tokens / 2) == Load(TOTAL, round(TOTAL * 0.5))


def test_the_next_rung_is_climbed_as_far_as_is_asked() -> None:
    assert Load(1000, 400).still_to_free(100, 0.25) == 300
    assert Load(1000, 400).still_to_free(400, 0.25) is None
    assert Load(1000, None).still_to_free(249, 0.25) == 1000
    assert Load(1000, None).still_to_free(250, 0.25) is None


@pytest.mark.parametrize(
    ("stash", "can_recall", "rung"),
    [(True, True, "stashed"), (False, True, "recoverable"), (True, False, "recoverable")],
)
def test_without_a_stash_or_a_way_to_recall_it_is_recoverable(stash: bool, can_recall: bool, rung: str) -> None:
    options = PassOptions(provider="rules", rules_mode="auto", stash=stash)
    assert on_rung(options, Ports(can_recall=can_recall)).rules_mode == rung


def test_a_mode_that_was_named_is_no_ladder() -> None:
    options = PassOptions(provider="rules", rules_mode="stashed", stash=False)
    assert on_rung(options, Ports(can_recall=False)) is options
