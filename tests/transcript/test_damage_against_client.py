"""A damaged session file: what we read of it is what the real client sends when it resumes it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from client.claude_process import Lab
from client.conftest import CURRENT
from client.conversation import Item
from client.messages_api import Reply, Script, say, serve
from transcript.test_against_client import items, resumed, sent

from lcc.transcript import read_transcript

pytestmark = pytest.mark.client

SESSION = "0b9b6a0e-52a1-4bd5-8f0c-3d3a1c9f7a11"
Damage = Callable[[list[bytes]], list[bytes]]


def at(index: int, change: Callable[[bytes], bytes]) -> Damage:
    """One line changed."""
    return lambda lines: [*lines[:index], change(lines[index]), *lines[index + 1 :]]


def ahead(index: int, line: bytes) -> Damage:
    """A line put in ahead of one."""
    return lambda lines: [*lines[:index], line, *lines[index:]]


def glued(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[3] + lines[4], *lines[5:]]


DAMAGES: dict[str, Damage] = {
    "none": lambda lines: lines,
    "a line of NUL bytes": ahead(4, bytes(700)),
    "NUL bytes ahead of a record": at(4, lambda line: bytes(40) + line),
    "the first line is NUL bytes": ahead(0, bytes(4096)),
    "two records on a line": glued,
    "a torn record with a whole one behind it": at(4, lambda line: line[:80] + line),
    "a torn record": at(4, lambda line: line[:80]),
    "a torn last record": at(-1, lambda line: line[:-30]),
    "null": ahead(4, b"null"),
    "a number": ahead(4, b"5"),
    "an array": ahead(4, b"[1]"),
    "bytes that are no UTF-8": at(4, lambda line: line.replace(b"Second", b"Seco\xe9nd")),
    "half of a surrogate pair": at(4, lambda line: line.replace(b"Second", b"Seco\\ud83dnd")),
    "half of a surrogate pair in a result": at(3, lambda line: line.replace(b"out-1", b"out-\\udc00")),
    "no uuid": at(4, lambda line: line.replace(b'"uuid":', b'"uuidx":')),
    "no message": at(4, lambda line: line.replace(b'"message":', b'"messagex":')),
    "a control character": at(4, lambda line: line.replace(b"Second", b"Sec\x01ond")),
    "NaN": at(4, lambda line: line.replace(b'"isSidechain":false', b'"isSidechain":NaN')),
}


def session(lab: Lab) -> list[bytes]:
    """The lines of a session: three turns, two calls."""
    lines: list[bytes] = []
    parent: str | None = None

    def add(kind: str, **more: object) -> None:
        nonlocal parent
        uuid = f"00000000-0000-4000-8000-{len(lines):012}"
        line = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": str(lab.project),
            "sessionId": SESSION,
            "version": CURRENT,
            "type": kind,
            **more,
            "uuid": uuid,
            "timestamp": f"2026-01-01T00:00:{len(lines):02}.000Z",
        }
        lines.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode())
        parent = uuid

    def prompt(words: str) -> None:
        add("user", message={"role": "user", "content": words})

    def answer(number: int, *blocks: object) -> None:
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-opus-4-6"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        add("assistant", message={**message, "content": list(blocks), "stop_reason": "end_turn", "usage": usage})

    def step(number: int, call: str, output: str) -> None:
        answer(number, {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"echo {output}"}})
        add(
            "user",
            message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": output}]},
        )

    prompt("First.")
    answer(1, {"type": "text", "text": "One."})
    step(2, "toolu_1", "out-1")
    prompt("Second.")
    answer(3, {"type": "text", "text": "Two."})
    step(4, "toolu_2", "out-2")
    answer(5, {"type": "text", "text": "Three."})
    return lines


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_read_is_what_the_client_resumes(client: Path, lab: Lab, damage: str) -> None:
    raw = b"\n".join(DAMAGES[damage](session(lab))) + b"\n"
    folder = lab.home / ".claude" / "projects" / re.sub("[^A-Za-z0-9]", "-", str(lab.project))
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_bytes(raw)
    messages = read_transcript(raw).messages
    with serve(Script([Reply([say("Done.")])])) as (api, url):
        resumed(client, lab, url, SESSION)
        got = sent(api)

    ours = items(messages)
    if damage == "two records on a line":  # the client lets the second one go; we read it, and change nothing in it
        ours.remove(Item("user", "", "Second."))
    assert got[:-1] == ours
