"""The room for files against what others put in our places: links, pipes, devices, held locks, full disks."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from odd_files import Holder, in_place

from lcc.private_files import (
    Beside,
    ExposedFileError,
    ForeignFileError,
    HeldError,
    NotRegularError,
    TooLargeError,
    locked,
    make_private_folder,
    open_regular,
    read_bounded,
    read_or_none,
    remove_own,
    take_lock,
    write_private,
)

pytestmark = pytest.mark.usefixtures("in_time")


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a socket", "a device", "a terminal"])
def test_what_is_no_regular_file_is_refused_at_once_and_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "f"
    in_place(kind, path)
    with pytest.raises(NotRegularError) as caught:
        open_regular(path)
    assert caught.value.kind == ("a device" if kind == "a terminal" else kind)
    assert caught.value.filename == str(path)
    with pytest.raises(NotRegularError):
        open_regular(path, flags=os.O_WRONLY | os.O_APPEND | os.O_CREAT, follow=False)
    assert read_or_none(path, 100) is None


def test_a_pipe_that_comes_between_the_look_and_the_opening_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    opening = os.open

    def swapped(name: str, flags: int, mode: int = 0o777) -> int:
        path.unlink()
        os.mkfifo(path)
        return opening(name, flags, mode)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(NotRegularError):
        read_bounded(path, 100)


def test_a_link_is_followed_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"inside")
    (tmp_path / "link").symlink_to("f")
    assert read_bounded(tmp_path / "link", 100) == b"inside"
    with pytest.raises(NotRegularError) as caught:
        read_bounded(tmp_path / "link", 100, follow=False)
    assert caught.value.kind == "a link"


@pytest.mark.parametrize("name", ["nul\0", "surrogate\ud800", b"nul\0"])
def test_a_name_that_no_file_can_have_is_an_os_error(tmp_path: Path, name: str | bytes) -> None:
    path = os.fsencode(tmp_path) + b"/" + name if isinstance(name, bytes) else f"{tmp_path}/{name}"
    attempts: tuple[Callable[[], object], ...] = (
        lambda: read_bounded(path, 10),
        lambda: write_private(path, b""),
        lambda: make_private_folder(path),
        lambda: take_lock(path, "it", seconds=0),
    )
    for attempt in attempts:
        with pytest.raises(OSError, match="no file can have this name"):
            attempt()


def test_a_read_ends_at_its_limit_whatever_the_size_says(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 100)
    assert read_bounded(path, 100) == b"x" * 100
    with pytest.raises(TooLargeError) as caught:
        read_bounded(path, 99)
    assert (caught.value.size, caught.value.errno) == (100, errno.EFBIG)
    assert read_bounded("/proc/self/status", 1 << 20).startswith(b"Name:")  # its size is 0, it says
    with pytest.raises(TooLargeError):
        read_bounded("/proc/self/status", 3)


def test_owner_and_rights_are_asked_of_the_opened_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"key")
    path.chmod(0o640)
    with pytest.raises(ExposedFileError):
        read_bounded(path, 10, private=True)
    path.chmod(0o600)
    assert read_bounded(path, 10, own=True, private=True) == b"key"
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(ForeignFileError):
        read_bounded(path, 10, own=True)


def test_a_refused_file_leaves_no_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "f").chmod(0o644)

    def tries() -> None:
        for attempt in ("d", "f", "missing"):
            assert read_or_none(tmp_path / attempt, 10) in (None, b"x")
        with pytest.raises(ExposedFileError):
            read_bounded(tmp_path / "f", 10, private=True)
        with locked(tmp_path / "lock", "it", seconds=0), pytest.raises(HeldError):
            take_lock(tmp_path / "lock", "it", seconds=0)

    tries()
    before = len(os.listdir("/proc/self/fd"))
    tries()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_written_file_is_private_and_so_are_its_folders_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private(tmp_path / "a" / "b" / "f", b"first")
        write_private(tmp_path / "a" / "b" / "f", b"second", durable=False)
    finally:
        os.umask(before)
    assert (tmp_path / "a/b/f").read_bytes() == b"second"
    assert [oct(os.stat(tmp_path / each).st_mode & 0o777) for each in ("a", "a/b", "a/b/f")] == [
        "0o700",
        "0o700",
        "0o600",
    ]
    assert os.listdir(tmp_path / "a/b") == ["f"]


@pytest.mark.parametrize("name", ["x" * 255, "語" * 85, "\udcff" * 255])
def test_the_longest_names_can_be_written(tmp_path: Path, name: str) -> None:
    write_private(tmp_path / name, b"x")
    assert os.listdir(tmp_path) == [name]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_private(path, b"x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]
    (tmp_path / "d").mkdir()
    with pytest.raises(IsADirectoryError):
        write_private(tmp_path / "d", b"x")
    assert sorted(os.listdir(tmp_path)) == ["d", "f"]


def test_what_is_written_beside_is_removed_unless_it_is_committed(tmp_path: Path) -> None:
    def interrupted() -> None:
        with Beside(tmp_path / "f") as file:
            file.write(b"half")
            assert len(os.listdir(tmp_path)) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == []
    with Beside(tmp_path / "f", mode=0o644) as file:
        file.write(b"one ")
        file.write(b"two")
        file.finish()
        assert not (tmp_path / "f").exists()
        file.commit()
    assert (tmp_path / "f").read_bytes() == b"one two"
    assert os.stat(tmp_path / "f").st_mode & 0o777 == 0o644


def test_a_link_in_the_place_of_a_private_file_is_replaced_and_its_target_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    (tmp_path / "f").symlink_to("theirs")
    write_private(tmp_path / "f", b"ours")
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert not (tmp_path / "f").is_symlink()


def test_only_old_regular_files_with_names_of_ours_are_removed(tmp_path: Path) -> None:
    names = re.compile(r"\d-part\.json")
    for name in ("1-part.json", "2-part.json", "3-part.json", "4-part.json.bak", "notes.json"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / "0-part.json").mkdir()
    (tmp_path / "5-part.json").symlink_to("notes.json")
    (tmp_path / "6-part.json").write_text("young")
    remove_own(tmp_path, names, older_than=60)
    assert sorted(os.listdir(tmp_path)) == [
        "0-part.json",
        "4-part.json.bak",
        "5-part.json",
        "6-part.json",
        "notes.json",
    ]
    for number in (7, 8, 9):
        (tmp_path / f"{number}-part.json").write_text("x")
    remove_own(tmp_path, names, keep=2)
    assert {"8-part.json", "9-part.json"} <= set(os.listdir(tmp_path))
    assert not {"6-part.json", "7-part.json"} & set(os.listdir(tmp_path))
    remove_own(tmp_path / "missing", names)


@pytest.mark.parametrize("there", range(12))
def test_the_newest_files_of_ours_stay_however_few_there_are(tmp_path: Path, there: int) -> None:
    for number in range(there):
        (tmp_path / f"{number:02}.json").touch()
    remove_own(tmp_path, re.compile(r"\d\d\.json"), keep=7)
    assert sorted(os.listdir(tmp_path)) == [f"{number:02}.json" for number in range(max(0, there - 7), there)]


# ---------------------------------------------------------------- locks


@pytest.mark.parametrize("place", ["a file", "a folder"])
def test_a_held_lock_is_waited_for_so_long_and_then_named(tmp_path: Path, hold: Holder, place: str) -> None:
    is_folder = place == "a folder"
    path = tmp_path if is_folder else tmp_path / "lock"
    process = hold(path)
    os.kill(process.pid, signal.SIGSTOP)  # Ctrl-Z: alive, and letting go of nothing
    for seconds in (0.0, 0.1):
        began = time.monotonic()
        with pytest.raises(HeldError, match="another lcc process holds the lock of the test"):
            take_lock(path, "the lock of the test", seconds=seconds, is_folder=is_folder)
        assert time.monotonic() - began >= seconds
    os.kill(process.pid, signal.SIGKILL)
    with locked(path, "the lock of the test", seconds=10, is_folder=is_folder):
        pass


def test_a_lock_is_waited_for_until_it_is_free(tmp_path: Path, hold: Holder) -> None:
    process = hold(tmp_path / "lock")
    killer = subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -9 {process.pid}"])
    with killer, locked(tmp_path / "lock", "it", seconds=10):
        assert process.wait(10) == -signal.SIGKILL


def test_shared_holders_keep_out_only_the_exclusive_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = (take_lock(path, "it", seconds=0, exclusive=False) for _ in range(2))
    os.close(first)
    with pytest.raises(HeldError):
        take_lock(path, "it", seconds=0)
    os.close(second)
    with locked(path, "it", seconds=0), pytest.raises(HeldError):
        take_lock(path, "it", seconds=0, exclusive=False)


def test_an_error_inside_lets_the_lock_go(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock", "it", seconds=0):
        raise ZeroDivisionError
    os.close(take_lock(tmp_path / "lock", "it", seconds=0))
    assert os.stat(tmp_path / "lock").st_mode & 0o777 == 0o600


def test_a_lock_keeps_out_whoever_uses_flock_on_the_same_file(tmp_path: Path) -> None:
    held = locked(tmp_path / "lock", "it", seconds=0)
    with held, open(tmp_path / "lock", "rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a socket", "a device", "a link"])
def test_what_stands_in_a_lock_files_place_and_is_none_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    if kind == "a link":
        (tmp_path / "f").write_bytes(b"")
        path.symlink_to("f")
    else:
        in_place(kind, path)
    with pytest.raises(NotRegularError):
        take_lock(path, "it", seconds=0)


def test_a_folder_to_lock_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        take_lock(tmp_path / "gone", "it", seconds=0, is_folder=True)
    assert not (tmp_path / "gone").exists()
