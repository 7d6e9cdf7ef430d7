"""Rendering: what is read back from the output is exactly what the edits say, in every format."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import answer, assistant, jsonl, result, row, session_files, text, thinking, use, user
from transcript.shapes import said, shape

from lcc.transcript import (
    Edits,
    Transcript,
    apply_edits,
    messages_to_payload,
    parse_payload,
    read_transcript,
    render,
)

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)

PARTS = st.lists(WORDS.map(text) | st.just({"type": "image", "source": {}}) | st.just({"type": "x", "text": "no text"}))
CONTENTS = WORDS | WORDS.map(lambda w: [text(w)]) | PARTS


@st.composite
def payloads(draw: st.DrawFn) -> Any:
    """A payload in either spelling, with unknown fields, odd numbers and any text."""
    snake = draw(st.booleans())
    uses, results = ("tool_calls", "tool_results") if snake else ("toolUses", "toolResults")
    messages: list[Any] = [{"role": "user", "text": draw(WORDS)}]
    for step in range(draw(st.integers(0, 4))):
        ids = [f"t{step}_{n}" for n in range(draw(st.integers(0, 3)))]
        extra = draw(st.dictionaries(st.sampled_from(["x", "handle", "é"]), WORDS | st.integers() | st.floats(0, 1)))
        calls = [{"tool_use_id": i, "tool": "Bash", "input": {"command": draw(WORDS)}} for i in ids]
        messages.append({"role": "assistant", "text": draw(WORDS), uses: calls, **extra})
        answered = [i for i in ids if draw(st.integers(0, 4))]
        outs = [{"id": i, "text": draw(WORDS), "isError": draw(st.booleans()), **extra} for i in answered]
        messages.append({"role": "user", results: outs, **extra} | ({} if outs else {"text": draw(WORDS)}))
    return messages if draw(st.booleans()) else {"n": 1, "messages": messages, "z": None}


@st.composite
def requests(draw: st.DrawFn) -> Any:
    """A Messages API request with thinking, images and results in each form."""
    messages: list[Any] = [{"role": "user", "content": draw(WORDS)}]
    for step in range(draw(st.integers(0, 4))):
        ids = [f"t{step}_{n}" for n in range(draw(st.integers(1, 3)))]
        blocks: list[Any] = [thinking(draw(WORDS)) for _ in range(draw(st.integers(0, 1)))]
        for call_id in ids:
            blocks += [text(draw(WORDS))] * draw(st.integers(0, 1)) + [thinking()] * draw(st.integers(0, 1))
            blocks.append(use(call_id, command=draw(WORDS)))
        contents = [draw(CONTENTS) for _ in ids]
        messages.append({"role": "assistant", "content": blocks})
        outs = [{"type": "tool_result", "tool_use_id": i, "content": c} for i, c in zip(ids, contents, strict=True)]
        messages.append({"role": "user", "content": outs + [text(draw(WORDS))] * draw(st.integers(0, 1))})
    return {"model": "m", "messages": messages}


@st.composite
def sessions(draw: st.DrawFn) -> list[Any]:
    """A session's lines: parallel calls on branches, progress in the chain, rewinds, thinking, text."""
    lines: list[Any] = []
    parent: str | None = None

    def chain(line: dict[str, Any]) -> str:
        lines.append(line)
        return str(line["uuid"])

    for step in range(draw(st.integers(1, 5))):
        if step and draw(st.integers(0, 4)) == 0:
            chain(user(f"dead{step}", parent, "rewound"))
        if step == 0 or draw(st.booleans()):
            parent = chain(user(f"u{step}", parent, draw(WORDS)))
        base = parent
        if draw(st.booleans()):
            base = chain(assistant(f"k{step}", base, f"m{step}", thinking()))
        if draw(st.booleans()):
            base = chain(assistant(f"x{step}", base, f"m{step}", text(draw(WORDS))))
        shape_ = draw(st.sampled_from(["chained", "siblings", "interleaved"]))
        calls, outs = [], []
        for n in range(draw(st.integers(0, 3))):
            call_line = f"a{step}_{n}"
            chain(assistant(call_line, base, f"m{step}", use(f"t{step}_{n}", command=draw(WORDS))))
            calls.append((call_line, n))
            if shape_ == "chained":
                base = call_line
            if shape_ == "interleaved":
                base = chain(answer(f"r{step}_{n}", call_line, f"t{step}_{n}", draw(CONTENTS)))
                outs.append(base)
        if shape_ != "interleaved":
            for call_line, n in draw(st.permutations(calls)):
                if draw(st.booleans()):
                    call_line = chain(row("progress", f"p{step}_{n}", call_line, data={"type": "x"}))
                more = {"sourceToolAssistantUUID": f"a{step}_{n}"}
                outs.append(chain(answer(f"r{step}_{n}", call_line, f"t{step}_{n}", draw(CONTENTS), **more)))
        parent = outs[-1] if outs else base
    lines.append(user("end", parent, "end"))
    return lines


