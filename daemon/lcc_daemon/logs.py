"""The daemon's log: one line for each request, rotated, private, and never a word of a session's content."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import logging.handlers
import os
import queue
import re
import threading
import traceback
from pathlib import Path
from types import TracebackType

from lcc.private_files import make_private_folder, open_regular

FILE_BYTES = 5 * 1024 * 1024
FILES_KEPT = 3
MOST_FRAMES = 30
MOST_LINES_WAITING = 10_000
_OUR_LINE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \d+ [A-Z]+ ")
_TORN_LINE = re.compile(rb"[\d :,-]*[A-Z]*")
"""The start of a line that a full disk cut off."""
_FAULT = re.compile(rb"Fatal Python error|Timeout|Current thread|Thread 0x|Stack")
_LOOKED_AT = 64


class PrivateFiles(logging.handlers.RotatingFileHandler):
    """A rotating log whose files only their owner can read, and that is never written through a link."""

    def _open(self) -> io.TextIOWrapper:
        opened = open_regular(self.baseFilename, flags=os.O_WRONLY | os.O_CREAT | os.O_APPEND, follow=False)
        return os.fdopen(opened, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class's name
        """A line that cannot be written is lost: told on stderr, a full disk would fill the next one."""


def open_log(file: Path, file_bytes: int = FILE_BYTES, level: int = logging.INFO) -> logging.Logger:
    """The daemon's logger, which writes to ``file`` (made with its folder, both private).

    Raises OSError, also where ``file`` or one that it would be set aside as is some other program's: those are
    appended to, renamed and removed.
    """
    make_private_folder(file.parent)
    for each in (file, *(file.with_name(f"{file.name}.{number}") for number in range(1, FILES_KEPT + 1))):
        _refuse_foreign(each)
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


class WriteBehind(logging.Handler):
    """Hands lines to a thread of its own, so that a disk that hangs holds up nobody who has something to say."""

    def __init__(self, target: logging.Handler) -> None:
        super().__init__()
        self._lines: queue.Queue[logging.LogRecord | threading.Event] = queue.Queue(MOST_LINES_WAITING)
        self._target = target
        threading.Thread(target=self._write, name="lcc-log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(queue.Full):  # a line that cannot be written is lost
            self._lines.put_nowait(record)

    def flush(self, seconds: float = 0.0) -> None:
        """Wait until all lines so far are written, for so many seconds at most."""
        written = threading.Event()
        with contextlib.suppress(queue.Full):
            self._lines.put(written, timeout=seconds)
            written.wait(seconds)

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            if isinstance(line, threading.Event):
                line.set()
            else:
                self._target.handle(line)


def write_behind(log: logging.Logger) -> WriteBehind:
    """Have the log's one handler write in a thread of its own from now on."""
    (target,) = log.handlers
    behind = WriteBehind(target)
    log.handlers[:] = [behind]
    return behind


def open_fault_log(file: Path) -> io.TextIOWrapper:
    """An emptied file for the interpreter's last words. Raises OSError, also where ``file`` holds something else."""
    opened = open_regular(file, flags=os.O_RDWR | os.O_CREAT, follow=False)
    try:
        start = os.pread(opened, _LOOKED_AT, 0)
        if start and not _FAULT.match(start):
            raise OSError(errno.EEXIST, "some other program's file", str(file))
        os.ftruncate(opened, 0)
        return os.fdopen(opened, "w", encoding="utf-8")
    except BaseException:
        os.close(opened)
        raise


def _refuse_foreign(file: Path) -> None:
    """Raise OSError for a file that does not begin as a log of ours does."""
    try:
        opened = open_regular(file, follow=False)
    except FileNotFoundError:
        return
    try:
        start = os.read(opened, _LOOKED_AT)
    finally:
        os.close(opened)
    if not _OUR_LINE.match(start) and not _TORN_LINE.fullmatch(start):
        words = f"{file.name} there is some other program's; name a folder of lcc's own in LCC_STATE_DIR"
        raise OSError(errno.EEXIST, words, str(file))


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
