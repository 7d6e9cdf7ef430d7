"""Totals that never wait: cached exact counts where there are any, else characters by tool, marked ``~``."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lcc.tokens.families import family_of

if TYPE_CHECKING:
    from lcc.tokens.calibration import Calibration
    from lcc.tokens.counting import TokenCounter

CHARS_PER_TOKEN = 2.5
"""Characters for each token of the newer vocabulary in words of people and models, and in calls' inputs.
These figures are measured by ``scripts/bench_tokens.py --rates``."""
CHARS_PER_TOKEN_BY_TOOL = {"Bash": 2.0, "Edit": 2.5, "Glob": 2.0, "Grep": 2.0, "Read": 2.4, "Write": 2.2}
"""The same for the outputs of a tool."""
CHARS_PER_TOKEN_OTHER_TOOL = 2.2
"""The same for the outputs of every other tool."""
OLDER_SHARE = 1.33
"""How many more characters a token of the older vocabulary covers."""


class TokenCache:
    """Counts by text, bounded: the oldest half goes when it is full. Safe to use from several threads.

    A text's own hash and length are the key, so no text is held and a look-up costs one pass over the text
    the first time (Python keeps the hash in the string). The key holds for one process.
    """

    def __init__(self, size: int = 200_000) -> None:
        if size < 1:
            raise ValueError(f"size: {size} is below 1")
        self._size = size
        self._counts: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._counts)

    def get(self, text: str) -> int | None:
        """The count of ``text``, or None where it has not been counted."""
        return self._counts.get((hash(text), len(text)))

    def put(self, text: str, tokens: int) -> None:
        """Remember the count of ``text``."""
        with self._lock:
            if len(self._counts) >= self._size:
                kept = list(self._counts.items())[len(self._counts) - self._size // 2 :]
                self._counts = dict(kept)
            self._counts[(hash(text), len(text))] = tokens

    def warm(self, texts: Iterable[str], counter: TokenCounter) -> int:
        """Count the texts that are not known yet; for idle time. Returns how many were counted.

        The iterable is read one text at a time, so the caller can stop it between two texts.
        """
        done = 0
        for text in texts:
            if self.get(text) is None:
                self.put(text, counter.count(text))
                done += 1
        return done


class TokenEstimator:
    """What a pass asks for its totals: constant time a text, never a tokenizer.

    With a warm ``cache`` a text's exact count is used; every other text is estimated from its number of
    characters, the tool it came from and the family of ``model`` (an API model id; None: the newest family).
    ``calibration`` scales both to the session's own usage. One estimator is for one pass: ``method`` tells how
    the counts that it was asked for were made.
    """

    def __init__(
        self,
        cache: TokenCache | None = None,
        calibration: Calibration | None = None,
        model: str | None = None,
    ) -> None:
        self._cache = cache if cache is not None and len(cache) else None
        self._factor = 1.0 if calibration is None else calibration.factor
        self._scale = self._factor / (OLDER_SHARE if family_of(model).name == "older" else 1.0)
        self._calibrated = calibration is not None and calibration.source == "usage"
        self._exact = 0
        self._estimated = 0

    def estimate(self, text: str, tool: str | None = None) -> int:
        """The tokens of one text: a result of ``tool``, or with None the words of a message or an input."""
        if not text:
            return 0
        if self._cache is not None:
            known = self._cache.get(text)
            if known is not None:
                self._exact += 1
                return round(known * self._factor)
        self._estimated += 1
        rate = CHARS_PER_TOKEN_BY_TOOL.get(tool, CHARS_PER_TOKEN_OTHER_TOOL) if tool else CHARS_PER_TOKEN
        return int(len(text) * self._scale / rate) + 1

    def estimate_chars(self, characters: int) -> int:
        """The tokens of so many characters of which only the number is at hand."""
        self._estimated += 1
        return int(characters * self._scale / CHARS_PER_TOKEN)

    def total(self, texts: Iterable[tuple[str, str | None]]) -> int:
        """The tokens of many texts, each with the tool it came from (or None)."""
        return sum(self.estimate(text, tool) for text, tool in texts)

    @property
    def method(self) -> str:
        """How the counts so far were made, for ``token_count_method``; ``~`` where any was estimated."""
        if not self._estimated and self._exact:
            name = "vocabulary"
        elif not self._exact:
            name = "~characters-by-tool"
        else:
            name = f"~vocabulary ({self._exact} texts) and characters-by-tool ({self._estimated} texts)"
        return f"{name}, calibrated on usage" if self._calibrated else name
