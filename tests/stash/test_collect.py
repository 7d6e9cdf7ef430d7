"""gc: removes what nothing names, and nothing that a note still names, whoever works at the same time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from stash.tampering import age_packs, age_references, damage, lose, place_of

from lcc.client_folders import session_holders
from lcc.contract.notes import stash_note
from lcc.stash import (
    DamagedObjectError,
    GcLimits,
    Stash,
    Stored,
    UnknownObjectError,
    collect,
    plan_collection,
)
from lcc.stash.gc import DAY, named_in_file
from lcc.stash.references import all_references, references_path

NOW = 2_000_000_000.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "stash"


@pytest.fixture(autouse=True)
def silent_session(tmp_path: Path) -> None:
    """A session file that is there and names nothing."""
    (tmp_path / "silent.jsonl").write_text("{}\n")


def write_session(path: Path, *shas: str) -> None:
    """A session file whose results are our notes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"content": stash_note(100, sha)}) + "\n" for sha in shas))


def age(stash: Stash, days: float) -> None:
    """Make every object and reference ``days`` old at ``NOW``."""
    age_packs(stash, int(NOW - days * DAY))
    age_references(stash, int(NOW - days * DAY))


def gc(stash: Stash, limits: GcLimits | None = None, sessions: tuple[Path, ...] = ()) -> set[str]:
    """Plan and collect at ``NOW``; the ids that went."""
    before = {entry.sha256 for entry in stash.entries()}
    plan = plan_collection(stash, limits or GcLimits(), sessions, NOW)
    assert before == {entry.sha256 for entry in stash.entries()}
    collect(stash, plan)
    gone = before - {entry.sha256 for entry in stash.entries()}
    assert gone == {entry.sha256 for entry in plan.remove}
    return gone


def test_what_a_note_in_the_sessions_file_names_stays_for_ever(folder: Path, tmp_path: Path) -> None:
    """The note alone keeps the object, however old it is; without its note it goes."""
    session = tmp_path / "s.jsonl"
    stash = Stash(folder, "s", str(session))
    named, unnamed = (stash.put(each).sha256 for each in (b"named", b"unnamed"))
    write_session(session, named)
    age(stash, 4000)
    assert gc(stash) == {unnamed}
    assert stash.get(named) == b"named"


def test_a_note_that_the_client_copied_into_another_session_keeps_the_object(folder: Path, tmp_path: Path) -> None:
    """Every session file below the given folders is searched, also one that lcc never saw."""
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    sha = stash.put(b"copied").sha256
    write_session(tmp_path / "projects" / "-p" / "copy.jsonl", sha)
    age(stash, 4000)
    assert gc(stash, sessions=(tmp_path / "projects",)) == set()
    (tmp_path / "projects" / "-p" / "copy.jsonl").unlink()
    assert gc(stash, sessions=(tmp_path / "projects",)) == {sha}


def test_a_fresh_reference_keeps_an_object_whose_note_is_not_written_yet(folder: Path, tmp_path: Path) -> None:
    """Within a day of the compaction nothing of it goes, at any limit."""
    session = tmp_path / "s.jsonl"
    session.write_text("{}\n")
    stash = Stash(folder, "s", str(session))
    sha = stash.put(b"on its way").sha256
    age(stash, 0.5)
    assert gc(stash, GcLimits(older_than_seconds=0, max_bytes=0)) == set()
    age(stash, 1.5)
    assert gc(stash, GcLimits(older_than_seconds=0)) == {sha}


def test_a_session_without_a_file_keeps_its_objects_for_ninety_days(folder: Path) -> None:
    """A payload's notes stand where gc cannot look."""
    stash = Stash(folder)
    sha = stash.put(b"payload").sha256
    age(stash, 89)
    assert gc(stash, GcLimits(older_than_seconds=0)) == set()
    age(stash, 91)
    assert gc(stash, GcLimits(older_than_seconds=0)) == {sha}


