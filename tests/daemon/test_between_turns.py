"""When a session that rests is compacted, what `/lcc` answers, and the wishes that a session has of its own."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from lcc.config import Config
from lcc.tokens.requests import Request as Sent
from lcc.tokens.requests import Spending
from lcc_daemon.commands import between_turns, session
from lcc_daemon.compaction import Event
from lcc_daemon.figures import Figures
from lcc_daemon.look import Look, background_work, idle_seconds, verdict_on
from lcc_daemon.protocol import Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services, build_services
from lcc_daemon.stats import Stats
from lcc_daemon.wishes import MOST_KEPT, WishError, Wishes, read_wishes, write_wishes

REPORT: Any = {"worth_it": True, "rules_mode": "auto", "reduction_ratio": 0.5}


def event(context: int | None = 100_000, window: int | None = 200_000) -> Event:
    return Event("plugin", "", [], "s", "", "/p", "", {}, context_tokens=context, window_tokens=window)


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
    look = Look(REPORT, Figures(100_000, 100_000 - freed, True))
    verdict = verdict_on(look, event(), Config(cache_life_s=life), spending)
    assert (verdict.act, verdict.wait_s is not None) == (act, waits)


@pytest.mark.parametrize(("context", "act"), [(50_000, False), (130_000, True)])
def test_early_begins_at_its_share(context: int, act: bool) -> None:
    look = Look(REPORT, Figures(context, context // 2, True))
    config = Config(proactive="early", early_share=0.6)
    assert verdict_on(look, event(context), config, sent(1)).act is act
    assert not verdict_on(look, event(context, None), config, sent(1)).act


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


def test_wishes_are_kept_and_bounded(tmp_path: Path) -> None:
    write_wishes(tmp_path, "s1", Wishes(True, ("a.py", "b")))
    assert read_wishes(tmp_path, "s1") == Wishes(True, ("a.py", "b"))
    assert read_wishes(tmp_path, "s2") == Wishes()
    config = read_wishes(tmp_path, "s1").on(Config(protect_paths=("a.py", "z")))
    assert config.protect_paths == ("a.py", "z", "b")
    assert not config.enabled
    with pytest.raises(WishError):
        write_wishes(tmp_path, "s1", Wishes(keep=tuple(map(str, range(MOST_KEPT + 1)))))
    with pytest.raises(WishError):
        write_wishes(tmp_path, "../s", Wishes())
    (tmp_path / "wishes" / "s1.json").write_bytes(b"[1")
    assert read_wishes(tmp_path, "s1") == Wishes()


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = build_services(os.fsencode(tmp_path / "run"), {}, Stats(), logging.getLogger("lcc"))
    yield made
    made.background.close(5)


def ask(services: Services, command: Any, home: Path, **fields: Any) -> dict[str, Any]:
    body = {"v": 1, "trigger": "plugin", "session_id": "s1", "cwd": "/", "messages": [], **fields}
    request = Request("session", {"HOME": str(home)}, orjson.dumps(body), cwd="/")
    answer: dict[str, Any] = orjson.loads(command.answer(request, Call.__new__(Call), services).body)
    return answer


def test_the_words_of_the_command(services: Services, tmp_path: Path) -> None:
    def said(words: str) -> str:
        return str(ask(services, session, tmp_path, words=words)["text"])

    assert "can go now: nothing yet" in said("")
    assert "`docs/a b.md`" in said('keep "docs/a b.md"')
    assert "docs/a b.md" in said("keep")
    assert "docs/a b.md" in said("")
    assert "no longer kept" in said("unkeep docs/a b.md")
    assert "not kept" in said("unkeep nowhere")
    assert "`/lcc on`" in said("off")
    assert "off for this session" in said("")
    assert ask(services, session, tmp_path, words="now")["now"] is False
    assert ask(services, between_turns, tmp_path)["proactive"] == "off"
    assert said("on") == "lcc compacts this session."
    assert ask(services, session, tmp_path, words="now")["now"] is True
    assert ask(services, between_turns, tmp_path)["proactive"] == "cold"
    assert "has left a report" in said("explain")
    assert "is not known" in said("frobnicate")
