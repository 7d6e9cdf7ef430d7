"""The seed's section 5, judge rows: what a fault does to the report, and that what was not judged is kept."""

from __future__ import annotations

import json
import math
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
import trustme
from judge.judge_world import KEY, jev_at, judge, laya_at, session
from judge.system_one_server import Asked, Step, always, answers, closed_port, http, system_one

from lcc.contract.reasons import JEV_UNAVAILABLE_FAIL_SAFE, NO_CANDIDATES, NOT_JUDGED_FAIL_SAFE
from lcc.judge import client
from lcc.relevance.transcript_judged import JudgedOutcome
from lcc.transcript import parse_payload

SESSION = parse_payload(session(19))  # 16 unpinned calls: two requests of eight
FIRST, SECOND = [f"t{n}" for n in range(1, 9)], [f"t{n}" for n in range(9, 17)]


def kept_by_fail_safe(outcome: JudgedOutcome, ids: list[str], reason: str = "not_judged_fail_safe") -> bool:
    found = [outcome.decisions[i] for i in ids]
    return all((d.action, d.source, d.reason.code, d.verdict) == ("keep", "fail_safe", reason, None) for d in found)


def no_secret_in(outcome: JudgedOutcome) -> bool:
    return KEY not in repr(outcome)


# -- row 1: no key, or no network ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "environ",
    [
        {"HOME": "/nonexistent"},
        {"HOME": "/nonexistent", "TYPESAFE_API_KEY": ""},
        {"HOME": "/nonexistent", "TYPESAFE_API_KEY": KEY, "LCC_DISABLE_NETWORK": "1"},
    ],
)
@pytest.mark.parametrize("provider", ["jev", "auto"])
def test_no_key_or_no_network_keeps_everything(provider: str, environ: dict[str, str]) -> None:
    """provider_used jev, degraded, no guarantee, every call kept as jev_unavailable_fail_safe."""
    environ = environ | {"LAYA_BASE_URL": f"http://127.0.0.1:{closed_port()}"}

    outcome = judge(SESSION, environ, provider=provider)

    assert (outcome.provider_used, outcome.degraded, outcome.semantic_guarantee) == ("jev", True, "none")
    assert outcome.degradation_reason == JEV_UNAVAILABLE_FAIL_SAFE
    assert kept_by_fail_safe(outcome, FIRST + SECOND, "jev_unavailable_fail_safe")
    assert (outcome.requests, outcome.state_tokens, outcome.jev_model_resolved) == (None, None, None)
    assert len(outcome.warnings) == 1
    assert no_secret_in(outcome)


def test_kill_switch_builds_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """With LCC_DISABLE_NETWORK=1 not even a client object comes to be, for any provider."""

    def build(*arguments: object) -> None:
        raise AssertionError("a client was built")

    monkeypatch.setattr("lcc.judge.client.build_client", build)
    with system_one(always()) as server:
        environ = jev_at(server.url) | laya_at(server.url) | {"LCC_DISABLE_NETWORK": "1"}
        for provider in ("jev", "laya", "auto"):
            assert judge(SESSION, environ, provider=provider).degraded

    assert server.asked == []


def test_kill_switch_holds_for_a_client_that_is_given() -> None:
    """The daemon's warm client is not used either."""
    with system_one(always()) as server, httpx.Client() as warm:
        judge(SESSION, jev_at(server.url) | {"LCC_DISABLE_NETWORK": "1"}, client=warm)

    assert server.asked == []


# -- row 2: a batch fails -----------------------------------------------------------------------------------------


def slow_headers(asked: Asked) -> list[Step]:
    return [b"HTTP/1.1 200 OK\r\n", 30.0]


