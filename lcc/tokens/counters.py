"""Token counters: the shipped vocabulary, the heuristic that needs none, and the one for budgets."""

from __future__ import annotations

import threading
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Protocol

from lcc.tokens.estimate import TokenCache

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY_FILE = "vocabulary.json"

CHARS_PER_TOKEN_ASCII = 3.2
"""Characters of ASCII text for each token of the newer vocabulary; measured by scripts/bench_tokens.py."""
BYTES_PER_TOKEN_OTHER = 2.8
"""UTF-8 bytes for each token where a text holds characters beyond ASCII; measured by the same script."""
BUDGET_FACTOR = 1.4
"""What the heuristic is multiplied by where a count must not be too low; measured by the same script."""
PIECE_CHARS = 65_536
"""Texts are encoded in pieces of this many characters, which bounds the memory of one encoding."""


class TokenCounter(Protocol):
    """Counts the tokens of a text. ``method`` goes into ``token_count_method``; ``~`` marks a guess."""

    @property
    def method(self) -> str: ...

    def count(self, text: str) -> int: ...


class HeuristicCounter:
    """Counts by length and kind of text, without a vocabulary; ``factor`` inflates it for budgets."""

    def __init__(self, factor: float = 1.0) -> None:
        self._factor = factor
        self.method = "~heuristic" if factor == 1.0 else f"~heuristic x{factor:g}"

    def count(self, text: str) -> int:
        if not text:
            return 0
        if text.isascii():
            tokens = len(text) / CHARS_PER_TOKEN_ASCII
        else:
            tokens = len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN_OTHER
        return int(tokens * self._factor) + 1


class VocabularyCounter:
    """Counts with a Hugging Face ``tokenizers`` vocabulary, each text once (cached by its hash).

    ``factor`` turns the vocabulary's tokens into those of a model family. Safe to use from several threads.
    """

    def __init__(
        self, tokenizer: Tokenizer, *, factor: float = 1.0, method: str, cache_size: int = 200_000
    ) -> None:
        self._tokenizer = tokenizer
        self._factor = factor
        self._cache = TokenCache(cache_size)
        self.method = method

    def raw_count(self, text: str) -> int:
        """The tokens of ``text`` in the vocabulary itself, before the family's factor."""
        found = self._cache.get(text)
        if found is None:
            found = self._encode(text)
            self._cache.put(text, found)
        return found

    def count(self, text: str) -> int:
        return round(self.raw_count(text) * self._factor)

    def _encode(self, text: str) -> int:
        if not text:
            return 0
        if not text.isascii():
            # A lone surrogate cannot cross into the tokenizer; its escape is about as long.
            text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        pieces = [text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS)]
        return sum(
            len(found.ids) for found in self._tokenizer.encode_batch_fast(pieces, add_special_tokens=False)
        )


_load_lock = threading.Lock()


@lru_cache(maxsize=1)
def _shipped_tokenizer() -> Tokenizer | None:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    file = resources.files("lcc.tokens").joinpath(VOCABULARY_FILE)
    if not file.is_file():
        return None
    return Tokenizer.from_str(file.read_text(encoding="utf-8"))


@lru_cache(maxsize=16)
def _counter(model: str | None) -> TokenCounter:
    from lcc.tokens.calibration import family_calibration

    tokenizer = _shipped_tokenizer()
    if tokenizer is None:
        return HeuristicCounter()
    calibration = family_calibration(model)
    return VocabularyCounter(
        tokenizer, factor=calibration.factor, method=f"lcc-vocabulary x{calibration.factor:g}"
    )


def heuristic_counter() -> TokenCounter:
    """The counter that needs no vocabulary: about 1 microsecond a text, marked ``~``."""
    return HeuristicCounter()


def counter(model: str | None = None) -> TokenCounter:
    """The best counter that works offline, for ``model``'s family (None: the newest). Loaded once, lazily.

    Falls back to the heuristic where ``tokenizers`` or the vocabulary is missing; ``method`` then says so.
    """
    with _load_lock:
        return _counter(model)


def budget_counter(model: str | None = None) -> TokenCounter:
    """The counter for limits that a request must stay under: never optimistic (the seed's section 9).

    The real vocabulary where there is one, else the heuristic inflated by its measured factor.
    """
    best = counter(model)
    return HeuristicCounter(BUDGET_FACTOR) if isinstance(best, HeuristicCounter) else best
