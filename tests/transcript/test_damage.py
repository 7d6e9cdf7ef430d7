"""Damaged session files: what cannot be read is kept and named, and all else is read, edited and written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from making import answer, assistant, jsonl, result, text, use, user
from transcript.shapes import shape

from lcc.sessions.fork import fork_bytes
from lcc.transcript import Edits, SessionReader, TranscriptError, read_transcript, render

FIRST = (user("u1", None, "one"), assistant("a1", "u1", "m1", use("t1")), answer("r1", "a1", "t1", "x" * 40))
LAST = (user("u2", "r1", "two"), assistant("a2", "u2", "m2", text("done")))
ROLLOUT = (
    {"type": "session_meta", "payload": {"id": "s", "cwd": "/p"}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "go"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "e", "arguments": "{}", "call_id": "c"}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": "x" * 40}},
)
UNREADABLE = {
    "NUL bytes": bytes(512),
    "NUL bytes and a record": bytes(7) + jsonl(user("n", "r1", "lost"), end=""),
    "torn": jsonl(user("n", "r1", "lost"), end="")[:60],
    "torn, with a record behind it": jsonl(user("n", "r1", "lost"), end="")[:60] + jsonl(user("m", "r1", "x"), end=""),
    "a record, with a torn one behind it": jsonl(user("m", "zz", "x"), end="") + b'{"type":"us',
    "null": b"null",
    "a number": b"17",
    "an array": b'["user"]',
    "no JSON": b"<<<<<<< HEAD",
    "UTF-16": '{"type":"user"}'.encode("utf-16"),
    "too deep": b"[" * 3000 + b"]" * 3000,
    "a message that is none": jsonl({"type": "user", "uuid": "n", "parentUuid": "r1", "message": 5}, end=""),
}


PLACED = [
    pytest.param(damage, place, id=f"{name}-{place}")
    for name, damage in UNREADABLE.items()
    for place in (0, 1, 3)
    if (name, place) != ("UTF-16", 0)  # then the whole file is UTF-16
]


@pytest.mark.parametrize(("damage", "place"), PLACED)
def test_an_unreadable_line_is_kept_and_named(damage: bytes, place: int) -> None:
    lines = [jsonl(line, end="") for line in (*FIRST, *LAST)]
    raw = b"\n".join([*lines[:place], damage, *lines[place:]]) + b"\n"
    transcript = read_transcript(raw)

    assert shape(transcript.messages) == ["u:one", "a: +t1", "u: -t1", "u:two", "a:done"]
    [warning] = transcript.warnings
    assert warning.startswith(f"line {place + 1}, ")
    assert warning.endswith("this line is not read, and is kept as it is")
    assert render(transcript, Edits({"t1": "[n]"})) == raw.replace(b'"content":"' + b"x" * 40, b'"content":"[n]', 1)
    reader = SessionReader()
    reader.feed(raw)
    assert reader.transcript() == transcript
    with pytest.raises(TranscriptError):
        read_transcript(raw, strict=True)


@pytest.mark.parametrize("damage", [bytes(80), b"null", b'{"timestamp":"2026-', b"\0\0" + jsonl(ROLLOUT[1], end="")])
@pytest.mark.parametrize("place", [0, 2])
def test_so_it_is_in_a_rollout(damage: bytes, place: int) -> None:
    lines = [jsonl(line, end="") for line in ROLLOUT]
    raw = b"\n".join([*lines[:place], damage, *lines[place:]]) + b"\n"
    transcript = read_transcript(raw)

    assert transcript.format.name == "codex"
    assert shape(transcript.messages) == ["u:go", "a: +c", "u: -c"]
    assert [warning.partition(",")[0] for warning in transcript.warnings] == [f"line {place + 1}"]
    assert render(transcript, Edits({"c": "[n]"})) == raw.replace(b"x" * 40, b"[n]")
    with pytest.raises(TranscriptError):
        read_transcript(raw, strict=True)


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ({"type": "message", "role": "wizard", "content": "x"}, "payload.role"),
        ({"type": "function_call", "name": "e"}, "payload.call_id"),
        ({"type": "function_call_output", "call_id": "c", "output": 5}, "payload.output"),
    ],
)
def test_an_item_that_cannot_be_read_costs_no_other(item: Any, place: str) -> None:
    transcript = read_transcript(jsonl(*ROLLOUT, {"type": "response_item", "payload": item}, ROLLOUT[1]))

    assert shape(transcript.messages) == ["u:go", "a: +c", "u: -c", "u:go"]
    assert [warning.partition(": ")[0] for warning in transcript.warnings] == [f"line 5, {place}"]


def test_a_history_that_cannot_be_read_replaces_nothing() -> None:
    history = [ROLLOUT[1]["payload"], 5]
    broken = {"type": "compacted", "payload": {"replacement_history": history}}

    assert shape(read_transcript(jsonl(*ROLLOUT, broken)).messages) == ["u:go", "a: +c", "u: -c"]


MENDED = {
    "bytes that are no UTF-8": (b"caf\xe9 \xf0\x9f\x98", "caf\ufffd \ufffd"),
    "half of a surrogate pair": (rb"cut \ud83d here", "cut \ufffd here"),
    "the other half": (rb"cut \uDE00", "cut \ufffd"),
    "a pair the wrong way round": (rb"\udc00\ud800", "\ufffd\ufffd"),
    "a whole pair beside a half": (rb"\ud83d\ude00\ud83d", "\U0001f600\ufffd"),
    "a backslash of its own, then a half": (rb"\\ud800 \ud800", "\\ud800 \ufffd"),
    "a stray backslash": (rb"a\someone", "a\\someone"),
}


@pytest.mark.parametrize(("written", "read"), MENDED.values(), ids=MENDED)
def test_a_line_that_can_be_read_around_is_read_and_nothing_in_it_changes(written: bytes, read: str) -> None:
    calls = assistant("a1", "u1", "m1", use("t1"), use("t2"))
    results = user("r1", "a1", [result("t1", "MARK"), result("t2", "y" * 40)])
    raw = jsonl(FIRST[0], calls, results, assistant("a2", "r1", "m2", text("done"))).replace(b"MARK", written)
    transcript = read_transcript(raw)

    assert [r.text for r in transcript.messages[2].tool_results] == [read, "y" * 40]
    assert all(one.result.text_path is None for pair in transcript.pairs() for one in pair.texts())
    [warning] = transcript.warnings
    assert warning.startswith("line 3, column ")
    assert warning.endswith("this line is kept as it is")
    for call_id in ("t1", "t2"):
        with pytest.raises(KeyError):
            render(transcript, Edits({call_id: "[n]"}))


def test_a_second_record_on_a_line_is_read_and_not_changed() -> None:
    """The client sees the first alone."""
    raw = jsonl(*FIRST[:2], end="\n") + jsonl(FIRST[2], LAST[0], end="") + b"\n" + jsonl(LAST[1])
    transcript = read_transcript(raw)

    assert shape(transcript.messages) == ["u:one", "a: +t1", "u: -t1", "u:two", "a:done"]
    [warning] = transcript.warnings
    assert "a second record on the line" in warning
    assert render(transcript, Edits({"t1": "[n]"})) == raw.replace(b'"content":"' + b"x" * 40, b'"content":"[n]', 1)
    again = jsonl(*FIRST[:1]) + jsonl(FIRST[1], FIRST[2], end="") + b"\n" + jsonl(*LAST)
    with pytest.raises(KeyError):
        render(read_transcript(again), Edits({"t1": "[n]"}))


def test_a_line_without_uuid_is_found_by_its_time_and_not_changed() -> None:
    nameless = {k: v for k, v in answer("r1", "a1", "t1").items() if k != "uuid"}
    lines = [FIRST[0], FIRST[1], nameless, user("u2", "r1", "two")]
    timed = [{**line, "timestamp": f"2026-01-01T00:00:0{n}.000Z"} for n, line in enumerate(lines)]
    transcript = read_transcript(jsonl(*timed))

    assert shape(transcript.messages) == ["u:one", "a: +t1", "u: -t1", "u:two"]
    assert transcript.warnings == ("line 3, uuid: a user or assistant entry without uuid; this line is kept as it is",)
    with pytest.raises(KeyError):
        render(transcript, Edits({"t1": "[n]"}))
    untimed = read_transcript(jsonl(*lines))
    assert shape(untimed.messages) == ["u:two"]


def test_a_file_whose_lines_have_no_links_needs_no_uuid() -> None:
    lines = [{"type": "user", "sessionId": "s", "message": {"role": "user", "content": [result("t1", "x" * 40)]}}]
    lines = [{"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": [use("t1")]}}, *lines]
    transcript = read_transcript(jsonl(*lines))

    assert transcript.warnings == ()
    assert b"[n]" in render(transcript, Edits({"t1": "[n]"}))


def test_what_is_dropped_beside_damage_leaves_a_whole_branch() -> None:
    damaged = jsonl(user("u2", "r1", "t\ufffdo"), end="").replace("\ufffd".encode(), b"\xe9")
    raw = jsonl(*FIRST) + damaged + b"\n" + bytes(30) + b"\n" + jsonl(LAST[1])

    out = render(read_transcript(raw), Edits({}, frozenset(["t1"])))

    assert shape(read_transcript(out).messages) == ["u:one", "u:t\ufffdo", "a:done"]
    assert out == jsonl(FIRST[0]) + damaged.replace(b'"r1"', b'"u1"') + b"\n" + bytes(30) + b"\n" + jsonl(LAST[1])


@pytest.mark.parametrize("damage", [*UNREADABLE.values(), jsonl(user("n", "r1", "x"), end="")[:-1] + b',"a":"\xff"}'])
def test_a_damaged_session_can_be_forked(damage: bytes) -> None:
    """The fork holds what the client would resume, and what could be read around is written as it was read."""
    raw = jsonl(*FIRST) + damage + b"\n" + jsonl(*LAST)

    forked = fork_bytes(raw, set(), "0b9b6a0e-52a1-4bd5-8f0c-3d3a1c9f7a22")

    assert shape(read_transcript(forked).messages) == shape(read_transcript(raw).messages)
    assert b"\0" not in forked
    assert forked.decode()


def test_much_damage_is_counted() -> None:
    transcript = read_transcript(jsonl(*FIRST) + b"\0\n" * 5000 + jsonl(*LAST))

    assert len(transcript.warnings) == 21
    assert transcript.warnings[-1] == "4980 more lines are damaged, and kept as they are"


@pytest.mark.parametrize("raw", [bytes(4096), bytes(4096) + b"\n", b"\0\0\0\0{}\n", b"null\nnull\n", b"{}\n{}\n"])
def test_nothing_but_damage_is_no_session(raw: bytes) -> None:
    with pytest.raises(TranscriptError):
        read_transcript(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"messages":[{"role":"user","text":"\xff"}]}',
        b'{"messages":[{"role":"user","text":"x"}]}\n\0\0\0\0\n',
        b'{\n "messages": [\n{"type":"user","uuid":"x"}\n',
        rb'[{"role":"user","text":"\ud800"}]',
    ],
)
def test_a_payload_stays_strict(raw: bytes) -> None:
    """The seed's section 1: malformed input is an error, with its place."""
    with pytest.raises(TranscriptError):
        read_transcript(raw)


