"""`lcc compact TRANSCRIPT`: one pass over a session, in this process.

Who else writes these files: the session belongs to a client, which may append to it while it is read; it is
opened read-only, once. The answer and the report are written beside their places and renamed when the last
check of the pass has held.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from lcc.commands.compact_options import chooses_nobody, flag_of, provider_for, without_effect
from lcc.commands.files import STREAM, InputError, OutputFile, named_session, read_input
from lcc.transcript import FORMATS

if TYPE_CHECKING:
    from lcc.commands.fork import Fork
    from lcc.commands.progress import Progress
    from lcc.contract.report import Report, RootSource
    from lcc.contract.request import TranscriptCompactionRequest
    from lcc.relevance.context import PassContext
    from lcc.relevance.transcript import TranscriptCompactionResult
    from lcc.transcript import Transcript

AUTO = "auto"


def compact(
    context: typer.Context,
    transcript: Annotated[
        str,
        typer.Argument(
            metavar="TRANSCRIPT", help="A session file, or an id from lcc sessions; - reads standard input."
        ),
    ],
    question: Annotated[str, typer.Option("-q", "--question", help="What the session is to go on with.")] = "",
    mode: Annotated[str, typer.Option(help="tool-calls; blocks is not there yet.")] = "tool-calls",
    provider: Annotated[
        str | None,
        typer.Option(
            help="jev, laya, auto or rules. auto: Jev, else a Laya that answers, else everything is kept. "
            "Without it: rules when an option of the rules is given, else auto; "
            "with --fork and no rules mode: the recoverable rules."
        ),
    ] = None,
    rules_mode: Annotated[
        str, typer.Option(help="lossless, recoverable, stashed or lossy (experimental).")
    ] = "lossless",
    workspace_root: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Lets the disk decide. Default: the session's own folder, if it exists."),
    ] = None,
    no_disk_check: Annotated[
        bool, typer.Option("--no-disk-check", help="Judge file reads by the transcript alone.")
    ] = False,
    allow_command_pointers: Annotated[
        bool, typer.Option("--allow-command-pointers", help="Also point at read-only commands to run again.")
    ] = False,
    format: Annotated[str, typer.Option(help=f"{', '.join((AUTO, *FORMATS))}.")] = AUTO,
    threshold: Annotated[float, typer.Option(help="Judge: keep from this probability on.")] = 0.5,
    trim_head_chars: Annotated[int, typer.Option(help="Judge: characters that a trimmed result keeps.")] = 300,
    preserve_recent: Annotated[int, typer.Option(help="Newest messages that are never touched.")] = 6,
    max_state_tokens: Annotated[int, typer.Option(help="Judge: budget for the conversation.")] = 25000,
    max_request_tokens: Annotated[int, typer.Option(help="Judge: budget for one request.")] = 30000,
    batch_size: Annotated[int, typer.Option(help="Judge: calls in one request at most.")] = 8,
    max_workers: Annotated[int, typer.Option(help="Judge: requests at once at most.")] = 4,
    min_reduction: Annotated[float, typer.Option(help="The least share removed that is worth it.")] = 0.25,
    model: Annotated[str | None, typer.Option(help="The session's model, for counting tokens.")] = None,
    jev_model: Annotated[str, typer.Option(help="Judge: the model to ask.")] = "jev-latest",
    decisions_cache: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Judge: keep verdicts here, so that a later pass asks only about what is new."
        ),
    ] = None,
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
            help="Write a new session beside this one, for claude --resume; none where nothing could be removed.",
        ),
    ] = False,
    snapshot: Annotated[
        bool, typer.Option("--snapshot", help="Fork a session also while a client is writing to it.")
    ] = False,
) -> None:
    """Remove from a session the tool outputs that can be had back, and say why for every call.

    The compacted session goes to standard output or -o; the summary goes to stderr. How it decides is taken
    from these options alone: config.toml is for the plugin, except for where the stash is.
    """
    transcript = named_session(transcript)
    if mode != "tool-calls":
        what = "is not there yet (blocks of documents)" if mode == "blocks" else "is no mode"
        raise InputError(f"--mode {mode}: {what}; the only mode so far is tool-calls")
    given = _given(context)
    chosen = provider_for(provider, given)
    notes: list[str] = []
    if fork and chooses_nobody(given):
        chosen, rules_mode = "rules", "recoverable"
        notes.append("nobody was named to decide, so: --provider rules --rules-mode recoverable")
    if decisions_cache is not None and chosen == "rules":
        raise InputError(
            "--decisions-cache: refused with --provider rules, which asks no judge whose verdicts it could keep"
        )
    from lcc.contract.request import RequestError, TranscriptCompactionRequest, as_provider, as_rules_mode

    try:
        request = TranscriptCompactionRequest(
            payload=None,
            question=question,
            provider=as_provider(chosen),
            threshold=threshold,
            preserve_recent=preserve_recent,
            trim_head_chars=trim_head_chars,
            max_state_tokens=max_state_tokens,
            max_request_tokens=max_request_tokens,
            batch_calls=batch_size,
            max_workers=max_workers,
            min_reduction=min_reduction,
            model=model,
            jev_model=jev_model,
            decisions_cache=decisions_cache,
            rules_mode=as_rules_mode(rules_mode),
            workspace_root=_folder(workspace_root),
            disk_check=not no_disk_check,
            allow_command_pointers=allow_command_pointers,
        )
    except RequestError as error:
        raise InputError(f"{flag_of(error.option)}: {error.problem}") from None
    notes += [f"{name} has no effect here" for name in without_effect(request.provider, request.rules_mode, given)]
    forked = _open_fork(transcript, format, output, snapshot) if fork else None
    if snapshot and not fork:
        raise InputError("--snapshot: goes with --fork alone")
    target = str(forked.path) if forked else output
    _run(_Asked(transcript, format, target, report, dry_run, forked), request, notes)


class _Asked(NamedTuple):
    """The files of one run, as they were named."""

    source: str
    format: str
    output: str
    report: str | None
    dry_run: bool
    fork: Fork | None = None


def _open_fork(source: str, format: str, output: str, snapshot: bool) -> Fork:
    from lcc.commands.fork import open_fork

    if output != STREAM:
        raise InputError(f"-o {output}: --fork names its file itself, by the new session's id")
    if format in FORMATS and not FORMATS[format].can_fork:
        able = " or ".join(form.what for form in FORMATS.values() if form.can_fork)
        raise InputError(f"--format {format}: only {able} can be forked")
    return open_fork(source, snapshot)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one call of emit made: the bytes are in the files beside their places, or wait for stdout."""

    content: bytes
    report: Report
    report_bytes: bytes