def edits_of(transcript: Transcript, chosen: random.Random, *, share: float | None = None) -> Edits:
    share = chosen.choice([0.2, 0.5, 0.9, 1.0]) if share is None else share
    pairs = list(transcript.pairs())
    texts = {
        one.text_id: chosen.choice(["[note]", '[n "é" \\ \U0001f600]', ""])
        for p in pairs
        for one in p.texts()
        if one.result.text_path is not None and chosen.random() < 0.5
    }
    inputs = {
        p.use.id: {path: chosen.choice(["[note]", '[n "é" \\ \U0001f600]']) for path in string_paths(p.use.input)}
        for p in pairs
        if transcript.format.input_path(p.use) is not None and chosen.random() < 0.5
    }
    return Edits(texts, frozenset(p.use.id for p in pairs if chosen.random() < share), inputs)


def string_paths(value: Any, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where the strings of an input stand."""
    if isinstance(value, str):
        return [above]
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for step, inner in inside for path in string_paths(inner, (*above, step))]


def check(raw: bytes, transcript: Transcript, edits: Edits) -> bytes:
    """Reading the output gives what the edits say; rendering again without edits changes nothing."""
    out = render(transcript, edits)
    again = read_transcript(out, format=transcript.format)
    assert said(again.messages) == said(apply_edits(transcript, edits))
    inputs = [use.input for message in apply_edits(transcript, edits) for use in message.tool_uses]
    assert [use.input for message in again.messages for use in message.tool_uses] == inputs
    assert render(again, Edits()) is out
    assert render(transcript, Edits()) is raw
    return out


@given(payloads() | requests(), st.randoms(use_true_random=False), st.booleans(), st.sampled_from([None, 2]))
def test_documents(document: Any, chosen: random.Random, ascii_only: bool, indent: int | None) -> None:
    """The seed's payload and Messages API requests, from bytes and from objects alike."""
    raw = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode()
    transcript = read_transcript(raw)
    edits = edits_of(transcript, chosen)

    out = check(raw, transcript, edits)

    of_objects = messages_to_payload(apply_edits(parse_payload(document), edits))
    written = json.loads(out)
    assert (written["messages"] if isinstance(written, dict) else written) == of_objects
    assert out.isascii() or not raw.isascii()
    if isinstance(document, dict):
        assert {**written, "messages": 0} == {**document, "messages": 0}
    if indent is None and not edits.dropped:
        assert out == json.dumps(written, ensure_ascii=out.isascii()).encode()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(sessions(), st.randoms(use_true_random=False))
def test_sessions(lines: list[Any], chosen: random.Random) -> None:
    """Whatever is dropped, all else is still on the live branch, and every line but those is as it was."""
    raw = jsonl(*lines)
    transcript = read_transcript(raw)
    edits = edits_of(transcript, chosen)

    out = check(raw, transcript, edits)

    before = {line["uuid"]: line for line in lines}
    after = {line["uuid"]: line for line in map(json.loads, out.splitlines())}
    removed = before.keys() - after.keys()
    assert list(after) == [uuid for uuid in before if uuid not in removed]
    for uuid, line in after.items():
        assert line["parentUuid"] not in removed
        changing = {"parentUuid": 0, "message": 0, "sourceToolAssistantUUID": 0}
        assert line | changing == before[uuid] | changing


@pytest.mark.parametrize("path", session_files() or [None], ids=lambda p: p.name if p else "none")
def test_real_sessions(path: Path | None) -> None:
    """Each shared session, with texts replaced and calls dropped at random, five times over."""
    if path is None:
        pytest.skip("the shared sessions are not here")
    raw = path.read_bytes()
    transcript = read_transcript(raw)
    for seed, share in enumerate([0.0, 0.1, 0.5, 0.9, 1.0]):
        check(raw, transcript, edits_of(transcript, random.Random(seed), share=share))


def test_only_the_results_bytes_change_in_a_session() -> None:
    raw = jsonl(
        user("u1", None, "go"),
        assistant("a1", "u1", "m1", use("t1")),
        answer("r1", "a1", "t1", "the output, twice in the line"),
    )

    out = render(read_transcript(raw), Edits({"t1": "[note]"}))

    assert out == raw.replace(b'"content":"the output, twice in the line"', b'"content":"[note]"')


def test_the_second_copy_beside_the_message_stays() -> None:
    out = render(
        read_transcript(jsonl(assistant("a1", None, "m1", use("t1")), answer("r1", "a1", "t1", "x" * 50))),
        Edits({"t1": "[note]"}),
    )

    assert b'"toolUseResult":{"stdout":"' + b"x" * 50 in out


def test_a_boundarys_older_lines_stay_in_the_file() -> None:
    lines = [
        user("u0", None, "old"),
        row("system", "b1", None, subtype="compact_boundary", logicalParentUuid="u0"),
        user("u1", "b1", "summary"),
        assistant("a1", "u1", "m1", use("t1")),
        answer("r1", "a1", "t1"),
        user("u2", "r1", "end"),
    ]

    out = render(read_transcript(jsonl(*lines)), Edits({}, frozenset(["t1"])))

    assert out == jsonl(*lines[:3], user("u2", "u1", "end"))


def test_pointers_at_a_removed_line_go_to_its_nearest_ancestor() -> None:
    lines = [
        user("u1", None, "go"),
        assistant("a1", "u1", "m1", use("t1")),
        row("progress", "p1", "a1", data={"parentUuid": "a1"}),
        answer("r1", "p1", "t1"),
        {"type": "summary", "summary": "s", "leafUuid": "r1"},
        user("u2", "r1", "end", logicalParentUuid="a1"),
    ]

    out = render(read_transcript(jsonl(*lines)), Edits({}, frozenset(["t1"])))

    assert out == jsonl(
        lines[0],
        row("progress", "p1", "u1", data={"parentUuid": "a1"}),
        {"type": "summary", "summary": "s", "leafUuid": "p1"},
        user("u2", "p1", "end", logicalParentUuid="u1"),
    )


def test_a_call_beside_the_walk_is_not_lost_with_the_one_on_it() -> None:
    """Both calls of one message hang on the same parent; the walk leads through the second, which is dropped."""
    lines = [
        user("u1", None, "go"),
        assistant("a1", "u1", "m1", use("t1")),
        assistant("a2", "u1", "m1", use("t2")),
        answer("r1", "a1", "t1", sourceToolAssistantUUID="a1"),
        answer("r2", "a2", "t2", sourceToolAssistantUUID="a2"),
        user("u2", "r2", "end"),
    ]

    out = render(read_transcript(jsonl(*lines)), Edits({}, frozenset(["t2"])))

    assert shape(read_transcript(out).messages) == ["u:go", "a: +t1", "u: -t1", "u:end"]


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        (
            {"preservedMessages": {"anchorUuid": "s1", "uuids": ["a1", "r1", "u2", "a2", "r2"]}},
            {"preservedMessages": {"anchorUuid": "s1", "uuids": ["u2"]}},
        ),
        (
            {"preservedSegment": {"headUuid": "a1", "anchorUuid": "s1", "tailUuid": "r2"}},
            {"preservedSegment": {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "u2"}},
        ),
    ],
)
def test_a_boundary_keeps_what_is_left_of_its_lines(kept: Any, left: Any) -> None:
    lines = [
        user("u1", None, "old"),
        assistant("a1", "u1", "m1", use("t1")),
        answer("r1", "a1", "t1"),
        user("u2", "r1", "kept"),
        assistant("a2", "u2", "m2", use("t2")),
        answer("r2", "a2", "t2"),
        row("system", "b1", None, subtype="compact_boundary", compactMetadata=kept),
        user("s1", "b1", "summary"),
        user("u3", "s1", "end"),
    ]
    transcript = read_transcript(jsonl(*lines))
    assert shape(transcript.messages) == ["u:summary", "a: +t1", "u: -t1", "u:kept", "a: +t2", "u: -t2", "u:end"]

    out = check(transcript.raw or b"", transcript, Edits({}, frozenset(["t1", "t2"])))

    assert shape(read_transcript(out).messages) == ["u:summary", "u:kept", "u:end"]
    assert json.loads(out.splitlines()[2])["compactMetadata"] == left


