"""Counts through the optional package ``ctok`` (Python 3.12 and later), which knows both vocabularies.

It is slow on a whole text, so it is asked for each different run once, in the surroundings a run has.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module


def run_counter(version: str) -> Callable[[str], int] | None:
    """A function that counts one run in vocabulary ``version``; None where ``ctok`` is not installed."""
    try:
        count: Callable[[str, str], int] = import_module("ctok").token_count
    except (ImportError, AttributeError, SyntaxError):
        return None
    letter, digit = count("a", version), count("1", version)

    def tokens(run: str) -> int:
        first = run[0]
        if run[-1] == " " and not first.isspace():
            return count(f"1{run}a", version) - count("1a", version)
        if first.isdigit():
            return count(f"a{run}", version) - letter
        if first.isspace():
            return count(f"1{run}1", version) - digit - 1
        return count(f"1{run}", version) - digit

    return tokens
