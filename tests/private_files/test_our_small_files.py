"""Every small file that we read or write, with something else in its place: told or passed over, never waited for.

One row a file: what uses it, and how that ends where no regular file stands there. A new file needs a row.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from odd_files import NOT_FILES, in_place
from tokens.test_request_log import report

from lcc import doctor
from lcc.commands.files import InputError, OutputFile, read_input
from lcc.config import ConfigError, load_config
from lcc.contract.decision import Verdict
from lcc.contract.options import PassOptions
from lcc.contract.reasons import KEEP_DISK_NOT_REGULAR, KEEP_DISK_OUTSIDE_ROOT
from lcc.judge.cache import DecisionCache
from lcc.judge.errors import DecisionsCacheError
from lcc.judge.settings import read_key_file
from lcc.log.lines import LogError
from lcc.log.recalls import Recall, note_recall, recalls_in
from lcc.log.request_log import append, read
from lcc.relevance.evidence.disk import read_file
from lcc.sessions.fork import read_session, why_live
from lcc.sessions.watch import SessionTooLargeError, Watched
from lcc.stash import Stash
from lcc.stash.gc import named_in_file
from lcc.stash.references import all_references, references_path
from lcc_daemon.background import Background
from lcc_daemon.commands.session_start import _remember_plugin_data
from lcc_daemon.figures import newest_context
from lcc_daemon.keepers import Keepers, read_hook_times
from lcc_daemon.lifecycle import StartError, take_place
from lcc_daemon.logs import open_fault_log, open_log
from lcc_daemon.saved import SavedBytes
from lcc_daemon.sessions import SessionFileError, open_session
from lcc_hook.files import is_locked, read_small
from lcc_hook.runtime_files import file_of

LOG = logging.getLogger("test of odd files")


@dataclass(frozen=True)
class Used:
    """A file of ours: its place below a folder, what uses it, and how that may end."""

    what: str
    place: str
    use: Callable[[Path], object]
    error: type[Exception] | None
    """What it raises; None: it goes well, as if there were no file."""
    refused: tuple[str, ...] = NOT_FILES
    """What raises ``error``. The rest is replaced: where only a file's name can tell that it is ours."""


def _decide(path: Path) -> None:
    cache = DecisionCache.open(path)
    cache.put("0" * 64, Verdict(0.1, 0.1))
    assert cache.save() == ()


def _saved(path: Path) -> None:
    problems: list[str] = []
    saved = SavedBytes(path.parent, problems.append)
    saved.add(3)
    assert saved.saved()["ever"] == 3
    assert problems


def _hook_times(path: Path) -> None:
    assert read_hook_times(path.parent) == {}
    background = Background(LOG)
    Keepers(background, LOG).note_hook(path.parent, "compact")
    assert background.close(20)


def _give_back(path: Path) -> None:
    assert Keepers(Background(LOG), LOG).take_back(path.parent) == b""


def _take_place(path: Path) -> None:
    path.parent.chmod(0o700)
    instance = take_place(os.fsencode(path.parent))
    instance.listener.close()
    instance.leave()


def _put(path: Path) -> None:
    stash = Stash(path.parent if path.name == "lock" else path.parent.parent, "s")
    for outcome in stash.put_many([b"content"]):
        if isinstance(outcome, OSError):
            raise outcome


def _read_stash(path: Path) -> None:
    stash = Stash(path.parent.parent)
    assert list(stash.entries()) == []
    list(stash.check())


def _write_output(path: Path) -> None:
    with OutputFile(str(path), "-o") as file:
        file.write(b"x")
        file.commit()


def _disk(path: Path) -> None:
    assert read_file(str(path)) in (KEEP_DISK_NOT_REGULAR, KEEP_DISK_OUTSIDE_ROOT)


def _log_request(path: Path) -> None:
    append(report(), client_version=None, path=path)


def _key(path: Path) -> None:
    key, why = read_key_file(path)
    assert key is None
    assert str(path) in why


def _none(value: object) -> None:
    assert not value, value


def _is_live(path: Path) -> None:
    session = path.parent.parent / "projects" / "p" / "s.jsonl"
    session.parent.mkdir(parents=True)
    session.touch()
    assert why_live(session, time.time() + 3600) is None


def _runtime(kind: str) -> str:
    return os.fsdecode(file_of(b"run", kind))


PACK = f"stash/packs/{time.time_ns():020d}-1-0.pack"
REFERENCES = f"stash/refs/{references_path(Path('x'), 's').name}"

