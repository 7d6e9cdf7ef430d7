"""Two sessions with different environments at once, through one daemon: nothing of the one reaches the other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from daemon.daemon_world import World, make_event, that_can_recall, wait_until, write_session
from judge.system_one_server import SystemOneServer, always, system_one

NAMES = ("anna", "bert")


@dataclass(frozen=True)
class Stranger:
    """A session with folders, a key, a judge and a proxy of its own."""

    name: str
    root: Path
    judge: SystemOneServer
    proxy: SystemOneServer

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.root / "home"),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "XDG_DATA_HOME": str(self.root / "data"),
            "XDG_STATE_HOME": str(self.root / "xdg-state"),
            "LCC_STATE_DIR": "-",
            "TYPESAFE_API_KEY": f"key-of-{self.name}",
            "TYPESAFE_BASE_URL": self.judge.url,
            "LAYA_API_KEY": f"other-key-of-{self.name}",
            "HTTP_PROXY": f"http://{self.name}:{self.name}-word@{self.proxy.url.removeprefix('http://')}",
        }

    def write_config(self, text: str) -> None:
        file = self.root / "config" / "lcc" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def event(self, world: World) -> bytes:
        """A session of eight outputs that only a judge or a stash can let go of, each with this one's name in it."""
        event = json.loads(make_event(world))
        # The one thing of a session that the daemon's own log has, wherever that is.
        event["session_id"] = uuid.uuid5(uuid.NAMESPACE_OID, self.name).hex
        event["options"] = {}
        for number, message in enumerate(event["messages"]):
            for use in message.get("toolUses", []):
                use["tool"], use["input"] = "Bash", {"command": f"make {self.name}-{number}"}
                use["text"] = f"{self.name} {number}\n" + f"a line of {self.name}'s\n" * 200
            for result in message.get("toolResults", []):
                result["text"] = f"{self.name} {number - 1}\n" + f"a line of {self.name}'s\n" * 200
        return that_can_recall(world, json.dumps(event).encode())


@pytest.fixture
def strangers(world: World) -> Iterator[list[Stranger]]:
    with ExitStack() as stack:
        made = []
        for name in NAMES:
            root = world.root / name
            (root / "home").mkdir(parents=True)
            servers = [stack.enter_context(system_one(always(0.01))) for _ in range(2)]
            made.append(Stranger(name, root, *servers))
        yield made


