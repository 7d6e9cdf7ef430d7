"""`lcc compact TRANSCRIPT`: one pass over a session, in this process.

Who else writes these files: the session belongs to a client, which may append to it while it is read; it is
opened read-only, once. The answer and the report are written beside their places and renamed when the last
check of the pass has held.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from lcc.commands.compact_options import chooses_nobody, provider_for, without_effect
from lcc.commands.files import STREAM, InputError, OutputFile, named_session, read_input
from lcc.commands.flags import Given, flag_of, takes_options
from lcc.contract.options import LiveOptions, PassOptions, table
from lcc.transcript import FORMATS

if TYPE_CHECKING:
    from lcc.commands.fork import Fork
    from lcc.commands.progress import Progress
    from lcc.compaction.compact import Compacted
    from lcc.relevance.ports import Ports
    from lcc.transcript import Transcript

AUTO = "auto"

_BLOCKS = (
    "in other tools it scores the text blocks inside one document; lcc works on the tool outputs of a session: "
    "leave --mode out; --rules-mode auto frees most"
)
"""What a person is told who knows `--mode blocks` from elsewhere."""


@takes_options(provider=None)
def compact(
    transcript: Annotated[
        str,
        typer.Argument(
            metavar="TRANSCRIPT", help="A session file, or an id from lcc sessions; - reads standard input."
        ),
    ],
    given: Given,
    mode: Annotated[str, typer.Option(help="What is removed: tool-calls, which is the only mode.")] = "tool-calls",
    format: Annotated[str, typer.Option(help=f"{', '.join((AUTO, *FORMATS))}.")] = AUTO,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a session with a damaged line; else it is kept as it is.")
    ] = False,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="The compacted session. Default: standard output.")
    ] = STREAM,
    report: Annotated[
        str | None, typer.Option("-r", "--report", metavar="FILE", help="The report, for lcc explain.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do everything, write no file.")] = False,
    fork: Annotated[
        bool,
        typer.Option(
            "--fork",
            help="Write a new session beside this one, for claude --resume; none if nothing could be removed.",
        ),
    ] = False,
    snapshot: Annotated[
        bool, typer.Option("--snapshot", help="Fork a session even while a client is writing to it.")
    ] = False,
) -> None:
    """Remove from a session the tool outputs that can be had back, and say why for every call.

    The compacted session goes to standard output or -o; the summary goes to stderr. How it decides is taken
    from these options alone: config.toml is for the plugin, except for where the stash is.
    """
    transcript = named_session(transcript)
    if mode != "tool-calls":
        raise InputError(f"--mode {mode}: {_BLOCKS if mode == 'blocks' else 'is no mode; the only one is tool-calls'}")
    options, notes = _options(given, fork)
    forked = _open_fork(transcript, format, output, snapshot) if fork else None
    if snapshot and not fork:
        raise InputError("--snapshot: goes with --fork alone")
    target = str(forked.path) if forked else output
    cache = options.decisions_cache
    _run(_Asked(transcript, format, target, report, cache, dry_run, strict, forked), options, notes)


def _options(given: Given, fork: bool) -> tuple[PassOptions, list[str]]:
    """The options of the pass, and what a person is told about how they came about."""
    instead: dict[str, object] = {"provider": provider_for(given)}
    notes: list[str] = []
    if fork and chooses_nobody(given.flags):
        live = table(LiveOptions)
        instead = {name: live[name].default for name in ("provider", "rules_mode")}
        said = " ".join(f"{flag_of(name)} {value}" for name, value in instead.items())
        notes.append(f"nobody was named to decide, so: {said}")
    if given.values["decisions_cache"] is not None and instead["provider"] == "rules":
        raise InputError(
            "--decisions-cache: refused with --provider rules, which asks no judge whose verdicts it could keep"
        )
    if given.values["workspace_root"] is not None:
        instead["workspace_root"] = _folder(str(given.values["workspace_root"]))
    options = given.options(**instead)
    notes += [f"{name} has no effect here" for name in without_effect(options, given.flags)]
    return options, notes


class _Asked(NamedTuple):
    """The files of one run, as they were named."""

    source: str
    format: str
    output: str
    report: str | None
    decisions_cache: str | None
    dry_run: bool
    strict: bool = False
    fork: Fork | None = None


def _open_fork(source: str, format: str, output: str, snapshot: bool) -> Fork:
    from lcc.commands.fork import open_fork

    if output != STREAM:
        raise InputError(f"-o {output}: --fork names its file itself, by the new session's id")
    if format in FORMATS and not FORMATS[format].can_fork:
        able = " or ".join(form.what for form in FORMATS.values() if form.can_fork)
        raise InputError(f"--format {format}: only {able} can be forked")
    return open_fork(source, snapshot)


def _folder(name: str) -> str:
    if not os.path.isdir(name):
        raise InputError(f"--workspace-root {name}: there is no such folder")
    return os.path.abspath(name)


def _run(asked: _Asked, options: PassOptions, notes: list[str]) -> None:
    from lcc.commands.progress import progress
    from lcc.compaction.compact import CompactionError
    from lcc.compaction.compact import compact as compact_session

    if asked.format != AUTO and asked.format not in FORMATS:
        raise InputError(f"--format {asked.format}: none of {', '.join((AUTO, *FORMATS))}")
    with ExitStack() as stack:
        files = _Files(asked, stack)
        shown = stack.enter_context(progress(f"reading {asked.source}"))
        transcript = _read(asked)
        shown.doing = "deciding and proving"
        try:
            compacted = compact_session(transcript, options, _ports(files, shown), stage=files.write)
        except CompactionError as error:
            raise InputError(f"{asked.source}: {error}") from None
        files.commit(transcript)
        shown.stop()
        files.print()
    from lcc.commands.summary import summarise

    summarise(
        sys.stderr,
        asked.source,
        compacted.report,
        [*files.said(), *(f"  note: {note}" for note in notes)],
        dry_run=asked.dry_run,
    )


def _ports(files: _Files, shown: Progress) -> Ports:
    from lcc.relevance.ports import Ports

    fork = files.asked.fork
    return Ports(
        dry_run=files.asked.dry_run,
        stash_source=str(files.output.path) if files.output else None,
        stash_session=fork.session_id if fork else None,
        progress=shown.counted,
    )


class _Files:
    """Where the answer goes: checked before anything is read, written and committed together."""

    def __init__(self, asked: _Asked, stack: ExitStack) -> None:
        self.asked = asked
        self.output = self._open(asked.output, "-o", stack)
        self.report = self._open(asked.report, "-r", stack)
        if self.output and self.report and self.output.same_as(self.report.path):
            raise InputError(f"-r {asked.report}: that is the file of -o")
        if asked.report == STREAM and asked.output == STREAM and not asked.dry_run:
            raise InputError("-r -: standard output takes the compacted session; give -o FILE, or --dry-run")
        self.nothing_to_fork = False
        self._content = self._report_bytes = b""
        # A transcript on a terminal helps nobody, so a run without -o there shows what would be done.
        self.to_terminal = asked.output == STREAM and sys.stdout.isatty()

    def _open(self, name: str | None, option: str, stack: ExitStack) -> OutputFile | None:
        if name is None or name == STREAM:
            return None
        file = stack.enter_context(OutputFile(name, option))
        if self.asked.source != STREAM and file.same_as(self.asked.source):
            raise InputError(f"{option} {name}: that is the session itself, which is never written to")
        if self.asked.decisions_cache is not None and file.same_as(self.asked.decisions_cache):
            raise InputError(f"{option} {name}: that is the file of --decisions-cache")
        return file

    def write(self, compacted: Compacted) -> None:
        """Writes both beside their places, in place of what an earlier call wrote there."""
        import orjson

        fork = self.asked.fork
        content = compacted.content or b""
        self.nothing_to_fork = fork is not None and not compacted.changed
        self._content = fork.content(content, compacted.changed) if fork and compacted.changed else content
        indented = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        self._report_bytes = orjson.dumps(compacted.report, option=indented)
        if self.asked.dry_run:
            return
        if self.output and not self.nothing_to_fork:
            self.output.write(self._content)
        if self.report:
            self.report.write(self._report_bytes)

    def commit(self, transcript: Transcript) -> None:
        """The report first: a compacted session never stands without it."""
        if self.asked.dry_run:
            return
        if self.asked.fork and not self.nothing_to_fork:
            self.asked.fork.take_over_notes(transcript)
            self.asked.fork.take_over_agents()
        if self.report:
            self.report.commit()
        if self.output and not self.nothing_to_fork:
            self.output.commit()

    def print(self) -> None:
        """What goes to standard output: the session or the report, never both."""
        if self.asked.report == STREAM:
            sys.stdout.buffer.write(self._report_bytes)
        elif self.asked.output == STREAM and not self.asked.dry_run and not self.to_terminal:
            sys.stdout.buffer.write(self._content)
        sys.stdout.flush()

    def said(self) -> list[str]:
        """What to tell a person about where it went."""
        if self.asked.dry_run:
            return ["  dry run: no file was written"]
        written = (None if self.nothing_to_fork else self.output, self.report)
        lines = [f"  wrote {file.name}" for file in written if file]
        if self.nothing_to_fork:
            lines.append("  nothing could be removed, so no fork was written; go on in the session itself")
        elif self.asked.fork:
            lines += self.asked.fork.said()
        if self.to_terminal:
            lines.append("  standard output is a terminal, so the session was not printed; give -o FILE or pipe it")
        return lines


def _read(asked: _Asked) -> Transcript:
    from lcc.transcript import TranscriptError, read_transcript
    from lcc.transcript.formats.claude import CLAUDE_CODE

    raw = asked.fork.raw if asked.fork else read_input(asked.source)
    named = CLAUDE_CODE if asked.fork else FORMATS.get(asked.format)
    try:
        return read_transcript(raw, format=named, name=asked.source, strict=asked.strict)
    except TranscriptError as error:
        said = error.problem if error.place in ("", asked.source) else str(error)
        if asked.strict and error.place.startswith("line "):
            said += "; without --strict a damaged line of a session is kept as it is, and the rest is compacted"
        raise InputError(f"{asked.source}: {said}") from None
