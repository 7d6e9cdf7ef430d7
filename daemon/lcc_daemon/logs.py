"""The daemon's log: one line for each request, rotated, private, and never a word of a session's content."""

from __future__ import annotations

import io
import logging
import logging.handlers
import os
import traceback
from pathlib import Path
from types import TracebackType

FILE_BYTES = 5 * 1024 * 1024
FILES_KEPT = 3
MOST_FRAMES = 30


class PrivateFiles(logging.handlers.RotatingFileHandler):
    """A rotating log whose files only their owner can read, and that is never written through a link."""

    def _open(self) -> io.TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(self.baseFilename, flags, 0o600), "a", encoding="utf-8")


def open_log(file: Path, file_bytes: int = FILE_BYTES, level: int = logging.INFO) -> logging.Logger:
    """The daemon's logger, which writes to ``file`` (made with its folder, both private)."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = PrivateFiles(file, maxBytes=file_bytes, backupCount=FILES_KEPT, encoding="utf-8")
    handler.setFormatter(OneLine("%(asctime)s %(process)d %(levelname)s %(message)s"))
    log = logging.getLogger("lcc_daemon")
    for old in list(log.handlers):
        log.removeHandler(old)
        old.close()
    log.addHandler(handler)
    log.setLevel(level)
    log.propagate = False
    return log


class OneLine(logging.Formatter):
    """One record, one line: a path with a newline in it cannot forge a second one."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\n", "\\n").replace("\r", "\\r")

    def formatException(self, ei: object) -> str:  # noqa: N802 - the base class's name
        return ""  # a message can quote the session: `failure_of` is what is written instead


def failure_of(error: BaseException) -> str:
    """An exception as its types and places: the message is left out, it can quote the session."""
    parts: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(parts) < 5:
        parts.append(f"{type(seen).__qualname__} at {_places(seen.__traceback__)}")
        seen = seen.__cause__ or seen.__context__
    return " from ".join(parts)


def _places(tb: TracebackType | None) -> str:
    frames = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in traceback.walk_tb(tb)]
    shown = [f"{Path(file).name}:{line} {name}" for file, line, name in frames[-MOST_FRAMES:]]
    return " > ".join(shown) or "?"
