"""Token counters: the shipped vocabularies, the heuristic that needs none, and the one for budgets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache

from lcc.tokens import exact
from lcc.tokens.counting import TokenCounter
from lcc.tokens.estimate import CHARS_PER_TOKEN_OTHER_TOOL, OLDER_SHARE, TokenCache
from lcc.tokens.families import FAMILIES, Family, FamilyName, family_of

HEURISTIC_BUDGET_FACTOR = 1.65
"""What the heuristic is multiplied by for a budget: 99 of 100 texts are then not above it. These three
figures are measured by scripts/bench_tokens.py over real tool outputs and messages."""
VOCABULARY_BUDGET_FACTOR = 1.22
"""The same for the shipped vocabularies."""
EXACT_BUDGET_FACTOR = 1.03
"""The same where `ctok` is installed."""

RUNS_KEPT = 200_000
PIECE_CHARS = 65_536
"""A text is cut into runs this many characters at a time, which bounds the memory that takes."""


class HeuristicCounter:
    """Counts by length, without a vocabulary; ``factor`` inflates it for budgets."""

    def __init__(self, family: Family, factor: float = 1.0) -> None:
        self._rate = CHARS_PER_TOKEN_OTHER_TOOL * (OLDER_SHARE if family.name == "older" else 1.0) / factor
        self.method = "~heuristic" if factor == 1.0 else f"~heuristic x{factor:g}"

    def count(self, text: str) -> int:
        if not text:
            return 0
        return int(len(text) / self._rate) + 1


class RunCounter:
    """Counts a text as the sum over its runs, each different run once, each text once (by its hash).

    ``count_run`` gives the tokens of one run, which ``factor`` turns into those of the model's family.
    Safe to use from several threads: they may count the same run twice, never wrongly.
    """

    def __init__(
        self, count_run: Callable[[str], float], *, method: str, factor: float = 1.0, cache_size: int = 200_000
    ) -> None:
        from lcc.tokens.vocabulary import RUN  # its expressions take long to compile

        self._runs_in = RUN.findall
        self._runs = _RunCache(count_run)
        self._texts = TokenCache(cache_size)
        self._factor = factor
        self.method = method

    def count(self, text: str) -> int:
        found = self._texts.get(text)
        if found is None:
            found = round(self._sum(text) * self._factor)
            self._texts.put(text, found)
        return found

    def _sum(self, text: str) -> float:
        if len(self._runs) > RUNS_KEPT:
            self._runs.clear()
        look_up = self._runs.__getitem__
        starts = range(0, len(text), PIECE_CHARS)
        return sum(sum(map(look_up, self._runs_in(text[start : start + PIECE_CHARS]))) for start in starts)


class _RunCache(dict[str, float]):
    def __init__(self, count_run: Callable[[str], float]) -> None:
        super().__init__()
        self._count_run = count_run

    def __missing__(self, run: str) -> float:
        tokens = self[run] = self._count_run(run)
        return tokens


_load_lock = threading.Lock()


@lru_cache(maxsize=8)
def _best(name: FamilyName, budget: bool) -> TokenCounter:
    family = FAMILIES[name]
    count_run: Callable[[str], float] | None = exact.run_counter(family.exact_version)
    engine, budget_factor = "ctok", EXACT_BUDGET_FACTOR
    if count_run is None:
        engine, budget_factor = "lcc-vocabulary", VOCABULARY_BUDGET_FACTOR
        from lcc.tokens import vocabulary

        try:
            count_run = vocabulary.run_counter(family)
        except (ImportError, OSError):
            return HeuristicCounter(family, HEURISTIC_BUDGET_FACTOR if budget else 1.0)
    factor = budget_factor if budget else 1.0
    return RunCounter(count_run, method=_method(engine, name, factor), factor=factor)


def _method(engine: str, name: FamilyName, factor: float) -> str:
    return f"{engine}:{name}" if factor == 1.0 else f"{engine}:{name} x{factor:g}"


def heuristic_counter(model: str | None = None) -> TokenCounter:
    """The counter that needs no vocabulary: under a microsecond a text, marked ``~``."""
    return HeuristicCounter(family_of(model))


def counter(model: str | None = None) -> TokenCounter:
    """The best counter that works offline, for the family of ``model`` (None: the newest family).

    ``ctok`` where it is installed (Python 3.12 and later), else the shipped vocabulary, else the heuristic;
    ``method`` says which. Loaded once, on the first call.
    """
    with _load_lock:
        return _best(family_of(model).name, False)


def budget_counter(model: str | None = None) -> TokenCounter:
    """The counter for limits that a request must stay under: never optimistic (the seed's section 9).

    The same counter as ``counter``, inflated by the measured factor that covers its own error.
    """
    with _load_lock:
        return _best(family_of(model).name, True)
