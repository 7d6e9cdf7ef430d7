"""Another process changes the files while a pass runs: no note ever calls other bytes verified, and nothing blocks.

What can be decided is decided: files change inside the `emit` of the pass, or at any moment until a lock is
taken at the end of `emit`, so that the disk stands still from the last hash to the comparison made here.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from making import MadeSession, long_text, numbered
from relevance.disk_changer import KINDS

from lcc.relevance import TranscriptCompactionRequest, TranscriptCompactionResult, run_pass
from lcc.transcript import Transcript, parse_payload

CHANGER = str(Path(__file__).with_name("disk_changer.py"))
LONGEST = 60  # seconds until a test that should never block is taken for blocked


@pytest.fixture(autouse=True)
def _nothing_blocks() -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"the pass has not come back for {LONGEST} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Six files of a workspace."""
    folder = tmp_path / "work"
    folder.mkdir()
    paths = [str(folder / f"f{number}.py") for number in range(6)]
    for path in paths:
        Path(path).write_text(long_text(os.path.basename(path)))
    return paths


class Changer:
    """A process that changes a file when it is asked to, and has done so when `change` returns."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, CHANGER, "obey"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def change(self, kind: str, path: str) -> None:
        """Change the file at ``path``."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{kind}\t{path}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def close(self) -> None:
        """End the process."""
        self.process.communicate(timeout=LONGEST)


@pytest.fixture
def changer() -> Iterator[Changer]:
    """The process that obeys."""
    made = Changer()
    yield made
    made.close()


def session_over(paths: list[str], *, parts: bool = True) -> Transcript:
    """Reads of all the files, each whole, and ``parts``: of some of its lines too."""
    session = MadeSession()
    for path in paths:
        text = Path(path).read_text()
        session.read(path, numbered(text))
        if parts:
            session.read(path, numbered("\n".join(text.split("\n")[4:14]), 5), offset=5, limit=10)
    session.filler()
    return parse_payload(session.messages)


def request_at(folder: str) -> TranscriptCompactionRequest:
    """`recoverable`, decided by the disk."""
    return TranscriptCompactionRequest(
        payload=None, provider="rules", rules_mode="recoverable", preserve_recent=0, workspace_root=folder
    )


def claims(result: TranscriptCompactionResult) -> dict[str, str]:
    """The files that an answer calls verified, with the sha256 it names."""
    found: dict[str, str] = {}
    records: Any = result.report["decisions"]
    for record in records:
        text = next(r.text for m in result.messages for r in m.tool_results if r.tool_use_id == record["id"])
        assert ("content verified on disk" in text) == ("disk" in record)
        if "disk" in record:
            assert record["reason"] == "replace_disk_verified"
            assert found.setdefault(record["disk"]["path"], record["disk"]["sha256"]) == record["disk"]["sha256"]
    return found


def sha256(path: str) -> str | None:
    """What a regular file holds now; None for anything else."""
    if os.path.islink(path) or not os.path.isfile(path):
        return None
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_changed_during_emit_is_kept(kind: str, files: list[str], changer: Changer) -> None:
    """A file that changes after the answer was made, and before it is handed over, is not called verified."""
    seen: list[dict[str, str]] = []

    def emit(result: TranscriptCompactionResult) -> TranscriptCompactionResult:
        seen.append(claims(result))
        if len(seen) == 1:
            changer.change(kind, files[2])
        return result

    result = run_pass(session_over(files), request_at(os.path.dirname(files[0])), emit)

    assert seen[0].keys() == set(files)
    assert claims(result) == {path: digest for path, digest in seen[0].items() if path != files[2]}
    records: Any = result.report["decisions"]
    reasons = {record["reason"] for record in records if record["id"] in ("c5", "c6")}
    assert reasons == {"keep_disk_changed_before_emit"}


@pytest.mark.parametrize("kind", ["rewrite", "delete", "fifo", "link to another file"])
def test_a_file_changed_in_every_emit_is_kept_every_time(kind: str, files: list[str], changer: Changer) -> None:
    """One more file changes each time the answer is made again: the last answer names none of them."""
    left = files.copy()

    def emit(result: TranscriptCompactionResult) -> TranscriptCompactionResult:
        if left:
            changer.change(kind, left.pop(0))
        return result

    result = run_pass(session_over(files), request_at(os.path.dirname(files[0])), emit)

    assert not left
    assert claims(result) == {}
    assert result.edits.texts == {}


def test_a_file_that_is_put_back_is_verified(files: list[str], changer: Changer) -> None:
    """What counts is the bytes at the last hash: a change that was undone before it changes nothing."""

    def emit(result: TranscriptCompactionResult) -> TranscriptCompactionResult:
        held = Path(files[0]).read_bytes()
        changer.change("rewrite", files[0])
        Path(files[0]).write_bytes(held)
        return result

    result = run_pass(session_over(files), request_at(os.path.dirname(files[0])), emit)

    assert claims(result).keys() == set(files)


@pytest.mark.parametrize("pause", [0.0, 0.01], ids=["fast emit", "slow emit"])
def test_files_that_change_all_the_time_are_never_called_verified_wrongly(
    pause: float, files: list[str], tmp_path: Path
) -> None:
    """A process changes the files and puts them back as fast as it can, while pass after pass runs."""
    held = {path: sha256(path) for path in files}
    # Of whole reads only: lines that stay in a changed file may be pointed at.
    transcript, request = session_over(files, parts=False), request_at(os.path.dirname(files[0]))
    lock = tmp_path / "lock"
    lock.touch()
    raging = subprocess.Popen([sys.executable, CHANGER, "rage", str(lock), *files], stdin=subprocess.PIPE)
    verified = refused_at_last = passes = 0
    try:
        with lock.open() as file:
            until = time.monotonic() + LONGEST / 2
            while (passes < 60 or not verified or not refused_at_last) and time.monotonic() < until:
                passes += 1
                result = run_pass(transcript, request, _emit_then_freeze(file.fileno(), pause))
                for path, digest in claims(result).items():
                    verified += 1
                    assert digest == sha256(path)
                    assert digest == held[path]
                refused_at_last += "keep_disk_changed_before_emit" in str(result.report["decisions"])
                fcntl.flock(file, fcntl.LOCK_UN)
                time.sleep(0.001)  # lets the other process have the lock
    finally:
        raging.communicate(timeout=LONGEST)

    assert verified
    assert refused_at_last


def _emit_then_freeze(lock: int, pause: float) -> Callable[[TranscriptCompactionResult], TranscriptCompactionResult]:
    """An `emit` during which files change, and at whose end they stop changing."""

    def emit(result: TranscriptCompactionResult) -> TranscriptCompactionResult:
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(pause)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return result

    return emit


def test_a_fifo_in_place_of_a_file_does_not_block(files: list[str]) -> None:
    """A FIFO that nobody writes to would block whoever opens it for reading."""
    transcript = session_over(files)
    for path in files:
        os.unlink(path)
        os.mkfifo(path)

    result = run_pass(transcript, request_at(os.path.dirname(files[0])), lambda answer: answer)

    records: Any = result.report["decisions"]
    assert {record["reason"] for record in records if record["tool"] == "Read"} == {"keep_disk_not_regular"}
