"""Whose disk decides: the workspace that a pass over a session file uses when none was named."""

from __future__ import annotations

import os
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
    cwd = transcript.cwd
    if not options.disk_check or cwd is None or not os.path.isabs(cwd) or not _is_folder(cwd):
        return options, None
    return replace(options, workspace_root=cwd), "session"


def _is_folder(path: str) -> bool:
    try:
        return os.path.isdir(path)
    except ValueError:  # a NUL
        return False
