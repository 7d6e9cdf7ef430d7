"""The two shipped vocabularies: how a text is cut into runs, and how many tokens a run is.

A token never crosses a run's edge, or hardly ever, so a text's count is the sum over its runs, and each
different run is looked up once. A single space between two words, or a word and punctuation, costs nothing
and belongs to the run before it. The files are made by scripts/train_vocabulary.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import resources
from typing import TYPE_CHECKING

from lcc.tokens.families import Family
from lcc.tokens.letters import load_weights, tokens_of_word
from lcc.tokens.scripts import ACCENTED, ACCENTS, OTHER, tokens_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_WORD = "</w>"
MERGES_HEADER = "#lcc-merges 1"

COLOUR = r"\x1b\[?"
"""How a terminal's colours begin, which both families know as one token."""
COLOUR_TOKENS = 0.95
RUN = re.compile(
    rf"[{OTHER}]+(?: (?=[^\s\d]))?"  # a stretch of another script, with its marks and the space before the next word
    rf"|(?:[^\W\d_{OTHER}][{ACCENTS}]*)+(?: (?=[^\s\d]))?"  # a word, the same
    r"|\d+"
    rf"|{COLOUR}"
    r"|(?:[^\w\s\x1b]|_)+(?: (?=[^\s\d]))?"  # punctuation, the same
    r"|\n+"
    r"|[^\S\n]+"
)
_OTHER_SCRIPT = re.compile(f"[{OTHER}]")
_ACCENTED = re.compile(f"[A-Za-z{ACCENTED}]*[{ACCENTED}][A-Za-z{ACCENTED}]*")
_SPEAKABLE = re.compile("[A-Za-z]?(?:[^aeiouy]{0,3}[aeiouy])+[^aeiouy]{0,3}")
"""A word in small letters with a vowel every few letters: of some language, and not of a key or a hash."""
CAPITALS = re.compile(r"[A-Z]|[^A-Z]+")
TABS_APART = re.compile(r"\t+|[^\t]+")


def runs_of(text: str, family: Family) -> Iterator[str]:
    """The runs of ``text`` that ``family``'s vocabulary is trained on."""
    for run in RUN.findall(text):
        yield from pieces(run, family)


def pieces(run: str, family: Family) -> list[str]:
    """What is encoded of one run: digits go in threes from the right, a seam's space goes."""
    first = run[0]
    if first.isdigit():
        head = len(run) % 3
        return ([run[:head]] if head else []) + [run[at : at + 3] for at in range(head, len(run), 3)]
    if first.isspace():
        return TABS_APART.findall(run)
    word = run[:-1] if run[-1] == " " else run
    if not family.splits_capitals or word[1:].islower() or word.islower() or len(word) == 1:
        return [word]
    return CAPITALS.findall(word) if first.isalpha() else [word]


def run_counter(family: Family) -> Callable[[str], float]:
    """A function that counts one run with the shipped vocabulary. Raises OSError or ImportError."""
    tokenizer = load(family)
    letters = load_weights(family.name)

    def tokens(run: str) -> float:
        word = run[:-1] if run[-1] == " " else run
        if run[0] == "\x1b":
            return COLOUR_TOKENS
        if _OTHER_SCRIPT.match(word):
            return tokens_of(word)
        if _ACCENTED.fullmatch(word):
            return tokens_of_word(word, letters)
        spelled = spell(run)
        if len(word) > 3 and _SPEAKABLE.fullmatch(word):
            return min(spelled, tokens_of_word(word, letters))
        return spelled

    def spell(run: str) -> float:
        # A lone surrogate cannot cross into the tokenizer; it costs as much as the replacement character.
        clean = run if run.isascii() else run.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        found = sum(len(tokenizer.encode(piece, add_special_tokens=False).ids) for piece in pieces(clean, family))
        return found * _factor(clean, family)

    return tokens


def _factor(run: str, family: Family) -> float:
    first = run[0]
    if first.isspace() or first.isdigit():
        return 1.0
    word = run[:-1] if run[-1] == " " else run
    if first.isalpha():
        return family.capitals if len(word) > 1 and word.isupper() else family.words
    return family.punctuation if len(word) > 1 else 1.0


def load(family: Family) -> Tokenizer:
    """The byte-pair model of ``family``, rebuilt from its merges. Raises OSError or ImportError."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    text = resources.files("lcc.tokens").joinpath(family.file).read_text(encoding="utf-8")
    merges = [(first, second) for first, _, second in (line.partition(" ") for line in text.split("\n")[1:-1])]
    vocabulary: dict[str, int] = {}
    for symbol in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocabulary[symbol] = len(vocabulary)
        vocabulary[symbol + END_OF_WORD] = len(vocabulary)
    for first, second in merges:
        vocabulary.setdefault(first + second, len(vocabulary))
    model = models.BPE(vocab=vocabulary, merges=merges, end_of_word_suffix=END_OF_WORD)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return tokenizer
