"""What counts tokens."""

from __future__ import annotations

from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of a text. ``method`` goes into ``token_count_method``; ``~`` marks a guess."""

    @property
    def method(self) -> str: ...

    def count(self, text: str) -> int: ...
