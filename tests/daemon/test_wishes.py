"""What the user wishes for one session: kept privately, bounded, and never in the way of a compaction."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from odd_files import NOT_FILES, in_place

from lcc.config import Config
from lcc_daemon.wishes import MOST_KEPT, WishError, Wishes, now_file, read_wishes, wish_now, write_wishes


def test_a_wish_is_read_back_and_private(tmp_path: Path) -> None:
    """It adds to what the configuration protects, and only takes away from `enabled`."""
    write_wishes(tmp_path, "s", Wishes(off=True, keep=("a/*.py", "b")))
    found = read_wishes(tmp_path, "s")
    assert found == Wishes(off=True, keep=("a/*.py", "b"))
    assert found.on(Config(protect_paths=("b", "c"))) == Config(enabled=False, protect_paths=("b", "c", "a/*.py"))
    assert Wishes().on(Config(enabled=False)) == Config(enabled=False)
    assert read_wishes(tmp_path, "other") == Wishes()
    for path in (tmp_path / "wishes").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b'{"keep": "all", "off": "yes"}', b'{"keep": [1, null]}', b"\xff\xfe", b"[" * 100_000],
)
def test_a_damaged_wish_is_none(tmp_path: Path, text: bytes) -> None:
    """A compaction goes on by the configuration."""
    write_wishes(tmp_path, "s", Wishes(off=True))
    next((tmp_path / "wishes").glob("*.json")).write_bytes(text)
    assert read_wishes(tmp_path, "s") == Wishes()


@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_is_no_file_holds_nobody_up(tmp_path: Path, kind: str) -> None:
    (tmp_path / "wishes").mkdir()
    in_place(kind, tmp_path / "wishes" / "s.json")
    assert read_wishes(tmp_path, "s") == Wishes()


@pytest.mark.parametrize("session", ["", "../x", "a/b", "a b", "x" * 81])
def test_an_id_that_is_no_file_name_is_refused(tmp_path: Path, session: str) -> None:
    """Nothing is written outside of the folder."""
    with pytest.raises(WishError):
        write_wishes(tmp_path, session, Wishes(off=True))
    with pytest.raises(WishError):
        wish_now(tmp_path, session)
    assert read_wishes(tmp_path, session) == Wishes()
    assert list(tmp_path.iterdir()) == []


def test_too_many_are_refused(tmp_path: Path) -> None:
    kept = Wishes(keep=tuple(f"f{number}" for number in range(MOST_KEPT)))
    write_wishes(tmp_path, "s", kept)
    with pytest.raises(WishError, match="at most"):
        write_wishes(tmp_path, "s", Wishes(keep=(*kept.keep, "one more")))
    assert read_wishes(tmp_path, "s") == kept


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "wishes").write_text("somebody's")
    with pytest.raises(WishError, match="cannot be written"):
        write_wishes(tmp_path, "s", Wishes(off=True))


def test_now_is_a_moment(tmp_path: Path) -> None:
    """The module acts on one that is newer than the last."""
    wish_now(tmp_path, "s")
    first = int(now_file(tmp_path, "s").read_text())
    wish_now(tmp_path, "s")
    assert 1_600_000_000_000 < first <= int(now_file(tmp_path, "s").read_text())
