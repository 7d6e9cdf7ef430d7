"""Reading a server's answer. What is not a probability is not an answer: nothing is clamped or guessed."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Literal

from lcc.contract.modes import JudgeName
from lcc.contract.reasons import (
    JEV_ANSWER_OUT_OF_RANGE,
    JEV_MISSING_ANSWER,
    LAYA_ANSWER_OUT_OF_RANGE,
    LAYA_MISSING_ANSWER,
    Reason,
)
from lcc.transcript import Json

Problem = Literal["missing_answer", "answer_out_of_range"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A well-formed answer: the model that the alias resolved to, and the raw answers by question."""

    model: str | None
    answers: dict[str, Json]


class MalformedReplyError(ValueError):
    """A 200 answer that is no System One answer, or that says the state was not read whole."""


def parse_reply(data: bytes) -> Reply:
    """The answer in ``data`` (JSON). ``MalformedReplyError`` says what is wrong with it.

    The standard parser is used because servers written in Python send ``NaN``, which is then one answer that
    does not count instead of a reply that cannot be read.
    """
    try:
        parsed: Json = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedReplyError(f"the answer is not JSON ({len(data)} bytes)") from error
    answers = parsed.get("answers") if isinstance(parsed, dict) else None
    if not isinstance(parsed, dict) or not isinstance(answers, dict):
        raise MalformedReplyError("the answer has no object of answers")
    usage = parsed.get("usage")
    if isinstance(usage, dict) and usage.get("truncated"):
        dropped = usage.get("state_tokens_dropped")
        amount = f"{dropped} tokens" if isinstance(dropped, int) else "a part"
        raise MalformedReplyError(
            f"the server cut {amount} of the conversation, so the judge did not see it; lower --max-state-tokens"
        )
    model = parsed.get("model")
    readable = isinstance(model, str) and model.isprintable() and 0 < len(model) <= 200
    return Reply(str(model) if readable else None, answers)


def probability(answers: dict[str, Json], question: str) -> float | Problem:
    """The probability that ``answers`` gives for ``question``, or why it gives none."""
    answer = answers.get(question)
    if not isinstance(answer, dict) or answer.get("type", "noul") != "noul":
        return "missing_answer"
    value = answer.get("noul")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "missing_answer"
    if math.isnan(value) or not 0.0 <= value <= 1.0:
        return "answer_out_of_range"
    return float(value)


def unanswered(judge: JudgeName, problem: Problem, question: str) -> Reason:
    """Why a call is kept whose ``question`` has no probability for an answer."""
    if problem == "missing_answer":
        return (JEV_MISSING_ANSWER if judge == "jev" else LAYA_MISSING_ANSWER)(question)
    return (JEV_ANSWER_OUT_OF_RANGE if judge == "jev" else LAYA_ANSWER_OUT_OF_RANGE)(question)
