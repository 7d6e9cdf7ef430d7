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
from odd_files import small_disk
from stash.store_conformance import StoreConformance
from stash.tampering import damage, flip, place_of

from lcc.stash import (
    AmbiguousObjectError,
    DamagedObjectError,
    Stash,
    StashFolderError,
    Stored,
    UnknownObjectError,
    bytes_of_text,
    pack_files,
    pack_problem,
    stash_folder,
    text_of_bytes,
)
from lcc.stash.objects import MAX_OBJECT_BYTES, packed, write_pack


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
    assert stat.S_IMODE((ours / "packs").stat().st_mode) == 0o700

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
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        events.append(("fsync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        real_fsync(descriptor)

    def replace(source: str, target: str) -> None:
        events.append(("rename", source))
        real_replace(source, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to name open files")
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    sha = put(store, b"ordered")

    (rename,) = [index for index, event in enumerate(events) if event[0] == "rename"]
    assert ("fsync", events[rename][1]) in events[:rename]
    after = [path for kind, path in events[rename:] if kind == "fsync"]
    folder = str(place_of(store, sha).pack.parent)
    references = [index for index, path in enumerate(after) if path.startswith(str(store.folder / "refs") + "/")]
    assert references
    assert after.index(folder) < references[0]


def test_many_objects_cost_as_many_flushes_as_one(store: Stash, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait for the disk does not grow with what a compaction stashes."""
    put(store, b"the folders are there now")
    counts = []
    real_fsync = os.fsync
    for contents in ([b"one"], [f"{index}".encode() for index in range(300)]):
        flushed: list[int] = []
        monkeypatch.setattr(os, "fsync", lambda fd, flushed=flushed: (flushed.append(fd), real_fsync(fd)))
        store.put_many(contents)
        counts.append(len(flushed))
    assert counts[0] == counts[1] <= 3


@pytest.mark.parametrize("position", [0, 3, 4, 20, 36, 43, 44, 51, 52, 55, 56, 80, -5, -1])
@pytest.mark.parametrize("bit", [0, 7])
def test_a_flipped_bit_is_reported_and_nothing_is_returned(store: Stash, position: int, bit: int) -> None:
    """Whatever bit of an object flips, a read says so and gives no bytes; its neighbours stay readable."""
    contents = [b"before" * 50, b"precious " * 50 + os.urandom(30), b"behind" * 50]
    before, sha, behind = (each.sha256 for each in store.put_many(contents) if isinstance(each, Stored))
    flip(place_of(store, sha), position, bit)
    with pytest.raises(DamagedObjectError, match=sha[:12]):
        store.get(sha)
    assert store.get(before) == contents[0]
    assert store.get(behind) == contents[2]


@pytest.mark.parametrize("from_the_end", [1, 4, 5, 8, 12, 16, 20, 21, 40, 100])
def test_a_damaged_index_loses_nothing(store: Stash, from_the_end: int) -> None:
    """Objects are found by their own headers then; the damage is reported."""
    contents = [f"{index} ".encode() * 100 for index in range(5)]
    shas = [each.sha256 for each in store.put_many(contents) if isinstance(each, Stored)]
    (pack,) = pack_files(store.folder)
    raw = bytearray(pack.read_bytes())
    raw[-from_the_end] ^= 1
    pack.write_bytes(raw)
    assert [store.get(sha[:12]) for sha in shas] == contents
    assert "index" in str(pack_problem(pack))


@pytest.mark.parametrize("kept", [0, 10, 56, 300, -1])
def test_a_pack_that_was_cut_off_gives_what_is_whole(store: Stash, kept: int) -> None:
    """Every object is either right or not given."""
    contents = [os.urandom(200) for _ in range(5)]
    shas = [each.sha256 for each in store.put_many(contents) if isinstance(each, Stored)]
    (pack,) = pack_files(store.folder)
    pack.write_bytes(pack.read_bytes()[:kept])
    for sha, content in zip(shas, contents, strict=True):
        try:
            assert store.get(sha) == content
        except (UnknownObjectError, DamagedObjectError):
            assert kept >= 0


def test_a_fifo_in_a_packs_place_does_not_hang_the_reader(store: Stash) -> None:
    """It is an error for what nothing else holds, at once, and no harm to the rest."""
    sha, other = put(store, b"precious"), put(store, b"other")
    path = place_of(store, sha).pack
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="regular"):
        store.get(sha)
    assert store.get(other) == b"other"
    assert "regular" in str(pack_problem(path))


def test_a_put_makes_a_damaged_object_good(store: Stash) -> None:
    """Storing the bytes again gives a whole copy, and that one is returned."""
    sha = put(store, b"precious")
    damage(store, sha)
    outcome = store.put(b"precious")
    assert outcome.new
    assert store.get(sha) == b"precious"


def test_what_another_session_stored_is_stored_again_and_either_copy_serves(store: Stash) -> None:
    """No session depends on another one's pack."""
    sha = put(store, b"shared")
    other = Stash(store.folder, "session-2")
    assert other.put(b"shared").new
    for place in store.places(sha):
        raw = place.pack.read_bytes()
        place.pack.write_bytes(b"")
        assert store.get(sha) == b"shared"
        place.pack.write_bytes(raw)


def test_an_id_that_fits_two_objects_names_both(store: Stash) -> None:
    """The reader is asked for more digits; it is never given one of the two."""
    sha = put(store, b"one of two")
    twin = sha[:20] + ("0" if sha[20] != "0" else "1") + sha[21:]
    write_pack(store.folder, [(twin, packed(twin, b"one of two"))])
    with pytest.raises(AmbiguousObjectError, match=twin):
        store.get(sha[:12])
    assert store.get(sha) == b"one of two"
    with pytest.raises(DamagedObjectError):
        store.get(twin)


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
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB that is really full when it is full."""
    target = tmp_path / "small"
    with small_disk(target, 256 * 1024):
        yield target


def test_a_full_disk_fails_what_does_not_fit_and_keeps_what_was_stored(disk: Path) -> None:
    """ENOSPC for the large content; earlier objects stay readable and nothing half-written is left."""
    store = Stash(disk / "stash")
    before = put(store, b"was there before")
    outcomes = [each for _ in range(12) for each in store.put_many([os.urandom(60_000)])]
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


@pytest.mark.parametrize("part", ["", "packs", "refs", "lock"])
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
            small, large = (store.put_many([content])[0] for content in (b"small", os.urandom(50_000)))
            fits = isinstance(small, Stored) and isinstance(large, OSError) and large.errno == errno.EFBIG
            status = 0 if fits else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    (entry,) = store.entries()
    assert store.get(entry.sha256) == b"small"
    assert not list(store.folder.rglob("*.tmp"))
