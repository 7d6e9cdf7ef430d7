"""A session's requests, each counted once, with what it cost."""

from __future__ import annotations

import pytest

from lcc.tokens.cache_cost import FIVE_MINUTES, ONE_HOUR
from lcc.tokens.requests import Spending, SpendingReader, prices_of
from lcc.transcript import Json

Row = dict[str, Json]


def answered(name: str, read: int = 0, written: int = 0, hour: int = 0, **more: Json) -> Row:
    """A row of an answer: tokens read from the cache, written for five minutes, and for an hour; 10 new."""
    usage: Json = {
        "input_tokens": 10,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written + hour,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": hour},
        "output_tokens": 7,
    }
    message: Json = {"id": name, "model": "claude-sonnet-5", "content": [], "usage": usage}
    return {"type": "assistant", "requestId": f"req_{name}", "message": message, **more}


def taken(*rows: Row) -> Spending:
    reader = SpendingReader()
    for row in rows:
        reader.take([row])
    return reader.spending()


def test_a_request_is_counted_once_whatever_rows_it_has() -> None:
    """The client writes a row for each block; results stand between them, and an early row has too little output."""
    early = answered("m1", read=1000, written=200, timestamp="2026-01-01T00:00:00Z")
    found = taken(
        early,
        {"type": "user", "message": {"role": "user", "content": []}},
        answered("m1", read=1000, written=200, timestamp="2026-01-01T00:00:05Z"),
        answered("m2", read=1200, written=50),
    )

    assert [request.context for request in found.requests] == [1210, 1260]
    assert (found.requests[0].ended or 0) - (found.requests[0].sent or 0) == 5


def test_one_message_of_two_requests_is_two() -> None:
    """A retry may have the same message id; what is billed is the request."""
    assert len(taken(answered("m1", read=5), answered("m1", read=5, requestId="req_other")).requests) == 2


def test_the_cost_is_the_sum_at_cache_prices() -> None:
    """New 1, read 0.1, written for five minutes 1.25, for an hour 2."""
    (request,) = taken(answered("m1", read=1000, written=100, hour=40)).requests

    assert request.cost == pytest.approx(10 + 100 + 125 + 80)


def test_writes_without_their_life_are_for_five_minutes() -> None:
    """Older clients write the sum alone."""
    row = answered("m1", written=100)
    message = row["message"]
    assert isinstance(message, dict)
    assert isinstance(message["usage"], dict)
    del message["usage"]["cache_creation"]

    assert taken(row).requests[0].written == 100


def test_sub_agents_and_made_up_answers_are_apart() -> None:
    """A sub-agent's requests are billed, and are none of the conversation's; a made-up answer was never sent."""
    made_up: Row = {"type": "assistant", "message": {"id": "x", "model": "<synthetic>", "usage": {"input_tokens": 0}}}
    found = taken(answered("m1", read=5), answered("s1", read=9, isSidechain=True), made_up)

    assert [request.message for request in found.requests] == ["m1"]
    assert [request.message for request in found.aside] == ["s1"]


@pytest.mark.parametrize(("summary", "shown"), [(True, True), (False, False)])
def test_a_boundary_is_a_summary_or_ours(summary: bool, shown: bool) -> None:
    """The client marks its summary; what lcc left behind a boundary has no such row."""
    after: Row = {"type": "user", "isCompactSummary": summary, "message": {"role": "user", "content": "words"}}
    found = taken(answered("m1", read=5), {"type": "system", "subtype": "compact_boundary"}, after, answered("m2"))

    (boundary,) = found.boundaries
    assert (boundary.requests, boundary.summary) == (1, shown)


def test_prices_are_those_of_the_newest_writes() -> None:
    """A session may begin with five minutes and go on with an hour."""
    both = (answered("m1", written=10), answered("m2", hour=10))

    assert prices_of(taken(*both).requests) == ONE_HOUR
    assert prices_of(taken(*reversed(both)).requests) == FIVE_MINUTES
    assert prices_of(()) == FIVE_MINUTES


def test_shapes_that_it_does_not_know_say_nothing() -> None:
    """Rows of other programs and damaged ones."""
    odd: list[Row] = [
        {"type": "assistant"},
        {"type": "assistant", "message": {"usage": {"input_tokens": "many"}}},
        {"type": "assistant", "message": {"id": 3, "usage": []}},
        answered("m1", read=3, timestamp="yesterday"),
    ]

    (request,) = taken(*odd).requests
    assert (request.sent, request.ended) == (None, None)


@pytest.mark.parametrize(
    ("name", "given", "is_one"),
    [
        ("mcp__lcc__recall", {"id": "abc"}, True),
        ("mcp__plugin_lcc_lcc__recall", {"id": "abc"}, True),
        ("Bash", {"command": "lcc recall 0123456789ab"}, True),
        ("Bash", {"command": "grep 'lcc recall' README.md"}, False),
        ("mcp__other__recall", {"id": "abc"}, False),
    ],
)
def test_recalls_are_seen_in_the_calls(name: str, given: Row, is_one: bool) -> None:
    """Our tool and the command; a block that stands on two rows is one."""
    row = answered("m1", read=5)
    message = row["message"]
    assert isinstance(message, dict)
    message["content"] = [{"type": "tool_use", "id": "t1", "name": name, "input": given}]

    assert taken(row, row).recalls == ((1,) if is_one else ())
