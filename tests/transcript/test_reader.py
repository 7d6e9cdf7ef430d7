"""Following a session file that grows: the same transcript as reading it whole, each byte parsed once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import answer, assistant, jsonl, session_files, text, use, user
from transcript.shapes import shape

import lcc.transcript.formats.claude.growing
from lcc.transcript import Edits, SessionReader, read_transcript, render

LINES = (
    user("u1", None, "täsk \U0001f600"),
    assistant("a1", "u1", "m1", text("é"), use("t1")),
    answer("r1", "a1", "t1", "öutput"),
    user("u2", "r1", "end"),
)
RAW = jsonl(*LINES[:2], end="\r\n") + jsonl({"type": "summary", "summary": "x"}, end="") + jsonl(*LINES[2:]) + b"\n"


@given(st.lists(st.integers(0, len(RAW))))
def test_fed_in_any_pieces_it_reads_the_same(cuts: list[int]) -> None:
    reader = SessionReader()
    bounds = [0, *sorted(cuts), len(RAW)]
    for start, end in itertools.pairwise(bounds):
        reader.feed(RAW[start:end])
        reader.transcript()

    assert reader.transcript() == read_transcript(RAW)


def test_an_unfinished_last_line_waits_until_it_is_whole() -> None:
    """The client is writing it just now: that is no error, and it is not part of the transcript."""
    whole = len(jsonl(*LINES[:3]))
    raw = jsonl(*LINES)
    reader = SessionReader()
    for position in range(len(raw)):
        reader.feed(raw[position : position + 1])
        if whole <= position + 1 < len(raw) - 1:
            transcript = reader.transcript()
            assert shape(transcript.messages)[-1] == "u: -t1"
            assert transcript.raw == raw[:whole]
            assert b"[n]" in render(transcript, Edits({"t1": "[n]"}))
        elif position + 1 >= len(raw) - 1:
            assert shape(reader.transcript().messages)[-1] == "u:end"
            assert reader.transcript().raw == raw[: position + 1]


def test_a_whole_last_line_without_newline_counts() -> None:
    reader = SessionReader()
    reader.feed(jsonl(*LINES)[:-1])

    assert reader.transcript() == read_transcript(jsonl(*LINES)[:-1])
    reader.feed(b"\n" + jsonl(user("u3", "u2", "more")))
    assert shape(reader.transcript().messages)[-2:] == ["u:end", "u:more"]


def test_a_reader_without_bytes_is_an_empty_session() -> None:
    assert SessionReader().transcript().messages == ()
    reader = SessionReader()
    reader.feed(b"")
    assert reader.transcript().raw == b""


def test_what_was_fed_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    split = lcc.transcript.formats.claude.growing.split

    def counting(raw: bytes, *place: int) -> Iterator[Any]:
        for document in split(raw, *place):
            parsed.append(document.end - document.start)
            yield document

    monkeypatch.setattr(lcc.transcript.formats.claude.growing, "split", counting)
    reader = SessionReader()
    for line in LINES:
        reader.feed(jsonl(line))
        reader.transcript()

    assert parsed == [len(jsonl(line)) - 1 for line in LINES]


def test_damaged_lines_are_named_with_their_line_in_the_file() -> None:
    reader = SessionReader()
    reader.feed(jsonl(*LINES))
    reader.feed(b'\n{"a"\n')
    raw = jsonl(*LINES) + b'\n{"a"\n'

    assert [warning.partition(": ")[0] for warning in reader.transcript().warnings] == ["line 6, column 5"]
    assert reader.transcript() == read_transcript(raw)


def test_an_input_too_deep_is_passed_over_as_in_a_whole_read() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    raw = jsonl(*LINES, assistant("a9", "u2", "m9", use("t9", a=deep)))
    reader = SessionReader()
    reader.feed(raw)

    assert reader.transcript() == read_transcript(raw)
    assert reader.transcript().messages[-1].tool_uses[0].input is None
    [warning] = reader.transcript().warnings
    assert warning.startswith("line 5, message.content[0].input: nested deeper")


@pytest.mark.parametrize("path", session_files("cc-*.jsonl") or [None], ids=lambda p: p.name if p else "none")
def test_real_sessions_grow_to_what_they_are(path: Path | None) -> None:
    if path is None:
        pytest.skip("the shared sessions are not here")
    raw = path.read_bytes()
    reader = SessionReader()
    for start in range(0, len(raw), 65_537):
        reader.feed(raw[start : start + 65_537])

    assert reader.transcript() == read_transcript(raw)
