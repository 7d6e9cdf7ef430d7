"""Whose disk decides: the workspace that a pass over a session file uses when none was named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from lcc.contract.modes import MODES

if TYPE_CHECKING:
    from lcc.contract.options import PassOptions
    from lcc.contract.report import RootSource
    from lcc.transcript import Transcript


def with_session_root(options: PassOptions, transcript: Transcript) -> tuple[PassOptions, RootSource | None]:
    """The options with the session's own folder as its workspace where none was named, and where it came from.

    The folder must exist on this machine; where the disk is not to be asked, nothing is added.
    """
    if not MODES[options.rules_mode].reads_files:
        return options, None
    if options.workspace_root is not None:
        return options, "option"
    if not options.disk_check:
        return options, None
    for cwd in _folders_of(transcript):
        if os.path.isabs(cwd) and _is_folder(cwd):
            return replace(options, workspace_root=cwd), "session"
    return options, None


def _folders_of(transcript: Transcript) -> Iterator[str]:
    """The session's folder; where that is gone, as a worktree is at its end, the folders that it was in before."""
    if transcript.cwd is None:
        return
    yield transcript.cwd
    yield from dict.fromkeys(
        use.cwd for message in reversed(transcript.messages) for use in reversed(message.tool_uses) if use.cwd
    )
    above, worktrees, _ = transcript.cwd.partition("/.claude/worktrees/")
    if worktrees:
        yield above


def _is_folder(path: str) -> bool:
    try:
        return os.path.isdir(path)
    except ValueError:  # a NUL
        return False