def slow_body(asked: Asked) -> list[Step]:
    return [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", *([b" ", 0.05] * 400)]


def cut_body(asked: Asked) -> list[Step]:
    whole = http(200, answers(asked))[0]
    assert isinstance(whole, bytes)
    return [whole[:-20], None]


def error(status: int, message: str = "no", **headers: str) -> Callable[[Asked], list[Step]]:
    return lambda asked: http(status, {"error": {"message": message, "field": None}}, **headers)


FAULTS: dict[str, tuple[Callable[[Asked], list[Step]], str, int]] = {
    # name: behaviour, what the warning says, attempts for each request
    "401": (error(401, f"bad key {KEY}"), "HTTP 401 from 127.0.0.1", 1),
    "400": (error(400), "HTTP 400 from 127.0.0.1", 1),
    "422": (error(422, "too many tokens"), "HTTP 422 from 127.0.0.1", 1),
    "302": (lambda asked: http(302, b"", Location="http://192.0.2.1/"), "HTTP 302", 1),
    "500": (error(500), "HTTP 500", client.MAX_ATTEMPTS),
    "529": (error(529), "HTTP 529", client.MAX_ATTEMPTS),
    "429 with Retry-After: 0": (error(429, Retry_After="0"), "HTTP 429", client.MAX_ATTEMPTS),
    "429 with an hour to wait": (error(429, Retry_After="3600"), "asks to wait 3600 s", 1),
    "cut body": (cut_body, "broke off", client.MAX_ATTEMPTS),
    "no answer at all": (lambda asked: [None], "broke off", client.MAX_ATTEMPTS),
    "not HTTP": (lambda asked: [b"SSH-2.0-OpenSSH\r\n\r\n", None], "broke off", client.MAX_ATTEMPTS),
    "wrong JSON": (lambda asked: http(200, b"{'answers': }"), "is not JSON", 1),
    "deep JSON": (lambda asked: http(200, b"[" * 200_000), "is not JSON", 1),
    "JSON of another shape": (lambda asked: http(200, b'{"choices": []}'), "has no object of answers", 1),
    "answers of another shape": (lambda asked: http(200, b'{"answers": [1]}'), "has no object of answers", 1),
    "HTML": (lambda asked: http(200, b"<html>hi</html>"), "is not JSON", 1),
    "huge answer": (lambda asked: http(200, b" " * (client.MAX_ANSWER_BYTES + 1)), "is larger than", 1),
    "state cut by the server": (
        lambda asked: http(
            200, answers(asked, 0.1) | {"usage": {"truncated": True, "state_tokens_dropped": 8000, "input_tokens": 5}}
        ),
        "cut 8000 tokens of the conversation",
        1,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_request_fails(name: str) -> None:
    """provider_used degraded, no guarantee, every call kept as not judged; the warning names the cause."""
    respond, words, attempts = FAULTS[name]
    with system_one(respond) as server:
        outcome = judge(SESSION, jev_at(server.url), max_workers=1)

    assert (outcome.provider_used, outcome.degraded, outcome.semantic_guarantee) == ("degraded", True, "none")
    assert outcome.degradation_reason == NOT_JUDGED_FAIL_SAFE
    assert kept_by_fail_safe(outcome, FIRST + SECOND)
    assert words in " ".join(outcome.warnings)
    assert outcome.requests == 2
    sent = 1 if name == "401" else 2
    assert len(server.asked) == attempts * sent == outcome.calls
    assert no_secret_in(outcome)
    assert all("\n" not in warning and len(warning) < 500 for warning in outcome.warnings)


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "401"])
def test_one_request_of_two_fails(name: str) -> None:
    """jev+partial_fail_safe, partial: the judged calls keep their verdict, the others are kept."""
    respond, words, _ = FAULTS[name]

    def first_fails(asked: Asked) -> Any:
        return respond(asked) if "keep_call_t1" in asked.questions else http(200, answers(asked, 0.1))

    with system_one(first_fails) as server:
        outcome = judge(SESSION, jev_at(server.url), max_workers=1)

    assert (outcome.provider_used, outcome.degraded) == ("jev+partial_fail_safe", True)
    assert outcome.semantic_guarantee == "partial"
    assert outcome.degradation_reason == NOT_JUDGED_FAIL_SAFE
    assert kept_by_fail_safe(outcome, FIRST)
    assert {outcome.decisions[i].action for i in SECOND} == {"drop"}
    assert {outcome.decisions[i].source for i in SECOND} == {"jev"}
    assert words in " ".join(outcome.warnings)
    assert "request 1 of 2" in " ".join(outcome.warnings)


@pytest.mark.parametrize("behaviour", [slow_headers, slow_body])
def test_slow_server_ends_with_the_deadline(behaviour: Callable[[Asked], list[Step]]) -> None:
    """A server that takes its time with headers or body is not waited for; what it had judged stays."""

    def respond(asked: Asked) -> Any:
        return behaviour(asked) if "keep_call_t1" in asked.questions else http(200, answers(asked, 0.1))

    with system_one(respond) as server:
        started = time.monotonic()
        outcome = judge(SESSION, jev_at(server.url), deadline=started + 1.0)
        took = time.monotonic() - started

    assert took < 10  # a hang would be 30 s and more
    assert outcome.semantic_guarantee == "partial"
    assert kept_by_fail_safe(outcome, FIRST)
    assert {outcome.decisions[i].action for i in SECOND} == {"drop"}


def test_late_answers_are_fail_safe_keeps() -> None:
    """After the deadline nothing is judged any more, whatever still arrives."""
    with system_one(lambda asked: [3.0, *http(200, answers(asked, 0.1))]) as server:
        outcome = judge(SESSION, jev_at(server.url), deadline=time.monotonic() + 0.5)

    assert outcome.semantic_guarantee == "none"
    assert kept_by_fail_safe(outcome, FIRST + SECOND)


def test_deadline_that_is_over_sends_nothing() -> None:
    """A pass that comes too late keeps everything and asks nobody."""
    with system_one(always(0.1)) as server:
        outcome = judge(SESSION, jev_at(server.url), deadline=time.monotonic() - 1)

    assert server.asked == []
    assert kept_by_fail_safe(outcome, FIRST + SECOND)


def test_connection_refused() -> None:
    """Jev that cannot be reached is a failed batch; the warning names host and port."""
    port = closed_port()

    outcome = judge(SESSION, jev_at(f"http://127.0.0.1:{port}"))

    assert (outcome.provider_used, outcome.degraded, outcome.semantic_guarantee) == ("degraded", True, "none")
    assert kept_by_fail_safe(outcome, FIRST + SECOND)
    assert f"127.0.0.1:{port} cannot be reached" in outcome.warnings[0]


def test_certificate_of_nobody_is_refused_at_once() -> None:
    """A server whose certificate no known authority signed gets no request, and is not tried again."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with system_one(always(0.1), tls=context) as server:
        outcome = judge(SESSION, jev_at(server.url))

    assert server.asked == []
    assert outcome.calls == 2
    assert kept_by_fail_safe(outcome, FIRST + SECOND)
    assert "no secure connection to 127.0.0.1" in outcome.warnings[0]


def test_tls_to_a_server_without_it() -> None:
    """https spoken to a plain server is a TLS failure, too."""
    with system_one(always(0.1)) as server:
        outcome = judge(SESSION, jev_at(server.url.replace("http:", "https:")))

    assert kept_by_fail_safe(outcome, FIRST + SECOND)
    assert "(TLS)" in outcome.warnings[0]


def test_known_certificate_works() -> None:
    """The refusals above are about the certificate: with its authority known, the same server judges."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    with system_one(always(0.1), tls=context) as server, httpx.Client(verify=trust) as known:
        outcome = judge(SESSION, jev_at(server.url), client=known)

    assert outcome.semantic_guarantee == "judged"


# -- retries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", sorted(client.RETRIED_STATUSES))
def test_a_passing_fault_is_retried(status: int) -> None:
    """500 then 200 (and every other status worth it): the pass is a whole one, without a warning."""
    with system_one(
        lambda asked: error(status)(asked) if asked.number == 0 else http(200, answers(asked, 0.1))
    ) as server:
        outcome = judge(SESSION, jev_at(server.url), max_workers=1)

    assert (outcome.provider_used, outcome.degraded, outcome.semantic_guarantee) == ("jev", False, "judged")
    assert outcome.warnings == ()
    assert (outcome.requests, outcome.calls) == (2, 3)


@pytest.mark.parametrize("name", ["retry-after-ms", "retry-after", "date"])
def test_the_servers_delay_is_honoured(name: str) -> None:
    """No attempt comes before the moment that the server named, in any of the three forms."""
    times: list[float] = []

    def respond(asked: Asked) -> list[Step]:
        times.append(time.time())
        if asked.number:
            return http(200, answers(asked, 0.1))
        when = {
            "retry-after-ms": {"retry_after_ms": "400"},
            "retry-after": {"Retry_After": "0.4"},
            "date": {"Retry_After": format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)},
        }[name]
        return http(429, {"error": {"message": "slow down"}}, **when)

    with system_one(respond) as server:
        outcome = judge(SESSION, jev_at(server.url), max_workers=1)

    assert outcome.semantic_guarantee == "judged"
    assert times[1] - times[0] >= 0.39


