"""The one way to run a pass over a session: the command line, MCP, the daemon, watching and listing all go through it.

Options are values, ports are what touches the world; a caller reads its input, calls `compact`, and shows or
keeps what it returned. So whoever asks, one session with the same options gives the same bytes, decisions and report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lcc.compaction.images import Images, note_images, stash_images
from lcc.compaction.workspace import with_session_root
from lcc.contract.modes import MODES
from lcc.contract.options import PassOptions
from lcc.contract.report import Report
from lcc.judge.errors import DecisionsCacheError, TranscriptFitError
from lcc.relevance.ladder import on_rung
from lcc.relevance.ports import Ports
from lcc.relevance.transcript import TranscriptCompactionResult, run_pass
from lcc.transcript import Edits, Transcript, render
from lcc.transcript.edit import changed_calls


class CompactionError(ValueError):
    """A pass that cannot be run as it was asked for. ``reason`` is a machine word, the text is for a person."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a pass made of a session. Nothing of it is written anywhere but in the stash, where a mode uses that."""

    result: TranscriptCompactionResult
    content: bytes | None
    """The compacted session's bytes; None where they were not asked for."""
    changed: frozenset[str]
    """The calls whose results are other than before, or gone; with ``content`` those of its images too."""

    @property
    def report(self) -> Report:
        """The pass's report."""
        return self.result.report

    @property
    def edits(self) -> Edits:
        """What the pass changes in the session."""
        return self.result.edits


def compact(
    transcript: Transcript,
    options: PassOptions,
    ports: Ports | None = None,
    *,
    rendered: bool = True,
    stage: Callable[[Compacted], None] | None = None,
) -> Compacted:
    """One pass over ``transcript``.

    The workspace is the session's own folder where the options name none; the stash is opened where the mode needs
    one, and old images go into it where the answer has bytes (``rendered``: the transcript was read from bytes).

    ``stage`` makes ready what will be handed over, such as files beside their places. After it, every file that the
    answer calls verified is hashed for the last time; when one has changed, its results are kept and ``stage`` is
    called again with the new answer. So it keeps nothing that the next call does not replace, and what it made ready
    counts when `compact` has returned.

    Raises ``CompactionError``: ``judge-budget`` for a conversation that cannot be shown to a judge,
    ``decisions-cache`` for a file of verdicts that cannot be used; and ``StashFolderError`` where a stash is needed
    and the configuration that names its place cannot be read.
    """
    ports = ports or Ports()
    options, root_source = with_session_root(options, transcript)
    try:
        images: Images | None = None

        def emit(result: TranscriptCompactionResult) -> Compacted:
            nonlocal images
            if rendered and images is None:
                images = _stashed_images(result, options, ports)
            answer = _answer(result, images, rendered)
            if stage is not None:
                stage(answer)
            return answer

        return run_pass(transcript, options, emit, ports, root_source)
    except TranscriptFitError as error:
        raise CompactionError("judge-budget", str(error)) from None
    except DecisionsCacheError as error:
        raise CompactionError("decisions-cache", str(error)) from None


def _stashed_images(result: TranscriptCompactionResult, options: PassOptions, ports: Ports) -> Images | None:
    """The session's old images in the stash, before any note is written; None where the mode has no stash."""
    if not MODES[on_rung(options, ports).rules_mode].stashes:
        return None
    stash = ports.open_stash(result.transcript.session_id)
    return stash_images(result.transcript, None if ports.dry_run else stash, result.kept_images)


def _answer(result: TranscriptCompactionResult, images: Images | None, rendered: bool) -> Compacted:
    changed = changed_calls(result.transcript, result.edits)
    if not rendered:
        return Compacted(result, None, changed)
    content = render(result.transcript, result.edits)
    if images is None:
        return Compacted(result, content, changed)
    note_images(result.report, images)
    return Compacted(result, images.noted(content), changed | images.calls)
