"""What letters beyond English cost: measured rates for scripts and for Latin words with accents.

The shipped vocabularies know English and code. Every other script would be spelled in bytes, which counts two to
six times too much. Both families of models spell these scripts alike, so a stretch of one script costs a start and
a rate for each character; ``scripts/bench_tokens.py --languages`` holds the sums against exact counts. A script that is
not in the table is spelled in bytes, which is never too little.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple


class Rate(NamedTuple):
    """Tokens for each stretch of a script, and for each of its characters."""

    start: float
    character: float


RATES: dict[str, tuple[str, Rate]] = {
    "greek": ("\u0370-\u03ff\u1f00-\u1fff", Rate(0.75, 0.7)),
    "cyrillic": ("\u0410-\u044f\u0401\u0451", Rate(0.78, 0.33)),
    "slavic": ("\u0402-\u040d\u040f\u0452-\u045d\u045f\u0490-\u0491", Rate(0.78, 0.8)),
    # These letters are few in a text, and stand for all that costs more in the languages that have them.
    "turkic": ("\u040e\u045e\u0460-\u048f\u0492-\u052f", Rate(0.78, 3.27)),
    "armenian": ("\u0530-\u058f", Rate(2.01, 0.57)),
    "hebrew": ("\u0590-\u05ff", Rate(0.13, 0.79)),
    "arabic": ("\u0600-\u065f", Rate(0.0, 0.81)),
    "persian": ("\u0660-\u06ff\u0750-\u077f", Rate(0.0, 1.0)),
    "devanagari": ("\u0900-\u097f", Rate(0.0, 0.92)),
    "bengali": ("\u0980-\u09ff", Rate(0.0, 1.07)),
    "gurmukhi": ("\u0a00-\u0a7f", Rate(1.74, 2.09)),
    "gujarati": ("\u0a80-\u0aff", Rate(0.1, 1.13)),
    "oriya": ("\u0b00-\u0b7f", Rate(0.3, 1.85)),
    "tamil": ("\u0b80-\u0bff", Rate(0.74, 0.91)),
    "telugu": ("\u0c00-\u0c7f", Rate(0.0, 1.06)),
    "kannada": ("\u0c80-\u0cff", Rate(1.98, 1.75)),
    "malayalam": ("\u0d00-\u0d7f", Rate(0.78, 1.19)),
    "sinhala": ("\u0d80-\u0dff", Rate(0.67, 1.0)),
    "thai": ("\u0e00-\u0e7f", Rate(0.51, 0.99)),
    "lao": ("\u0e80-\u0eff", Rate(0.0, 1.28)),
    "tibetan": ("\u0f00-\u0fff", Rate(1.47, 1.33)),
    "burmese": ("\u1000-\u109f", Rate(0.8, 1.12)),
    "georgian": ("\u10a0-\u10ff", Rate(0.04, 0.76)),
    "ethiopic": ("\u1200-\u137f", Rate(1.6, 1.34)),
    "khmer": ("\u1780-\u17ff", Rate(0.92, 1.08)),
    "hangul": ("\uac00-\ud7a3", Rate(0.0, 1.22)),
    "hiragana": ("\u3040-\u309f", Rate(0.93, 0.42)),
    "katakana": ("\u30a0-\u30ff", Rate(0.93, 1.08)),
    "chinese": ("\u3400-\u9fff", Rate(0.93, 0.94)),
    "lines": ("\u2500\u2501\u2550", Rate(0.6, 0.45)),
    "boxes": ("\u2502-\u254f\u2551-\u257f", Rate(0.6, 1.0)),
    "maths": ("\u2070-\u209f\u2100-\u214f\u2200-\u22ff", Rate(0.6, 2.2)),
    "pictures": ("\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff", Rate(0.6, 2.75)),
    "joiners": ("\u200d\ufe0f", Rate(0.6, 0.9)),
    "wide": ("\u3000-\u303f\uff00-\uffef", Rate(0.93, 1.84)),
}
"""The characters of each script, as a class of a regular expression, and what they cost."""

ACCENTS = "\u0300-\u036f"
"""The accents that follow their letter."""
ACCENTED = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u1e00-\u1eff" + ACCENTS
"""Latin letters beyond ASCII, and those accents."""
OTHER = "".join(characters for characters, _ in RATES.values())
"""Every character in the table, as the inside of a class of a regular expression."""

_RANGES = sorted(
    (ord(first), ord(last or first), rate)
    for characters, rate in RATES.values()
    for first, last in re.findall("(.)(?:-(.))?", characters)
)
_STARTS = [first for first, _, _ in _RANGES]


def tokens_of(stretch: str) -> float:
    """The tokens of a stretch that holds characters of the table alone: its first one's start, and all their rates."""
    rates = [_RANGES[bisect_right(_STARTS, ord(character)) - 1][2] for character in stretch]
    return rates[0].start + sum(rate.character for rate in rates)
