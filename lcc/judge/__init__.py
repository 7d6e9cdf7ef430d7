"""Asking a semantic judge over System One: Jev, or a Laya server on this machine (the seed's sections 2 to 6).

What needs httpx is imported where it is used, so that a pass without a judge does not pay for it.
"""

from lcc.judge.cache import DecisionCache
from lcc.judge.errors import DecisionsCacheError, TranscriptFitError
from lcc.judge.settings import Server, Unavailable, network_allowed

__all__ = [
    "DecisionCache",
    "DecisionsCacheError",
    "Server",
    "TranscriptFitError",
    "Unavailable",
    "network_allowed",
]
