"""What the daemon keeps in a session's state folder: reports of passes, guides for summaries, when each hook came.

A guide is kept as four files: the compacted session, the report, all of the user's messages, and the text that
the next session start gives back.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from pathlib import Path

import orjson

from lcc.contract.report import Report
from lcc_daemon.background import Background
from lcc_daemon.logs import failure_of
from lcc_daemon.stats import write_private
from lcc_hook.files import read_small

REPORTS_KEPT = 50
GUIDES_KEPT = 20
GIVE_BACK_SECONDS = 15 * 60

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")


def file_name(session_id: str, otherwise: str = "session") -> str:
    """A session's id where it can be a file's name and stand in a log; else ``otherwise``."""
    return session_id if _SAFE_ID.match(session_id) else otherwise


def read_hook_times(state: Path) -> dict[str, str]:
    """When each hook last came; empty where none has, or the file cannot be read."""
    try:
        known = orjson.loads(read_small(os.fsencode(state / "hooks.json")))
    except ValueError:
        return {}
    return {key: at for key, at in known.items() if isinstance(at, str)} if isinstance(known, dict) else {}


class Keepers:
    """Writes in the background what no answer waits for. ``state`` is the state folder of the asking session."""

    def __init__(self, background: Background, log: logging.Logger) -> None:
        self._background = background
        self._log = log

    # ---------------------------------------------------------------- reports

    def keep_report(self, state: Path, session_id: str, report: Report) -> str:
        """Where the report will stand; it is written while the answer is already on its way."""
        stamp = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns() % 10**6:06d}"
        path = state / "reports" / f"{stamp}-{file_name(session_id)}.json"
        self._background.submit(self._write_report, path, report)
        return str(path)

    def _write_report(self, path: Path, report: Report) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(path, orjson.dumps(report, option=orjson.OPT_INDENT_2))
            for old in sorted(path.parent.glob("*.json"))[:-REPORTS_KEPT]:
                old.unlink(missing_ok=True)
        except (OSError, TypeError) as error:
            self._log.warning("report not kept: %s", failure_of(error))

    # ---------------------------------------------------------------- guides

    def guide_folder(self, state: Path, session_id: str) -> Path:
        return state / "guides" / file_name(session_id)

    def keep_to_give_back(self, folder: Path, user_messages: bytes, give_back: bytes) -> None:
        """Keep at once what the next session start may ask for; a full disk is only logged."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(folder / "user-messages.txt", user_messages)
            write_private(folder / "give-back.txt", give_back)
        except OSError as error:
            self._log.warning("nothing kept to give back: %s", failure_of(error))

    def take_back(self, folder: Path) -> bytes:
        """What is to be given back, once: it is removed. Empty where there is none, or it is too old."""
        kept = folder / "give-back.txt"
        try:
            fresh = time.time() - kept.stat().st_mtime < GIVE_BACK_SECONDS
            text = kept.read_bytes() if fresh else b""
            kept.unlink()
        except OSError:
            return b""
        return text

    def forget_to_give_back(self, folder: Path) -> None:
        """The session was replaced: there is no summary after which anything would be given back."""
        with contextlib.suppress(OSError):
            (folder / "give-back.txt").unlink()

    def keep_guide(self, folder: Path, compacted: bytes, report: Report) -> None:
        self._background.submit(self._write_guide, folder, compacted, report)

    def _write_guide(self, folder: Path, compacted: bytes, report: Report) -> None:
        try:
            write_private(folder / "compacted.jsonl", compacted)
            write_private(folder / "report.json", orjson.dumps(report, option=orjson.OPT_INDENT_2))
            folders = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime)
            for old in folders[:-GUIDES_KEPT]:
                for file in old.iterdir():
                    file.unlink()
                old.rmdir()
        except (OSError, TypeError) as error:
            self._log.warning("guide not kept: %s", failure_of(error))

    # ---------------------------------------------------------------- hooks

    def note_hook(self, state: Path, command: str) -> None:
        """When each hook last came, for `lcc doctor`."""
        self._background.submit(self._write_hook, state / "hooks.json", command)

    def _write_hook(self, file: Path, command: str) -> None:
        try:
            times = {**read_hook_times(file.parent), command: time.strftime("%Y-%m-%dT%H:%M:%S%z")}
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(file, orjson.dumps(times))
        except OSError as error:
            self._log.warning("hooks.json: %s", error.strerror)
