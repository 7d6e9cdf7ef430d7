"""Whatever a server or a file holds, reading it ends in a value or in its one error, never in a traceback."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc.judge.answers import MalformedReplyError, parse_reply, probability
from lcc.judge.cache import HEADER, DecisionCache
from lcc.judge.client import server_delay
from lcc.judge.errors import DecisionsCacheError
from lcc.judge.questions import question_id
from lcc.judge.state import abridge
from lcc.judge.wire import dumps, one_line

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_answer(data: bytes) -> None:
    """An answer is well formed, or a MalformedReplyError."""
    try:
        answers = parse_reply(data).answers
    except MalformedReplyError:
        return
    assert isinstance(answers, dict)


@given(st.dictionaries(st.sampled_from(["type", "noul", "x"]), JSON))
def test_any_probability(answer: dict[str, Any]) -> None:
    """What comes out is a probability or one of the two reasons."""
    value = probability({"q": answer}, "q")

    if isinstance(value, float):
        assert 0.0 <= value <= 1.0
        assert value == answer["noul"]
    else:
        assert value in ("missing_answer", "answer_out_of_range")


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_any_delay(value: str) -> None:
    """A delay is a number of seconds from 0 on, or not understood."""
    for name in ("retry-after", "retry-after-ms"):
        delay = server_delay(httpx.Headers({name: value}))
        assert delay is None or (delay >= 0 and math.isfinite(delay))


@pytest.mark.parametrize("value", ["", "soon", "-1", "nan", "inf", "1e999", "Fri, 31 Dec 99999999999 23:59:59 GMT"])
def test_delay_that_is_none(value: str) -> None:
    """A header that names no moment is as good as none."""
    assert server_delay(httpx.Headers({"retry-after": value})) is None


@given(st.binary(max_size=200), st.booleans())
def test_any_cache_file(data: bytes, with_header: bool) -> None:
    """A cache opens, or says that the file is another one."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "decisions"
        file.write_bytes((HEADER + b"\n" if with_header else b"") + data)
        try:
            cache = DecisionCache.open(file)
        except DecisionsCacheError:
            assert not with_header
        else:
            assert len(cache) == 0


@given(JSON, st.integers(min_value=0, max_value=80))
def test_any_input_on_one_line(value: Any, limit: int) -> None:
    """A line is one line of at most its limit and a mark, and can be sent."""
    line = one_line(value, limit)

    assert len(line) <= limit + 1
    assert len(line.splitlines()) <= 1
    assert json.loads(dumps({"shown": line}))


@given(st.text(max_size=300), st.integers(min_value=1, max_value=100), st.integers(min_value=1, max_value=100))
def test_abridged_text_is_never_longer_than_needed(text: str, head: int, tail: int) -> None:
    """A text is as written, or begins and ends as it did."""
    short = abridge(text, (head, tail))

    assert short == text or (short.startswith(text[:head]) and short.endswith(text[-tail:]))


@given(st.text(max_size=300))
def test_any_id_names_a_question(call_id: str) -> None:
    """A question's name is short, can be sent, and is the id itself where that is both."""
    name = question_id(call_id, "#7")

    assert len(name) <= 128
    assert name.encode()
