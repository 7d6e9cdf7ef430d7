"""`lcc explain REPORT`: what a pass did and why, offline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcc.commands.files import STREAM, InputError, OutputFile, read_input
from lcc.commands.progress import progress

if TYPE_CHECKING:
    from lcc.contract.report import Report
    from lcc.explain.grouped import Explanation
    from lcc.tokens.savings import Savings

MAX_REPORT_BYTES = 1 << 28


def explain(
    report: Annotated[
        str | None,
        typer.Argument(metavar="[REPORT]", help="A report that a pass wrote; - reads it from standard input."),
    ] = None,
    last: Annotated[
        bool,
        typer.Option("--last", help="The newest pass of a live session of this folder, replaced or not."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write one self-contained page with a picture of the session."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="FILE",
            help="With --html: the session file whose rounds the page shows. Default: where Claude Code has it.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="The most calls to show in each list.")] = 10,
) -> None:
    """Show what a pass removed, what it kept, and why, from its report alone."""
    if (report is None) is not last:
        raise InputError("give a report, or --last for the newest pass of a live session of this folder")
    name = report or _newest()
    with progress(f"reading {name}"):
        found = load(name)
    if html is not None:
        _write_page(found, html, name, _savings(found, session))
        return
    from lcc.explain.grouped import explain as explained

    with progress("putting calls into groups"):
        explanation = explained(found, limit)
    if as_json:
        import json

        sys.stdout.buffer.write((json.dumps(explanation.as_json(), ensure_ascii=False, indent=2) + "\n").encode())
    else:
        print_explanation(explanation)


def _newest() -> str:
    """The newest report of this folder's sessions. Raises ``InputError`` where there is none."""
    import os

    from lcc.commands.files import WriteError
    from lcc.sessions.reports import newest_report

    here = Path.cwd()
    try:
        found = newest_report(here, os.environ)
    except OSError as error:
        raise WriteError(f"--last: {error.filename}: {error.strerror}") from None
    if found is None:
        raise InputError(f"--last: {here}: no compaction of a live session of this folder has left a report yet")
    print(f"lcc: {found}", file=sys.stderr)
    return str(found)


def load(name: str) -> Report:
    """The report in the file ``name``. Raises ``InputError`` with the place for anything that is none."""
    from lcc.contract.report_reader import ReportError, read_report

    try:
        return read_report(read_input(name, MAX_REPORT_BYTES))
    except ReportError as error:
        raise InputError(f"{name}: not a report of `lcc compact`: {error}") from None


def _savings(report: Report, session: str | None) -> Savings | None:
    """The sums of the report's session: of the file that is named, else of Claude Code's own, if it is there."""
    import os

    from lcc.sessions.spent import read_savings, savings_of

    with progress("reading the session"):
        if session is None:
            return savings_of(report["session_id"], os.environ)
        try:
            return read_savings(Path(session))
        except OSError as error:
            raise InputError(f"--session {session}: {(error.strerror or str(error)).lower()}") from None


def _write_page(report: Report, target: str, source: str, savings: Savings | None) -> None:
    from lcc.explain.html import page

    with progress("drawing the page"):
        drawn = page(report, savings).encode()
    if target == STREAM:
        sys.stdout.buffer.write(drawn)
        return
    with OutputFile(target, "--html") as output:
        if source != STREAM and output.same_as(source):
            raise InputError(f"--html {target}: that is the report itself")
        output.write(drawn)
        output.commit()
    print(f"lcc: wrote {target}; open it in a browser", file=sys.stderr)


def print_explanation(explanation: Explanation) -> None:
    """Prints the explanation on standard output."""
    from lcc.commands.explain_text import layout
    from lcc.commands.text import write

    write(sys.stdout, *layout(explanation))
