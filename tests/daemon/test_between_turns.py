"""When a session that rests between two turns is compacted, and what the module is told of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from lcc.config import Config
from lcc.tokens.requests import Request as Sent
from lcc.tokens.requests import Spending
from lcc_daemon.commands import between_turns
from lcc_daemon.figures import Figures
from lcc_daemon.protocol import Request
from lcc_daemon.resting import background_work, before_a_look, idle_seconds, verdict_on
from lcc_daemon.server import Call
from lcc_daemon.services import Services, build_services
from lcc_daemon.stats import Stats

REPORT: Any = {"worth_it": True, "rules_mode": "auto", "reduction_ratio": 0.5}


def sent(seconds_ago: float, hour: bool = False) -> Spending:
    """One request that ended so long ago and wrote to the cache, for an hour or for five minutes."""
    ended = datetime.now(UTC).timestamp() - seconds_ago
    written = {"written": 0 if hour else 1000, "written_hour": 1000 if hour else 0}
    one = Sent("m", "model", ended, ended, 0, False, new=10, read=0, output=5, **written)
    return Spending((one,), (), (), ())


@pytest.mark.parametrize(
    ("idle", "hour", "life", "freed", "act", "waits"),
    [
        (10, False, 0, 50_000, False, True),  # the cache lives
        (400, False, 0, 50_000, True, False),  # it has run out after five minutes
        (400, True, 0, 50_000, False, True),  # this one lives for an hour
        (4000, True, 0, 50_000, True, False),
        (400, False, 3600, 50_000, False, True),  # the configuration says how long it lives
        (400, False, 0, 2_000, False, False),  # too little would go
        (None, False, 0, 50_000, False, False),  # nothing says when the last request was
    ],
)
def test_cold(idle: float | None, hour: bool, life: float, freed: int, act: bool, waits: bool) -> None:
    spending = Spending((), (), (), ()) if idle is None else sent(idle, hour)
    config = Config(cache_life_s=life)
    figures = Figures(100_000, 100_000 - freed, True)
    verdict = before_a_look(config, [], spending, 0) or verdict_on(REPORT, figures, config, spending)
    assert (verdict.act, verdict.wait_s is not None) == (act, waits)


def test_early_does_not_wait_for_the_cache() -> None:
    """The module asks once the window is as full as the user said; then what can go decides."""
    config = Config(proactive="early", early_share=0.6)
    figures = Figures(100_000, 50_000, True)
    assert before_a_look(config, [], sent(1), 0) is None
    assert verdict_on(REPORT, figures, config, sent(1)).act
    assert not verdict_on({**REPORT, "worth_it": False}, figures, config, sent(1)).act


@pytest.mark.parametrize(
    ("requests", "after", "idle", "why"),
    [
        (40, 40_000, 20, "pays_back"),  # 1.25 x 30,000 written again, 6,000 a request saved
        (8, 40_000, 20, "pays_late"),  # a young session may end before that
        (40, 75_000, 20, "frees_little"),
        (8, 75_000, 400, "cache_cold"),  # the cache has run out: it costs nothing
        (0, 40_000, 20, "no request yet"),
    ],
)
def test_early_without_a_share_is_where_it_pays(requests: int, after: int, idle: float, why: str) -> None:
    spending = replace(sent(idle), requests=sent(idle).requests * requests)
    config, figures = Config(proactive="early"), Figures(100_000, after, True)
    verdict = before_a_look(config, [], spending, 0) or verdict_on(REPORT, figures, config, spending)
    assert (verdict.act, verdict.why) == (why in ("pays_back", "cache_cold"), why)


def test_idle_is_since_the_newest_answer() -> None:
    found = idle_seconds(sent(400))
    assert found is not None
    assert found >= 400
    assert idle_seconds(Spending((), (), (), ())) is None


def line(text: str, ago: float = 0) -> bytes:
    when = (datetime.now(UTC) - timedelta(seconds=ago)).isoformat()
    return orjson.dumps({"timestamp": when, "message": {"content": text}})


def test_background_work_is_what_was_started_here_and_has_not_ended() -> None:
    since = datetime.now(UTC).timestamp() - 60
    started = line("Command running in background with ID: b1. Output is being written")
    assert background_work([started], since) == {b"b1"}
    assert background_work([started, line("<task-id>b1</task-id> completed")], since) == set()
    assert background_work([line("Command running in background with ID: old", ago=3600)], since) == set()
    assert background_work([line("nothing of the kind")], since) == set()


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = build_services(os.fsencode(tmp_path / "run"), {}, Stats(), logging.getLogger("lcc"))
    yield made
    made.background.close(5)


def ask(services: Services, home: Path, **fields: Any) -> dict[str, Any]:
    body = {"v": 1, "session_id": "s1", "cwd": "/", "messages": [], "recall_tool": True, **fields}
    request = Request("between-turns", {"HOME": str(home)}, orjson.dumps(body), cwd="/")
    answer: dict[str, Any] = orjson.loads(between_turns.answer(request, Call.__new__(Call), services).body)
    return answer


def conversation() -> list[dict[str, Any]]:
    """One long output of a command, and enough behind it: with a way to recall it can go."""
    text = "\n".join(f"step {number}: all is well" for number in range(3000))
    use = {"tool_use_id": "t1", "tool": "Bash", "input": {"command": "make"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "text": "Build it."},
        {"role": "assistant", "text": "", "toolUses": [use]},
        {"role": "user", "text": "", "toolResults": [{"tool_use_id": "t1", "text": text}]},
    ]
    for number in range(20):
        messages += [{"role": "assistant", "text": f"Step {number}."}, {"role": "user", "text": "Go on."}]
    return messages


def test_what_to_wait_for(services: Services, tmp_path: Path) -> None:
    assert ask(services, tmp_path, session_id="s-1") == {
        "v": 1, "proactive": "cold", "rest_ms": 300_000, "early_share": None, "status": False,
        "now_file": str(tmp_path / ".local/state/lcc/wishes/s-1.now"),
    }  # fmt: skip
    assert ask(services, tmp_path, options={"enabled": False, "status": True})["proactive"] == "off"
    assert ask(services, tmp_path, options={"proactive": "late"})["act"] is False


def session_file(folder: Path, ago: float) -> str:
    """A session file whose one request was answered so long ago."""
    when = (datetime.now(UTC) - timedelta(seconds=ago)).isoformat()
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 50_000, "output_tokens": 5}
    row = {"type": "assistant", "timestamp": when, "message": {"id": "m", "model": "claude-opus-5-5", "usage": usage}}
    path = folder / "session.jsonl"
    path.write_bytes(orjson.dumps(row) + b"\n")
    return str(path)


@pytest.mark.parametrize(("ago", "act"), [(400.0, True), (10.0, False)])
def test_the_verdict_on_a_session(services: Services, tmp_path: Path, ago: float, act: bool) -> None:
    """The same pass as at a compaction: what only the stash gives back counts where the session can recall."""
    asked = {
        "cwd": str(tmp_path),
        "transcript_path": session_file(tmp_path, ago),
        "messages": conversation(),
        "context_tokens": 60_000,
        "window_tokens": 200_000,
    }
    found = ask(services, tmp_path, **asked)
    assert found["act"] is act
    assert (found["wait_ms"] is None) is act
    assert ask(services, tmp_path, **asked, recall_tool=False)["act"] is False
    assert ask(services, tmp_path, **asked, status=True)["can_go"] > 0.5
    assert not (tmp_path / ".local").exists()