def test_a_delay_beyond_the_deadline_is_not_waited_for() -> None:
    """When the server's delay does not fit into the time that is left, the call is kept at once."""
    started = time.monotonic()
    with system_one(error(429, Retry_After="50")) as server:
        outcome = judge(SESSION, jev_at(server.url), deadline=started + 20)

    assert time.monotonic() - started < 15
    assert kept_by_fail_safe(outcome, FIRST + SECOND)
    assert "no time to try again" in outcome.warnings[0]


def test_a_server_that_is_down_is_not_asked_for_ever() -> None:
    """After three failed requests in a row the rest of a long pass is not sent."""
    with system_one(error(422)) as server:
        outcome = judge(parse_payload(session(400)), jev_at(server.url), max_workers=2)

    assert outcome.requests == 50
    assert len(server.asked) <= 10
    assert "in a row had failed" in " ".join(outcome.warnings)
    assert len(outcome.warnings) == 2


def test_failures_that_are_not_in_a_row_do_not_end_the_pass() -> None:
    """Every second request failing leaves every other one judged."""

    def respond(asked: Asked) -> list[Step]:
        first = int(asked.questions[0].rsplit("t", 1)[1])
        return error(422)(asked) if first // 8 % 2 else http(200, answers(asked, 0.1))

    with system_one(respond) as server:
        outcome = judge(parse_payload(session(82)), jev_at(server.url), max_workers=1)

    assert len(server.asked) == outcome.requests == 10
    assert sum(d.action == "drop" for d in outcome.decisions.values()) == 40


