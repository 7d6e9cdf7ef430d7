"""The reports that the daemon keeps of live sessions' passes, whatever became of each: found by project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lcc.client_folders import folders_of
from lcc.config import reports_folder, state_folder
from lcc.sessions.listing import session_files

_REPORT = re.compile(r"(\d{8}T\d{6}-\d{6})-(.+)\.json")


def newest_report(project: Path, env: Mapping[str, str]) -> Path | None:
    """The newest report of a session of ``project``; None where there is none. Raises ``OSError``."""
    sessions = {path.stem for path in session_files(folders_of(project, env))}
    try:
        reports = list(reports_folder(state_folder(env)).iterdir())
    except FileNotFoundError:
        return None
    found = [(match[1], path) for path in reports if (match := _REPORT.fullmatch(path.name)) and match[2] in sessions]
    return max(found)[1] if found else None
