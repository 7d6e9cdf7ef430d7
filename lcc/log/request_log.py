"""The opt-in request log: one line of figures for each pass of a live session, in a private file.

Off unless the configuration's ``request_log`` is on. A line holds counts, sizes, times and the names of
reasons; never a text, a path, a command, an id or a goal. The daemon and the ``lcc`` program may append at the
same time: a line is one write to a file opened for appending, so lines never mix. ``lcc log`` reads it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from lcc.config import state_folder
from lcc.private_files import (
    PRIVATE_FILE,
    ForeignFileError,
    HeldError,
    NotRegularError,
    locked,
    make_private_folder,
    open_regular,
    read_bounded,
)

if TYPE_CHECKING:
    from lcc.contract.report import Report
    from lcc.transcript import Json

FILE_NAME = "requests.jsonl"
MAX_BYTES = 4 * 1024 * 1024
"""A file this large is set aside as ``requests.jsonl.1``, in the place of an older one."""
VERSION = 1
_START = b'{"v":'
"""What every line begins with: an entry's first key."""

_REASON = re.compile(r"(?:stashed:)?[a-z_]+")
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,64}")
_COUNTS: Final = (
    "messages_before",
    "messages_after",
    "tool_calls_total",
    "tool_calls_kept",
    "tool_calls_trimmed",
    "tool_calls_dropped",
    "tool_calls_deduped",
    "tool_calls_replaced",
    "tool_calls_stashed",
    "chars_before",
    "chars_after",
    "tokens_before",
    "tokens_after",
    "requests",
)


class RequestLogError(OSError):
    """The log cannot be written or read safely; the text names the file and what is wrong with it."""


def log_path(env: Mapping[str, str]) -> Path:
    """Where the log is kept: in lcc's state folder."""
    return state_folder(env) / FILE_NAME


def entry(report: Report, *, client_version: str | None, now: datetime | None = None) -> dict[str, Json]:
    """The line for a pass's report: figures and the names of reasons alone."""
    reasons = Counter(name for record in report["decisions"] if (name := _reason(record["reason"])) is not None)
    line: dict[str, Json] = {
        "v": VERSION,
        "time": (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "client_version": _name(client_version),
        "provider": _name(report["provider_used"]),
        "mode": _name(report["rules_mode"]),
        "check": _name(report["recoverability_check"]),
        "degraded": report["degraded"],
        "worth_it": report["worth_it"],
        "duration_ms": round(report["latency_ms"], 3),
        "token_count": "estimated" if report["token_count_method"].startswith("~") else "counted",
    }
    line.update({key: report[key] for key in _COUNTS})
    line["reasons"] = dict(sorted(reasons.items()))
    return line


def append(report: Report, *, client_version: str | None, path: Path) -> None:
    """Add the line for ``report`` to the log at ``path``, which is made with mode 0600 where it is missing.

    Raises RequestLogError where the file is a link, no plain file, or belongs to someone else, and where it
    cannot be written. A caller must not let that change its answer.
    """
    line = orjson.dumps(entry(report, client_version=client_version)) + b"\n"
    try:
        make_private_folder(path.parent)
        descriptor = _open_ours(path, os.O_CREAT)
        if os.fstat(descriptor).st_size > MAX_BYTES:
            os.close(descriptor)
            _set_aside(path)
            descriptor = _open_ours(path, os.O_CREAT)
        try:
            os.fchmod(descriptor, PRIVATE_FILE)
            if os.write(descriptor, line) != len(line):
                raise RequestLogError(f"{path}: the line was written in part (is the disk full?)")
        finally:
            os.close(descriptor)
    except RequestLogError:
        raise
    except OSError as error:
        raise RequestLogError(f"{path}: {_words(error, 'written')}") from None


def read(path: Path) -> Iterator[dict[str, Json]]:
    """The log's entries, oldest first, the file set aside before the current one. Damaged lines are left out.

    Raises RequestLogError where a file is there and cannot be read; a missing log has no entries.
    """
    for file in (path.with_name(path.name + ".1"), path):
        try:
            content = read_bounded(file, 2 * MAX_BYTES, follow=False, own=True)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RequestLogError(f"{file}: {_words(error, 'read')}") from None
        for line in content.split(b"\n"):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict) and value.get("v") == VERSION:
                yield value


def _words(error: OSError, done: str) -> str:
    if isinstance(error, NotRegularError):
        return "not a plain file"
    if isinstance(error, ForeignFileError):
        return "belongs to another user"
    return f"cannot be {done} ({error.strerror})"


def _open_ours(path: Path, flags: int = 0) -> int:
    """A descriptor of the log. Raises OSError, also for a file that holds something else than a log's lines."""
    descriptor = open_regular(path, flags=os.O_RDWR | os.O_APPEND | flags, follow=False, own=True)
    if _START.startswith(os.pread(descriptor, len(_START), 0)):
        return descriptor
    os.close(descriptor)
    raise RequestLogError(f"{path}: some other program's file; name a folder of lcc's own in LCC_STATE_DIR")


def _set_aside(path: Path) -> None:
    """Rename a full log, unless another process does. Of two who found it full, the later would rename a new one."""
    older = path.with_name(path.name + ".1")
    with contextlib.suppress(FileNotFoundError):
        os.close(_open_ours(older))
    with contextlib.suppress(HeldError), locked(path, "the request log's lock", seconds=0):
        if path.lstat().st_size > MAX_BYTES:
            path.replace(older)


def _reason(code: str) -> str | None:
    """The name of a reason, without the id, question or error that may follow it."""
    found = _REASON.match(code)
    return found[0].rstrip("_") if found else None


def _name(value: str | None) -> str | None:
    return value if value is not None and _NAME.fullmatch(value) else None
