"""The errors of a judged pass that end it: input that cannot be judged, and a cache file that cannot be used."""

from __future__ import annotations


class TranscriptFitError(ValueError):
    """The conversation does not fit into the judge's budget even in its shortest form (the seed's section 4).

    All figures are tokens, except ``messages`` and ``calls``, which are counts.
    """

    def __init__(self, *, needed: int, allowed: int, messages: int, calls: int, option: str, advice: str) -> None:
        super().__init__(
            f"the judge cannot be shown this conversation: in its shortest form (calls-one-line) it needs "
            f"{needed} tokens and {option} allows {allowed} ({messages} messages, {calls} calls); {advice}"
        )
        self.needed = needed
        self.allowed = allowed
        self.messages = messages
        self.calls = calls
        self.option = option


class DecisionsCacheError(ValueError):
    """A decisions cache that is not usable; the message names the file, the fault and the way out."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"decisions cache {path}: {problem}")
        self.path = path
        self.problem = problem
