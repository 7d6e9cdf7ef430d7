"""What the user wishes for one session alone (`/lcc:lcc keep`, `/lcc:lcc off`): it outlives the daemon and a resume."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from lcc.config import Config, load_config, state_folder
from lcc.private_files import read_bounded, remove_own, write_private
from lcc.transcript import Json
from lcc_daemon.keepers import SESSIONS_KEPT, file_name

MOST_KEPT = 200
LONGEST_PATH = 4096
_FILE = re.compile(r"[A-Za-z0-9_-]{1,80}\.(?:json|now)")
_BYTES = MOST_KEPT * LONGEST_PATH * 8


class WishError(Exception):
    """A wish that cannot be kept; the text says why."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """``keep`` are globs, as in `protect_paths`."""

    off: bool = False
    keep: tuple[str, ...] = ()

    def on(self, config: Config) -> Config:
        """The configuration as this session has it."""
        if not self.off and not self.keep:
            return config
        paths = tuple(dict.fromkeys((*config.protect_paths, *self.keep)))
        return replace(config, enabled=config.enabled and not self.off, protect_paths=paths)


def session_config(env: Mapping[str, str], options: Mapping[str, Json], session_id: str) -> Config:
    """The configuration as one session has it. Raises ConfigError."""
    return read_wishes(state_folder(env), session_id).on(load_config(env, options))


def read_wishes(state: Path, session_id: str) -> Wishes:
    """A session's wishes; none where none are kept. ``state`` is the state folder of the asking session."""
    try:
        found = orjson.loads(read_bounded(_path(state, session_id), _BYTES, follow=False))
    except (OSError, ValueError, WishError):
        return Wishes()
    if not isinstance(found, dict):
        return Wishes()
    keep = found.get("keep")
    paths = [path for path in keep if isinstance(path, str)] if isinstance(keep, list) else []
    return Wishes(found.get("off") is True, tuple(paths[:MOST_KEPT]))


def write_wishes(state: Path, session_id: str, wishes: Wishes) -> None:
    """Keep a session's wishes. Raises WishError where they are too many, or cannot be written."""
    if len(wishes.keep) > MOST_KEPT or any(len(path) > LONGEST_PATH for path in wishes.keep):
        raise WishError(f"{MOST_KEPT} paths of {LONGEST_PATH} characters at most can be kept in a session")
    path = _path(state, session_id)
    try:
        write_private(path, orjson.dumps({"off": wishes.off, "keep": list(wishes.keep)}))
        remove_own(path.parent, _FILE, keep=2 * SESSIONS_KEPT)
    except OSError as error:
        raise WishError(f"{path} cannot be written: {error.strerror}") from None


def now_file(state: Path, session_id: str) -> Path:
    """Where `/lcc:lcc now` leaves word for the session's module, which looks at it while the session rests."""
    return _path(state, session_id).with_suffix(".now")


def wish_now(state: Path, session_id: str) -> None:
    """Ask the session's module for a compaction. Raises WishError where that cannot be written."""
    path = now_file(state, session_id)
    try:
        write_private(path, b"%d\n" % (1000 * time.time()), durable=False)
        remove_own(path.parent, _FILE, keep=2 * SESSIONS_KEPT)
    except OSError as error:
        raise WishError(f"{path} cannot be written: {error.strerror}") from None


def _path(state: Path, session_id: str) -> Path:
    name = file_name(session_id, "")
    if not name:
        raise WishError("the session has no id that can be a file's name")
    return state / "wishes" / f"{name}.json"
