"""How likely a removed result is needed again: what can be known at the moment of the pass, in points.

``features`` looks at the session, ``points`` holds the table that a person reads, ``excerpt`` picks the few words
of a result that are worth keeping beside its note. Nothing here reads a file or decides what can be proven.
"""

from lcc.relevance.need.points import LEAST_SAVED, LIMIT, POINTS, Feature, Need, need_key, why
from lcc.relevance.need.score import needs_of

__all__ = ["LEAST_SAVED", "LIMIT", "POINTS", "Feature", "Need", "need_key", "needs_of", "why"]
