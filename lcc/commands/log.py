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
    from lcc.sessions.spent import Spent
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
_SAVED_COLUMNS: list[tuple[str, Align]] = [
    ("last used", "left"),
    ("requests", "right"),
    ("compactions", "right"),
    ("freed", "right"),
    ("had back", "right"),
    ("measured", "right"),
    ("~without", "right"),
    ("saved", "left"),
]


def log(
    summary: Annotated[
        bool, typer.Option("--summary", help="Figures over all passes instead of the last ones.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The figures as Markdown, to paste.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="A log other than the usual one.")] = None,
) -> None:
    """Show the request log: figures of each pass, never a text, a path or a command. Off unless switched on.

    Below it is what compactions saved, from the usage in the session files themselves: of this folder's sessions,
    or of all with --summary. Costs are input tokens at cache prices (new 1, read 0.1, written 1.25, for an hour 2).
    """
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
    spent = [] if as_json and not (summary or markdown) else _spent(everywhere=summary or markdown)
    if as_json:
        import orjson

        from lcc.sessions.spent import summed

        saved: dict[str, Json] = {"savings": summed(spent).as_json()}
        shown: Json = {**summarize(entries).as_json(), **saved} if summary or markdown else list(entries)
        sys.stdout.buffer.write(orjson.dumps(shown, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    elif markdown:
        sys.stdout.write(as_markdown(summarize(entries)) + _saved_markdown(spent))
    elif summary:
        _print_summary(summarize(entries), path, on)
    else:
        _print_last(entries, path, on)
    if not as_json and not markdown:
        _print_saved(spent, "in all projects" if summary else "of this folder")


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


def _spent(*, everywhere: bool) -> list[Spent]:
    """The sessions of this folder, or of all, that went on after a compaction; one that is in several, once."""
    from lcc.client_folders import folders_of, project_folders
    from lcc.commands.progress import progress
    from lcc.sessions.spent import compacted_sessions

    folders = project_folders(os.environ) if everywhere else folders_of(Path.cwd(), os.environ)
    found = []
    with progress("reading sessions") as shown:
        for number, folder in enumerate(folders, 1):
            shown.doing = f"reading sessions: project {number:,} of {len(folders):,}"
            found += list(compacted_sessions([folder]))
    found.sort(key=lambda each: each.modified)
    return list({each.path.name: each for each in found}.values())


def _print_saved(spent: list[Spent], where: str) -> None:
    from datetime import UTC, datetime

    from lcc.commands.text import count, share, table, write
    from lcc.sessions.spent import summed

    if not spent:
        write(sys.stdout, "", f"Nothing saved yet: no session {where} went on after a compaction by lcc.")
        return
    rows = [
        (
            datetime.fromtimestamp(each.modified, UTC).strftime("%Y-%m-%d"),
            count(each.savings.requests),
            count(len(each.savings.compactions)),
            count(sum(compaction.freed for compaction in each.savings.compactions)),
            count(each.savings.recalls),
            count(round(each.savings.cost)),
            count(round(each.savings.without)),
            share(each.savings.saved_share),
        )
        for each in spent[-_LAST:]
    ]
    total = summed(spent)
    without = f"without the compactions ~{count(round(total.cost + total.saved))}"
    write(
        sys.stdout,
        "",
        f"Compacted sessions {where}: {count(total.sessions)}. Input, in tokens at the plain price:",
        table(_SAVED_COLUMNS, rows, spare=("requests", "had back", "freed")),
        f"  Together {count(round(total.cost))}, measured; {without}",
        f"  (estimated: the same requests, nothing removed): {share(total.share)} saved.",
    )


def _saved_markdown(spent: list[Spent]) -> str:
    from lcc.sessions.spent import summed

    total = summed(spent)
    if not total.sessions:
        return ""
    return (
        f"\nCompacted sessions: {total.sessions}; compactions: {total.compactions}; recalls: {total.recalls}; "
        f"{total.cost:,.0f} input tokens at the plain price, measured; ~{total.cost + total.saved:,.0f} without, "
        f"estimated; {total.share:.1%} saved\n"
    )
