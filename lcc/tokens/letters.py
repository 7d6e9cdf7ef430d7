"""What a word in Latin letters costs, whatever its language: weights for each pair of neighbouring letters.

The shipped vocabularies know English and code, and would spell a word of Welsh or Kabyle in pieces that the models do
not have. Which letters stand beside each other tells how much of a language is in the models' vocabularies. The
weights in letters.txt are hundredths of a token, measured by least squares against exact counts over translated
messages of free programs in 57 languages, some of them decomposed (NFD), and four short texts of our own; languages
that came out badly were given more weight (``scripts/fit_letters.py``). The sums are held against exact counts by
``scripts/bench_tokens.py --languages``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import Final

LETTERS_HEADER: Final = "#lcc-letters 1 "
START: Final = "^"
END: Final = "$"

_CLASSES: Final = (
    ("4", "\u0300-\u036f"),
    (
        "5",
        "\u1e00-\u1e9f\u0108-\u010b\u011c\u011d\u0120\u0121\u0124-\u0127\u0134\u0135\u0149-\u014b\u015c\u015d\u016c\u016d"
        "\u0174-\u0177\u0180-\u019f\u01a2-\u01ae\u01b1-\u02af",
    ),
    ("3", "\u0110\u0111\u01a0\u01a1\u01af\u01b0\u1e00-\u1eff"),
    ("1", "\u00c0-\u00cf\u00d1-\u00d6\u00d8-\u00dc\u00df-\u00ef\u00f1-\u00f6\u00f8-\u00fc"),
    ("2", "\u0080-\U0010ffff"),
)
"""Letters beyond a to z, the first class that fits: accents alone, rare ones, Vietnamese, western Europe, others."""
_CLASS: Final = re.compile("|".join(f"(?P<c{name}>[{characters}])" for name, characters in _CLASSES))


def classes_of(word: str) -> str:
    """``word`` with its letters as the weights name them: a to z, and a digit for the class of any other."""
    small = (
        word.lower() if word.isascii() else "".join(letter.lower() if letter.isascii() else letter for letter in word)
    )
    return small if small.isascii() else _CLASS.sub(lambda found: (found.lastgroup or "c2")[1], small)


def tokens_of_word(word: str, weights: Mapping[str, float]) -> float:
    """The tokens of a word of Latin letters: a token at least."""
    pairs = pairwise(f"{START}{classes_of(word)}{END}")
    return max(1.0, sum(weights[before + after] for before, after in pairs))


@lru_cache(maxsize=2)
def load_weights(family: str) -> dict[str, float]:
    """The weights of a family of models by pair of letters, in tokens. Raises OSError."""
    header, *lines = resources.files("lcc.tokens").joinpath("letters.txt").read_text(encoding="utf-8").splitlines()
    letters = header.removeprefix(LETTERS_HEADER)
    return {
        before + after: int(weight) / 100
        for name, before, *row in map(str.split, lines)
        if name == family
        for after, weight in zip(letters[1:], row, strict=True)
    }
