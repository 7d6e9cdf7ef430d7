"""The stash under kill -9 and under many processes at once."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stash.tampering import age_packs

from lcc.contract.notes import stash_note
from lcc.stash import GcLimits, Stash, Stored, collect, plan_collection
from lcc.stash.gc import DAY

MERCILESS = GcLimits(older_than_seconds=0, max_bytes=0)


def fork(work: Callable[[], None]) -> int:
    """Run ``work`` in a child process; its pid."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def write_and_note(stash: Stash, session: Path, seed: int, rounds: int) -> None:
    """Put batches of contents; after each, append the notes of what was stored to the session's file."""
    chance = random.Random(seed)
    with session.open("ab", buffering=0) as notes:
        for _ in range(rounds):
            contents = [chance.randbytes(chance.randrange(3000)) for _ in range(chance.randrange(1, 9))]
            for outcome in stash.put_many(contents):
                assert isinstance(outcome, Stored)
                notes.write(stash_note(1, outcome.sha256).encode() + b"\n")


def collect_always(stash: Stash, rounds: int) -> None:
    """Collect with no mercy: the clock is years ahead, so that only notes protect."""
    for _ in range(rounds):
        plan = plan_collection(stash, MERCILESS, (), time.time() + 4000 * DAY)
        collect(stash, plan)


def check(stash: Stash, sessions: list[Path]) -> int:
    """Every object is whole and every whole note can be followed; how many notes there are."""
    whole = stash.get_many(entry.sha256 for entry in stash.entries())
    assert [each for each in whole.values() if not isinstance(each, bytes)] == []
    lines = [line for session in sessions for line in session.read_text().splitlines()]
    noted = [line[-13:-1] for line in lines if line.endswith("]")]
    assert set(noted) <= {sha256[:12] for sha256 in whole}
    for short in random.Random(len(noted)).sample(noted, min(20, len(noted))):
        stash.get(short)
    return len(noted)


def kill_after(child: int, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_kill_at_100_random_points_of_writing(tmp_path: Path) -> None:
    """Whenever a writer dies, every object that has a name is whole and every note that was emitted holds."""
    chance = random.Random(20)
    session = tmp_path / "s.jsonl"
    session.touch()
    stash = Stash(tmp_path / "stash", "s", str(session))
    for point in range(100):
        kill_after(fork(lambda seed=point: write_and_note(stash, session, seed, 10_000)), chance.uniform(0, 0.12))
    assert check(stash, [session]) > 0
    write_and_note(stash, session, 1000, 3)
    plan = plan_collection(stash, GcLimits(), (), time.time())
    collect(stash, plan)
    assert not list(stash.folder.rglob("*.tmp"))


def test_kill_at_100_random_points_of_gc(tmp_path: Path) -> None:
    """Whenever gc dies, nothing that a note names is gone, and a later gc finishes the work.

    Half of the points lie in the planning, half in the deleting.
    """
    chance = random.Random(21)
    session = tmp_path / "s.jsonl"
    session.touch()
    stash = Stash(tmp_path / "stash", "s", str(session))
    write_and_note(stash, session, 1, 5)
    noted = check(stash, [session])
    for point in range(100):
        unnamed = stash.put_many([f"{point} {each}".encode() for each in range(6)])
        assert all(isinstance(each, Stored) for each in unnamed)
        planned_read, planned_write = os.pipe()

        def plan_and_collect(planned: int = planned_write) -> None:
            plan = plan_collection(stash, MERCILESS, (), time.time() + 4000 * DAY)
            os.write(planned, b"!")
            collect(stash, plan)

        child = fork(plan_and_collect)
        if point % 2:
            os.read(planned_read, 1)
        kill_after(child, chance.uniform(0, 0.006))
        os.close(planned_read)
        os.close(planned_write)
        assert check(stash, [session]) == noted
    collect_always(stash, 1)
    left = {entry.sha256[:12] for entry in stash.entries()}
    assert left == {line[-13:-1] for line in session.read_text().splitlines()}


def test_ten_writers_and_two_collectors_at_once(tmp_path: Path) -> None:
    """Nothing that a note names is lost, nothing wrong is returned, and nobody fails.

    Each put is younger than a day by the writers' clock, so the collectors go by a clock an hour behind the
    limit for what was just put and years ahead for what was there before.
    """
    sessions = [tmp_path / f"{index}.jsonl" for index in range(10)]
    for session in sessions:
        session.touch()
    stashes = [Stash(tmp_path / "stash", session.name, str(session)) for session in sessions]
    old = stashes[0].put_many([f"old {index}".encode() for index in range(300)])
    assert all(isinstance(each, Stored) for each in old)
    long_ago = time.time() - 400 * DAY
    age_packs(stashes[0], long_ago)
    for path in (tmp_path / "stash" / "refs").iterdir():
        path.unlink()

    def adopt_and_write(index: int) -> None:
        write_and_note(stashes[index], sessions[index], index, 6)
        with sessions[index].open("a") as notes:
            for number in range(index, 300, 29):
                outcome = stashes[index].put(f"old {number}".encode())
                notes.write(stash_note(1, outcome.sha256) + "\n")
                notes.flush()

    def collect_old() -> None:
        for _ in range(12):
            plan = plan_collection(stashes[0], GcLimits(older_than_seconds=DAY), (), time.time())
            collect(stashes[0], plan)

    children = [fork(lambda index=index: adopt_and_write(index)) for index in range(10)]
    children += [fork(collect_old) for _ in range(2)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 12
    assert check(stashes[0], sessions) > 10 * 6
    kept_old = {number for index in range(10) for number in range(index, 300, 29)}
    left = {stashes[0].get(entry.sha256) for entry in stashes[0].entries()}
    assert {f"old {number}".encode() for number in kept_old} <= left


def test_a_stopped_writer_makes_nobody_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one process holds the lock and does not run, another's put fails within its time."""
    monkeypatch.setattr("lcc.stash.store.WRITE_LOCK_SECONDS", 0.05)
    stash = Stash(tmp_path / "stash")
    stash.put(b"first")
    with (stash.folder / "lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (outcome,) = stash.put_many([b"second"])
        assert isinstance(outcome, TimeoutError)
    assert stash.put(b"second").new
