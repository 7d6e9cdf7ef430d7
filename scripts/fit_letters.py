"""Fit what a word in Latin letters costs, for lcc/tokens/letters.txt, on translated messages of free programs.

    python scripts/fit_letters.py [FOLDER ...]

Takes the catalogues (`.mo`) of LANGUAGES below the FOLDERs (/usr/share/locale by default), counts each word with ctok,
and solves for the weight of every pair of neighbouring letters (least squares, a little drawn to 0.4). A language
whose sum comes out far from SHARE of the exact one is given more weight in the next round; the best round is
written. Some catalogues are also taken decomposed (NFD), and four texts of tests/tokens/languages.json whose letters
no catalogue has. Needs ctok and numpy, and so Python 3.12.
"""

from __future__ import annotations

import gettext
import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

sys.path.insert(0, str(Path(__file__).parents[1]))

from lcc.tokens.exact import run_counter
from lcc.tokens.families import FAMILIES
from lcc.tokens.letters import END, LETTERS_HEADER, START, classes_of
from lcc.tokens.scripts import ACCENTS, OTHER

LANGUAGES = (
    "de fr es pt it pl cs tr vi id sv nl ro da fi hu ca hr gl sk sl nb eo lt eu et lv ga ms sq nn af bs cy is az uz "
    "nds br xh nso gd fo wa sc tl ku rw wo lg an oc fur ast kmr tt crh be@latin sr@latin li"
).split()
DECOMPOSED = ("vi", "fr", "cs", "pl", "ro", "tr")
OWN = ("Kabyle", "Yoruba", "Maltese", "Hawaiian")
LETTERS = START + "abcdefghijklmnopqrstuvwxyz12345" + END
CHARACTERS = 14_000
ROUNDS = 14
MEAN = 0.4
DRAWN = 20.0
CENTRE = 0.97
SHARE = 0.965
"""What is written, of what was fitted: a budget's factor comes on top, and 1.0 to 1.35 must hold for all."""

_WORD = re.compile(rf"(?:[^\W\d_{OTHER}][{ACCENTS}]*)+(?: (?=[^\s\d]))?")
_NO_WORDS = re.compile(r"%[-#0-9.$]*[a-zA-Z]+|<[^>]*>|\{[^}]*\}|--?[a-zA-Z-]+|[_&]")


class Word(NamedTuple):
    """A word: how often it stands in its text, its pairs of letters, and its exact tokens."""

    times: int
    pairs: list[int]
    tokens: int


def texts_of(folders: list[Path]) -> dict[str, str]:
    """Up to ``CHARACTERS`` of each language's messages."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(each for folder in folders for each in folder.rglob("*.mo")):
        language = path.parent.parent.name
        if language in LANGUAGES:
            try:
                with path.open("rb") as file:
                    catalogue: Mapping[Any, Any] = vars(gettext.GNUTranslations(file))["_catalog"]
            except (OSError, ValueError):
                continue  # a catalogue in another encoding than it says
            for key, message in catalogue.items():
                if isinstance(key, str) and key and isinstance(message, str) and message != key and len(message) > 25:
                    plain = _NO_WORDS.sub(" ", message)
                    if len(re.findall(r"[^\W\d_]{2,}", plain)) >= 4:
                        found[language].append(plain)
    chosen = random.Random(1)
    texts = {}
    for language, messages in sorted(found.items()):
        chosen.shuffle(messages)
        text = "\n".join(dict.fromkeys(messages))[:CHARACTERS]
        if len(text) > 2500:
            texts[language] = text
    texts |= {f"{name}, decomposed": normalize("NFD", texts[name])[:6000] for name in DECOMPOSED if name in texts}
    own = json.loads((Path(__file__).parents[1] / "tests" / "tokens" / "languages.json").read_text(encoding="utf-8"))
    return texts | {name: own[name]["text"] for name in OWN}


def words_of(text: str, version: str) -> list[Word]:
    """The words of a text that have more than one letter."""
    count = run_counter(version)
    assert count is not None, "ctok is missing"
    place = {letter: at for at, letter in enumerate(LETTERS)}
    words = []
    for run, times in Counter(_WORD.findall(text)).items():
        word = run.rstrip(" ")
        if len(word) > 1:
            pairs = pairwise(START + classes_of(word) + END)
            words.append(Word(times, [place[a] * len(LETTERS) + place[b] for a, b in pairs], count(run)))
    return words


def fit(languages: Mapping[str, list[Word]]) -> Any:
    """The weights of all pairs of letters, as one row."""
    np: Any = import_module("numpy")
    size = len(LETTERS) ** 2
    sums = {}
    for name, words in languages.items():
        square, right = np.zeros((size, size)), np.zeros(size)
        total = sum(word.times for word in words)
        for word in words:
            row = Counter(word.pairs)
            at, counts = list(row), np.array(list(row.values()), float)
            share = 1500 * word.times / total / math.sqrt(max(word.tokens, 1))
            square[np.ix_(at, at)] += share * np.outer(counts, counts)
            right[at] += share * counts * (word.tokens - MEAN * len(word.pairs))
        sums[name] = square, right
    weight = dict.fromkeys(languages, 1.0)
    best = math.inf, np.zeros(size)
    for _ in range(ROUNDS):
        square = sum(weight[name] * sums[name][0] for name in languages) + DRAWN * np.eye(size)
        row = np.linalg.solve(square, sum(weight[name] * sums[name][1] for name in languages)) + MEAN
        off = {
            name: abs(math.log(sum(w.times * max(1.0, row[w.pairs].sum()) for w in words)
                               / sum(w.times * w.tokens for w in words) / CENTRE))
            for name, words in languages.items()
        }  # fmt: skip
        best = min(best, (max(off.values()), row), key=lambda found: found[0])
        weight = {name: weight[name] * math.exp(4 * off[name]) for name in languages}
        mean = sum(weight.values()) / len(weight)
        weight = {name: min(each / mean, 8.0) for name, each in weight.items()}
    print(f"the farthest language is off by {best[0]:.1%}")
    return best[1]


def main() -> None:
    texts = texts_of([Path(word) for word in sys.argv[1:]] or [Path("/usr/share/locale")])
    print(f"{len(texts)} texts: {', '.join(texts)}")
    lines = [LETTERS_HEADER + LETTERS]
    for name, family in FAMILIES.items():
        row = fit({language: words_of(text, family.exact_version) for language, text in texts.items()})
        for at, letter in enumerate(LETTERS[:-1]):
            weights = row[at * len(LETTERS) : (at + 1) * len(LETTERS)][1:]
            lines.append(f"{name} {letter} " + " ".join(str(round(100 * SHARE * float(each))) for each in weights))
    target = Path(__file__).parents[1] / "lcc" / "tokens" / "letters.txt"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
