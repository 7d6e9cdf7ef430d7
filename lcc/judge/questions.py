"""The two questions for each call (the seed's section 2), and how they are split into requests (section 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from lcc.judge.state import Call as ShownCall
from lcc.judge.state import call_line, outcome_of
from lcc.judge.wire import dumps
from lcc.tokens import TokenCounter
from lcc.transcript import Json, Pair

QUESTION_CHARS = 200
"""Characters of a call's input that its questions repeat, so that they can be read without the state."""
_LONGEST_ID = 128
_SPARE = 6
"""Tokens added for each pair of questions: the joints of its parts, and what their counts were rounded down by."""

_CALL_INSTRUCTIONS = (
    "Does this tool call still matter to what the session has left to do, so that the agent must know that it "
    "happened, and with which input? "
)
_CALL_TRUE = "The goal or a later step depends on knowing that this call was made."
_CALL_FALSE = "It is superseded, a dead end, or of no use any more."
_RESULT_INSTRUCTIONS = (
    "Must the output of this tool call stay in the session word for word: are its contents still needed, and "
    "would running the call again not do? "
)
_RESULT_TRUE = "Its contents are needed for what is left to do, and running it again would not give them."
_RESULT_FALSE = "Its contents are not needed any more, or running it again would do."


class PairQuestions(NamedTuple):
    """Both questions about one call: their names, their JSON members, and what they cost."""

    id: str
    keep_call: str
    keep_result: str
    json: str
    tokens: int


class Batch(NamedTuple):
    """The questions of one request and the tokens of the whole request."""

    questions: tuple[PairQuestions, ...]
    tokens: int


class QuestionWriter:
    """Writes the questions of calls; the wording is counted once, a call's own words once a call."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._wording = counter.count(_members("keep_call_", "keep_result_", "")) + _SPARE

    def write(self, pair: Pair, label: str) -> PairQuestions:
        """The questions about ``pair``, which the state calls ``label``."""
        name = question_id(pair.use.id, label)
        call, result = f"keep_call_{name}", f"keep_result_{name}"
        shown = call_line(ShownCall(label, pair.use, outcome_of(pair.result), False), QUESTION_CHARS)
        own = self._counter.count(dumps(name)) + self._counter.count(dumps(shown))
        return PairQuestions(pair.use.id, call, result, _members(call, result, shown), self._wording + 2 * own)


def question_id(call_id: str, label: str) -> str:
    """What a question's name ends with: the call's id, or a stand-in for one that is empty, long or unprintable."""
    if 0 < len(call_id) <= _LONGEST_ID and call_id.isprintable():
        return call_id
    return f"{label}-{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def split(
    questions: Iterable[PairQuestions], fixed_tokens: int, max_request_tokens: int, batch_calls: int
) -> list[Batch]:
    """The questions in order, in as few requests as ``max_request_tokens`` and ``batch_calls`` allow.

    ``fixed_tokens`` is what each request costs before its questions: the state and what frames it.
    """
    batches: list[Batch] = []
    current: list[PairQuestions] = []
    tokens = fixed_tokens
    for question in questions:
        if current and (len(current) == batch_calls or tokens + question.tokens > max_request_tokens):
            batches.append(Batch(tuple(current), tokens))
            current, tokens = [], fixed_tokens
        current.append(question)
        tokens += question.tokens
    if current:
        batches.append(Batch(tuple(current), tokens))
    return batches


class Envelope:
    """The request around the state and the questions."""

    def __init__(self, model: str) -> None:
        self._model = dumps(model)

    def tokens(self, counter: TokenCounter) -> int:
        """What a request costs beside its state and its questions."""
        return counter.count('{"model":,"state":,"questions":{}}') + counter.count(self._model) + _SPARE

    def head(self, state: str) -> bytes:
        """Everything before the questions: the same for all requests of a pass, so it is encoded once."""
        return f'{{"model":{self._model},"state":{state},"questions":{{'.encode()

    @staticmethod
    def body(head: bytes, batch: Batch) -> bytes:
        """One request's body."""
        return b"".join((head, ",".join(question.json for question in batch.questions).encode(), b"}}"))


def _members(call: str, result: str, shown: str) -> str:
    """Two members of the object of questions, as JSON."""
    asked = dumps(
        {
            call: _noul(_CALL_INSTRUCTIONS + shown, _CALL_TRUE, _CALL_FALSE),
            result: _noul(_RESULT_INSTRUCTIONS + shown, _RESULT_TRUE, _RESULT_FALSE),
        }
    )
    return asked[1:-1]


def _noul(instructions: str, true: str, false: str) -> Json:
    return {"type": "noul", "instructions": instructions, "criteria": {"true": true, "false": false}}
