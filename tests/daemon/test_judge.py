"""A judge behind the daemon: asked with the session's own key, over connections that stay open, and never waited for
beyond its time."""

from __future__ import annotations

from daemon.daemon_world import World, make_event
from judge.system_one_server import always, http, system_one


def test_a_judge_is_asked_with_the_asking_sessions_key(world: World) -> None:
    """The daemon was started without one: the key and the address come with the call, and are in no log."""
    world.start()
    with system_one(always(0.01)) as server:
        env = {"LCC_PROVIDER": "jev", "TYPESAFE_API_KEY": "session-key-77", "TYPESAFE_BASE_URL": server.url}
        plan = world.plan(make_event(world), **env)
        assert plan["action"] == "replace"
        unproven = world.plan(make_event(world), LCC_RULES_MODE="lossless", **env)
        assert "8 cut or dropped on the judge's word" in str(unproven["say"])
        assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer session-key-77"}
    world.cli("stop")
    assert "session-key-77" not in world.log()


def test_a_judge_that_never_answers_is_left_in_time(world: World) -> None:
    """The pass ends with its time for a judge, which may be longer than the client's own; status answers meanwhile."""
    world.start()
    with system_one(lambda asked: [300.0, *http(200, {})]) as server:
        env = {"LCC_PROVIDER": "jev", "TYPESAFE_API_KEY": "k", "TYPESAFE_BASE_URL": server.url}
        env |= {"LCC_JUDGE_TIMEOUT_S": "2", "LCC_BUDGET_MS": "1000", "LCC_RULES_MODE": "lossless"}
        client = world.start_client("compact", make_event(world), **env)
        state = world.status()["state"]
        out = client.communicate(timeout=60)[0]
    assert state in ("busy", "running")
    assert b'"reason":"degraded"' in out
