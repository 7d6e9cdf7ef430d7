"""The ladder of `auto`: which rung a pass stands on, and how much must go before the next one is needed.

The first rung are results, by score until the target; the second, where the window is still too full, the inputs of
old calls. Without a way to recall, or without a stash, the ladder is `recoverable` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from lcc.contract.options import PassOptions
from lcc.contract.record import input_chars
from lcc.relevance.ports import Ports
from lcc.tokens import TokenEstimator
from lcc.transcript import Message


class Rung(NamedTuple):
    """What one rung did: how many results or strings of inputs went, and the characters that they freed."""

    name: Literal["results", "inputs"]
    replaced: int
    chars: int


class Load(NamedTuple):
    """How full the context is, in characters of texts, inputs and results, and how much is to go."""

    total: int
    to_free: int | None
    """None: no target was named."""

    def still_to_free(self, freed: int, min_reduction: float) -> int | None:
        """How much the next rung has to free; None where it need not free anything.

        Without a target the next rung is climbed where less has gone than makes a compaction worth it, and then all
        the way.
        """
        if self.to_free is not None:
            return self.to_free - freed if freed < self.to_free else None
        return self.total if freed < min_reduction * self.total else None


def on_rung(options: PassOptions, ports: Ports) -> PassOptions:
    """The options with `auto` resolved: `stashed` where a note of the stash can be followed, else `recoverable`."""
    if options.rules_mode != "auto":
        return options
    return replace(options, rules_mode="stashed" if options.stash and ports.can_recall else "recoverable")


def load_of(messages: Sequence[Message], options: PassOptions, ports: Ports, counter: TokenEstimator) -> Load:
    """How full the context is, and how much is to go by the ``target`` of the options.

    A target up to 1 is a share of the window, which counts where the window is known; a larger one is in tokens.
    """
    total = 0
    for message in messages:
        total += len(message.text)
        total += sum(input_chars(use.input) for use in message.tool_uses)
        total += sum(len(result.text) for result in message.tool_results)
    target = options.target
    if target is not None and target <= 1:
        target = None if ports.window_tokens is None else target * ports.window_tokens
    if target is None:
        return Load(total, None)
    tokens = ports.context_tokens or counter.estimate_chars(total)
    return Load(total, max(0, round(total * (1 - target / tokens))) if tokens else 0)