def test_a_session_whose_file_has_gone_counts_as_one_without(folder: Path, tmp_path: Path) -> None:
    """The file may have been moved, with its notes."""
    stash = Stash(folder, "s", str(tmp_path / "moved.jsonl"))
    sha = stash.put(b"moved").sha256
    age(stash, 89)
    assert gc(stash, GcLimits(older_than_seconds=0)) == set()
    age(stash, 91)
    assert gc(stash, GcLimits(older_than_seconds=0)) == {sha}


def test_age_is_asked_of_what_nothing_names(folder: Path, tmp_path: Path) -> None:
    """Unnamed objects stay for the given time."""
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    sha = stash.put(b"young").sha256
    age(stash, 29)
    assert gc(stash) == set()
    age(stash, 31)
    assert gc(stash) == {sha}


def test_a_size_limit_takes_the_oldest_first_and_only_as_many_as_needed(folder: Path, tmp_path: Path) -> None:
    """Unnamed objects go, oldest first, until the rest fits."""
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    shas = [stash.put(os.urandom(1000)).sha256 for _ in range(5)]
    age(stash, 2)
    for index, sha in enumerate(shas):
        then = int(NOW - (10 - index) * DAY)
        os.utime(place_of(stash, sha).pack, (then, then))
    assert gc(stash, GcLimits(max_bytes=3500)) == set(shas[:2])


def test_a_sessions_own_objects_can_be_dropped_but_not_what_others_name(folder: Path, tmp_path: Path) -> None:
    """By session: what only that session named goes at once; what is named elsewhere stays."""
    alone, both, noted = b"alone", b"both", b"noted"
    mine, other = Stash(folder, "mine"), Stash(folder, "other")
    a, b, c = (mine.put(each).sha256 for each in (alone, both, noted))
    other.put(both)
    write_session(tmp_path / "projects" / "x.jsonl", c)
    age(mine, 0.1)
    assert gc(mine, GcLimits(session="mine"), (tmp_path / "projects",)) == {a}
    assert {entry.sha256 for entry in mine.entries()} == {b, c}


@pytest.mark.parametrize("session", ["s", "t"])
def test_what_is_put_again_after_the_plan_stays(folder: Path, tmp_path: Path, session: str) -> None:
    """The same session takes up the old copy, which is spared then; another one has a copy of its own."""
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    sha = stash.put(b"again").sha256
    age(stash, 400)
    plan = plan_collection(stash, GcLimits(), (), NOW)
    assert [entry.sha256 for entry in plan.remove] == [sha]
    Stash(folder, session).put(b"again")
    result = collect(stash, plan)
    assert (result.removed, result.spared) == ((0, 1) if session == "s" else (1, 0))
    assert stash.get(sha) == b"again"
    assert session in {each.session for each in all_references(folder) if sha in each.named}


def test_what_a_fork_takes_over_after_the_plan_is_spared(folder: Path, tmp_path: Path) -> None:
    """``reference`` protects as ``put`` does, and refuses what is not there."""
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    sha = stash.put(b"forked").sha256
    age(stash, 400)
    plan = plan_collection(stash, GcLimits(), (), NOW)
    Stash(folder, "fork").reference([sha])
    assert collect(stash, plan).spared == 1
    with pytest.raises(UnknownObjectError, match="no object"):
        Stash(folder, "fork").reference(["0" * 64])


def test_a_session_file_that_cannot_be_read_stops_the_collection(folder: Path, tmp_path: Path) -> None:
    """What it names is not known, so nothing may go."""
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    stash.put(b"x")
    age(stash, 400)
    (tmp_path / "projects").write_text("a file where a folder is expected")
    with pytest.raises(NotADirectoryError):
        plan_collection(stash, GcLimits(), (tmp_path / "projects",), NOW)


