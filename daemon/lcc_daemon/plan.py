"""The plan: what the hook's module does with the session. Values, their JSON, and the line the user reads."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TypeAlias

import orjson

from lcc.contract.report import Report
from lcc.explain.grouped import input_words
from lcc.private_files import remove_own, write_private
from lcc.transcript import Json, Path
from lcc_daemon.figures import Figures

VERSION = 1
STDOUT_LIMIT = 4 * 1024 * 1024
"""Claude Code cuts a program's output there, in bytes, and reads no larger file."""
PART_BYTES = 3_500_000
PART_LIFE_SECONDS = 15 * 60
_PART = re.compile(r"[0-9a-f]{16}-\d+\.json")


@dataclass(frozen=True, slots=True)
class HandOver:
    """Claude Code does what it would have done without us. ``reason`` is a machine word, ``say`` one line."""

    reason: str
    say: str

    def encode(self) -> bytes:
        line = f"left to the built-in summary: {' '.join(self.say.split())}"
        return orjson.dumps({"v": VERSION, "action": "hand-over", "reason": self.reason, "say": line})


@dataclass(frozen=True, slots=True)
class Replace:
    """The new text of results, the calls that go with their results, the new strings of inputs by their path within it,
    all by call id; and the saved report's path."""

    results: Mapping[str, str]
    dropped: frozenset[str]
    inputs: Mapping[str, Mapping[Path, str]]
    say: str
    report: str | None
    tokens_after: int | None = None
    """What the context will hold, estimated from the client's own figure; None where that is not known."""

    def encode(self) -> bytes:
        plan = {
            "v": VERSION,
            "action": "replace",
            "results": dict(self.results),
            "dropped": sorted(self.dropped),
            "inputs": {
                call: [[list(path), text] for path, text in strings.items()] for call, strings in self.inputs.items()
            },
            "say": self.say,
            "report": self.report,
            "tokens_after": self.tokens_after,
        }
        try:
            return orjson.dumps(plan)
        except TypeError:  # a lone surrogate, which JSON.stringify lets through and UTF-8 has no bytes for
            import json

            return json.dumps(plan).encode("ascii")


Plan: TypeAlias = HandOver | Replace


def summary_line(report: Report, figures: Figures, window: int | None = None) -> str:
    """What was kept and what was removed, in tokens and shares of the ``window``, for the one line that is read."""
    before, after, _ = figures
    calls = report["tool_calls_total"]
    pointed = report["tool_calls_deduped"] + report["tool_calls_replaced"]
    judged = report["tool_calls_trimmed"] + report["tool_calls_dropped"]
    removed = [f"{pointed} can be had back and left a pointer"] if pointed or not judged else []
    if judged:
        removed.append(f"{judged} cut or dropped on the judge's word")
    inputs = input_words(report)
    if inputs:
        removed.append(inputs)
    about = "" if figures.is_real else "~"
    return (
        f"kept every message and {calls - pointed - judged} of {calls} tool results; {', '.join(removed)}: "
        f"{percent(report['reduction_ratio'])} % less text, "
        f"{about}{thousands(before)}{_share(before, window)} to ~{thousands(after)}{_share(after, window)} tokens"
        f"{f' of {thousands(window)}' if window else ''}"
    )


def _share(tokens: int, window: int | None) -> str:
    return f" ({round(100 * tokens / window)} %)" if window else ""


def percent(share: float) -> int:
    """A share of the session's text as the user reads it: the one that `min_reduction` is compared with, never more."""
    return math.floor(100 * share + 1e-9)


def thousands(tokens: int) -> str:
    return str(tokens) if tokens < 10_000 else f"{tokens / 1000:.0f}k"


def to_stdout(encoded: bytes, folder: FilePath) -> bytes:
    """The plan as it goes to stdout: itself, or, where that would be cut, the paths of private files with its parts.

    ``folder`` is made private; each part is whole UTF-8, and all of them in order are the plan's JSON.
    """
    if len(encoded) < STDOUT_LIMIT:
        return encoded
    name = secrets.token_hex(8)
    paths: list[Json] = []
    start = 0
    while start < len(encoded):
        end = min(start + PART_BYTES, len(encoded))
        while end < len(encoded) and encoded[end] & 0xC0 == 0x80:
            end -= 1
        path = folder / f"{name}-{len(paths)}.json"
        try:
            write_private(path, encoded[start:end], durable=False)  # it is read at once, or never
        except OSError:
            remove_own(folder, re.compile(rf"{name}-\d+\.json"))
            raise
        paths.append(str(path))
        start = end
    return orjson.dumps({"v": VERSION, "action": "parts", "parts": paths})


def remove_old_parts(folder: FilePath, older_than: float = PART_LIFE_SECONDS) -> None:
    """Remove parts that have been read long ago."""
    remove_own(folder, _PART, older_than=older_than)
