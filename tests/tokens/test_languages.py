"""Every script is counted near the truth: texts in many languages, code and logs, with their exact counts."""

from __future__ import annotations

import json
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest

from lcc.judge.plan import Limits, plan_requests
from lcc.relevance.evidence.pins import pin_reasons
from lcc.tokens import RunCounter, budget_counter, exact
from lcc.tokens.counters import VOCABULARY_BUDGET_FACTOR
from lcc.tokens.families import FAMILIES, FamilyName
from lcc.tokens.letters import load_weights, tokens_of_word
from lcc.tokens.scripts import RATES
from lcc.tokens.vocabulary import run_counter
from lcc.transcript import parse_payload

TEXTS = json.loads(Path(__file__).with_name("languages.json").read_text(encoding="utf-8"))
DECOMPOSED = {"older": 89, "newer": 126}
"""The exact counts of the Polish text, decomposed."""
COUNTERS = {
    name: RunCounter(run_counter(family), method="", factor=VOCABULARY_BUDGET_FACTOR)
    for name, family in FAMILIES.items()
}


@pytest.mark.parametrize("family", ["older", "newer"])
@pytest.mark.parametrize("language", TEXTS)
def test_a_budget_is_never_under_and_at_most_a_third_over(language: str, family: FamilyName) -> None:
    """The shipped vocabulary's count for a budget, over the exact count: 1.0 to 1.35 for every text."""
    known = TEXTS[language]
    assert 1.0 <= COUNTERS[family].count(known["text"]) / known[family] <= 1.35


@pytest.mark.parametrize("family", ["older", "newer"])
@pytest.mark.parametrize("text", ["\u13a0\u13d4 ", "\u182e\u1823 ", "\u2c00\u2c13\u2c30 ", "\U00012000"])
def test_a_script_that_nobody_measured_is_counted_in_bytes(text: str, family: FamilyName) -> None:
    """Cherokee, Mongolian, Glagolitic, cuneiform: at least a token for each character, never a guess below."""
    assert COUNTERS[family].count(text * 50) >= 50 * len(text.strip())


def test_every_pair_of_letters_has_a_weight() -> None:
    """Any word is counted: capitals, letters of every alphabet, accents of their own, half of a pair."""
    for family in FAMILIES:
        weights = load_weights(family)
        for word in ("Aé", "ŵyẹ́ɛ\u02bb", "\u0130x", "a\ud800b", "\u0301", "ßŒ", "K\u212a"):
            assert tokens_of_word(word, weights) >= 1


def test_a_word_costs_the_same_in_either_case() -> None:
    weights = load_weights("newer")
    assert tokens_of_word("ŁÓDŹ", weights) == tokens_of_word("łódź", weights)


def test_a_text_with_its_accents_apart_is_not_counted_under() -> None:
    """Decomposed letters (NFD), as some file systems write names: exact counts by ctok."""
    text = unicodedata.normalize("NFD", TEXTS["Polish"]["text"])
    assert 1.0 <= COUNTERS["newer"].count(text) / DECOMPOSED["newer"] <= 1.35
    assert 1.0 <= COUNTERS["older"].count(text) / DECOMPOSED["older"] <= 1.35


def test_the_scripts_have_no_character_in_common() -> None:
    """A character has one rate."""
    from lcc.tokens.scripts import _RANGES

    assert len(_RANGES) >= len(RATES)
    assert all(before[1] < after[0] for before, after in pairwise(_RANGES))


def test_random_letters_are_no_language() -> None:
    """What cannot be spoken, such as a key, is counted as it is spelled: more than a word of its length."""
    word, key = "anderungen", "xkqzvwgthb"
    assert COUNTERS["newer"].count(f"{key} " * 40) > 1.3 * COUNTERS["newer"].count(f"{word} " * 40)


@pytest.mark.parametrize("language", ["Chinese", "Russian", "Hindi", "Japanese"])
def test_a_session_in_another_language_can_be_judged(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 160 messages with long words fit into the usual budget at the first stage."""
    monkeypatch.setattr(exact, "run_counter", lambda _: None)
    messages: list[object] = []
    for number in range(80):
        use = {"tool_use_id": f"t{number}", "tool": "Bash", "input": {"command": "pytest -q"}}
        messages.append({"role": "assistant", "text": TEXTS[language]["text"], "toolUses": [use]})
        messages.append({"role": "user", "toolResults": [{"tool_use_id": f"t{number}", "text": "1 failed"}]})
    transcript = parse_payload({"messages": messages})  # type: ignore[dict-item]
    pairs = list(transcript.pairs())
    pins = pin_reasons(pairs, len(transcript.messages), 6)
    asked = [pair for pair in pairs if pair.use.id not in pins]
    plan = plan_requests(
        transcript, asked, pins, goal="", model="m", limits=Limits(25000, 30000, 8, 6), counter=budget_counter()
    )
    assert plan.state.stage == "full"
