"""The seed's payload (section 1) and Messages API requests: what is read, and what is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from transcript.shapes import said, shape

from lcc.transcript import (
    Edits,
    TranscriptError,
    apply_edits,
    messages_to_payload,
    parse_payload,
    read_transcript,
    render,
)

SEED: dict[str, Any] = {
    "messages": [
        {"role": "user", "text": "Fix the failing parser test. Never edit src/generated."},
        {
            "role": "assistant",
            "text": "Running the suite.",
            "toolUses": [{"tool_use_id": "toolu_1", "tool": "Bash", "input": {"command": "pytest -q"}}],
        },
        {"role": "user", "toolResults": [{"tool_use_id": "toolu_1", "text": "1 failed, 24 passed"}]},
    ]
}
API: dict[str, Any] = {
    "model": "m",
    "system": "be brief",
    "messages": [
        {"role": "user", "content": "Fix it."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Running."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
                {"type": "tool_use", "id": "t2", "name": "Bash", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a b", "is_error": True},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "c"}]},
            ],
        },
    ],
}


def dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def changed(base: dict[str, Any], change: Callable[[list[Any]], object]) -> dict[str, Any]:
    document = copy.deepcopy(base)
    change(document["messages"])
    return document


class TestPayload:
    @pytest.mark.parametrize("document", [SEED, SEED["messages"]], ids=["object", "array"])
    def test_the_seeds_example_is_read_from_bytes_and_from_objects(self, document: Any) -> None:
        for transcript in (read_transcript(dumps(document)), parse_payload(document)):
            assert transcript.format.name == "payload"
            assert shape(transcript.messages) == [
                "u:Fix the failing parser test. Never edit src/generated.",
                "a:Running the suite. +toolu_1",
                "u: -toolu_1",
            ]
            [pair] = transcript.pairs()
            assert (pair.use.tool, pair.use.input) == ("Bash", {"command": "pytest -q"})
            assert (pair.result.text, pair.result.is_error) == ("1 failed, 24 passed", None)
            assert (pair.use_message, pair.result_message) == (1, 2)

    @pytest.mark.parametrize(
        ("uses", "results", "id_key"),
        [
            ("toolUses", "toolResults", "tool_use_id"),
            ("tool_calls", "tool_results", "id"),
            ("tool_calls", "toolResults", "tool_use_id"),
        ],
    )
    def test_every_spelling_comes_back_as_it_came(self, uses: str, results: str, id_key: str) -> None:
        document = [
            {"role": "assistant", "n": 1.0, uses: [{id_key: "t1", "tool": "Read", "input": {}, "x": None}]},
            {"role": "user", results: [{id_key: "t1", "text": "long " * 9, "isError": False, "extra": [1]}]},
        ]

        transcript = parse_payload(document)
        compacted = messages_to_payload(apply_edits(transcript, Edits({"t1": "[note]"})))

        assert compacted[0] is document[0]
        assert compacted[1] == {
            "role": "user",
            results: [{id_key: "t1", "text": "[note]", "isError": False, "extra": [1]}],
        }

    def test_a_call_without_its_result_is_left_alone(self) -> None:
        document = changed(SEED, lambda m: m.pop())

        transcript = parse_payload(document)

        assert list(transcript.pairs()) == []
        assert messages_to_payload(transcript.messages) == document["messages"]

    def test_dropped_pairs_go_and_messages_that_lose_all_go_with_them(self) -> None:
        before = copy.deepcopy(SEED)
        transcript = parse_payload(SEED)

        compacted = messages_to_payload(apply_edits(transcript, Edits({}, frozenset(["toolu_1"]))))

        assert compacted == [SEED["messages"][0], {**SEED["messages"][1], "toolUses": []}]
        assert before == SEED, "the caller's objects are never changed"

    def test_messages_of_other_formats_are_written_in_camel_case(self) -> None:
        raw = b'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x",'
        raw += b'"is_error":true}]}}\n{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2",'
        raw += b'"name":"LS","input":{"path":"."}}]}}\n'

        payload = messages_to_payload(read_transcript(raw).messages)

        assert payload == [
            {"role": "user", "text": "", "toolResults": [{"tool_use_id": "t1", "text": "x", "isError": True}]},
            {
                "role": "assistant",
                "text": "",
                "toolUses": [{"tool_use_id": "t2", "tool": "LS", "input": {"path": "."}}],
            },
        ]
        assert said(parse_payload([payload[1]]).messages)[0][2][0][:3] == ("t2", "LS", {"path": "."})

    def test_an_empty_conversation_is_a_payload(self) -> None:
        assert read_transcript(b'{"messages": []}').messages == ()
        assert parse_payload([]).format.name == "payload"

    def test_a_call_and_its_result_may_share_a_message_in_either_order(self) -> None:
        results = [{"id": "t", "text": "r"}]
        uses = [{"id": "t", "tool": "X"}]

        transcript = parse_payload([{"role": "assistant", "toolResults": results, "toolUses": uses}])

        assert len(list(transcript.pairs())) == 1


class TestMessagesApi:
    @pytest.mark.parametrize("document", [API, API["messages"]], ids=["object", "array"])
    def test_content_blocks_are_read(self, document: Any) -> None:
        for transcript in (read_transcript(dumps(document)), parse_payload(document)):
            assert transcript.format.name == "messages-api"
            assert shape(transcript.messages) == ["u:Fix it.", "a:Running. +t1 +t2", "u: -t1 -t2"]
            assert [r.is_error for r in transcript.messages[2].tool_results] == [True, None]

    def test_edits_come_back_in_the_same_shape(self) -> None:
        compacted = messages_to_payload(apply_edits(parse_payload(API), Edits({"t1": "[1]", "t2": "[2]"})))

        assert compacted[:2] == API["messages"][:2]
        assert compacted[2]["content"] == [
            {"type": "tool_result", "tool_use_id": "t1", "content": "[1]", "is_error": True},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "[2]"}]},
        ]

    def test_a_message_never_ends_in_thinking(self) -> None:
        """The API refuses that, so thinking goes with the call that it led to."""
        think = {"type": "thinking", "thinking": "x", "signature": "s"}
        document = changed(API, lambda m: m[1]["content"].insert(2, think))
        transcript = read_transcript(dumps(document))
        edits = Edits({}, frozenset(["t1", "t2"]))

        compacted = messages_to_payload(apply_edits(transcript, edits))

        assert compacted[1]["content"] == API["messages"][1]["content"][:2]
        assert len(compacted) == 2
        assert json.loads(render(transcript, edits))["messages"] == compacted

    def test_images_and_documents_keep_their_message(self) -> None:
        image = {"type": "image", "source": {"type": "url", "url": "x"}}
        document = changed(API, lambda m: m[2]["content"].append(image))

        compacted = apply_edits(parse_payload(document), Edits({}, frozenset(["t1", "t2"])))

        assert messages_to_payload(compacted)[-1] == {"role": "user", "content": [image]}


def at(*path: Any) -> Callable[[list[Any]], Any]:
    """A change: set the value at a path, given as steps and then the value; ``KeyError`` as value removes it."""
    *above, last, value = path

    def change(messages: list[Any]) -> None:
        place: Any = messages
        for step in above:
            place = place[step]
        if value is KeyError:
            del place[last]
        else:
            place[last] = value

    return change


USE = ("toolUses", 0)
RESULT = ("toolResults", 0)
NAN = float("nan")
DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]

REFUSED: list[tuple[Callable[[list[Any]], object], str, str]] = [
    (at(0, "text", None), "null", "messages[0].text"),
    (at(0, "text", 5), "a number", "messages[0].text"),
    (at(0, "text", ["x"]), "an array", "messages[0].text"),
    (at(0, 7), "must be an object", "messages[0]"),
    (at(0, None), "null", "messages[0]"),
    (at(0, {"role": "user"}), "needs text", "messages[0]"),
    (at(0, "role", KeyError), "absent", "messages[0].role"),
    (at(0, "role", "wizard"), "'wizard'", "messages[0].role"),
    (at(0, "role", ["user"]), "an array", "messages[0].role"),
    (at(1, "toolUses", None), "null", "messages[1].toolUses"),
    (at(1, "toolUses", {}), "an object", "messages[1].toolUses"),
    (at(1, "tool_calls", []), "both toolUses and tool_calls", "messages[1].tool_calls"),
    (at(1, *USE, "call"), "a string", "messages[1].toolUses[0]"),
    (at(1, *USE, "tool_use_id", KeyError), "no call id", "messages[1].toolUses[0]"),
    (at(1, *USE, "tool_use_id", 5), "call id", "messages[1].toolUses[0].tool_use_id"),
    (at(1, *USE, "tool_use_id", ""), "call id", "messages[1].toolUses[0].tool_use_id"),
    (at(1, *USE, "tool", KeyError), "absent", "messages[1].toolUses[0].tool"),
    (at(1, *USE, "tool", 5), "a number", "messages[1].toolUses[0].tool"),
    (at(1, *USE, "input", 5), "a number", "messages[1].toolUses[0].input"),
    (at(1, *USE, "input", []), "an array", "messages[1].toolUses[0].input"),
    (at(1, *USE, "input", {"a": DEEP}), "nested", "messages[1].toolUses[0].input"),
    (at(2, *RESULT, "text", KeyError), "absent", "messages[2].toolResults[0].text"),
    (at(2, *RESULT, "text", None), "null", "messages[2].toolResults[0].text"),
    (at(2, *RESULT, "text", ["x"]), "an array", "messages[2].toolResults[0].text"),
    (at(2, *RESULT, "tool_use_id", "other"), "without an earlier call", "messages[2].toolResults[0]"),
    (at(2, *RESULT, "is_error", "no"), "a boolean", "messages[2].toolResults[0].is_error"),
    (at(2, *RESULT, "isError", 0), "a boolean", "messages[2].toolResults[0].isError"),
    (lambda m: m[2]["toolResults"][0].update(isError=True, is_error=False), "contradict", "messages[2].toolResults[0]"),
    (lambda m: m[2]["toolResults"].append(m[2]["toolResults"][0]), "duplicate result", "messages[2].toolResults[1]"),
    (lambda m: m[1]["toolUses"].append(m[1]["toolUses"][0]), "duplicate call id", "messages[1].toolUses[1]"),
    (lambda m: m.reverse(), "without an earlier call", "messages[0].toolResults[0]"),
    (lambda m: m.pop(1), "without an earlier call", "messages[1].toolResults[0]"),
]
REFUSED_OBJECTS: list[tuple[Callable[[list[Any]], object], str, str]] = [
    (at(1, *USE, "input", {"a": NAN}), "no JSON value", "messages[1].toolUses[0].input"),
    (at(1, *USE, "input", {"a": float("inf")}), "no JSON value", "messages[1].toolUses[0].input"),
    (at(1, *USE, "input", {"a": 1 << 70}), "no JSON value", "messages[1].toolUses[0].input"),
    (at(1, *USE, "input", {"a": "\ud800"}), "no JSON value", "messages[1].toolUses[0].input"),
    (at(1, *USE, "input", {"a": {1}}), "no JSON value", "messages[1].toolUses[0].input"),
    (at(1, *USE, "input", {5: "a"}), "no JSON value", "messages[1].toolUses[0].input"),
    (at(1, *USE, "tool", "\ud800"), "surrogate", "messages[1].toolUses[0]"),
    (at(0, "text", "\udfff"), "surrogate", "messages[0].text"),
    (at(2, *RESULT, "text", "\udfff"), "surrogate", "messages[2].toolResults[0].text"),
]
REFUSED_API: list[tuple[Callable[[list[Any]], object], str, str]] = [
    (at(0, "content", None), "null", "messages[0].content"),
    (at(0, "content", 5), "a number", "messages[0].content"),
    (at(1, "content", KeyError), "absent", "messages[1].content"),
    (at(1, "content", 0, "x"), "a string", "messages[1].content[0]"),
    (at(1, "content", 1, "text", None), "null", "messages[1].content[1].text"),
    (at(1, "content", 1, "type", None), "null", "messages[1].content[1].type"),
    (at(1, "content", 2, "id", None), "null", "messages[1].content[2].id"),
    (at(1, "content", 2, "name", 3), "a number", "messages[1].content[2].name"),
    (at(1, "content", 2, "input", 3), "a number", "messages[1].content[2].input"),
    (at(1, "content", 3, "id", "t1"), "duplicate call id", "messages[1].content[3]"),
    (at(2, "content", 0, "content", 3), "a number", "messages[2].content[0].content"),
    (at(2, "content", 1, "content", 0, "text", 3), "a number", "messages[2].content[1].content[0].text"),
    (at(2, "content", 1, "tool_use_id", "t1"), "duplicate result", "messages[2].content[1]"),
    (at(2, "content", 1, "tool_use_id", "t3"), "without an earlier call", "messages[2].content[1]"),
    (lambda m: m.reverse(), "without an earlier call", "messages[0].content[0]"),
]


class TestMalformed:
    @pytest.mark.parametrize(("change", "problem", "place"), REFUSED)
    def test_a_payload_is_refused_with_its_path(self, change: Any, problem: str, place: str) -> None:
        document = changed(SEED, change)

        for read in (lambda: read_transcript(dumps(document)), lambda: parse_payload(document)):
            with pytest.raises(TranscriptError) as refused:
                read()
            assert problem in refused.value.problem
            assert refused.value.place.startswith(place)

    @pytest.mark.parametrize(("change", "problem", "place"), REFUSED_OBJECTS)
    def test_objects_that_are_no_json_are_refused_with_their_path(self, change: Any, problem: str, place: str) -> None:
        with pytest.raises(TranscriptError) as refused:
            parse_payload(changed(SEED, change))

        assert problem in refused.value.problem
        assert refused.value.place.startswith(place)

    @pytest.mark.parametrize(("change", "problem", "place"), REFUSED_API)
    def test_a_request_is_refused_with_its_path(self, change: Any, problem: str, place: str) -> None:
        with pytest.raises(TranscriptError) as refused:
            read_transcript(dumps(changed(API, change)))

        assert problem in refused.value.problem
        assert refused.value.place.startswith(place)

    def test_paths_in_a_bare_array_start_at_its_index(self) -> None:
        with pytest.raises(TranscriptError, match=r"^\[0\]\.text: must be a string"):
            parse_payload([{"role": "user", "text": None}])
