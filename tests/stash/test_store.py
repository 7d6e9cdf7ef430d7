"""The folder store: durable, private, verified on every read, and honest when it cannot store."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from stash.store_conformance import StoreConformance

from lcc.stash import (
    AmbiguousObjectError,
    DamagedObjectError,
    Stash,
    StashFolderError,
    Stored,
    UnknownObjectError,
    bytes_of_text,
    stash_folder,
    text_of_bytes,
)
from lcc.stash.objects import MAX_OBJECT_BYTES, object_path


@pytest.fixture
def store(tmp_path: Path) -> Stash:
    return Stash(tmp_path / "data" / "stash", "session-1", str(tmp_path / "session.jsonl"))


class TestFolderStore(StoreConformance):
    """The store that lcc uses passes the suite."""


class MemoryStore:
    """The smallest store: shows that the suite asks for behaviour, and not for a folder."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put_many(self, contents: Sequence[bytes]) -> list[Stored | OSError]:
        import hashlib

        outcomes: list[Stored | OSError] = []
        for content in contents:
            sha = hashlib.sha256(content).hexdigest()
            outcomes.append(Stored(sha, len(content), sha not in self.objects))
            self.objects[sha] = content
        return outcomes

    def resolve(self, object_id: str) -> str:
        found = [each for each in self.objects if len(object_id) >= 12 and each.startswith(object_id.lower())]
        if len(found) != 1:
            raise UnknownObjectError(object_id, "unknown")
        return found[0]

    def get(self, object_id: str) -> bytes:
        return self.objects[self.resolve(object_id)]


class TestMemoryStore(StoreConformance):
    """The suite passes for a store without a disk."""

    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


def put(store: Stash, content: bytes) -> str:
    return store.put(content).sha256