def test_refused_key_ends_the_pass() -> None:
    """After a 401 no more requests are made with that key."""
    with system_one(error(401)) as server:
        outcome = judge(parse_payload(session(400)), jev_at(server.url), max_workers=1)

    assert len(server.asked) <= 2
    assert kept_by_fail_safe(outcome, list(outcome.decisions))
    assert "refuses the key" in " ".join(outcome.warnings)


# -- row 3: answers that are none ---------------------------------------------------------------------------------

NO_ANSWERS: dict[str, tuple[Any, str]] = {
    "missing": (KeyError, "jev_missing_answer"),
    "null": (None, "jev_missing_answer"),
    "a bare number": (0.1, "jev_missing_answer"),
    "another type": ({"type": "choice", "choice": "yes", "noul": 0.1}, "jev_missing_answer"),
    "a word": ({"type": "noul", "noul": "0.1"}, "jev_missing_answer"),
    "true": ({"type": "noul", "noul": True}, "jev_missing_answer"),
    "nothing in it": ({"type": "noul"}, "jev_missing_answer"),
    "above 1": ({"type": "noul", "noul": 1.0000001}, "jev_answer_out_of_range"),
    "below 0": ({"type": "noul", "noul": -0.0001}, "jev_answer_out_of_range"),
    "a per cent": ({"type": "noul", "noul": 93}, "jev_answer_out_of_range"),
    "NaN": ({"type": "noul", "noul": math.nan}, "jev_answer_out_of_range"),
    "infinity": ({"type": "noul", "noul": math.inf}, "jev_answer_out_of_range"),
}


