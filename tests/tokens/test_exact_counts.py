"""The exact counts in languages.json are ctok's. Collected where ctok is installed: Python 3.12 and later."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from lcc.tokens.families import FAMILIES

TEXTS = json.loads(Path(__file__).with_name("languages.json").read_text(encoding="utf-8"))
WORDS_AROUND = {"3.0": 7, "4.8": 6}
"""What ctok adds to a text for the message around it, by the vocabulary's version."""


@pytest.mark.parametrize("language", TEXTS)
def test_the_exact_counts_are_ctoks(language: str) -> None:
    count, known = import_module("ctok").token_count, TEXTS[language]
    for family in FAMILIES.values():
        found = count(known["text"], family.exact_version) - WORDS_AROUND[family.exact_version]
        assert found == known[family.name]
