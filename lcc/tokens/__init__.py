"""Counting tokens offline: exact by a shipped vocabulary, estimated where a count must not be waited for."""

from lcc.tokens.calibration import Calibration, family_calibration
from lcc.tokens.counters import (
    HeuristicCounter,
    TokenCounter,
    VocabularyCounter,
    budget_counter,
    counter,
    heuristic_counter,
)
from lcc.tokens.estimate import TokenCache, TokenEstimator

__all__ = [
    "Calibration",
    "HeuristicCounter",
    "TokenCache",
    "TokenCounter",
    "TokenEstimator",
    "VocabularyCounter",
    "budget_counter",
    "counter",
    "family_calibration",
    "heuristic_counter",
]