def test_a_line_that_keeps_a_block_stays() -> None:
    raw = jsonl(
        assistant("a1", None, "m1", text("both"), use("t1"), use("t2")),
        user("r1", "a1", [{"type": "tool_result", "tool_use_id": t, "content": t} for t in ("t1", "t2")]),
    )

    out = render(read_transcript(raw), Edits({}, frozenset(["t1"])))

    assert shape(read_transcript(out).messages) == ["a:both +t2", "u: -t2"]
    assert [json.loads(line)["uuid"] for line in out.splitlines()] == ["a1", "r1"]


def test_one_of_two_objects_on_a_line_is_removed_alone() -> None:
    first = jsonl(user("u1", None, "go"), assistant("a1", "u1", "m1", use("t1")), end="")
    raw = first + b"\r\n" + jsonl(answer("r1", "a1", "t1"), user("u2", "r1", "end"), end="\r\n")

    out = render(read_transcript(raw), Edits({}, frozenset(["t1"])))

    assert out == jsonl(user("u1", None, "go"), user("u2", "u1", "end"), end="\r\n")


def test_each_part_of_a_result_is_a_text_of_its_own() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "iVBOR"}}
    parts = [text("a"), image, text("b"), {**text("c"), "citations": None}]
    raw = jsonl(assistant("a1", None, "m1", use("t1")), user("r1", "a1", [result("t1", parts)]))
    transcript = read_transcript(raw)
    [pair] = transcript.pairs()

    assert pair.result.text == "a\nb\nc"
    assert [(one.text_id, one.result.text, one.use) for one in pair.texts()] == [
        ("t1 part 1", "a", pair.use),
        ("t1 part 3", "b", pair.use),
        ("t1 part 4", "c", pair.use),
    ]
    edits = Edits({"t1 part 3": "[note]", "t1 part 4": ""})
    out = check(raw, transcript, edits)
    assert out == raw.replace(b'"text":"b"', b'"text":"[note]"').replace(b'"text":"c"', b'"text":""')
    assert apply_edits(transcript, edits)[-1].tool_results[0].text == "a\n[note]\n"
    assert render(transcript, Edits(edits.texts, frozenset(["t1"]))) == b""