def everything_under(folder: Path) -> bytes:
    return b"\n".join(
        [os.fsencode(path) + b"\n" + path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    )


def asked(server: SystemOneServer) -> bytes:
    return b"\n".join(each.body + repr(each.headers).encode() + each.path.encode() for each in server.asked)


@pytest.mark.parametrize("starter", NAMES)
def test_nothing_of_one_session_reaches_the_other(world: World, strangers: list[Stranger], starter: str) -> None:
    """Keys, words, judges, stashes, reports and settings stay with their session, whoever started the daemon."""
    world.start(**next(each for each in strangers if each.name == starter).env)
    anna, bert = strangers
    anna.write_config('provider = "jev"\nrules_mode = "lossless"\n')
    bert.write_config('provider = "jev"\nrules_mode = "stashed"\nrequest_log = true\n')

    def compact_four_times(each: Stranger) -> list[dict[str, object]]:
        return [world.plan(each.event(world), **each.env) for _ in range(4)]

    with ThreadPoolExecutor(2) as at_once:
        plans = dict(zip(NAMES, at_once.map(compact_four_times, strangers), strict=True))
    assert all(plan["action"] == "replace" for each in plans.values() for plan in each)
    stashed = r"lcc recall [0-9a-f]{12}"
    assert not re.search(stashed, json.dumps(plans["anna"]))
    assert re.search(stashed, json.dumps(plans["bert"]))
    world.cli("stop", **anna.env)
    for one, other in ((anna, bert), (bert, anna)):
        reached = {
            "plan": json.dumps(plans[other.name]).encode(),
            "folders": everything_under(other.root),
            "judge": asked(other.judge),
            "proxy": asked(other.proxy),
        }
        named = {place: text.count(one.name.encode()) for place, text in reached.items()}
        assert named == dict.fromkeys(reached, 0), (one.name, other.name)
    assert {each.headers["authorization"] for each in anna.judge.asked} == {"Bearer key-of-anna"}
    assert b"anna" in everything_under(anna.root)


def test_secrets_stay_with_the_client_until_a_judge_needs_them(world: World, strangers: list[Stranger]) -> None:
    """Not in the daemon's environment, and not with a request that asks no judge."""
    anna = strangers[0]
    world.plan(anna.event(world), **anna.env)
    pid = world.pid()
    own = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"key-of-anna" not in own
    assert b"anna-word" not in own
    seen = memory_of(pid)
    assert b"key-of-anna" not in seen
    assert b"anna-word" not in seen
    world.plan(anna.event(world), LCC_PROVIDER="jev", LCC_RULES_MODE="lossless", **anna.env)
    assert {each.headers["authorization"] for each in anna.judge.asked} == {"Bearer key-of-anna"}
    assert b"other-key-of-anna" not in memory_of(pid)  # that is another provider's


def memory_of(pid: int) -> bytes:
    """What can be read of a process's writable memory."""
    found = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            if rights.startswith("rw") and not line.endswith(("[vvar]", "[vsyscall]")):
                start, end = (int(part, 16) for part in span.split("-"))
                try:
                    memory.seek(start)
                    found.append(memory.read(end - start))
                except (OSError, ValueError, OverflowError):
                    continue
    return b"".join(found)


def test_a_proxy_is_the_asking_sessions(world: World, strangers: list[Stranger]) -> None:
    """A judge on another machine is asked through the session's own proxy, with that one's password."""
    anna, bert = strangers
    world.start(**anna.env)
    remote = {"TYPESAFE_BASE_URL": "-", "LAYA_BASE_URL": "http://judge.example", "LCC_RULES_MODE": "lossless"}
    plan = world.plan(bert.event(world), **{**bert.env, **remote, "LCC_PROVIDER": "laya"})
    assert plan["action"] == "replace"
    assert anna.proxy.asked == []
    assert {each.path for each in bert.proxy.asked} == {"http://judge.example/v1/systemone"}


def test_home_and_relative_places_are_the_asking_sessions(world: World, strangers: list[Stranger]) -> None:
    """`~` in a variable or in the file is the session's home, a relative path is under its working folder."""
    anna, bert = strangers
    world.start(**anna.env)
    bert.write_config('stash_dir = "~/kept"\nrules_mode = "stashed"\n')
    env = {**bert.env, "LCC_STATE_DIR": "own-state"}
    assert world.plan(bert.event(world), **env)["action"] == "replace"
    assert (bert.root / "home" / "kept").is_dir()
    assert wait_until(lambda: list((world.project / "own-state" / "reports").glob("*.json")) != [])
    (bert.root / "home" / "mine.toml").write_text("enabled = false\n")
    plan = world.plan(bert.event(world), **{**bert.env, "LCC_CONFIG": "~/mine.toml"})
    assert plan["reason"] == "disabled"
    assert not (anna.root / "home" / "kept").exists()


def test_a_session_without_a_home_has_the_accounts(world: World, strangers: list[Stranger]) -> None:
    """Not that of the session that started the daemon."""
    anna = strangers[0]
    anna.write_config("enabled = false\n")
    world.start(**anna.env)
    assert world.plan(make_event(world), HOME="-", XDG_CONFIG_HOME="-")["action"] == "replace"


def test_what_a_guide_keeps_is_the_asking_sessions(world: World, strangers: list[Stranger]) -> None:
    """PreCompact and SessionStart of one session leave nothing with the other."""
    anna, bert = strangers
    world.start(**anna.env)
    path = write_session(world)
    stdin = {"session_id": "s", "transcript_path": str(path), "cwd": str(world.project)}
    assert world.client("pre-compact", json.dumps(stdin), **bert.env).stdout != b""
    back = json.dumps({**stdin, "source": "compact"})
    assert world.client("session-start", back, **anna.env).stdout == b""
    assert world.client("session-start", back, **bert.env).stdout != b""


def test_bytes_saved_are_counted_where_they_were_saved(world: World, strangers: list[Stranger]) -> None:
    """Each session's status shows its own user's folder, not that of the daemon's first session."""
    anna, bert = strangers
    world.start(**anna.env)
    for _ in range(2):
        assert world.plan(make_event(world), **bert.env)["action"] == "replace"
    assert wait_until(lambda: saved(world, bert.env) > 0)
    assert saved(world, anna.env) == 0


def saved(world: World, env: dict[str, str]) -> int:
    shown = world.status(**env)["bytes_saved"]
    assert isinstance(shown, dict)
    return int(shown["ever"])


def test_lcc_finds_what_its_own_session_stashed(world: World, strangers: list[Stranger]) -> None:
    """The note of one session leads to its own stash, and to nothing in the other's."""
    anna, bert = strangers
    world.start(**anna.env)
    plan = json.dumps(world.plan(bert.event(world), LCC_RULES_MODE="stashed", **bert.env))
    note = re.findall(r"lcc recall ([0-9a-f]{12})", plan)[0]

    def recall(env: dict[str, str]) -> int:
        words = [os.path.join(os.path.dirname(world.env["LCC_PYTHON"]), "lcc"), "recall", note, "--raw"]
        return subprocess.run(words, env=world.merged(env), capture_output=True, check=False).returncode

    assert recall(bert.env) == 0
    assert recall(anna.env) == 2
