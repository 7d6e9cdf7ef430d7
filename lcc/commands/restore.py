"""`lcc restore COMPACTED`: the original session, rebuilt by following every note."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from lcc.commands.files import STREAM, InputError, OutputFile, read_input
from lcc.commands.progress import progress

if TYPE_CHECKING:
    from lcc.contract.report import Report
    from lcc.recovery.restore import Restored
    from lcc.transcript import Json, Transcript

MAX_REPORT_BYTES = 1 << 28


def restore(
    compacted: Annotated[
        str, typer.Argument(metavar="COMPACTED", help="A session that lcc compacted; - reads it from standard input.")
    ],
    report: Annotated[
        list[str] | None,
        typer.Option("--report", "-r", metavar="FILE", help="The report of a pass; repeat it for each further pass."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write it. Default: standard output.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="ORIGINAL", help="Compare with the original session.")
    ] = None,
    workspace_root: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="The folder that was named at the compaction.")
    ] = None,
) -> None:
    """Rebuild the original session: from the kept results, the files and the stash that its notes point at.

    With the report of each pass every output is proven by its sha256. Without them nothing tells whether a file
    has changed since: what comes from files is then restored as it is now, and the exit code is 1. Notes that can
    no longer be followed are listed and stay (exit 1). A session that was trimmed (lossy, or by a judge) cannot be
    restored. With --against and without -o nothing is written: it only compares. -o may not name a file that is
    read here.
    """
    from lcc.compaction.images import restore_images
    from lcc.recovery.inputs import restore_inputs
    from lcc.recovery.restore import RestoreError, removed_by, restored_bytes
    from lcc.recovery.restore import restore as follow
    from lcc.stash import Stash, StashFolderError, stash_folder

    if workspace_root is not None and not os.path.isdir(workspace_root):
        raise InputError(f"--workspace-root {workspace_root}: there is no such folder")
    read_files = [compacted, *(report or ()), *([against] if against is not None else [])]
    if output is not None and output != STREAM and any(OutputFile(output, "-o").same_as(name) for name in read_files):
        raise InputError(f"-o {output}: it is read here, and would be overwritten; name another file")
    root = os.path.abspath(workspace_root) if workspace_root else None
    with progress(f"reading {compacted}") as shown:
        transcript = _transcript(compacted)
        reports = [_report(name) for name in report or ()]
        shown.doing = "following the notes"
        try:
            removed = removed_by(reports) if reports else None
            stash = Stash(stash_folder())
            restored = follow(transcript, removed, stash, root)
        except RestoreError as error:
            raise InputError(f"{compacted}: {error}") from None
        except StashFolderError as error:
            raise InputError(str(error)) from None
        inputs = restore_inputs(transcript, reports, stash)
        shown.doing = "putting the session together"
        edits = replace(restored.edits, inputs=inputs.strings)
        content, images, lost = restore_images(restored_bytes(transcript, edits, removed), stash)
    same = _compare(against, content) if against is not None else True
    _write(content, output, to_stdout=against is None)
    _say(compacted, restored)
    if images:
        typer.echo(f"  and {images} images", err=True)
    if inputs.count:
        typer.echo(f"  and {inputs.count} strings of calls' inputs", err=True)
    for failure in inputs.failures:
        typer.echo(f"  the input of {failure.id}: {failure.note}: {failure.problem}", err=True)
    for note, problem in lost:
        typer.echo(f"  {note}: {problem}", err=True)
    if restored.failures or inputs.failures or restored.unproven or lost or not same:
        raise typer.Exit(1)


def _transcript(name: str) -> Transcript:
    from lcc.transcript import TranscriptError, read_transcript

    try:
        return read_transcript(read_input(name), name=name)
    except TranscriptError as error:
        raise InputError(f"{name}: {error}") from None


def _report(name: str) -> Report:
    from lcc.contract.report_reader import ReportError, read_report

    try:
        return read_report(read_input(name, MAX_REPORT_BYTES))
    except ReportError as error:
        raise InputError(f"{name}: not a report of lcc compact: {error}") from None


def _compare(name: str, content: bytes) -> bool:
    """Say whether the restored session is the original: by its bytes, else by its messages (a fork has new ids)."""
    from lcc.transcript import TranscriptError, read_transcript

    with progress(f"reading {name}"):
        original = read_input(name)
    if original == content:
        typer.echo(f"identical to {name}, byte for byte", err=True)
        return True
    try:
        with progress(f"comparing with {name}"):
            want, got = (_all_of(read_transcript(raw, name=name)) for raw in (original, content))
    except TranscriptError as error:
        raise InputError(f"--against {name}: {error}") from None
    if want == got:
        typer.echo(f"every message is identical to {name}'s; the files differ outside of the messages", err=True)
        return True
    pairs = enumerate(zip(want, got, strict=False))
    first = next((index for index, (one, other) in pairs if one != other), min(len(want), len(got)))
    typer.echo(f"not the same as {name}: message {first} differs", err=True)
    return False


def _all_of(transcript: Transcript) -> list[dict[str, Json]]:
    """The messages that are sent, and behind them those of the other branches."""
    from lcc.transcript import messages_to_payload

    return messages_to_payload((*transcript.messages, *transcript.aside))


def _write(content: bytes, output: str | None, *, to_stdout: bool) -> None:
    if output is not None and output != STREAM:
        with OutputFile(output, "-o") as file:
            file.write(content)
            file.commit()
    elif output == STREAM or to_stdout:
        if sys.stdout.isatty():
            typer.echo("standard output is a terminal, so the session was not printed; give -o FILE", err=True)
        else:
            sys.stdout.buffer.write(content)
            sys.stdout.flush()


def _say(name: str, restored: Restored) -> None:
    total = len(restored.edits.texts)
    typer.echo(f"lcc: {name}: {total} outputs restored, {len(restored.proven)} of them proven", err=True)
    if restored.unproven:
        count = len(restored.unproven)
        typer.echo(f"  {count} come from files as they are now; give the reports with --report to prove them", err=True)
    if restored.left:
        typer.echo(f"  {len(restored.left)} more look like notes, and no given report made them; they stay", err=True)
    for failure in restored.failures:
        typer.echo(f"  {failure.id}: {failure.note}: {failure.problem}", err=True)
