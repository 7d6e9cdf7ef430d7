"""A session that lcc has compacted once, after the prompt cache had run out, with every figure known."""

from __future__ import annotations

import json
from pathlib import Path

import making

from lcc.transcript import Json

SESSION = "5a3f0c52-1111-4222-8333-444455556666"
FREED = 60_000
CACHED = 10_000
"""The system prompt and tools, which the cache still held."""


def write_session(path: Path, folder: str = "/work/shop", session: str = SESSION) -> Path:
    """Ten requests up to 100,000 tokens; an hour later 40,000 are left, and four more follow, with one recall."""
    more: making.Row = {"sessionId": session, "cwd": folder, "version": "2.1.332"}
    rows = [making.user("u0", None, "Mend the parser.", timestamp="2026-01-01T10:00:00.000Z", **more)]
    parent = "u0"
    for number in range(10):
        call = making.use(f"t{number}", "Read", file_path=f"{folder}/src/part{number}.py")
        read = 0 if not number else 10_000 * number
        rows.append(_answer(f"m{number}", parent, call, (read, 10_000), f"2026-01-01T10:{number:02}:30.000Z", more))
        text = making.numbered(making.long_text(f"part{number}", 200))
        rows.append(making.answer(f"r{number}", f"m{number}", f"t{number}", text, **more))
        parent = f"r{number}"
    ours = {"subtype": "compact_boundary", "timestamp": "2026-01-01T11:15:00.000Z", "logicalParentUuid": parent}
    rows.append(making.row("system", "b0", None, **ours, **more))
    rows.append(making.user("u1", "b0", "Go on.", timestamp="2026-01-01T11:20:00.000Z", **more))
    parent = "u1"
    usages = [(CACHED, 100_000 - FREED - CACHED), (40_000, 2_000), (42_000, 2_000), (44_000, 2_000)]
    for number, usage in enumerate(usages):
        recall = making.use(f"c{number}", "Bash", command="lcc recall 0123456789ab" if number == 1 else "ls")
        when = f"2026-01-01T11:2{number}:30.000Z"
        rows.append(_answer(f"n{number}", parent, recall, usage, when, more))
        rows.append(making.answer(f"s{number}", f"n{number}", f"c{number}", "out", **more))
        parent = f"s{number}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _answer(
    name: str, parent: str, block: making.Block, usage: tuple[int, int], when: str, more: making.Row
) -> making.Row:
    row = making.assistant(name, parent, name, block, timestamp=when, **more)
    figures: Json = {
        "input_tokens": 0,
        "cache_read_input_tokens": usage[0],
        "cache_creation_input_tokens": usage[1],
        "output_tokens": 50,
    }
    row["message"].update(model="claude-sonnet-5", usage=figures)
    return row


def cost_by_hand() -> float:
    """What its requests cost: ten that write 10,000 each and read what was there, and four after the compaction."""
    before = sum(1.25 * 10_000 + 0.1 * 10_000 * number for number in range(10))
    after = 0.1 * CACHED + 1.25 * (100_000 - FREED - CACHED) + sum(0.1 * read + 1.25 * 2_000 for read in AFTER)
    return before + after


AFTER = (40_000, 42_000, 44_000)


def saved_by_hand() -> float:
    """What was freed was not written once, and not read three times."""
    return FREED * 1.25 + len(AFTER) * FREED * 0.1
