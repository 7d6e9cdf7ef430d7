"""The seed's sections 2 and 3: pairs are never torn, and what is pinned is never touched."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from making import MadeSession, compact, long_text

from lcc.relevance import TranscriptCompactionRequest

TEXT = long_text("log")
MODES = ["lossless", "recoverable", "lossy"]


def rerun_session(count: int = 12) -> MadeSession:
    """The same command again and again: each rule would take every call but the last."""
    session = MadeSession()
    for _ in range(count):
        session.bash("make", TEXT)
    return session


@pytest.mark.parametrize("mode", MODES)
def test_no_half_of_a_pair_is_left(mode: str) -> None:
    """§2: a result is never left without its call, and a call is never dropped without its result."""
    answer = rerun_session().compact(mode)

    uses = [use["tool_use_id"] for message in answer.messages for use in message.get("toolUses", [])]
    found = [one["tool_use_id"] for message in answer.messages for one in message.get("toolResults", [])]
    assert uses == found
    assert answer.report["chars_after"] < answer.report["chars_before"]


def test_a_kept_call_comes_back_with_its_result() -> None:
    """§2: `keep` leaves call and result byte for byte."""
    session = rerun_session()
    answer = session.compact("lossy")

    kept = [call for call, record in answer.records.items() if record["decision"] == "keep"]
    assert kept == ["c12"]
    assert answer.messages == [session.messages[0], *session.messages[-2:]]


@pytest.mark.parametrize("mode", MODES)
def test_the_first_message_is_pinned(mode: str) -> None:
    """§3: the first message is pinned: its calls are reported as source pin, reason pinned_first_message."""
    use = {"tool_use_id": "first", "tool": "Bash", "input": {"command": "make"}}
    answer = {"tool_use_id": "first", "text": TEXT}
    payload: list[dict[str, Any]] = [
        {"role": "assistant", "toolUses": [use]},
        {"role": "user", "toolResults": [answer]},
        *rerun_session().messages[1:],
    ]

    done = compact(payload, rules_mode=mode)

    assert done.messages[:2] == payload[:2]
    assert (done.records["first"]["source"], done.reason("first")) == ("pin", "pinned_first_message")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("recent", [0, 1, 2, 5, 6, 7, 24, 25, 1000])
def test_the_newest_messages_are_pinned(mode: str, recent: int) -> None:
    """§3: the newest `preserve_recent` messages are pinned: not scored, not changed, reported as source pin."""
    session = rerun_session()
    count = len(session.messages)
    first_pinned = max(count - recent, 0)

    answer = session.compact(mode, preserve_recent=recent)

    pinned = session.messages[first_pinned:] if recent else []
    assert answer.messages[len(answer.messages) - len(pinned) :] == pinned
    calls = {use["tool_use_id"] for message in pinned for use in message.get("toolUses", [])}
    by_result = {one["tool_use_id"] for message in pinned for one in message.get("toolResults", [])} - calls
    reasons = {call: record["reason"] for call, record in answer.records.items() if record["source"] == "pin"}
    assert reasons == {**dict.fromkeys(calls, "pinned_recent"), **dict.fromkeys(by_result, "pinned_recent_result")}
    assert answer.report["blocks_protected"] == len(reasons)
    assert answer.report["blocks_scored"] == 12 - len(reasons)


def test_six_messages_are_pinned_by_default() -> None:
    """§3: the default of `preserve_recent` is 6."""
    assert inspect.signature(TranscriptCompactionRequest).parameters["preserve_recent"].default == 6


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("half", ["call", "result"])
def test_a_pair_with_one_half_pinned_is_pinned(mode: str, half: str) -> None:
    """§3: a pinned message is untouched even when only the call, or only the result, lies in the pinned part."""
    use = {"tool_use_id": "torn", "tool": "Bash", "input": {"command": "make"}}
    call = {"role": "assistant", "text": "once", "toolUses": [use]}
    answer = {"role": "user", "toolResults": [{"tool_use_id": "torn", "text": TEXT}]}
    session = rerun_session(3)
    if half == "result":  # the call lies before the pinned part, its result in it
        payload = [*session.messages, call, {"role": "user", "text": "wait"}, answer]
        recent = 1
    else:  # the first message holds the call only
        payload = [call, {"role": "user", "text": "wait"}, answer, *session.messages[1:]]
        recent = 0

    done = compact(payload, rules_mode=mode, preserve_recent=recent)

    assert call in done.messages
    assert answer in done.messages
    assert done.records["torn"]["source"] == "pin"


def test_a_pinned_result_may_be_pointed_at() -> None:
    """§3 with §5: what is pinned is kept unchanged, so an older result may point at it."""
    answer = rerun_session().compact("lossless", preserve_recent=2)

    assert answer.records["c1"]["kept_at"] == "c12"
