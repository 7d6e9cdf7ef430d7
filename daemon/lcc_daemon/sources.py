"""Whether a session's plugin has the sources that this daemon runs from: a build is a version, and sources may change
without one (a checkout that was pulled, a marketplace that names no new version)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lcc.private_files import read_bounded

PACKAGES = ("lcc", "daemon/lcc_daemon", "hook/lcc_hook")
MOST_FILES = 2000
MOST_BYTES = 2 * 1024 * 1024
OWN = Path(__file__).resolve().parents[2]


class NotPluginError(Exception):
    """A folder without the plugin's sources."""


def are_others(plugin: str, own: Path = OWN) -> bool:
    """Whether the plugin in the folder ``plugin`` has other sources than the plugin ``own`` that this daemon is of.

    False where this daemon is of no plugin (some Python's packages), or the folder holds none.
    """
    if not plugin.startswith("/") or os.path.realpath(plugin) == str(own):
        return False
    try:
        return digest(own) != digest(Path(plugin))
    except (NotPluginError, OSError):
        return False


def digest(plugin: Path) -> str:
    """A sha256 of all sources in a plugin's folder. Raises NotPluginError, ``OSError``."""
    if not (plugin / "hook" / "bin" / "from_sources.py").is_file():
        raise NotPluginError
    found = hashlib.sha256()
    files = sorted(path for package in PACKAGES for path in (plugin / package).rglob("*.py"))
    if len(files) > MOST_FILES:
        raise NotPluginError
    for path in files:
        content = read_bounded(path, MOST_BYTES)
        found.update(b"%b %d\0" % (os.fsencode(path.relative_to(plugin)), len(content)))
        found.update(content)
    return found.hexdigest()
