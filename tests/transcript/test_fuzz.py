"""Any bytes at all: a transcript that comes back as written, or a TranscriptError with a place."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from making import answer, assistant, jsonl, result, row, session_files, text, thinking, use, user
from transcript.shapes import said

from lcc.transcript import (
    FORMATS,
    Edits,
    Format,
    Message,
    SessionReader,
    TranscriptError,
    apply_edits,
    messages_to_payload,
    parse_payload,
    read_transcript,
    render,
)

SESSION = jsonl(
    {"type": "summary", "summary": "s", "leafUuid": "u2"},
    user("u1", None, "go"),
    assistant("a1", "u1", "m1", thinking()),
    assistant("a2", "a1", "m1", text("Läok"), use("t1", command="ls")),
    row("progress", "p1", "a2", data={"type": "x"}),
    user("r1", "p1", [result("t1", [text("out")], is_error=False)], sourceToolAssistantUUID="a2"),
    assistant("a3", "r1", "m2", use("t2")),
    answer("r2", "a3", "t2", 'a\n"b"'),
)
PAYLOAD = (
    b'{"messages":[{"role":"user","text":"a"},{"role":"assistant","toolUses":[{"tool_use_id":"t1","tool":"B","input":{}}]},'
    b'{"role":"user","toolResults":[{"tool_use_id":"t1","text":"out","isError":false}]}]}'
)
REQUEST = (
    b'[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"B","input":{}}]},'
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x"}]}]}]'
)
ROLLOUT = jsonl(
    {"type": "session_meta", "payload": {"cwd": "/p"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "e", "arguments": "{}", "call_id": "c"}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": "x"}},
    {"type": "compacted", "payload": {"replacement_history": [{"type": "message", "role": "user", "content": "s"}]}},
)
SEEDS = [SESSION, PAYLOAD, REQUEST, ROLLOUT]
PIECES = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"null",
    b"1",
    b"true",
    b"\xff",
    b"\xc3",
    b'"id"',
    b"\\ud800",
]
ANY_FORMAT: list[Format | None] = [None, *FORMATS.values()]


def refusal_of(read: Callable[[], object]) -> bool:
    """Whether it is refused; a refusal names the problem and its place."""
    try:
        read()
    except TranscriptError as error:
        refused = error
    else:
        return False
    assert refused.place
    assert refused.problem
    return True


def survives(raw: bytes, form: Format | None = None) -> None:
    """Reading works and every promise holds, or it is refused with a place."""
    if refusal_of(lambda: read_transcript(raw, format=form)):
        return
    transcript = read_transcript(raw, format=form)
    assert render(transcript, Edits()) is raw
    messages_to_payload(transcript.messages)
    last = len(transcript.messages) - 1
    pairs = list(transcript.pairs())
    texts = {text.text_id: "[n]" for pair in pairs for text in pair.texts() if text.result.text_path is not None}
    older = frozenset(pair.use.id for pair in pairs if pair.result_message < last)
    for edits in (Edits(texts), Edits(texts, older)):
        out = render(transcript, edits)
        left = apply_edits(transcript, edits)
        assert in_a_row(read_transcript(out, format=transcript.format).messages) == in_a_row(left)


def in_a_row(messages: Sequence[Message]) -> list[Any]:
    """What the messages say, without where one ends: results without a call may join others."""
    return [
        part
        for role, words, uses, results, more in said(messages)
        for part in ([(role, words)] if words else []) + uses + results + ([more] if more else [])
    ]


def mutated(raw: bytes, chosen: random.Random) -> bytes:
    data = bytearray(raw)
    for _ in range(chosen.randint(1, 3)):
        place = chosen.randrange(len(data) + 1)
        match chosen.randrange(4):
            case 0:
                data[place : place + 1] = bytes([chosen.randrange(256)])
            case 1:
                data[place:place] = chosen.choice(PIECES)
            case 2:
                del data[place : place + chosen.choice([1, 2, 9, 90])]
            case _:
                other = chosen.randrange(len(data) + 1)
                data[place:place] = data[other : other + 30]
        if not data:
            break
    return bytes(data)


@given(st.sampled_from(SEEDS), st.randoms(use_true_random=False), st.sampled_from(ANY_FORMAT))
def test_damaged_transcripts(raw: bytes, chosen: random.Random, form: Format | None) -> None:
    survives(mutated(raw, chosen), form)


@given(st.binary(max_size=60), st.sampled_from(ANY_FORMAT))
@example(b"\xef\xbb\xbf", None)
@example(b"\xef\xbb\xbf \n", None)
@example(b"{", None)
@example(b'{"type":', None)
@example(b"\\", FORMATS["claude-code"])
def test_any_bytes(raw: bytes, form: Format | None) -> None:
    survives(raw, form)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["user", "t1", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "text",
                    "content",
                    "toolUses",
                    "toolResults",
                    "tool_use_id",
                    "id",
                    "tool",
                    "input",
                    "type",
                    "name",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON | st.lists(JSON) | JSON.map(lambda value: {"messages": [value]}))
def test_any_objects(value: Any) -> None:
    if not refusal_of(lambda: parse_payload(value)):
        transcript = parse_payload(value)
        assert len(messages_to_payload(transcript.messages)) == len(transcript.messages)


@given(st.sampled_from([SESSION]), st.randoms(use_true_random=False))
def test_a_reader_survives_what_a_file_can_hold(raw: bytes, chosen: random.Random) -> None:
    reader = SessionReader()
    damaged = mutated(raw, chosen)
    cut = chosen.randrange(len(damaged) + 1)
    refused = refusal_of(lambda: reader.feed(damaged[:cut]))
    refused = refused or refusal_of(reader.transcript)
    refused = refused or refusal_of(lambda: reader.feed(damaged[cut:]))
    if not refused and not refusal_of(reader.transcript):
        kept = reader.transcript().raw or b""
        assert damaged.startswith(kept)
        assert b"\n" not in damaged[len(kept) :]


@pytest.mark.parametrize("path", session_files() or [None], ids=lambda p: p.name if p else "none")
def test_real_sessions_with_flipped_bytes(path: Any) -> None:
    """A stretch of each shared session, damaged in a few dozen ways."""
    if path is None:
        pytest.skip("the shared sessions are not here")
    lines = path.read_bytes().splitlines(keepends=True)
    chosen = random.Random(path.name)
    for _ in range(40):
        start = chosen.randrange(max(1, len(lines) - 12))
        survives(
            mutated(b"".join(lines[start : start + 12]), chosen),
            FORMATS["codex" if "codex" in path.name else "claude-code"],
        )
