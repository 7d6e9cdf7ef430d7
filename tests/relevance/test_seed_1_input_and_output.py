"""The seed's introduction and section 1: what goes in, what comes out, and what is never touched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from making import MadeSession, compact, long_text

from lcc.relevance import TranscriptCompactionRequest, TranscriptError, compact_transcript, messages_to_payload

TEXT = long_text("log")


def camel() -> list[dict[str, Any]]:
    """A session in the spelling of the seed's example, whose first result is printed again by a later call."""
    session = MadeSession()
    session.bash("make one", TEXT)
    session.bash("make two", TEXT)
    return session.messages


def snake() -> list[dict[str, Any]]:
    """The same session in the other spelling."""
    messages: list[dict[str, Any]] = []
    for message in camel():
        found = {key: value for key, value in message.items() if key in ("role", "text")}
        if "toolUses" in message:
            found["tool_calls"] = [
                {"id": use["tool_use_id"], "name": use["tool"], "input": use["input"]} for use in message["toolUses"]
            ]
        if "toolResults" in message:
            found["tool_results"] = [{"id": one["tool_use_id"], "text": one["text"]} for one in message["toolResults"]]
        messages.append(found)
    return messages


def test_a_call_and_its_result_are_paired_by_id() -> None:
    """Intro: every tool_use is paired with its tool_result by id, wherever the result stands."""
    uses = [{"tool_use_id": i, "tool": "Grep", "input": {"pattern": i}} for i in ("a", "b")]
    answers = [{"tool_use_id": i, "text": f"found {i}"} for i in ("b", "a")]
    payload = [
        {"role": "user", "text": "go"},
        {"role": "assistant", "toolUses": uses},
        {"role": "user", "toolResults": answers[:1]},
        {"role": "user", "toolResults": answers[1:]},
    ]

    records = compact(payload).records

    assert {call: record["subject"] for call, record in records.items()} == {"a": "a", "b": "b"}
    assert records["a"]["chars"] == len('{"pattern":"a"}') + len("found a")


@pytest.mark.parametrize("mode", ["lossless", "recoverable", "lossy"])
def test_words_are_never_touched(mode: str) -> None:
    """Intro: the user's and the assistant's text is never scored, trimmed or rewritten, even if it repeats output."""
    session = MadeSession(goal=TEXT * 5)
    for number in range(60):
        session.say(TEXT * 5, "assistant" if number % 2 else "user")
        session.bash("make log", TEXT * 5)

    answer = session.compact(mode)

    assert [m["text"] for m in answer.messages if "text" in m] == [m["text"] for m in session.messages if "text" in m]
    assert answer.report["chars_after"] < answer.report["chars_before"]


@pytest.mark.parametrize("mode", ["lossless", "recoverable", "lossy"])
def test_a_kept_result_is_untouched(mode: str) -> None:
    """Intro: a kept result comes back byte for byte, whatever is in it."""
    odd = "\r\n\0\x1b[31mred\u2028\u2029\u0085\v\f\ufeff é 🎉 \t \n\n"
    session = MadeSession()
    kept = session.call("mcp__a__b", {"x": [1, 2.50, None, True, "é"]}, odd)
    session.filler(3)

    answer = session.compact(mode)

    assert answer.texts[kept] == odd
    assert answer.messages == session.messages


def test_a_dropped_pair_goes_whole() -> None:
    """Intro: a dropped pair disappears whole, the call with its result."""
    session = MadeSession()
    dropped = session.bash("make", TEXT)
    session.bash("make", TEXT)
    session.filler()

    answer = session.compact("lossy")

    assert answer.decision(dropped) == "drop"
    assert f'"{dropped}"' not in json.dumps(answer.messages)


@pytest.mark.parametrize("spelling", [camel, snake])
@pytest.mark.parametrize("wrapped", [False, True])
def test_both_shapes_and_both_spellings_are_read(spelling: Any, wrapped: bool) -> None:
    """§1: the input is a messages array or an object with `messages`; snake_case and `id` are accepted too."""
    messages = spelling()
    answer = compact({"messages": messages} if wrapped else messages)

    assert answer.decision("c1") == "dedupe"
    assert answer.texts == {"c1": "[identical output kept at c2]", "c2": TEXT}


@pytest.mark.parametrize("spelling", [camel, snake])
def test_the_output_has_the_shape_of_the_input(spelling: Any) -> None:
    """§1: the output is the same shape in the same order: spelling, unknown fields and key order come back."""
    messages = spelling()
    for number, message in enumerate(messages):
        message["uuid"] = number
        for key in ("toolUses", "toolResults", "tool_calls", "tool_results"):
            for item in message.get(key, []):
                item["zz_unknown"] = {"n": 1.0}

    answer = compact(messages)

    expected = json.loads(json.dumps(messages).replace(json.dumps(TEXT), '"[identical output kept at c2]"', 1))
    assert json.dumps(answer.messages) == json.dumps(expected)