@pytest.mark.parametrize("question", ["keep_call_t3", "keep_result_t3"])
@pytest.mark.parametrize("name", NO_ANSWERS)
def test_answer_that_is_none_keeps_that_call(name: str, question: str) -> None:
    """That call is kept, the reason is a warning, nothing is clamped, and the pass is not degraded."""
    value, kind = NO_ANSWERS[name]

    def respond(asked: Asked) -> list[Step]:
        reply = answers(asked, 0.1)
        if question in reply["answers"]:
            if value is KeyError:
                del reply["answers"][question]
            else:
                reply["answers"][question] = value
        return http(200, json.dumps(reply).encode())

    with system_one(respond) as server:
        outcome = judge(SESSION, jev_at(server.url))

    decision = outcome.decisions["t3"]
    assert (decision.action, decision.source, decision.reason.code) == ("keep", "fail_safe", f"{kind}:{question}")
    assert decision.verdict is None
    assert outcome.warnings == (f"{kind}:{question}",)
    assert {outcome.decisions[i].action for i in FIRST + SECOND if i != "t3"} == {"drop"}
    assert (outcome.provider_used, outcome.degraded, outcome.semantic_guarantee) == ("jev", False, "judged")


def test_no_usable_answer_at_all_is_not_called_judged() -> None:
    """A server that answers none of the questions has judged nothing, and the report says so."""
    with system_one(lambda asked: http(200, {"model": "jev-1.13.0", "answers": {}})) as server:
        outcome = judge(SESSION, jev_at(server.url))

    assert (outcome.provider_used, outcome.degraded, outcome.semantic_guarantee) == ("degraded", True, "none")
    assert outcome.decisions["t1"].reason.code == "jev_missing_answer:keep_call_t1"
    assert len(outcome.warnings) == 32


def test_answers_to_questions_that_were_not_asked_change_nothing() -> None:
    """Extra answers, also for pinned calls, are ignored."""

    def respond(asked: Asked) -> list[Step]:
        reply = answers(asked, 0.9)
        for name in ("keep_call_t19", "keep_result_t19", "keep_call_t999"):
            reply["answers"][name] = {"type": "noul", "noul": 0.0}
        return http(200, reply)

    with system_one(respond) as server:
        outcome = judge(SESSION, jev_at(server.url))

    assert set(outcome.decisions) == set(FIRST + SECOND)


# -- row 4: nothing to score --------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["jev", "auto", "laya"])
@pytest.mark.parametrize("payload", [session(3), session(0), []])
def test_nothing_to_score(provider: str, payload: Any) -> None:
    """All pinned: not degraded, no guarantee, no_candidates, nobody asked, no call claimed as judged."""
    with system_one(always()) as server:
        environ = jev_at(server.url) | laya_at(server.url)
        outcome = judge(parse_payload(payload), environ, provider=provider, preserve_recent=7)

    assert outcome.provider_used == ("laya" if provider == "laya" else "jev")
    assert (outcome.degraded, outcome.semantic_guarantee) == (False, "none")
    assert outcome.degradation_reason == NO_CANDIDATES
    assert outcome.decisions == {}
    assert server.asked == []


# -- the whole, when nothing is wrong -----------------------------------------------------------------------------


def test_model_that_the_alias_resolved_to_is_recorded() -> None:
    """What was asked for and what answered are both known."""
    with system_one(always()) as server:
        outcome = judge(SESSION, jev_at(server.url))

    assert (outcome.model_requested, outcome.jev_model_resolved) == ("jev-latest", "jev-1.13.0")


def test_progress_is_told_once_a_request() -> None:
    """A terminal can show how many requests are answered."""
    seen: list[tuple[int, int]] = []
    with system_one(always()) as server:
        judge(SESSION, jev_at(server.url), progress=lambda done, total: seen.append((done, total)))

    assert seen == [(1, 2), (2, 2)]


def test_interrupt_ends_the_pass() -> None:
    """What the caller's progress raises (Ctrl-C) comes out, and no more requests are sent."""

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with system_one(always()) as server:
        with pytest.raises(KeyboardInterrupt):
            judge(parse_payload(session(400)), jev_at(server.url), progress=interrupt, max_workers=1)
        sent = len(server.asked)

    assert sent < 10


def test_connections_are_reused() -> None:
    """Fifty requests of two workers need no more than two connections."""
    with system_one(always()) as server:
        outcome = judge(parse_payload(session(403)), jev_at(server.url), max_workers=2)

    assert outcome.requests == len(server.asked) == 50
    assert server.connections <= 2


def test_a_given_client_is_used_and_left_open() -> None:
    """The daemon's client serves one pass after another over the same connections."""
    with system_one(always()) as server, httpx.Client() as warm:
        for _ in range(3):
            judge(SESSION, jev_at(server.url), client=warm, max_workers=1)
        assert not warm.is_closed

    assert len(server.asked) == 6
    assert server.connections == 1


