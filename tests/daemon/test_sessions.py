"""Following session files: only what is new is parsed, and nothing stale is ever served."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from pathlib import Path

import pytest
from daemon.daemon_world import World, append_rows, row, write_session

from lcc.transcript import Transcript, TranscriptError, read_transcript
from lcc_daemon import sessions
from lcc_daemon.sessions import Followed, SessionFileError, Sessions

LOG = logging.getLogger("lcc_daemon.tests")


def same(one: Transcript, other: Transcript) -> bool:
    return one.messages == other.messages and one.raw == other.raw


def test_appended_lines_are_read_alone(world: World) -> None:
    """After a growth the result is what a fresh read gives, and only the new bytes were fed."""
    path = write_session(world)
    followed = Followed(path)
    followed.catch_up()
    reader, fed = followed.reader, followed.fed
    append_rows(path, [row("t5", "n1", "user", "more", world)])
    followed.catch_up()
    assert followed.reader is reader
    assert followed.fed > fed
    assert same(followed.reader.transcript(), read_transcript(path.read_bytes()))


@pytest.mark.parametrize("how", ["replaced", "cut", "rewritten longer"])
def test_a_file_that_is_not_the_one_it_was_is_read_again(world: World, how: str) -> None:
    """Another file, a shorter one, another content of the same beginning length: never a mixture."""
    path = write_session(world, files=3)
    followed = Followed(path)
    followed.catch_up()
    content = path.read_bytes()
    if how == "replaced":
        beside = path.with_suffix(".new")
        beside.write_bytes(content.replace(b"step 1", b"STEP 1"))
        os.replace(beside, path)
    elif how == "cut":
        path.write_bytes(b"".join(content.splitlines(keepends=True)[:4]))
    else:
        path.write_bytes(content.replace(b"And now", b"And then") + b"")
    followed.catch_up()
    assert same(followed.reader.transcript(), read_transcript(path.read_bytes()))


def test_a_torn_last_line_is_taken_up_when_it_is_whole(world: World) -> None:
    """The client writes while we read."""
    path = write_session(world)
    followed = Followed(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    followed.catch_up()
    with open(path, "ab") as out:
        out.write(whole[-40:])
    followed.catch_up()
    assert same(followed.reader.transcript(), read_transcript(whole))


def test_a_broken_line_is_passed_over_and_the_rest_is_followed(world: World) -> None:
    """A line that a crash left: kept, named, and what comes after it is read."""
    path = write_session(world)
    with open(path, "ab") as out:
        out.write(bytes(300) + b"\n")
    followed = Followed(path)
    followed.catch_up()
    append_rows(path, [row("t5", "n1", "user", "more", world)])
    followed.catch_up()
    assert followed.reader.transcript().messages[-1].text == "more"
    assert len(followed.reader.transcript().warnings) == 1
    assert same(followed.reader.transcript(), read_transcript(path.read_bytes()))


def test_what_is_no_session_is_an_error_each_time_and_not_only_once(world: World) -> None:
    """A reader that failed is not asked again: the file is read from its start, and fails the same way."""
    path = write_session(world)
    path.write_text("this is no JSON\n")
    followed = Followed(path)
    for _ in range(2):
        with pytest.raises(TranscriptError):
            followed.catch_up()


def test_a_session_is_the_same_followed_or_not(world: World) -> None:
    """Whoever asks gets the file as it is now, also for a session that nobody follows."""
    path = write_session(world)
    followed, fresh = Sessions(LOG), Sessions(LOG)
    followed.follow("s", path)
    append_rows(path, [row("t5", "n1", "user", "more", world)])
    assert same(followed.transcript("s", path), fresh.transcript("s", path))
    assert fresh.listing() == []


def test_at_most_so_many_sessions_are_followed(world: World) -> None:
    """The one that changed longest ago is let go."""
    path = write_session(world)
    many = Sessions(LOG)
    for number in range(sessions.MOST_FOLLOWED + 5):
        copy = path.with_name(f"{number}.jsonl")
        copy.write_bytes(b"")
        many.follow(str(number), copy)
    kept = [each["session"] for each in many.listing()]
    assert kept == [str(number) for number in range(5, sessions.MOST_FOLLOWED + 5)]


def test_all_followed_files_together_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of large sessions does not fill the memory: the oldest are let go as the newest are read."""
    path = write_session(world)
    monkeypatch.setattr(sessions, "TOTAL_LIMIT", 2 * path.stat().st_size)
    many = Sessions(LOG)
    for number in range(4):
        copy = path.with_name(f"{number}.jsonl")
        copy.write_bytes(path.read_bytes())
        many.follow(str(number), copy)
        many.read_ahead(str(number))
    assert [each["session"] for each in many.listing()] == ["2", "3"]


@pytest.mark.parametrize("name", ["relative.jsonl", "/etc/passwd"])
def test_what_is_no_session_file_is_not_followed(name: str) -> None:
    """A hook's input names the path; only an absolute one of that kind is taken."""
    many = Sessions(LOG)
    many.follow("s", Path(name))
    assert many.listing() == []


def test_a_file_over_the_limit_is_read_when_needed_and_not_held(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is let go as a followed one, and still readable."""
    monkeypatch.setattr(sessions, "FOLLOW_LIMIT", 1000)
    path = write_session(world)
    many = Sessions(LOG)
    many.follow("s", path)
    assert same(many.transcript("s", path), read_transcript(path.read_bytes()))
    assert many.listing() == []
    monkeypatch.setattr(sessions, "FILE_LIMIT", 1000)
    with pytest.raises(SessionFileError, match="at most 1000 bytes"):
        many.transcript("s", path)


def test_watching_reads_ahead(world: World) -> None:
    """A followed session is parsed as its file grows, before anybody asks; its file may come later than its start."""
    path = write_session(world)
    content = path.read_bytes()
    path.unlink()
    seen: list[str] = []
    many = Sessions(LOG, lambda session, transcript: seen.append(session))

    async def live() -> int:
        watching = asyncio.create_task(many.watch())
        await asyncio.sleep(0.1)
        many.follow("s", path)
        await asyncio.sleep(0.3)
        path.write_bytes(content * 1)
        until = time.monotonic() + 20
        while time.monotonic() < until and many.listing()[0]["bytes"] != len(content):
            await asyncio.sleep(0.05)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return int(str(many.listing()[0]["bytes"]))

    assert asyncio.run(live()) == len(content)


def test_live_is_what_changed_lately(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that nobody touches does not keep the daemon up for ever."""
    path = write_session(world)
    many = Sessions(LOG)
    assert not many.is_any_live()
    many.follow("s", path)
    assert many.is_any_live()
    monkeypatch.setattr(sessions, "LIVE_SECONDS", 0.0)
    assert not many.is_any_live()


@pytest.mark.parametrize("path", ["/" + "a" * 300 + "/s.jsonl", "/a\0b/s.jsonl", "/dev/null/s.jsonl"])
def test_a_path_that_nothing_can_have_ends_its_own_session_only(world: World, path: str) -> None:
    """Watching goes on for the others, whatever one session's path is."""
    good = write_session(world)

    async def watch_both() -> None:
        followed = Sessions(LOG)
        followed.follow("odd", Path(path))
        task = asyncio.create_task(followed.watch())
        await asyncio.sleep(0.2)
        followed.follow("good", good)
        until = time.monotonic() + 20
        while time.monotonic() < until and not followed._followed["good"].fed:
            assert not task.done(), task.exception()
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert followed._followed["good"].fed == good.stat().st_size

    asyncio.run(watch_both())