def test_everything_is_private(store: Stash) -> None:
    """Folders are 0700 and files 0600, whatever the umask."""
    previous = os.umask(0)
    try:
        put(store, b"secret")
    finally:
        os.umask(previous)
    for path in [store.folder, *store.folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_the_rights_of_a_folder_that_was_there_are_never_changed(tmp_path: Path) -> None:
    """A readable folder of the user's own is used as it is; one that others may write in is refused, unchanged."""
    ours = tmp_path / "ours"
    ours.mkdir()
    ours.chmod(0o755)
    put(Stash(ours), b"a")
    assert stat.S_IMODE(ours.stat().st_mode) == 0o755
    assert stat.S_IMODE((ours / "objects").stat().st_mode) == 0o700

    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(StashFolderError, match="chmod go-w"):
        put(Stash(shared), b"a")
    assert stat.S_IMODE(shared.stat().st_mode) == 0o777
    assert list(shared.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_another_users_folder_is_refused(tmp_path: Path) -> None:
    """A folder that belongs to another user is not used, even where the system would allow it."""
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 12345, 12345)
    with pytest.raises(StashFolderError, match="12345"):
        put(Stash(theirs), b"a")
    assert list(theirs.iterdir()) == []


def test_bytes_are_flushed_before_they_get_their_name_and_names_after(
    store: Stash, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is fsynced before its rename, and its folder after; the reference follows, and is fsynced too."""
    events: list[tuple[str, str]] = []
    real_fsync, real_replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        events.append(("fsync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        real_fsync(descriptor)

    def replace(self: Path, target: Path) -> Path:
        events.append(("rename", str(self)))
        return real_replace(self, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to name open files")
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    sha = put(store, b"ordered")

    (rename,) = [index for index, event in enumerate(events) if event[0] == "rename"]
    assert ("fsync", events[rename][1]) in events[:rename]
    after = [path for kind, path in events[rename:] if kind == "fsync"]
    folder = str(object_path(store.folder, sha).parent)
    assert folder in after
    assert str(store.folder / "objects") in after
    references = [index for index, path in enumerate(after) if path.startswith(str(store.folder / "refs") + "/")]
    assert references
    assert references[0] > after.index(folder)


@pytest.mark.parametrize("position", [0, 3, 4, 11, 12, 15, 16, 40, -5, -1])
@pytest.mark.parametrize("bit", [0, 7])
def test_a_flipped_bit_is_reported_and_nothing_is_returned(store: Stash, position: int, bit: int) -> None:
    """Whatever bit of an object's file flips, a read says so and gives no bytes."""
    sha = put(store, b"precious " * 50 + os.urandom(30))
    path = object_path(store.folder, sha)
    stored = bytearray(path.read_bytes())
    stored[position] ^= 1 << bit
    path.write_bytes(stored)
    with pytest.raises(DamagedObjectError, match=sha[:12]):
        store.get(sha)


@pytest.mark.parametrize("stored", [b"", b"LCS1", b"LCS1" + b"\x7f" * 30, b"LCS1" + bytes(8)])
def test_a_file_that_is_no_object_is_damaged(store: Stash, stored: bytes) -> None:
    """An empty, cut or forged file is damaged; a forged size never makes the reader unpack more than it."""
    sha = put(store, b"precious")
    object_path(store.folder, sha).write_bytes(stored)
    with pytest.raises(DamagedObjectError):
        store.get(sha)


def test_a_cut_or_lengthened_object_is_damaged(store: Stash) -> None:
    """Missing or added bytes at the end are seen."""
    sha = put(store, b"precious " * 100)
    path = object_path(store.folder, sha)
    whole = path.read_bytes()
    for stored in (whole[:-1], whole[: len(whole) // 2], whole + b"\x00"):
        path.write_bytes(stored)
        with pytest.raises(DamagedObjectError):
            store.get(sha)


def test_a_fifo_in_an_objects_place_does_not_hang_the_reader(store: Stash) -> None:
    """Something that is not a file is damaged, at once."""
    sha = put(store, b"precious")
    path = object_path(store.folder, sha)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DamagedObjectError):
        store.get(sha)


def test_a_put_mends_a_damaged_object(store: Stash) -> None:
    """Storing the bytes again replaces what is damaged."""
    sha = put(store, b"precious")
    object_path(store.folder, sha).write_bytes(b"rotten")
    outcome = store.put(b"precious")
    assert outcome.new
    assert store.get(sha) == b"precious"


def test_an_id_that_fits_two_objects_names_both(store: Stash) -> None:
    """The reader is asked for more digits; it is never given one of the two."""
    sha = put(store, b"one of two")
    twin = sha[:20] + ("0" if sha[20] != "0" else "1") + sha[21:]
    object_path(store.folder, twin).write_bytes(object_path(store.folder, sha).read_bytes())
    with pytest.raises(AmbiguousObjectError, match=twin):
        store.get(sha[:12])
    assert store.get(sha) == b"one of two"


def test_an_object_above_the_limit_is_refused_and_its_neighbours_are_stored(store: Stash) -> None:
    """The size limit fails the one content, with EFBIG."""
    small, large, last = store.put_many([b"small", bytes(MAX_OBJECT_BYTES + 1), b"last"])
    assert isinstance(small, Stored)
    assert isinstance(large, OSError)
    assert large.errno == errno.EFBIG
    assert isinstance(last, Stored)


def test_lone_surrogates_survive(store: Stash) -> None:
    """A text that is not valid Unicode comes back as it was."""
    text = "half \ud83d of a pair"
    assert text_of_bytes(store.get(put(store, bytes_of_text(text)))) == text


def test_the_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LCC_STASH_DIR wins, then the configuration, then an absolute XDG_DATA_HOME, then the home folder."""
    monkeypatch.delenv("LCC_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LCC_STASH_DIR", str(tmp_path / "mine"))
    assert stash_folder() == tmp_path / "mine"
    monkeypatch.delenv("LCC_STASH_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert stash_folder() == tmp_path / "data" / "lcc" / "stash"
    (tmp_path / "config" / "lcc").mkdir(parents=True)
    config = tmp_path / "config" / "lcc" / "config.toml"
    config.write_text('stash_dir = "/somewhere/else"')
    assert stash_folder() == Path("/somewhere/else")
    config.write_text("stash_dir = ")
    with pytest.raises(StashFolderError, match=r"config\.toml"):
        stash_folder()
    config.unlink()
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert stash_folder() == tmp_path / ".local" / "share" / "lcc" / "stash"


# What cannot be stored -----------------------------------------------------------------------------


def mounted(options: list[str], target: Path) -> None:
    target.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(target)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB that is really full when it is full."""
    target = tmp_path / "small"
    mounted(["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"], target)
    yield target
    subprocess.run(["umount", "-l", str(target)], check=False)


def test_a_full_disk_fails_what_does_not_fit_and_keeps_what_was_stored(small_disk: Path) -> None:
    """ENOSPC for the large content; earlier objects stay readable and nothing half-written is left."""
    store = Stash(small_disk / "stash")
    before = put(store, b"was there before")
    outcomes = store.put_many([os.urandom(60_000) for _ in range(12)])
    failed = [each for each in outcomes if isinstance(each, OSError)]
    assert failed
    assert {each.errno for each in failed} == {errno.ENOSPC}
    assert store.get(before) == b"was there before"
    for each in outcomes:
        if isinstance(each, Stored):
            assert len(store.get(each.sha256)) == 60_000
    assert not list(store.folder.rglob("*.tmp"))


def test_a_read_only_disk_fails_with_its_own_error(tmp_path: Path) -> None:
    """EROFS for a write; what is stored there can still be read."""
    store = Stash(tmp_path / "disk" / "stash")
    sha = put(store, b"kept")
    target = tmp_path / "disk"
    mounted(["--bind", str(target)], target)
    try:
        done = subprocess.run(["mount", "-o", "remount,bind,ro", str(target)], capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip("cannot mount read-only here")
        (outcome,) = store.put_many([b"new"])
        assert isinstance(outcome, OSError)
        assert outcome.errno == errno.EROFS
        assert store.get(sha) == b"kept"
    finally:
        subprocess.run(["umount", "-l", str(target)], check=False)


@pytest.mark.parametrize("part", ["", "objects", "refs", "lock"])
def test_a_file_where_a_folder_is_expected_is_an_error(tmp_path: Path, part: str) -> None:
    """And the other way round for the lock. No exception, one error for each content, nothing changed."""
    folder = tmp_path / "stash"
    if part == "lock":
        (folder / part).mkdir(parents=True)
    else:
        (folder / part).parent.mkdir(exist_ok=True)
        (folder / part).write_text("in the way")
    outcomes = Stash(folder).put_many([b"a", b"b"])
    assert len(outcomes) == 2
    assert all(isinstance(each, OSError) for each in outcomes)
    if part != "lock":
        assert (folder / part).read_text() == "in the way"


def test_a_limit_on_file_size_fails_only_what_is_above_it(tmp_path: Path) -> None:
    """A write that the system cuts off (a quota) leaves no object and no leftover, and no other is lost."""
    store = Stash(tmp_path / "stash")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
            small, large = store.put_many([b"small", os.urandom(50_000)])
            fits = isinstance(small, Stored) and isinstance(large, OSError) and large.errno == errno.EFBIG
            status = 0 if fits else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [entry.sha256 for entry in store.entries()] == [store.put(b"small").sha256]
    assert not list(store.folder.rglob("*.tmp"))
