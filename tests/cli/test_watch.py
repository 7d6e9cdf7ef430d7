"""`lcc watch`: a session that grows is measured as it grows, and nothing is written."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest
from cli.cli_world import World
from making import SESSIONS
from programs import LCC

from lcc.contract.options import PassOptions
from lcc.sessions.watch import SessionTooLargeError, Watched
from lcc.tokens import context_tokens

RULES = PassOptions(provider="rules")


def test_one_look_says_what_is_used_and_what_could_go(world: World) -> None:
    """Without a terminal it looks once and stops; the context is what the API counted last."""
    before = world.files()
    requests = [json.loads(line) for line in world.session.read_text().splitlines()]

    ran = world.lcc("watch", "session.jsonl", "--json", "--once")

    found = json.loads(ran.out)
    assert found["context_tokens"] == context_tokens(requests)
    assert found["freeable"]["recoverable"]["calls"] == 7
    assert min(found["freeable"][mode]["tokens"] for mode in ("recoverable", "stashed", "auto")) > 0
    assert (found["calls"], found["window_tokens"]) == (20, 200_000)
    assert world.files() == before


def test_the_text_has_a_bar_for_each(world: World) -> None:
    """Context, from disk, with the stash; the largest by name."""
    text = world.lcc("watch", "session.jsonl", "--window", "100000").text

    assert "of 100,000 tokens" in text
    assert "from disk" in text
    assert "with the stash" in text
    assert "statement-2025.csv" in text


def test_the_newest_session_of_the_folder_is_taken(world: World) -> None:
    """Found as the client lays them out, by the folder one stands in."""
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(world.folder))
    kept = world.folder / "home" / ".claude" / "projects" / name
    kept.mkdir(parents=True)
    (kept / "5a3f0c52.jsonl").write_bytes(world.session.read_bytes())

    ran = world.lcc("watch", "--json", "--once")

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["calls"] == 20
    assert world.lcc("watch", env={"HOME": str(world.workspace)}).code == 2


def test_what_is_appended_is_read_once_and_counted(world: World) -> None:
    """In pieces that end anywhere, also within a character; the same in the end as read at once."""
    raw = world.session.read_bytes()
    growing = world.folder / "growing.jsonl"
    growing.write_bytes(b"")
    watched = Watched(growing, RULES)
    assert watched.poll() is False

    for start in range(0, len(raw), 7001):
        with growing.open("ab") as file:
            file.write(raw[start : start + 7001])
        assert watched.poll() is True
        assert watched.poll() is False
        watched.measure()

    whole = Watched(world.session, RULES)
    whole.poll()
    assert _facts(watched) == _facts(whole)


def _facts(watched: Watched) -> list[object]:
    """What a look says, but for the token estimates, which are calibrated on what there was at some point."""
    found = watched.measure()
    calls = {mode: freeable.calls for mode, freeable in found.freeable.items()}
    return [found.messages, found.calls, found.context, calls, [call.id for call in found.largest]]


def test_a_session_that_was_replaced_is_read_anew(world: World) -> None:
    """Cut or renamed over: what was read before no longer counts."""
    watched = Watched(world.session, RULES)
    watched.poll()
    calls = watched.measure().calls
    lines = world.session.read_bytes().splitlines(keepends=True)
    shorter = world.folder / "shorter.jsonl"
    shorter.write_bytes(b"".join(lines[: len(lines) // 2]))
    shorter.rename(world.session)

    assert watched.poll() is True
    assert 0 < watched.measure().calls < calls


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "codex", "malformed"])
def test_what_is_no_session_is_bad_input_at_once(world: World, kind: str) -> None:
    """One line with the name, exit 2."""
    path = world.folder / kind
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "codex":
        path.write_text('{"timestamp":"t","type":"session_meta","payload":{}}\n')
    elif kind == "malformed":
        path.write_text('{"type":"user"\nnot JSON\n')

    ran = world.lcc("watch", kind)

    assert ran.code == 2, ran.out
    assert kind in ran.err
    assert ran.err.count("\n") == 1


def test_a_session_that_is_too_large_is_refused(world: World) -> None:
    """By its size alone."""
    with world.session.open("ab") as file:
        file.truncate(600 * 1024 * 1024)

    with pytest.raises(SessionTooLargeError):
        Watched(world.session, RULES).poll()


@pytest.mark.parametrize("session", sorted(SESSIONS.glob("cc-*.jsonl"))[::4], ids=lambda path: path.stem)
def test_real_sessions_are_measured(session: Path) -> None:
    """Never more could go than is there."""
    watched = Watched(session, RULES)
    watched.poll()
    found = watched.measure()

    assert found.window >= found.used
    assert 0 <= found.freeable["recoverable"].tokens <= found.freeable["stashed"].tokens <= found.tokens


def test_on_a_terminal_it_goes_on_until_ctrl_c(world: World) -> None:
    """A real terminal: it shows what was appended, and Ctrl-C ends it with 0."""
    raw = world.session.read_bytes().splitlines(keepends=True)
    world.session.write_bytes(b"".join(raw[:20]))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [LCC, "watch", "session.jsonl"],
        cwd=world.folder,
        env={**world.environment(), "TERM": "xterm", "COLUMNS": "120"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        assert "messages" in _read_until(ours, "Ctrl-C ends this")
        with world.session.open("ab") as file:
            file.write(b"".join(raw[20:]))
        assert "20 calls with a result" in _read_until(ours, "20 calls with a result")
        os.kill(process.pid, 2)
        _read_until(ours, None)
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read_until(terminal: int, words: str | None, seconds: float = 60.0) -> str:
    """What the terminal shows until ``words`` stand there, or until the program has ended."""
    shown, end = "", time.monotonic() + seconds
    while time.monotonic() < end and (words is None or words not in shown):
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            shown += os.read(terminal, 65536).decode(errors="replace")
        except OSError:
            break
    return shown
