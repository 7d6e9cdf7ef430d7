"""Against a server that others wrote: `laya-serve` with its fake backend, over real HTTP.

It refuses every request that is not exactly the wire format, and answers 0.5 to every question.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from judge.judge_world import KEY, can_be_shown, jev_at, judge, laya_at, session
from judge.system_one_server import closed_port
from making import session_files

from lcc.contract.reasons import NO_CANDIDATES
from lcc.judge.errors import TranscriptFitError
from lcc.judge.plan import Limits, plan_requests
from lcc.judge.state import Stage, entries_of, render
from lcc.relevance import TranscriptCompactionRequest, compact_transcript
from lcc.relevance.evidence.pins import pin_reasons
from lcc.tokens import budget_counter
from lcc.transcript import parse_payload, read_transcript

SESSIONS = session_files()


@contextmanager
def laya_serve(log: Path, **settings: str) -> Iterator[str]:
    """A running server's base URL; ``settings`` are its LAYA_SERVE_* variables."""
    port = closed_port()
    environ = {**os.environ, "LAYA_SERVE_BACKEND": "fake", **settings}
    command = [sys.executable, "-m", "laya_serve.cli", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as written:
        process = subprocess.Popen(command, env=environ, stdout=written, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        end = time.monotonic() + 60
        while not _answers(url):
            assert process.poll() is None, f"laya-serve ended (is it installed?): {log.read_text()[-500:]}"
            assert time.monotonic() < end, "laya-serve does not answer"
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with laya_serve(tmp_path_factory.mktemp("laya") / "log", LAYA_SERVE_API_KEY=KEY) as url:
        yield url


def test_it_is_strict(server: str) -> None:
    """The server refuses what is not the format, so that its acceptance below says something."""
    good: dict[str, Any] = {
        "model": "jev-latest",
        "state": {"a": 1},
        "questions": {"q": {"type": "noul", "instructions": "x", "criteria": {"true": "y", "false": "n"}}},
    }
    doctored: list[Callable[[dict[str, Any]], Any]] = [
        lambda body: body.update(extra=1),
        lambda body: body.update(model="jev-99"),
        lambda body: body.update(state=7),
        lambda body: body.update(questions={}),
        lambda body: body["questions"]["q"].update(kind="noul"),
        lambda body: body["questions"]["q"]["criteria"].update(maybe="m"),
    ]
    import copy

    headers = {"Authorization": f"Bearer {KEY}"}
    assert httpx.post(f"{server}/v1/systemone", json=good, headers=headers).status_code == 200
    for change in doctored:
        body = copy.deepcopy(good)
        change(body)
        assert httpx.post(f"{server}/v1/systemone", json=body, headers=headers).status_code == 422


@pytest.mark.parametrize("provider", ["jev", "laya"])
@pytest.mark.parametrize(("threshold", "action"), [(0.5, "keep"), (0.51, "drop")])
def test_both_providers(server: str, provider: str, threshold: float, action: str) -> None:
    """Its 0.5 to everything is a keep at the default threshold and a drop above it."""
    environ = jev_at(server) | laya_at(server) | {"LAYA_API_KEY": KEY}

    outcome = judge(parse_payload(session(40)), environ, provider=provider, threshold=threshold)

    assert (outcome.provider_used, outcome.degraded, outcome.semantic_guarantee) == (provider, False, "judged")
    assert outcome.warnings == ()
    assert outcome.jev_model_resolved == "laya-english"
    assert {(d.action, d.source) for d in outcome.decisions.values()} == {(action, provider)}


def test_auto_finds_it(server: str) -> None:
    """Without a key for Jev, ``auto`` finds the local server by itself."""
    outcome = judge(parse_payload(session(12)), laya_at(server) | {"LAYA_API_KEY": KEY}, provider="auto")

    assert (outcome.provider_used, outcome.semantic_guarantee) == ("laya", "judged")


@pytest.mark.parametrize("file", SESSIONS or [None], ids=lambda file: file.name if file else "none")
def test_shared_sessions(server: str, file: Path | None) -> None:
    """Every request about every real session is accepted and answered whole; what cannot be shown is refused."""
    if file is None:
        pytest.skip("the shared sessions are not beside this checkout")
    transcript = read_transcript(file.read_bytes())
    if not can_be_shown(transcript):
        with pytest.raises(TranscriptFitError):
            judge(transcript, jev_at(server), threshold=0.6)
        return

    outcome = judge(transcript, jev_at(server), threshold=0.6)

    assert outcome.warnings == ()
    assert not outcome.degraded
    if not outcome.decisions:
        assert outcome.degradation_reason == NO_CANDIDATES
        return
    assert outcome.semantic_guarantee == "judged"
    assert {d.action for d in outcome.decisions.values()} == {"drop"}
    assert outcome.calls == outcome.requests == -(-len(outcome.decisions) // 8)


@pytest.mark.parametrize("stage", ["full", "inputs-200", "calls-one-line"])
def test_every_stage_is_accepted(server: str, stage: Stage) -> None:
    """The forms of all three stages are valid requests."""
    transcript = parse_payload(session(50, input_chars=700))
    counter = budget_counter()
    room = sum(counter.count(render(entry, stage)) + 2 for entry in entries_of(transcript, {}, 6)[0]) + 400

    outcome = judge(transcript, jev_at(server), max_state_tokens=room)

    assert outcome.state_fit_stage == stage
    assert outcome.semantic_guarantee == "judged"


def test_wrong_key(server: str) -> None:
    """A key that the server does not know: 401, everything kept, and the key is in no word of the outcome."""
    outcome = judge(parse_payload(session(12)), jev_at(server) | {"TYPESAFE_API_KEY": "sk-wrong-key-1234"})

    assert outcome.semantic_guarantee == "none"
    assert "HTTP 401" in outcome.warnings[0]
    assert "Missing or invalid API key" in outcome.warnings[0]
    assert "sk-wrong" not in repr(outcome)


def test_unknown_model(server: str) -> None:
    """422 with the server's own words about the model."""
    outcome = judge(parse_payload(session(12)), jev_at(server), jev_model="jev-99")

    assert outcome.semantic_guarantee == "none"
    assert "HTTP 422" in outcome.warnings[0]
    assert "unknown model 'jev-99'" in outcome.warnings[0]


def test_state_over_the_servers_limit(server: str) -> None:
    """A request that is too long for the server is refused by it, and everything is kept."""
    payload: Any = session(12, text="word " * 4000)

    outcome = judge(parse_payload(payload), jev_at(server), max_state_tokens=900_000, max_request_tokens=1_000_000)

    assert outcome.semantic_guarantee == "none"
    assert "context budget exceeded" in outcome.warnings[0]


def test_rate_limit(tmp_path: Path) -> None:
    """429 with a Retry-After that the time does not allow: the rest is kept, the judged part stands."""
    with laya_serve(tmp_path / "log", LAYA_SERVE_RATE_LIMIT_PER_MINUTE="2") as url:
        outcome = judge(
            parse_payload(session(43)), jev_at(url), threshold=0.6, max_workers=1, deadline=time.monotonic() + 20
        )

    assert (outcome.provider_used, outcome.semantic_guarantee) == ("jev+partial_fail_safe", "partial")
    assert sum(d.action == "drop" for d in outcome.decisions.values()) == 16
    assert "Rate limit exceeded" in outcome.warnings[0]


def test_whole_pass(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through `compact_transcript`: the report says what was judged, and pinned pairs stand."""
    for name, value in jev_at(server).items():
        monkeypatch.setenv(name, value)

    result = compact_transcript(
        TranscriptCompactionRequest(payload=session(30), question="finish", provider="jev", threshold=0.6)
    )

    report: Any = result.report
    assert report["provider_used"] == "jev"
    assert report["semantic_guarantee"] == "judged"
    assert report["tool_calls_dropped"] == 27
    assert report["jev_model_resolved"] == "laya-english"
    assert report["requests"] == 4
    assert report["state_fit_stage"] == "full"
    assert {d["source"] for d in report["decisions"]} == {"pin", "jev"}


def test_its_count_is_never_above_ours(server: str) -> None:
    """The server counts words; our budgets count at least as much."""
    transcript = parse_payload(session(60))
    pairs = list(transcript.pairs())
    pins = pin_reasons(pairs, len(transcript.messages), 6)
    asked = [pair for pair in pairs if pair.use.id not in pins]
    limits = Limits(25000, 30000, 8, 6)
    plan = plan_requests(transcript, asked, pins, goal="", model="jev-latest", limits=limits, counter=budget_counter())

    assert len(plan.body(0).split()) <= plan.batches[0].tokens
