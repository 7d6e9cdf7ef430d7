"""The judge's options of `lcc compact`, over real HTTP against a System One server of the tests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli.cli_world import Ran, World
from judge.system_one_server import SystemOneServer, always, system_one

KEY = "sk-test-of-the-command-line"


def judged(world: World, server: SystemOneServer, *arguments: str) -> Ran:
    """A pass with Jev at ``server``."""
    here = {"TYPESAFE_API_KEY": KEY, "TYPESAFE_BASE_URL": server.url, "LCC_DISABLE_NETWORK": "0"}
    return world.lcc("compact", "session.jsonl", "--provider", "jev", "--dry-run", "-r", "-", *arguments, env=here)


def report_of(ran: Ran) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    loaded: dict[str, Any] = json.loads(ran.out)
    return loaded


def test_threshold_and_head_decide_what_a_probability_does(world: World) -> None:
    """0.4 for both questions: below 0.5 the pair goes, above 0.3 it stays."""
    with system_one(always(0.4)) as server:
        strict = report_of(judged(world, server))
        mild = report_of(judged(world, server, "--threshold", "0.3"))

    assert strict["tool_calls_dropped"] == strict["blocks_scored"] > 0
    assert mild["tool_calls_kept"] == mild["tool_calls_total"]
    assert (strict["threshold"], mild["threshold"]) == (0.5, 0.3)


def test_a_trimmed_result_keeps_its_head(world: World) -> None:
    """The call matters and its contents do not: --trim-head-chars of them stay, and a line that says so."""
    with system_one(always(lambda name: 0.9 if name.startswith("keep_call") else 0.1)) as server:
        short = report_of(judged(world, server, "--trim-head-chars", "20"))
        long = report_of(judged(world, server, "--trim-head-chars", "500"))

    assert short["tool_calls_trimmed"] >= long["tool_calls_trimmed"] > 0
    assert short["chars_after"] < long["chars_after"]
    assert (short["trim_head_chars"], long["trim_head_chars"]) == (20, 500)


def test_batches_are_as_large_as_was_asked_for(world: World) -> None:
    """--batch-size calls with two questions each, the model that was named, and the key in the header alone."""
    with system_one(always(0.9)) as server:
        report = report_of(judged(world, server, "--batch-size", "3", "--max-workers", "2", "--jev-model", "jev-2"))
        asked = list(server.asked)

    assert max(len(one.questions) for one in asked) == 6
    assert report["requests"] == len(asked)
    assert {one.json["model"] for one in asked} == {"jev-2"}
    assert report["jev_model_requested"] == "jev-2"
    assert report["jev_model_resolved"] == "jev-1.13.0"


def test_a_conversation_that_does_not_fit_is_bad_input(world: World) -> None:
    """Exit 2 with the figures and the option, and nothing is asked."""
    with system_one(always(0.9)) as server:
        ran = judged(world, server, "--max-state-tokens", "50")
        assert server.asked == []

    assert ran.code == 2
    assert "50" in ran.err
    assert "session.jsonl" in ran.err
    assert ran.err.count("\n") == 1


def test_a_cache_makes_verdicts_stick(world: World) -> None:
    """The second pass asks nothing and decides the same; a dry run writes no cache."""
    with system_one(always(0.4)) as server:
        judged(world, server, "--decisions-cache", "verdicts")
        assert not (world.folder / "verdicts").exists()
        here = {"TYPESAFE_API_KEY": KEY, "TYPESAFE_BASE_URL": server.url, "LCC_DISABLE_NETWORK": "0"}
        words = ("compact", "session.jsonl", "--provider", "jev", "--decisions-cache", "verdicts")
        first = world.lcc(*words, env=here)
        asked = len(server.asked)
        second = world.lcc(*words, env=here)

        assert first.code == second.code == 0, first.err
        assert len(server.asked) == asked
    assert first.out == second.out


def test_a_cache_that_cannot_be_used_is_bad_input(world: World) -> None:
    """Some other file, or a folder that is not there; and without a judge there is nothing to keep."""
    (world.folder / "notes.txt").write_text("mine\n")
    with system_one(always(0.9)) as server:
        for name in ("notes.txt", "missing/verdicts", "ledger"):
            ran = judged(world, server, "--decisions-cache", name)
            assert ran.code == 2, name
            assert name.split("/")[0] in ran.err
    assert (world.folder / "notes.txt").read_text() == "mine\n"
    refused = world.compact("--decisions-cache", "verdicts")
    assert refused.code == 2
    assert "--decisions-cache" in refused.err


@pytest.mark.parametrize("answer", [0.4, 7, None, "yes"])
def test_the_key_is_in_nothing_that_is_written(world: World, answer: Any) -> None:
    """Whatever the judge answers."""
    with system_one(always(lambda name: answer)) as server:
        ran = judged(world, server)

    assert ran.code == 0
    assert KEY not in ran.text + ran.err


def test_the_kill_switch_asks_nobody(world: World) -> None:
    """LCC_DISABLE_NETWORK=1: everything is kept, and said."""
    with system_one(always(0.1)) as server:
        here = {"TYPESAFE_API_KEY": KEY, "TYPESAFE_BASE_URL": server.url}
        ran = world.lcc("compact", "session.jsonl", "--provider", "jev", "--dry-run", "-r", "-", env=here)
        assert server.asked == []

    report = report_of(ran)
    assert (report["degraded"], report["tool_calls_kept"]) == (True, report["tool_calls_total"])


@pytest.mark.parametrize("flag", ["-o", "-r"])
def test_no_file_of_the_answer_is_the_cache_of_decisions(world: World, flag: str) -> None:
    """Whatever it is called: one would overwrite the other, so nothing is written."""
    cache = world.folder / "cache"
    (world.folder / "other").symlink_to(world.folder)
    for name in ("cache", "./cache", "other/cache"):
        ran = world.lcc("compact", "session.jsonl", "--provider", "jev", "--decisions-cache", str(cache), flag, name)
        assert ran.code == 2
        assert "--decisions-cache" in ran.err
    assert not cache.exists()
