"""The opt-in request log: one line of figures for each pass of a live session, in a private file.

Off unless the configuration's ``request_log`` is on. A line holds counts, sizes, times and the names of
reasons; never a text, a path, a command, an id or a goal. ``lcc log`` reads it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lcc.config import state_folder
from lcc.log.lines import append_line, read_lines

if TYPE_CHECKING:
    from lcc.contract.report import Report
    from lcc.transcript import Json

FILE_NAME = "requests.jsonl"
MAX_BYTES = 4 * 1024 * 1024
"""A file this large is set aside as ``requests.jsonl.1``, in the place of an older one."""

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


def log_path(env: Mapping[str, str]) -> Path:
    """Where the log is kept: in lcc's state folder."""
    return state_folder(env) / FILE_NAME


def entry(report: Report, *, client_version: str | None, now: datetime | None = None) -> dict[str, Json]:
    """The line for a pass's report: figures and the names of reasons alone."""
    reasons = Counter(name for record in report["decisions"] if (name := _reason(record["reason"])) is not None)
    line: dict[str, Json] = {
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
    """Add the line for ``report`` to the log at ``path``. Raises LogError, as `append_line` does."""
    append_line(path, entry(report, client_version=client_version), MAX_BYTES)


def read(path: Path) -> Iterator[dict[str, Json]]:
    """The log's entries, oldest first. Raises LogError, as `read_lines` does."""
    return read_lines(path, MAX_BYTES)


def _reason(code: str) -> str | None:
    """The name of a reason, without the id, question or error that may follow it."""
    found = _REASON.match(code)
    return found[0].rstrip("_") if found else None


def _name(value: str | None) -> str | None:
    return value if value is not None and _NAME.fullmatch(value) else None
