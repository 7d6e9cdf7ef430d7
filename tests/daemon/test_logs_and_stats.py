"""Logs without content, and figures that survive."""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
import time
from pathlib import Path

import pytest
from daemon.daemon_world import MARKER

from lcc.private_files import write_private
from lcc_daemon import saved as saved_module
from lcc_daemon import stats as stats_module
from lcc_daemon.logs import FILES_KEPT, failure_of, open_log
from lcc_daemon.saved import SavedBytes
from lcc_daemon.stats import Stats


def test_logs_rotate_and_stay_private(tmp_path: Path) -> None:
    """A bounded number of bounded files, each for its owner alone, whatever the umask."""
    before = os.umask(0o000)
    try:
        log = open_log(tmp_path / "state" / "daemon.log", file_bytes=2000)
        for number in range(500):
            log.info("line %d of a request", number)
    finally:
        os.umask(before)
    files = sorted((tmp_path / "state").iterdir())
    assert len(files) == FILES_KEPT + 1
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert all(file.stat().st_size <= 2100 for file in files)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert "line 499" in (tmp_path / "state" / "daemon.log").read_text()


def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Nobody's file is appended to by way of a link."""
    victim = tmp_path / "victim"
    victim.write_text("")
    (tmp_path / "daemon.log").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        open_log(tmp_path / "daemon.log")
    assert victim.read_text() == ""


def test_one_record_is_one_line(tmp_path: Path) -> None:
    """A path with a newline cannot forge a line."""
    log = open_log(tmp_path / "daemon.log")
    log.info("at %s", "/p/a\n2026-01-01 INFO forged\r.py")
    assert len((tmp_path / "daemon.log").read_text().splitlines()) == 1


def test_a_failure_is_told_by_type_and_place_and_never_by_its_message(tmp_path: Path) -> None:
    """Messages quote what they stumbled over; the chain of causes shows nothing of it either."""

    def inner() -> None:
        raise ValueError(f"cannot read {MARKER}")

    try:
        try:
            inner()
        except ValueError as error:
            raise KeyError(MARKER) from error
    except KeyError as error:
        told = failure_of(error)
        log = open_log(tmp_path / "daemon.log")
        log.exception("failed")
    assert told.startswith("KeyError at test_logs_and_stats.py:")
    assert "from ValueError at test_logs_and_stats.py:" in told
    assert "inner" in told
    assert MARKER not in told
    assert MARKER not in (tmp_path / "daemon.log").read_text()
    logging.getLogger("lcc_daemon").handlers.clear()


def test_percentiles_are_of_the_newest_requests(tmp_path: Path) -> None:
    """None before the first; then the value that so many requests did not exceed."""
    stats = Stats()
    assert stats.latency() == {"p50": None, "p95": None, "p99": None}
    for value in range(1, 101):
        stats.served(float(value))
    assert stats.latency() == {"p50": 51.0, "p95": 96.0, "p99": 100.0}
    for _ in range(stats_module.MEASURED):
        stats.served(7.0)
    assert stats.latency() == {"p50": 7.0, "p95": 7.0, "p99": 7.0}


def test_what_is_saved_adds_up_over_processes_and_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two daemons add at the same time and nothing is lost; the next day starts at nothing, and ever goes on."""
    file = tmp_path / "state" / "saved.json"
    monkeypatch.setattr(saved_module, "LOCK_SECONDS", 30.0)
    left: list[int] = []

    def add() -> None:
        stats = SavedBytes(file.parent)
        for _ in range(25):
            stats.add(10)
        left.append(stats.settle(30.0))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (SavedBytes(file.parent).saved()["ever"], sum(left)) == (2000, 0)
    monkeypatch.setattr(saved_module, "_today", lambda: "2199-01-01")
    assert SavedBytes(file.parent).saved()["today"] == 0
    SavedBytes(file.parent).add(5)
    saved = SavedBytes(file.parent).saved()
    assert (saved["today"], saved["ever"]) == (5, 2005)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"today": "x"}', b"\xff"])
def test_a_damaged_file_of_figures_starts_again(tmp_path: Path, content: bytes) -> None:
    """Figures are not worth a failure."""
    file = tmp_path / "saved.json"
    file.write_bytes(content)
    SavedBytes(file.parent).add(3)
    assert json.loads(file.read_bytes())["ever"] == 3


def test_figures_that_cannot_be_written_are_let_go(tmp_path: Path) -> None:
    """A full disk or a folder that is a file does not fail a compaction."""
    (tmp_path / "state").write_text("a file")
    SavedBytes(tmp_path / "state").add(3)


def test_a_private_write_is_whole_or_not_there(tmp_path: Path) -> None:
    """A reader at any moment finds the old bytes or the new, and nothing is left beside them."""
    file = tmp_path / "f"
    write_private(file, b"0" * 100_000)
    stop = threading.Event()
    seen: set[bytes] = set()

    def read() -> None:
        while not stop.is_set():
            seen.add(file.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(50):
        write_private(file, str(number % 10).encode() * 100_000)
    time.sleep(0.01)
    stop.set()
    reader.join()
    assert all(len(data) == 100_000 and len(set(data)) == 1 for data in seen)
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
