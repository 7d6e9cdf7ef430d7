"""Sessions to judge, and one call that judges them as the pass does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from making import call_message, result_message

from lcc.contract.options import PassOptions
from lcc.judge.cache import DecisionCache
from lcc.judge.errors import TranscriptFitError
from lcc.judge.fitting import StateBudget, fit_state
from lcc.judge.state import entries_of
from lcc.relevance.evidence.pins import pin_reasons
from lcc.relevance.transcript_judged import JudgedOutcome, decide_judged
from lcc.tokens import counter
from lcc.transcript import Json, Transcript

KEY = "sk-test-0123456789abcdef"


def session(calls: int, *, result_chars: int = 900, input_chars: int = 20, text: str = "Looking at part {n}.") -> Json:
    """A payload: the goal, then ``calls`` calls with their results, each in messages of their own, then a word."""
    messages: list[Json] = [{"role": "user", "text": "Fix the failing parser test. Never edit src/generated."}]
    for n in range(1, calls + 1):
        messages += call(n, text.format(n=n), input_chars, result_chars)
    messages.append({"role": "assistant", "text": "Done so far."})
    return {"messages": messages}


def call(n: int, text: str = "", input_chars: int = 20, result_chars: int = 900) -> list[Json]:
    """An assistant message with call ``t<n>`` and the user message with its result."""
    tool = ("Bash", "Read", "Grep")[n % 3]
    command = (f"step {n} " + "look at the next part " * (input_chars // 20))[:input_chars].strip()
    result = f"line {n} of the output\n" * (result_chars // 20 + 1)
    return [
        call_message(f"t{n}", tool, {"command": command}, text),
        result_message(f"t{n}", result[:result_chars]),
    ]


def judge(
    transcript: Transcript,
    environ: dict[str, str],
    *,
    cache: DecisionCache | None = None,
    deadline: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> JudgedOutcome:
    """Judge the unpinned pairs as the pass does; ``options`` are the pass's, ``client`` among them the judge's."""
    client = options.pop("client", None)
    asked = PassOptions(**{"provider": "jev", **options})
    pairs = tuple(transcript.pairs())
    pins = pin_reasons(pairs, len(transcript.messages), asked.preserve_recent)
    candidates = [pair for pair in pairs if pair.use.id not in pins]
    return decide_judged(
        transcript,
        candidates,
        pins,
        asked,
        cache=cache,
        deadline=deadline,
        progress=progress,
        environ=environ,
        client=None if client is None else lambda: client,
    )


def can_be_shown(transcript: Transcript, max_state_tokens: int = 25000, preserve_recent: int = 6) -> bool:
    """Whether the shortest form of a session fits, by the best count that there is, with nothing added for safety."""
    pins = pin_reasons(tuple(transcript.pairs()), len(transcript.messages), preserve_recent)
    entries, _ = entries_of(transcript, pins, preserve_recent)
    try:
        fit_state(entries, "", counter(), StateBudget(1, "--max-state-tokens", ""))
    except TranscriptFitError as error:
        return error.needed <= max_state_tokens
    raise AssertionError("no state costs one token")


def jev_at(url: str) -> dict[str, str]:
    """The environment of a user whose Jev is at ``url``; HOME is nowhere, so that no key file is found."""
    return {"TYPESAFE_API_KEY": KEY, "TYPESAFE_BASE_URL": url, "HOME": "/nonexistent"}


def laya_at(url: str) -> dict[str, str]:
    return {"LAYA_BASE_URL": url, "HOME": "/nonexistent"}
