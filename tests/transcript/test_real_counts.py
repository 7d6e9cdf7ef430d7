"""The shared sessions: every call and result, counted by code that shares nothing with the reader."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from making import session_files

from lcc.transcript import read_transcript

HERE = session_files() or [None]


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """Every JSON object of the file; an escape that JSON does not know is taken as a backslash."""
    decoder = json.JSONDecoder()
    for line in path.read_text(encoding="utf-8").split("\n"):
        line = re.sub(r'\\(["\\/bfnrtu])|\\', lambda found: found[0] if found[1] else r"\\", line.strip())
        while line:
            value, end = decoder.raw_decode(line)
            yield value
            line = line[end:].strip()


def ids_of_session(path: Path) -> tuple[list[str], list[str]]:
    """The ids of the calls and of the results after the last boundary, side chains and nested messages apart."""
    uses: list[str] = []
    results: list[str] = []
    for value in objects(path):
        if value.get("subtype") == "compact_boundary":
            uses, results = [], []
        if value.get("type") in ("user", "assistant") and not value.get("isSidechain"):
            content = value["message"]["content"]
            for block in content if isinstance(content, list) else ():
                if block["type"] == "tool_use":
                    uses.append(block["id"])
                elif block["type"] == "tool_result":
                    results.append(block["tool_use_id"])
    return uses, results


def ids_of_rollout(path: Path) -> tuple[list[str], list[str]]:
    items = [value["payload"] for value in objects(path) if value["type"] == "response_item"]
    uses = [item["call_id"] for item in items if item["type"] in ("function_call", "custom_tool_call")]
    return uses, [item["call_id"] for item in items if item["type"].endswith("call_output")]


@pytest.mark.parametrize("path", HERE, ids=lambda p: p.name if p else "none")
def test_no_call_and_no_result_is_missed_or_read_twice(path: Path | None) -> None:
    """None of these sessions has a rewind, so all of their calls are live."""
    if path is None:
        pytest.skip("the shared sessions are not here")
    uses, results = (ids_of_rollout if path.name.startswith("codex") else ids_of_session)(path)

    transcript = read_transcript(path.read_bytes())

    assert sorted(use.id for message in transcript.messages for use in message.tool_uses) == sorted(uses)
    assert sorted(r.tool_use_id for message in transcript.messages for r in message.tool_results) == sorted(results)
    assert [pair.use.id for pair in transcript.pairs()] == [
        use.id for message in transcript.messages for use in message.tool_uses if use.id in set(results)
    ]