@pytest.mark.parametrize(
    "place",
    [
        ".claude/projects/-p/copy.jsonl",
        ".claude-work/projects/-p/copy.jsonl",
        ".codex/sessions/2026/01/02/rollout-copy.jsonl",
        ".codex/archived_sessions/rollout-copy.jsonl",
        ".codex-work/archived_sessions/rollout-copy.jsonl",
    ],
)
def test_every_profile_of_the_clients_is_searched(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Also one that another shell's variable names, whether this shell has a variable of its own or none."""
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    kept, gone = (stash.put(each).sha256 for each in (b"kept", b"gone"))
    write_session(tmp_path / "home" / place, kept)
    age(stash, 4000)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert gc(stash, sessions=session_holders(os.environ)) == {gone}


@pytest.mark.parametrize(
    ("source", "copy"),
    [
        ("projects/-p/s.jsonl", "projects/-other/copy.jsonl"),
        ("projects/-p/s/subagents/agent-1.jsonl", "projects/-p/copy.jsonl"),
        ("sessions/2026/01/02/rollout-1.jsonl", "archived_sessions/rollout-1.jsonl"),
        ("archived_sessions/rollout-1.jsonl", "sessions/2026/01/02/rollout-1.jsonl"),
    ],
)
def test_a_copy_beside_a_session_that_has_gone_is_found_wherever_its_profile_is(
    folder: Path, tmp_path: Path, source: str, copy: str
) -> None:
    """The client's /branch copies a session, its clean-up removes the first one; the profile is named nowhere."""
    profile = tmp_path / "any where" / "profile"
    stash = Stash(folder, "s", str(profile / source))
    kept, gone = (stash.put(each).sha256 for each in (b"kept", b"gone"))
    write_session(profile / copy, kept)
    age(stash, 4000)
    assert gc(stash, GcLimits(session="s")) == {gone}


def test_folders_are_searched_through_links_and_no_link_leads_round(folder: Path, tmp_path: Path) -> None:
    """Sessions that are kept on another disk, and a link back to the folder above."""
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    kept, gone = (stash.put(each).sha256 for each in (b"kept", b"gone"))
    write_session(tmp_path / "disk" / "-p" / "a.jsonl", kept)
    projects = tmp_path / "profile" / "projects"
    projects.mkdir(parents=True)
    (projects / "-p").symlink_to(tmp_path / "disk" / "-p")
    (projects / "up").symlink_to(projects)
    (projects / "nowhere").symlink_to(tmp_path / "nowhere")
    (tmp_path / "disk" / "-p" / "back").symlink_to(tmp_path / "profile")
    age(stash, 4000)
    assert gc(stash, sessions=(projects,)) == {gone}


def test_a_folder_that_cannot_be_looked_through_stops_the_collection(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its sessions name is not known, so all stays."""
    projects = tmp_path / "projects"
    (projects / "-p").mkdir(parents=True)
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    stash.put(b"kept")
    age(stash, 4000)
    scandir = os.scandir

    def closed(path: str) -> object:
        if Path(path).name == "-p":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(PermissionError):
        plan_collection(stash, GcLimits(), (projects,), NOW)


def test_a_stash_in_a_folder_of_other_things_leaves_them_alone(tmp_path: Path) -> None:
    """A bare git repository has `packs`-like files and `refs` too: whatever has no name of ours stays."""
    folder = tmp_path / "used"
    theirs = {
        "packs/pack-1234.pack": "PACK",
        "packs/.1-1-1.tmp.bak": "x",
        "packs/.notes.tmp": "x",
        "refs/heads/.lock.tmp": "x",
        "refs/0123456789abcdef": "ref",
        "refs/.draft.tmp": "x",
    }
    for name, text in theirs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1, 1))
    (folder / "packs" / f".{0:020d}-1-1.pack.0123456789abcdef.tmp").mkdir()
    folder.chmod(0o700)
    stash = Stash(folder, "s", str(tmp_path / "silent.jsonl"))
    sha = stash.put(b"ours").sha256
    age(stash, 4000)
    assert gc(stash) == {sha}
    assert {name: (folder / name).read_text() for name in theirs} == theirs
    assert list(stash.entries()) == []


def test_leftovers_of_cut_off_writes_are_removed(folder: Path) -> None:
    """Files of writers that died go; objects stay."""
    stash = Stash(folder)
    sha = stash.put(b"whole").sha256
    leftover = folder / "packs" / ".1-1-1.tmp"
    leftover.write_bytes(b"half")
    age(stash, 1)
    plan = plan_collection(stash, GcLimits(), (), NOW)
    assert plan.leftovers == (leftover,)
    collect(stash, plan)
    assert not leftover.exists()
    assert stash.get(sha) == b"whole"


def test_references_shrink_with_their_objects(folder: Path, tmp_path: Path) -> None:
    """Lines of collected objects and repeated lines go; a session without objects has no file."""
    session = tmp_path / "s.jsonl"
    stash, other = Stash(folder, "s", str(session)), Stash(folder, "other", str(tmp_path / "silent.jsonl"))
    kept = stash.put(b"kept").sha256
    stash.put(b"gone")
    other.put(b"gone too")
    for _ in range(5):
        stash.put(b"kept")
    write_session(session, kept)
    age(stash, 400)
    gc(stash)
    (left,) = list(all_references(folder))
    assert (left.session, left.sources, set(left.named), left.lines) == ("s", (str(session),), {kept}, 1)


def test_a_torn_reference_line_spoils_no_other(folder: Path) -> None:
    """What a crash cut off is ignored; what was appended after it counts."""
    stash = Stash(folder, "s")
    first = stash.put(b"first").sha256
    path = references_path(folder, "s")
    path.write_bytes(path.read_bytes() + b"\nabcdef0123")
    second = stash.put(b"second").sha256
    (found,) = list(all_references(folder))
    assert set(found.named) == {first, second}


def test_an_object_that_a_note_names_and_that_is_missing_is_reported(folder: Path, tmp_path: Path) -> None:
    """A lost object is said aloud, again at every run."""
    session = tmp_path / "s.jsonl"
    stash = Stash(folder, "s", str(session))
    sha = stash.put(b"lost").sha256
    write_session(session, sha)
    lose(stash, sha)
    for _ in range(2):
        plan = plan_collection(stash, GcLimits(), (), NOW)
        assert plan.missing == (("s", sha),)
        collect(stash, plan)


def test_ids_are_found_wherever_the_reading_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes that lie across two reads are found, in raw and in escaped JSON."""
    monkeypatch.setattr("lcc.stash.gc._CHUNK", 97)
    shas = [f"{index:064x}"[::-1] for index in range(300, 600)]
    for ascii_only in (True, False):
        path = tmp_path / f"{ascii_only}.jsonl"
        path.write_text("".join(json.dumps({"c": stash_note(7, sha)}, ensure_ascii=ascii_only) for sha in shas))
        assert named_in_file(path) == {sha[:12] for sha in shas}


def test_what_is_left_of_a_pack_moves_to_a_new_one(folder: Path, tmp_path: Path) -> None:
    """Objects of one put part ways: the named ones stay readable, a damaged one stays damaged, the space is freed."""
    session = tmp_path / "s.jsonl"
    stash = Stash(folder, "s", str(session))
    contents = [f"{index} ".encode() * 500 for index in range(20)]
    shas = [each.sha256 for each in stash.put_many(contents) if isinstance(each, Stored)]
    kept = shas[::5]
    write_session(session, *kept)
    damage(stash, kept[1])
    age(stash, 400)
    (before,) = (folder / "packs").iterdir()
    size = before.stat().st_size
    assert gc(stash) == set(shas) - set(kept)
    (after,) = (folder / "packs").iterdir()
    assert after != before
    assert after.stat().st_size < size
    assert int(after.stat().st_mtime) == int(NOW - 400 * DAY)
    assert [stash.get(sha) for sha in (kept[0], *kept[2:])] == [contents[0], *contents[10::5]]
    with pytest.raises(DamagedObjectError):
        stash.get(kept[1])


def test_two_copies_of_an_object_are_kept_or_go_together(folder: Path, tmp_path: Path) -> None:
    """Two sessions that store the same have a copy each; a note keeps both, and without one both go."""
    one, two = (Stash(folder, name, str(tmp_path / f"{name}.jsonl")) for name in ("one", "two"))
    sha = one.put(b"same").sha256
    assert two.put(b"same").sha256 == sha
    write_session(tmp_path / "one.jsonl", sha)
    age(one, 400)
    assert gc(one) == set()
    (tmp_path / "one.jsonl").unlink()
    assert gc(one) == {sha}
    assert list(one.entries()) == []