class TestCommand:
    """`lcc compact` and its `--strict`."""

    def run(self, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
        program = "from lcc.cli import main; main()"
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
        return subprocess.run(
            [sys.executable, "-c", program, *words], env=environment, capture_output=True, text=True, timeout=60
        )

    def session(self, home: Path) -> Path:
        path = home / "session.jsonl"
        twice = (user("u3", "a2", "again"), assistant("a4", "u3", "m4", use("t2")), answer("r4", "a4", "t2", "x" * 40))
        end = [user(f"e{n}", f"e{n - 1}" if n else "r4", "end") for n in range(8)]
        path.write_bytes(jsonl(*FIRST) + bytes(99) + b"\n" + jsonl(*LAST, *twice, *end))
        return path

    def test_the_rest_is_compacted_and_the_summary_names_the_line(self, tmp_path: Path) -> None:
        path, out = self.session(tmp_path), tmp_path / "out.jsonl"
        done = self.run(tmp_path, "compact", str(path), "--provider", "rules", "-o", str(out), "-r", f"{out}.json")

        assert done.returncode == 0, done.stderr
        assert "warning: line 4, column 1: " in done.stderr
        assert "not read, and is kept as it is" in done.stderr
        assert out.read_bytes().splitlines()[3] == bytes(99)
        assert b"[identical output kept at t2]" in out.read_bytes()
        assert json.loads(Path(f"{out}.json").read_bytes())["warnings"][0].startswith("line 4, column 1: ")
        back = tmp_path / "back.jsonl"
        restored = self.run(tmp_path, "restore", str(out), "--report", f"{out}.json", "-o", str(back))
        assert restored.returncode == 0, restored.stderr
        assert back.read_bytes() == path.read_bytes()

    def test_strict_refuses_it_and_says_the_place(self, tmp_path: Path) -> None:
        path, out = self.session(tmp_path), tmp_path / "out.jsonl"
        done = self.run(tmp_path, "compact", str(path), "--provider", "rules", "--strict", "-o", str(out))

        assert done.returncode == 2
        assert "line 4, column 1: NUL bytes" in done.stderr
        assert "without --strict" in done.stderr
        assert not out.exists()
