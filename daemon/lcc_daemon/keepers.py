"""What the daemon keeps in a session's state folder: reports of passes, guides for summaries, when each hook came.

A guide is kept as four files: the compacted session, the report, all of the user's messages, and the text that
the next session start gives back.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import time
from pathlib import Path

import orjson

from lcc.config import reports_folder
from lcc.contract.report import MeasuredRecord, Report
from lcc.contract.report_reader import ReportError, read_report
from lcc.private_files import read_bounded, remove_own, write_private
from lcc_daemon.background import Background
from lcc_daemon.logs import failure_of
from lcc_hook.shell_path import MARKS

REPORTS_KEPT = 50
GUIDES_KEPT = 20
SESSIONS_KEPT = 500
GIVE_BACK_SECONDS = 15 * 60

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")
_REPORT = re.compile(r"\d{8}T\d{6}-\d{6}-[A-Za-z0-9_-]{1,80}\.json")
_USER_MESSAGES, _GIVE_BACK = "user-messages.txt", "give-back.txt"
_NAMES = r"(?:compacted\.jsonl|report\.json|user-messages\.txt|give-back\.txt)"
_IN_A_GUIDE = re.compile(rf"{_NAMES}|\.{_NAMES}\..+")
"""The four files, and what a killed daemon left beside their places."""
_GIVE_BACK_BYTES = 1024 * 1024
REPORT_BYTES = 256 * 1024 * 1024
_HOOKS_BYTES = 64 * 1024
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT.*")


def file_name(session_id: str, otherwise: str = "session") -> str:
    """A session's id where it can be a file's name and stand in a log; else ``otherwise``."""
    return session_id if _SAFE_ID.match(session_id) else otherwise


def read_hook_times(state: Path) -> dict[str, str]:
    """When each hook last came; empty where none has, or the file cannot be read."""
    try:
        return _hooks_in(state / "hooks.json") or {}
    except OSError:
        return {}


class Keepers:
    """Writes in the background what no answer waits for. ``state`` is the state folder of the asking session."""

    def __init__(self, background: Background, log: logging.Logger) -> None:
        self._background = background
        self._log = log

    # ---------------------------------------------------------------- reports

    @staticmethod
    def report_path(state: Path, session_id: str) -> Path:
        """Where the report of a pass that begins now will stand."""
        stamp = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns() % 10**6:06d}"
        return reports_folder(state) / f"{stamp}-{file_name(session_id)}.json"

    def keep_report(self, path: Path, report: Report) -> None:
        """Write the report while the answer is already on its way."""
        self._background.submit(self._write_report, path, report)

    def _write_report(self, path: Path, report: Report) -> None:
        try:
            write_private(path, _encoded(report))
            remove_own(path.parent, _REPORT, keep=REPORTS_KEPT)
        except OSError as error:
            self._log.warning("report not kept: %s", failure_of(error))

    def note_measure(self, path: Path, after: MeasuredRecord) -> None:
        """Add to a report that was kept what the context held after its replacement."""
        if _REPORT.fullmatch(path.name):
            self._background.submit(self._write_measure, path, after)

    def _write_measure(self, path: Path, after: MeasuredRecord) -> None:
        try:
            report = read_report(read_bounded(path, REPORT_BYTES, follow=False, own=True))
            if report["context"] is not None:
                report["context"]["after"] = after
                write_private(path, _encoded(report))
        except (OSError, ReportError) as error:
            self._log.warning("measure not kept: %s", failure_of(error))

    # ---------------------------------------------------------------- guides

    def guide_folder(self, state: Path, session_id: str) -> Path:
        return state / "guides" / file_name(session_id)

    def keep_to_give_back(self, folder: Path, user_messages: bytes, give_back: bytes) -> None:
        """Keep at once what the next session start may ask for; a full disk is only logged."""
        try:
            write_private(folder / _USER_MESSAGES, user_messages)
            write_private(folder / _GIVE_BACK, give_back)
        except OSError as error:
            self._log.warning("nothing kept to give back: %s", failure_of(error))

    def take_back(self, folder: Path) -> bytes:
        """What is to be given back, once: it is removed. Empty where there is none, or it is too old."""
        kept = folder / _GIVE_BACK
        try:
            fresh = time.time() - kept.lstat().st_mtime < GIVE_BACK_SECONDS
            text = read_bounded(kept, _GIVE_BACK_BYTES, follow=False) if fresh else b""
            kept.unlink()
        except OSError:
            return b""
        return text

    def forget_to_give_back(self, folder: Path) -> None:
        """The session was replaced: there is no summary after which anything would be given back."""
        with contextlib.suppress(OSError):
            (folder / _GIVE_BACK).unlink()

    def keep_guide(self, folder: Path, compacted: bytes, report: Report) -> None:
        self._background.submit(self._write_guide, folder, compacted, report)

    def _write_guide(self, folder: Path, compacted: bytes, report: Report) -> None:
        try:
            write_private(folder / "compacted.jsonl", compacted)
            write_private(folder / "report.json", _encoded(report))
            for old in _guides(folder.parent)[:-GUIDES_KEPT]:
                remove_own(old, _IN_A_GUIDE)
                with contextlib.suppress(OSError):
                    old.rmdir()
        except OSError as error:
            self._log.warning("guide not kept: %s", failure_of(error))

    # ---------------------------------------------------------------- recall

    def note_recall(self, folder: bytes, session_id: str) -> None:
        """The session's shell finds our `lcc`. It is kept in the runtime folder, for a daemon that comes after this."""
        if _SAFE_ID.match(session_id):
            kept = Path(os.fsdecode(folder + MARKS))
            try:
                write_private(kept / session_id, b"", durable=False)
                remove_own(kept, _SAFE_ID, keep=SESSIONS_KEPT)
            except OSError as error:
                self._log.warning("recall: %s", error.strerror)

    @staticmethod
    def can_recall(folder: bytes, session_id: object) -> bool:
        """Whether a session's shell finds our `lcc`, as far as is known."""
        if not isinstance(session_id, str) or not _SAFE_ID.match(session_id):
            return False
        return (Path(os.fsdecode(folder + MARKS)) / session_id).is_file()

    # ---------------------------------------------------------------- hooks

    def note_hook(self, state: Path, command: str) -> None:
        """When each hook last came, for `lcc doctor`."""
        self._background.submit(self._write_hook, state / "hooks.json", command)

    def _write_hook(self, file: Path, command: str) -> None:
        try:
            known = _hooks_in(file)
            if known is None:
                self._log.warning("hooks.json: some other program's file")
                return
            write_private(file, orjson.dumps({**known, command: time.strftime("%Y-%m-%dT%H:%M:%S%z")}))
        except OSError as error:
            self._log.warning("hooks.json: %s", error.strerror)


def _encoded(report: Report) -> bytes:
    try:
        return orjson.dumps(report, option=orjson.OPT_INDENT_2)
    except TypeError:  # a path with bytes that are no UTF-8, which Python holds as lone surrogates
        return json.dumps(report, indent=2).encode("ascii")


def _guides(folder: Path) -> list[Path]:
    """The guides in ``folder``, the oldest first: folders in which all that stands is a guide's."""
    found: list[tuple[float, Path]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # one that is not ours may be closed to us
                names = os.listdir(entry.path) if entry.is_dir(follow_symlinks=False) else []
                if _USER_MESSAGES in names and _SAFE_ID.match(entry.name) and all(map(_IN_A_GUIDE.fullmatch, names)):
                    found.append((entry.stat().st_mtime, Path(entry.path)))
    return [path for _, path in sorted(found)]


def _hooks_in(file: Path) -> dict[str, str] | None:
    """When each hook came, as the file has it; empty for a damaged one, None for one that is not ours."""
    try:
        known = orjson.loads(read_bounded(file, _HOOKS_BYTES, follow=False))
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(known, dict):
        return None if known else {}
    is_ours = all(isinstance(value, str) and _WHEN.fullmatch(value) for value in known.values())
    return known if is_ours else None
