"""How much each rules mode takes out of real sessions, and whether the original comes back byte for byte.

    python scripts/bench_reduction.py FOLDER

For every session file in FOLDER and every mode: the share of characters and of tokens that goes in one pass, and
whether `lcc restore` gives the input again after that pass and after a second one. `lossy` keeps nothing of what it
removes, so there is nothing to restore. Tokens are counted with the shipped vocabulary, one text at
a time, call inputs included.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from lcc.contract.modes import MODES, RULES_MODES, RulesMode
from lcc.contract.report import Report
from lcc.recovery.restore import removed_by, restore, restored_bytes
from lcc.relevance import TranscriptCompactionRequest, run_pass
from lcc.relevance.ports import Ports
from lcc.stash import Stash
from lcc.tokens import counter
from lcc.transcript import Message, Transcript, read_transcript, render


class Row(NamedTuple):
    """One session under one mode; sizes are of texts, call inputs and results together."""

    name: str
    mode: RulesMode
    chars: int
    chars_after: int
    tokens: int
    tokens_after: int
    restored: str


def tokens_of(transcript: Transcript) -> int:
    """The tokens of all texts, call inputs and results, counted one by one."""
    count = counter().count
    return sum(count(text) for message in transcript.messages for text in _texts(message) if text)


def _texts(message: Message) -> Iterator[str]:
    yield message.text
    yield from (orjson.dumps(use.input).decode() for use in message.tool_uses)
    yield from (result.text for result in message.tool_results)


def one_pass(raw: bytes, mode: RulesMode, stash: Stash) -> tuple[bytes, Report]:
    """The compacted bytes and the report."""
    request = TranscriptCompactionRequest(payload=None, provider="rules", rules_mode=mode)
    return run_pass(
        read_transcript(raw),
        request,
        lambda result: (render(result.transcript, result.edits), result.report),
        Ports(stash_folder=stash.folder),
    )


def comes_back(content: bytes, reports: list[Report], raw: bytes, stash: Stash) -> bool:
    """Whether the compacted session restores to exactly ``raw``, every output proven."""
    transcript = read_transcript(content)
    found = restore(transcript, removed_by(reports), stash)
    return not found.failures and not found.unproven and restored_bytes(transcript, found.edits) == raw


def measure(path: Path, mode: RulesMode, stash: Stash) -> Row:
    """One row of the table."""
    raw = path.read_bytes()
    once, first = one_pass(raw, mode, stash)
    restored = "cannot"
    if MODES[mode].promise is not None:
        twice, second = one_pass(once, mode, stash)
        good = comes_back(once, [first], raw, stash) and comes_back(twice, [first, second], raw, stash)
        restored = "yes, twice" if good else "NO"
    before, after = read_transcript(raw), read_transcript(once)
    sizes = first["chars_before"], first["chars_after"]
    return Row(path.name, mode, *sizes, tokens_of(before), tokens_of(after), restored)


def share(before: int, after: int) -> float:
    return 1 - after / before if before else 0.0


def main() -> None:
    """Print a line a session and mode, and the summary of each mode."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    rows: list[Row] = []
    print("| session | mode | characters | tokens | restored |\n| --- | --- | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory(prefix="lcc-bench-reduction-") as base:
        stash = Stash(Path(base) / "stash")
        for path in sorted(folder.glob("*.jsonl")):
            for mode in RULES_MODES:
                row = measure(path, mode, stash)
                rows.append(row)
                chars, tokens = share(row.chars, row.chars_after), share(row.tokens, row.tokens_after)
                print(f"| {row.name} | {mode} | {chars:.1%} | {tokens:.1%} | {row.restored} |", flush=True)
    print("\n| mode | of | median | pooled | best | worst |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for mode in RULES_MODES:
        mine = [row for row in rows if row.mode == mode]
        for what, pairs in (
            ("characters", [(row.chars, row.chars_after) for row in mine]),
            ("tokens", [(row.tokens, row.tokens_after) for row in mine]),
        ):
            shares = [share(*pair) for pair in pairs]
            pooled = share(sum(before for before, _ in pairs), sum(after for _, after in pairs))
            figures = (statistics.median(shares), pooled, max(shares), min(shares))
            print(f"| {mode} | {what} | " + " | ".join(f"{figure:.1%}" for figure in figures) + " |")


if __name__ == "__main__":
    main()