USED: Sequence[Used] = (
    Used("configuration", "config.toml", lambda path: load_config({"LCC_CONFIG": str(path)}), ConfigError),
    Used("key file", "typesafe.key", _key, None),
    Used("decisions cache", "decisions", _decide, DecisionsCacheError),
    Used("input of a command", "in.jsonl", lambda path: read_input(str(path)), InputError),
    Used("output of a command", "out.json", _write_output, InputError),
    Used("file of a proof", "module.py", _disk, None),
    Used("request log", "requests.jsonl", _log_request, LogError),
    Used("request log, read", "requests.jsonl", lambda path: list(read(path)), LogError),
    Used("older request log", "requests.jsonl.1", lambda path: list(read(path.with_suffix(""))), LogError),
    Used("recalls", "recalls.jsonl", lambda path: note_recall(Recall("s", "0" * 12, 1, 1, "tool"), path), LogError),
    Used("recalls, read", "recalls.jsonl", lambda path: list(recalls_in(path)), LogError),
    Used("bytes saved", "saved.json", _saved, None),
    Used("lock of the bytes saved", "saved.json.lock", _saved, None),
    Used("hook times", "hooks.json", _hook_times, None),
    Used("text to give back", "give-back.txt", _give_back, None),
    Used("daemon's log", "daemon.log", open_log, OSError),
    Used("older daemon's log", "daemon.log.2", lambda path: open_log(path.with_name("daemon.log")), OSError),
    Used("fault log", "daemon-fault.log", open_fault_log, OSError),
    Used("plugin's data folder", "plugin-data",
         lambda path: _remember_plugin_data(os.fsencode(path.parent), "/data", LOG), None, ("a folder",)),
    Used("daemon's lock", _runtime("lock"), _take_place, StartError),
    Used("daemon's process", _runtime("pid"), _take_place, StartError, ("a folder",)),
    Used("daemon's crashes", _runtime("crashes"), _take_place, None),
    Used("daemon's socket", _runtime("sock"), _take_place, StartError, ("a folder", "a pipe", "a device")),
    Used("lock that a hook looks at", "lock", is_locked, None),
    Used("small file of the hook", "small", lambda path: _none(read_small(os.fsencode(path))), None),
    Used("followed session", "s.jsonl", lambda path: open_session(path).close(), SessionFileError),
    Used("session's newest figure", "s.jsonl", lambda path: _none(newest_context(path)), None),
    Used("watched session", "s.jsonl", lambda path: Watched(path, PassOptions()).poll(), SessionTooLargeError),
    Used("forked session", "s.jsonl", lambda path: read_session(path, snapshot=True), OSError),
    Used("session that gc looks through", "s.jsonl", named_in_file, OSError),
    Used("register of running clients", "sessions/1.json",
         _is_live, None),
    Used("client's settings", "settings.json", lambda path: _none(doctor._read_object(path)), None),
    Used("stash's lock", "stash/lock", _put, OSError),
    Used("stash's pack", PACK, _read_stash, None),
    Used("stash's references", REFERENCES, _put, OSError),
    Used("stash's references, read", REFERENCES, lambda path: list(all_references(path.parent.parent)), OSError),
)  # fmt: skip


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("kind", NOT_FILES)
@pytest.mark.parametrize("used", USED, ids=lambda used: used.what)
def test_what_is_no_file_is_told_or_passed_over_and_left_alone(tmp_path: Path, used: Used, kind: str) -> None:
    path = tmp_path / used.place
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    in_place(kind, path)
    before = path.lstat()
    if used.error is None or kind not in used.refused:
        used.use(path)
    else:
        with pytest.raises(used.error) as caught:
            used.use(path)
        assert str(path) in str(caught.value) or isinstance(caught.value, SessionTooLargeError)
    if kind in used.refused:
        assert stat.S_IFMT(path.lstat().st_mode) == stat.S_IFMT(before.st_mode)
        assert path.lstat().st_ino == before.st_ino
    assert not list(tmp_path.rglob("*.tmp"))


FOLLOWED = {"output of a command", "configuration"}
"""The user's own files, which may be links."""


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("used", [used for used in USED if used.what not in FOLLOWED], ids=lambda used: used.what)
def test_nothing_is_written_through_a_link(tmp_path: Path, used: Used) -> None:
    """Whatever a user of the file makes of it: what the link names stays as it was."""
    path, theirs = tmp_path / used.place, tmp_path / "theirs"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    theirs.write_bytes(b"theirs")
    path.symlink_to(theirs)
    with contextlib.suppress(Exception):
        used.use(path)
    assert theirs.read_bytes() == b"theirs"