def test_a_message_that_loses_everything_is_dropped() -> None:
    """§1: a message that loses all of its content is dropped; one with a word left in it stays, in its place."""
    session = MadeSession()
    session.bash("make", TEXT)
    session.bash("make", TEXT)
    session.messages[3]["text"] = "Once more."
    session.bash("make", TEXT)
    session.filler()

    messages = session.compact("lossy").messages

    assert messages == [
        session.messages[0],
        {"role": "assistant", "text": "Once more.", "toolUses": []},
        *session.messages[5:],
    ]


def test_results_stay_in_the_message_they_arrived_in() -> None:
    """§1: results stay in the message they arrived in, also when some of them are replaced or dropped."""
    session = MadeSession()
    uses = [{"tool_use_id": f"p{n}", "tool": "Bash", "input": {"command": "make"}} for n in range(3)]
    answers = [{"tool_use_id": f"p{n}", "text": TEXT if n == 1 else f"other {n}"} for n in range(3)]
    session.messages += [{"role": "assistant", "toolUses": uses}, {"role": "user", "toolResults": answers}]
    session.bash("make", TEXT)
    session.filler()

    lossless = session.compact("lossless").messages[2]["toolResults"]
    lossy = session.compact("lossy").messages[2]["toolResults"]

    assert lossless == [answers[0], {"tool_use_id": "p1", "text": "[identical output kept at c1]"}, answers[2]]
    assert lossy == [answers[0], answers[2]]


MALFORMED: list[Any] = [
    None,
    "text",
    3,
    {},
    {"messages": None},
    {"messages": {}},
    ["text"],
    [{"text": "no role"}],
    [{"role": "robot", "text": "x"}],
    [{"role": "user", "text": None}],
    [{"role": "user", "text": 3}],
    [{"role": "assistant", "toolUses": {}}],
    [{"role": "assistant", "toolUses": ["x"]}],
    [{"role": "assistant", "toolUses": [{"tool": "Bash", "input": {}}]}],
    [{"role": "assistant", "toolUses": [{"tool_use_id": "a", "input": {}}]}],
    [{"role": "assistant", "toolUses": [{"tool_use_id": 1, "tool": "Bash", "input": {}}]}],
    [{"role": "assistant", "toolUses": [{"tool_use_id": "a", "tool": "Bash", "input": [1]}]}],
    [{"role": "user", "toolResults": [{"tool_use_id": "a", "text": "no call"}]}],
    [{"role": "assistant", "toolUses": [{"tool_use_id": "a", "tool": "B", "input": {}}] * 2}],
    [
        {"role": "assistant", "toolUses": [{"tool_use_id": "a", "tool": "B", "input": {}}]},
        {"role": "user", "toolResults": [{"tool_use_id": "a", "text": "1"}, {"tool_use_id": "a", "text": "2"}]},
    ],
    [
        {"role": "assistant", "toolUses": [{"tool_use_id": "a", "tool": "B", "input": {}}]},
        {"role": "user", "toolResults": [{"tool_use_id": "a", "text": None}]},
    ],
    [
        {"role": "assistant", "toolUses": [{"tool_use_id": "a", "tool": "B", "input": {}}]},
        {"role": "user", "toolResults": [{"tool_use_id": "a", "text": "x", "is_error": "yes"}]},
    ],
]


@pytest.mark.parametrize("payload", MALFORMED, ids=lambda payload: json.dumps(payload)[:60])
def test_malformed_input_fails_loudly(payload: Any) -> None:
    """§1: malformed input is an error that says where, never a decision over a half-read transcript."""
    with pytest.raises(TranscriptError) as raised:
        compact_transcript(TranscriptCompactionRequest(payload=payload, provider="rules"))

    assert isinstance(raised.value, ValueError)
    assert str(raised.value)
    assert raised.value.place


@pytest.mark.parametrize("mode", ["lossless", "recoverable", "lossy"])
def test_a_call_without_a_result_is_left_alone(mode: str) -> None:
    """§1: a call without a result yet is left alone: there is nothing to judge, and no record of it."""
    session = MadeSession()
    waiting = session.call("Bash", {"command": "make"}, None)
    session.bash("make", TEXT)
    session.bash("make", TEXT)
    session.filler()

    answer = session.compact(mode)

    assert session.messages[1] in answer.messages
    assert waiting not in answer.records
    assert answer.report["tool_calls_total"] == 3


def test_the_python_api_is_as_documented() -> None:
    """§8: the call of the seed's example works, with a dict or a list, and gives the message list back."""
    for payload in ({"messages": camel()}, camel()):
        result = compact_transcript(
            TranscriptCompactionRequest(payload=payload, question="finish it", provider="rules", preserve_recent=1)
        )
        assert result.report["tool_calls_dropped"] == 0
        assert 0 < result.report["tool_reduction_ratio"] < 1
        assert messages_to_payload(result.messages)[2]["toolResults"] == [
            {"tool_use_id": "c1", "text": "[identical output kept at c2]"}
        ]
