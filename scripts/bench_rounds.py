"""How far a session goes before anything is summarised: real sessions end to end in one window.

    python scripts/bench_rounds.py [SESSIONS_FOLDER] [--window CHARACTERS] [--other PYTHON]

The sessions' messages follow each other as one long session. When the context is larger than the window, the mode
compacts it; where less than a quarter of it goes, a summary takes the place of everything, as the client's own does.
Calls get ids of their own. No file of the sessions is on this disk, so `recoverable` shows what the session alone
gives. `--other` names the Python of an environment with local-context-compiler.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench_compare import OTHER, Program
from needs import results_of_message, strings, uses_of
from passes import Payload, compacted, compacted_by
from retention import SHARED

from lcc.contract.modes import RulesMode
from lcc.transcript import Json, messages_to_payload, read_transcript

WINDOW = 560_000
LEAST_SHARE = 0.25

Compact = Callable[[Payload], Payload]


@dataclass
class Rounds:
    """What one mode came to."""

    summaries: int = 0
    compactions: int = 0
    seen: int = 0
    """Characters that have come into the context so far."""
    first: float | None = None
    """Windows that had come in when the first summary was written."""
    shares: list[float] = field(default_factory=list)


def size(messages: Payload) -> int:
    """Characters of texts, inputs and results."""
    return sum(
        len(str(message.get("text") or ""))
        + sum(len(text) for use in uses_of(message) for text in strings(use["input"]))
        + sum(len(text) for _, text in results_of_message(message))
        for message in messages
    )


def stream(folder: Path) -> Iterator[dict[str, Json]]:
    """The messages of every session of ``folder`` in the seed's payload form, with ids that no two calls share."""
    for number, path in enumerate(sorted(folder.glob("*.jsonl"))):
        messages = read_transcript(path.read_bytes(), name=path.name).messages
        for message in messages_to_payload([each._replace(source=None) for each in messages]):
            for key in ("toolUses", "toolResults"):
                listed = message.get(key)
                for part in listed if isinstance(listed, list) else ():
                    if isinstance(part, dict):
                        part["tool_use_id"] = f"s{number}_{part['tool_use_id']}"
            yield message


def rounds(messages: list[dict[str, Json]], compact: Compact | None, window: int) -> Rounds:
    """Lets the session run with ``compact`` at each full window; None: the client alone."""
    found = Rounds()
    context: Payload = []
    held = 0
    for message in messages:
        context.append(message)
        length = size([message])
        held += length
        found.seen += length
        if held <= window or "toolUses" in message:
            continue
        found.compactions += 1
        smaller = compact(context) if compact is not None else context
        left = size(smaller)
        found.shares.append(1 - left / held)
        if 1 - left / held >= LEAST_SHARE:
            context, held = smaller, left
            continue
        found.summaries += 1
        found.first = found.first or found.seen / window
        context, held = [], 0
    return found


def row(name: str, found: Rounds) -> str:
    first = f"{found.first:.1f}" if found.first is not None else "none"
    return f"| {name} | {found.summaries} | {first} | {found.compactions} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="How far a session goes before anything is summarised.")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--window", type=int, default=WINDOW, help="characters that fit into the context")
    parser.add_argument("--other", type=Path, metavar="PYTHON")
    asked = parser.parse_args()
    if not asked.folder.is_dir():
        parser.exit(2, f"{asked.folder}: no such folder\n")
    messages = list(stream(asked.folder))
    print(f"{size(messages) / asked.window:.1f} windows of {asked.window:,} characters\n")
    print("| mode | summaries | first one after (windows) | compactions |\n| --- | ---: | ---: | ---: |")
    print(row("client alone", rounds(messages, None, asked.window)), flush=True)
    with tempfile.TemporaryDirectory(prefix="lcc-rounds-") as work:
        modes: tuple[RulesMode, ...] = ("lossless", "recoverable", "stashed", "auto")
        for mode in modes:
            print(row(f"`{mode}`", rounds(messages, compacted(mode), asked.window)), flush=True)
        if asked.other is not None:
            program = Program(OTHER, asked.other.absolute(), Path(work) / "theirs", 300.0)
            for theirs in ("recoverable", "stashed"):
                found = rounds(messages, compacted_by(program, theirs), asked.window)
                print(row(f"{OTHER}: `{theirs}`", found), flush=True)


if __name__ == "__main__":
    main()
