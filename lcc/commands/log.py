"""`lcc log`: what the opt-in request log holds, and the user's own figures from it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcc.commands.files import InputError

if TYPE_CHECKING:
    from lcc.commands.text import Align
    from lcc.log.request_summary import Summary
    from lcc.transcript import Json

_LAST = 10
_COLUMNS: dict[str, tuple[str, Align]] = {
    "time": ("time", "left"),
    "mode": ("mode", "left"),
    "tool_calls_total": ("calls", "right"),
    "tokens_before": ("tokens before", "right"),
    "tokens_after": ("after", "right"),
    "duration_ms": ("ms", "right"),
    "worth_it": ("worth it", "left"),
}
_SUMMARY_COLUMNS: list[tuple[str, Align]] = [
    ("mode", "left"),
    ("passes", "right"),
    ("worth it", "right"),
    ("tokens freed", "right"),
    ("median freed", "right"),
    ("median ms", "right"),
    ("95th percentile ms", "left"),
]


def log(
    summary: Annotated[
        bool, typer.Option("--summary", help="Figures over all passes instead of the last ones.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The figures as Markdown, to paste.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Another log than the usual one.")] = None,
) -> None:
    """Show the request log: figures of each pass, never a text, a path or a command. Off unless switched on."""
    from lcc.log.lines import LogError
    from lcc.log.request_log import log_path, read
    from lcc.log.request_summary import markdown as as_markdown
    from lcc.log.request_summary import summarize

    on = _is_on()
    path = file or log_path(os.environ)
    try:
        entries = list(read(path))
    except LogError as error:
        raise InputError(str(error)) from None
    if as_json:
        import orjson

        shown: Json = summarize(entries).as_json() if summary or markdown else list(entries)
        sys.stdout.buffer.write(orjson.dumps(shown, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    elif markdown:
        sys.stdout.write(as_markdown(summarize(entries)))
    elif summary:
        _print_summary(summarize(entries), path, on)
    else:
        _print_last(entries, path, on)


def _is_on() -> bool:
    from lcc.config import ConfigError, load_config

    try:
        return load_config().request_log
    except ConfigError as error:
        raise InputError(f"{error}; mend it; lcc doctor shows what is set") from None


def _switch(on: bool) -> str:
    return "on" if on else "off (request_log = true in the configuration, or LCC_REQUEST_LOG=1, switches it on)"


def _print_last(entries: list[dict[str, Json]], path: Path, on: bool) -> None:
    from lcc.commands.text import table, write

    write(sys.stdout, f"The request log is {_switch(on)}.", f"{len(entries):,} passes in {path}")
    if entries:
        rows = [[_word(entry, name) for name in _COLUMNS] for entry in entries[-_LAST:]]
        write(sys.stdout, table(list(_COLUMNS.values()), rows))


def _word(entry: dict[str, Json], name: str) -> str:
    value = entry.get(name)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value or "-")


def _print_summary(found: Summary, path: Path, on: bool) -> None:
    from lcc.commands.text import count, share, table, write

    if not found.passes:
        write(sys.stdout, f"No passes in {path}. The request log is {_switch(on)}.")
        return
    estimated = f"; tokens estimated in {count(found.estimated)}" if found.estimated else ""
    rows = [
        (
            mode.mode,
            count(mode.passes),
            count(mode.worth_it),
            count(mode.tokens_freed),
            share(mode.median_freed),
            f"{mode.median_ms:,.0f}",
            f"{mode.slow_ms:,.0f}",
        )
        for mode in found.modes
    ]
    write(
        sys.stdout,
        f"{count(found.passes)} passes, {found.first} to {found.last}{estimated}",
        table(_SUMMARY_COLUMNS, rows),
        table([("calls", "right"), ("reason", "left")], [(count(number), name) for name, number in found.reasons]),
    )