def test_a_hung_judge_does_not_delay_another_request() -> None:
    """Two passes over one warm client: the one whose server hangs ends at its deadline, the other at once."""
    import threading

    with system_one(slow_headers) as hung, system_one(always(0.1)) as good, httpx.Client() as warm:
        late: list[JudgedOutcome] = []
        end = time.monotonic() + 2
        thread = threading.Thread(
            target=lambda: late.append(judge(SESSION, jev_at(hung.url), client=warm, deadline=end))
        )
        thread.start()
        outcome = judge(SESSION, jev_at(good.url), client=warm)
        assert time.monotonic() < end
        thread.join(10)

    assert outcome.semantic_guarantee == "judged"
    assert late[0].semantic_guarantee == "none"


def test_models_that_differ_within_a_pass_are_told() -> None:
    """The alias moved on between two requests: the first is recorded and a warning names both."""
    with system_one(lambda asked: http(200, answers(asked, model=f"jev-1.{13 + asked.number}.0"))) as server:
        outcome = judge(SESSION, jev_at(server.url), max_workers=1)

    assert outcome.jev_model_resolved == "jev-1.13.0"
    assert outcome.warnings == ("jev_models_differ:jev-1.13.0, jev-1.14.0",)


@pytest.mark.parametrize("model", [None, 7, "", "two\nlines", "x" * 300])
def test_model_name_that_is_none_is_not_recorded(model: Any) -> None:
    """A missing or impossible model name does not spoil the answers."""
    with system_one(lambda asked: http(200, answers(asked, 0.1) | {"model": model})) as server:
        outcome = judge(SESSION, jev_at(server.url))

    assert outcome.jev_model_resolved is None
    assert outcome.semantic_guarantee == "judged"


def test_a_closed_client_keeps_everything() -> None:
    """A client that its owner has closed meanwhile is a failure like any other."""
    warm = httpx.Client()
    warm.close()
    with system_one(always(0.1)) as server:
        outcome = judge(SESSION, jev_at(server.url), client=warm)

    assert kept_by_fail_safe(outcome, FIRST + SECOND)
    assert "could not be sent" in outcome.warnings[0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "too long", "field": "state"}}, "HTTP 413 from HOST: state: too long"),
        ({"error": "too long"}, "HTTP 413 from HOST: too long"),
        (
            {"detail": "state too large (50004 > 50000 chars)"},
            "HTTP 413 from HOST: state too large (50004 > 50000 chars)",
        ),
        ({"detail": [{"msg": "field required", "loc": ["state"]}]}, "HTTP 413 from HOST: field required"),
        ({"message": "no"}, "HTTP 413 from HOST: no"),
        ({"error": {"code": 7}}, "HTTP 413 from HOST"),
        ([], "HTTP 413 from HOST"),
        (b"\xff\xfe", "HTTP 413 from HOST"),
        ({"error": "two\nlines\x1b[31m"}, "HTTP 413 from HOST: two lines [31m"),
        ({"error": "x" * 5000}, "HTTP 413 from HOST: " + "x" * 200 + "…"),
        (b" " * 100_000, "HTTP 413 from HOST"),
    ],
)
def test_the_servers_own_words(body: Any, words: str) -> None:
    """Every server's form of an error message comes out as one short line without control characters."""
    with system_one(lambda asked: http(413, body if isinstance(body, bytes) else json.dumps(body).encode())) as server:
        outcome = judge(SESSION, jev_at(server.url))
        host = server.url.removeprefix("http://")

    assert outcome.warnings == (f"2 requests of 2: {words}".replace("HOST", host),)


def test_what_no_client_raises_is_a_kept_call_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that fails in a way nobody thought of keeps its calls and does not hold up the pass."""

    def broken(self: object, body: bytes) -> None:
        raise MemoryError

    monkeypatch.setattr(client.SystemOneClient, "ask", broken)
    outcome = judge(SESSION, jev_at("http://127.0.0.1:9"))

    assert kept_by_fail_safe(outcome, FIRST + SECOND)
    assert "MemoryError" in outcome.warnings[0]
