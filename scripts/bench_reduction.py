"""How much each rules mode takes out of real sessions, and whether the original comes back byte for byte.

    python scripts/bench_reduction.py FOLDER

For every session file in FOLDER and every mode: the share of characters and of tokens that goes in one pass, and
whether `lcc restore` gives the input again after that pass and after a second one. `lossy` keeps nothing of what it
removes, so there is nothing to restore. A made rollout in the shape of Codex from 0.144 on (each output a list of
texts) stands at the end. Tokens are counted with the shipped vocabulary, one text at
a time, call inputs included.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import orjson

from lcc.contract.modes import MODES, RULES_MODES, RulesMode
from lcc.contract.report import Report
from lcc.recovery.inputs import restore_inputs
from lcc.recovery.restore import removed_by, restore, restored_bytes
from lcc.relevance import TranscriptCompactionRequest, run_pass
from lcc.relevance.ports import Ports
from lcc.stash import Stash
from lcc.tokens import counter
from lcc.transcript import Json, Message, Transcript, read_transcript, render


class Row(NamedTuple):
    """One session under one mode; sizes are of texts, call inputs and results together."""

    name: str
    mode: RulesMode
    chars: int
    chars_after: int
    tokens: int
    tokens_after: int
    restored: str


def made_rollout(folder: Path) -> Path:
    """A Codex rollout with outputs in several parts: files that were printed, and a build's output."""
    source = "".join(f"def function_{number}(value): return value + {number}\n" for number in range(120))
    (folder / "a.py").write_text(source)
    shown = [
        source,
        *("".join(f"{turn} built module {n} in {n * turn % 97} ms\n" for n in range(150)) for turn in range(12)),
    ]
    items: list[dict[str, Json]] = [_said("user", "Make it faster.")]
    for number, output in enumerate(shown):
        command = "cat a.py" if number == 0 else f"make step{number}"
        given = orjson.dumps({"cmd": command, "workdir": str(folder)}).decode()
        script = f"const r = await tools.exec_command({given});\ntext(r.output);"
        call: dict[str, Json] = {
            "call_id": f"call_{number}",
            "type": "custom_tool_call",
            "name": "exec",
            "input": script,
        }
        parts: list[Json] = [_text("Script completed\nWall time 0.2 seconds\nOutput:\n"), _text(output)]
        items += [call, {"type": "custom_tool_call_output", "call_id": f"call_{number}", "output": parts}]
    items += [_said("assistant" if number % 2 else "user", f"Go on, {number}.") for number in range(14)]
    meta: dict[str, Json] = {"id": "s", "cwd": str(folder), "cli_version": "0.147.0"}
    lines = [{"type": "session_meta", "payload": meta}, *({"type": "response_item", "payload": item} for item in items)]
    path = folder / "made-codex-0.147.jsonl"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


def _text(words: str) -> dict[str, Json]:
    return {"type": "input_text", "text": words}


def _said(role: str, words: str) -> dict[str, Json]:
    return {"type": "message", "role": role, "content": [_text(words)]}


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
    """Whether the compacted session restores to exactly ``raw``, every output proven, inputs too."""
    transcript, removed = read_transcript(content), removed_by(reports)
    found, inputs = restore(transcript, removed, stash), restore_inputs(transcript, reports, stash)
    back = restored_bytes(transcript, replace(found.edits, inputs=inputs.strings), removed)
    return not found.failures and not found.unproven and not inputs.failures and back == raw


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
        for path in [*sorted(folder.glob("*.jsonl")), made_rollout(Path(base))]:
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
