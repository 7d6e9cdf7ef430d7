"""Counting tokens offline: by a shipped vocabulary, and estimated where a count must not be waited for."""

from lcc.tokens.calibration import Calibration, calibrate
from lcc.tokens.counters import (
    HeuristicCounter,
    RunCounter,
    budget_counter,
    counter,
    heuristic_counter,
)
from lcc.tokens.counting import TokenCounter
from lcc.tokens.estimate import TokenCache, TokenEstimator
from lcc.tokens.usage import UsageStep, context_tokens, usage_steps

__all__ = [
    "Calibration",
    "HeuristicCounter",
    "RunCounter",
    "TokenCache",
    "TokenCounter",
    "TokenEstimator",
    "UsageStep",
    "budget_counter",
    "calibrate",
    "context_tokens",
    "counter",
    "heuristic_counter",
    "usage_steps",
]
