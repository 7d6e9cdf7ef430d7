"""Which strings in the inputs of old calls may become notes: the ladder's rung behind the results.

What a call wrote, edited, ran or asked an agent, long ago and at length. The call itself, its other fields, their
order and their types stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from lcc.relevance.reading.calls import Kind, kind_of, named_path, written_paths
from lcc.transcript import Json, Pair, Path, ToolUse

RECENT: Final = 20
"""Calls in this many of the newest messages keep their inputs."""
SHORTEST: Final = 250
"""Characters of the shortest string that becomes a note."""
_KINDS: Final[frozenset[Kind]] = frozenset({"write", "edit", "command", "agent"})


class InputString(NamedTuple):
    """One string of a call's input, by its path within the input."""

    pair: Pair
    path: Path
    text: str


def old_inputs(pairs: Sequence[Pair], kept: Collection[str], message_count: int) -> Iterator[InputString]:
    """The strings that may become notes, the oldest first.

    ``pairs`` are all calls with their results in order, ``kept`` the ids of those that a guard or a failure keeps. The
    latest call that names a file keeps its input: it says what the file holds.
    """
    latest = {path: pair.use.id for pair in pairs for path in _paths(pair.use)}
    for pair in pairs:
        use = pair.use
        if pair.result_message >= message_count - RECENT:
            continue
        if use.id in kept or kind_of(use.tool) not in _KINDS or _is_latest(use, latest):
            continue
        for path, text in input_strings_by_path(use.input):
            if len(text) >= SHORTEST:
                yield InputString(pair, path, text)


def _is_latest(use: ToolUse, latest: Mapping[str, str]) -> bool:
    return any(latest[path] == use.id for path in _paths(use))


def _paths(use: ToolUse) -> list[str]:
    """The files that a call names: by its path, or in the patch that it applies."""
    path = named_path(use)
    return [path] if path is not None else written_paths(use)


def input_strings_by_path(value: Json, above: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every string of an input, at any depth, in order."""
    waiting: list[tuple[Path, Json]] = [(above, value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, dict):
            waiting.extend(reversed([((*path, key), inner) for key, inner in item.items()]))
        elif isinstance(item, list):
            waiting.extend(reversed([((*path, index), inner) for index, inner in enumerate(item)]))