def _given(context: typer.Context) -> list[str]:
    """The options that stand on the command line, as their long names, in the order of the help."""
    return [
        max(parameter.opts, key=len)
        for parameter in context.command.params
        if parameter.name is not None
        and (source := context.get_parameter_source(parameter.name)) is not None
        and source.name == "COMMANDLINE"
    ]


def _folder(name: str | None) -> str | None:
    if name is None:
        return None
    if not os.path.isdir(name):
        raise InputError(f"--workspace-root {name}: there is no such folder")
    return os.path.abspath(name)


def _run(asked: _Asked, request: TranscriptCompactionRequest, notes: list[str]) -> None:
    from lcc.commands.progress import progress
    from lcc.compaction.workspace import with_session_root

    if asked.format != AUTO and asked.format not in FORMATS:
        raise InputError(f"--format {asked.format}: none of {', '.join((AUTO, *FORMATS))}")
    with ExitStack() as stack:
        files = _Files(asked, stack)
        shown = stack.enter_context(progress(f"reading {asked.source}"))
        parsed = _read(asked)
        shown.doing = "deciding and proving"
        request, origin = with_session_root(request, parsed)
        answer = _pass(parsed, request, files, _context(request, parsed, files, origin, shown))
        files.commit()
        shown.stop()
        files.print(answer)
    from lcc.commands.summary import summarise

    summarise(
        sys.stderr,
        asked.source,
        answer.report,
        [*files.said(), *(f"  note: {note}" for note in notes)],
        dry_run=asked.dry_run,
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
        # A transcript on a terminal helps nobody, so a run without -o there shows what would be done.
        self.to_terminal = asked.output == STREAM and sys.stdout.isatty()

    def _open(self, name: str | None, option: str, stack: ExitStack) -> OutputFile | None:
        if name is None or name == STREAM:
            return None
        file = stack.enter_context(OutputFile(name, option))
        if self.asked.source != STREAM and file.same_as(self.asked.source):
            raise InputError(f"{option} {name}: that is the session itself, which is never written to")
        return file

    def write(self, content: bytes, report: bytes) -> None:
        """Writes both beside their places."""
        if self.asked.dry_run:
            return
        if self.output and not self.nothing_to_fork:
            self.output.write(content)
        if self.report:
            self.report.write(report)

    def commit(self) -> None:
        """The report first: a compacted session never stands without it."""
        if self.asked.dry_run:
            return
        if self.report:
            self.report.commit()
        if self.output and not self.nothing_to_fork:
            self.output.commit()

    def print(self, answer: _Answer) -> None:
        """What goes to standard output: the session or the report, never both."""
        if self.asked.report == STREAM:
            sys.stdout.buffer.write(answer.report_bytes)
        elif self.asked.output == STREAM and not self.asked.dry_run and not self.to_terminal:
            sys.stdout.buffer.write(answer.content)
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
        return read_transcript(raw, format=named, name=asked.source)
    except TranscriptError as error:
        said = error.problem if error.place in ("", asked.source) else str(error)
        if "cut off" in error.problem:
            said += "; if a client is writing to it, try again, else take the torn end off a copy of it"
        raise InputError(f"{asked.source}: {said}") from None


def _context(
    request: TranscriptCompactionRequest,
    transcript: Transcript,
    files: _Files,
    origin: RootSource | None,
    shown: Progress,
) -> PassContext:
    from lcc.relevance.context import PassContext

    stash = None
    if request.rules_mode == "stashed":
        from lcc.stash import UNNAMED_SESSION, Stash, StashFolderError, stash_folder

        try:
            folder = stash_folder()
        except StashFolderError as error:
            raise InputError(str(error)) from None
        source = str(files.output.path) if files.output else None
        fork = files.asked.fork
        session = fork.session_id if fork else transcript.session_id or UNNAMED_SESSION
        stash = Stash(folder, session, source)
    from lcc.tokens import TokenEstimator

    return PassContext(
        TokenEstimator(model=request.model),
        stash=stash,
        dry_run=files.asked.dry_run,
        workspace_root_source=origin,
        progress=shown.counted,
    )


def _pass(transcript: Transcript, request: TranscriptCompactionRequest, files: _Files, context: PassContext) -> _Answer:
    import orjson

    from lcc.compaction.images import note_images, stash_images
    from lcc.relevance.transcript import run_pass
    from lcc.transcript import render

    def emit(result: TranscriptCompactionResult) -> _Answer:
        fork, dry = files.asked.fork, files.asked.dry_run
        content, changed = render(result.transcript, result.edits), set(result.edits.texts)
        if request.rules_mode == "stashed" and context.stash is not None:
            images = stash_images(content, None if dry else context.stash, request.preserve_recent)
            content, changed = images.content, changed | images.calls
            note_images(result.report, images)
        files.nothing_to_fork = fork is not None and not changed
        if fork and changed:
            content = fork.content(content, changed, result.transcript, dry_run=dry)
        written = orjson.dumps(result.report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        files.write(content, written)
        return _Answer(content, result.report, written)

    try:
        return run_pass(transcript, request, emit, context)
    except _refusals(request) as error:
        raise InputError(f"{files.asked.source}: {error}") from None


def _refusals(request: TranscriptCompactionRequest) -> tuple[type[ValueError], ...]:
    """The errors of a pass that mean bad input. A pass without a judge has none, and never loads the judge."""
    if request.provider == "rules":
        return ()
    from lcc.judge.errors import DecisionsCacheError, TranscriptFitError

    return (DecisionsCacheError, TranscriptFitError)
