"""What every reader of transcripts speaks of: JSON values, the place of one, and an input that cannot be read."""

from __future__ import annotations

from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands: object keys and array indexes from the root of its JSON document.

In a line-based format the first element is the 0-based index of the JSON document in the file (a line
may hold two), so ``(17, "message", "content", 0)`` is a block of document 17.
"""


class TranscriptError(ValueError):
    """Input that cannot be read as a transcript. ``place`` says where: a JSON path, or line and column."""

    def __init__(self, problem: str, place: str) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place


def value_in(value: Json, path: Path) -> Json:
    """What stands at ``path`` within ``value``; None where nothing does."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value
