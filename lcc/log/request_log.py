"""The opt-in request log: one line of figures for each pass of a live session, in a private file.

Off unless the configuration's ``request_log`` is on. A line holds counts, sizes, times and the names of
reasons; never a text, a path, a command, an id or a goal. The daemon and the ``lcc`` program may append at the
same time: a line is one write to a file opened for appending, so lines never mix. ``lcc log`` reads it.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from lcc.config import state_folder

if TYPE_CHECKING:
    from lcc.contract.report import Report
    from lcc.transcript import Json

FILE_NAME = "requests.jsonl"
MAX_BYTES = 4 * 1024 * 1024
"""A file this large is set aside as ``requests.jsonl.1``, in the place of an older one."""
VERSION = 1

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
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _set_aside_when_large(path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        try:
            _refuse_foreign(path, descriptor)
            os.fchmod(descriptor, 0o600)
            if os.write(descriptor, line) != len(line):
                raise RequestLogError(f"{path}: the line was written in part (is the disk full?)")
        finally:
            os.close(descriptor)
    except RequestLogError:
        raise
    except OSError as error:
        raise RequestLogError(f"{path}: cannot be written ({error.strerror})") from None


def read(path: Path) -> Iterator[dict[str, Json]]:
    """The log's entries, oldest first, the file set aside before the current one. Damaged lines are left out.

    Raises RequestLogError where a file is there and cannot be read; a missing log has no entries.
    """
    for file in (path.with_name(path.name + ".1"), path):
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RequestLogError(f"{file}: cannot be read ({error.strerror})") from None
        with os.fdopen(descriptor, "rb") as opened:
            _refuse_foreign(file, opened.fileno())
            lines = opened.read(2 * MAX_BYTES).split(b"\n")
        for line in lines:
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict) and value.get("v") == VERSION:
                yield value


def _refuse_foreign(path: Path, descriptor: int) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise RequestLogError(f"{path}: not a plain file")
    if found.st_uid != os.getuid():
        raise RequestLogError(f"{path}: belongs to another user")


def _set_aside_when_large(path: Path) -> None:
    try:
        large = path.lstat().st_size > MAX_BYTES
    except FileNotFoundError:
        return
    if large:
        path.replace(path.with_name(path.name + ".1"))


def _reason(code: str) -> str | None:
    """The name of a reason, without the id, question or error that may follow it."""
    found = _REASON.match(code)
    return found[0].rstrip("_") if found else None


def _name(value: str | None) -> str | None:
    return value if value is not None and _NAME.fullmatch(value) else None