def test_a_result_that_is_not_one_text_cannot_be_replaced_as_one() -> None:
    parts = [text("a"), text("b")]
    transcript = read_transcript(jsonl(assistant("a1", None, "m1", use("t1")), answer("r1", "a1", "t1", parts)))

    for attempt in (render, apply_edits):
        with pytest.raises(KeyError, match="not one text"):
            attempt(transcript, Edits({"t1": "[note]"}))


def test_objects_have_no_bytes_to_render() -> None:
    with pytest.raises(ValueError, match="no bytes"):
        render(parse_payload([]), Edits())


def test_messages_without_edits_are_the_same_objects() -> None:
    transcript = parse_payload(
        [
            {"role": "assistant", "toolUses": [{"id": "1", "tool": "a"}, {"id": "2", "tool": "a"}]},
            {"role": "user", "toolResults": [{"id": "1", "text": "x"}]},
            {"role": "user", "toolResults": [{"id": "2", "text": "x"}]},
        ]
    )

    compacted = apply_edits(transcript, Edits({"1": "[n]"}))

    assert compacted[0] is transcript.messages[0]
    assert compacted[2] is transcript.messages[2]
    assert transcript.messages[1].tool_results[0].text == "x"
    assert apply_edits(transcript, Edits()) is transcript.messages


def test_strings_of_an_input_change_alone() -> None:
    """The call, its other fields, their order and their types stay; the transcript's own objects are not changed."""
    given = {"file_path": "/p/a.py", "edits": [{"old_string": "x" * 9, "new_string": "y", "all": True}], "n": 3}
    document = [
        {"role": "assistant", "toolUses": [{"tool_use_id": "1", "tool": "MultiEdit", "input": given}]},
        {"role": "user", "toolResults": [{"tool_use_id": "1", "text": "done"}]},
    ]
    transcript = read_transcript(json.dumps(document).encode())
    edits = Edits(inputs={"1": {("edits", 0, "old_string"): "[note]"}})

    out = render(transcript, edits)

    expected = json.dumps(document).replace("x" * 9, "[note]")
    assert out == expected.encode()
    assert transcript.messages[0].tool_uses[0].input == given


@pytest.mark.parametrize("path", [("n",), ("edits",), ("edits", 7), ("none",), ("file_path", 0)])
def test_what_is_no_string_of_the_input_cannot_be_changed(path: tuple[str | int, ...]) -> None:
    given = {"file_path": "/p/a.py", "edits": ["x"], "n": 3}
    transcript = parse_payload(
        [
            {"role": "assistant", "toolUses": [{"tool_use_id": "1", "tool": "MultiEdit", "input": given}]},
            {"role": "user", "toolResults": [{"tool_use_id": "1", "text": "done"}]},
        ]
    )

    with pytest.raises(LookupError):
        apply_edits(transcript, Edits(inputs={"1": {path: "[note]"}}))


def test_codex_keeps_its_inputs() -> None:
    """Its arguments are JSON within a string: nothing in them is a value of the file."""
    lines = [
        {"type": "session_meta", "payload": {"id": "s"}},
        {
            "type": "response_item",
            "payload": {"type": "function_call", "name": "shell", "arguments": '{"command": "ls"}', "call_id": "1"},
        },
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "1", "output": "a"}},
    ]
    transcript = read_transcript(jsonl(*lines))

    with pytest.raises(KeyError, match="a Codex rollout"):
        render(transcript, Edits(inputs={"1": {("command",): "[note]"}}))
