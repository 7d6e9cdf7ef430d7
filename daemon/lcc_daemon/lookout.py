"""What the daemon looks at on the disk now and then, in a thread of its own: a disk that hangs holds up nobody.

Whatever goes wrong with one look, the next one comes.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lcc.config import Config, ConfigError, load_config
from lcc_daemon.lifecycle import Instance
from lcc_daemon.logs import failure_of

LOOK_SECONDS = 2.0


class Lookout:
    """Is the place still ours, is the program on disk still this one, how long may the daemon be idle?"""

    def __init__(
        self, instance: Instance, env: Mapping[str, str], tidy: Callable[[], None], log: logging.Logger
    ) -> None:
        self._instance = instance
        self._env = env
        self._tidy = tidy
        self._log = log
        self._last_failure = ""
        self._program: float | None = None
        self.reason_to_stop: str | None = None
        self.idle_limit = Config().idle_minutes * 60
        """Seconds; 0: no limit."""
        self._thread = threading.Thread(target=self._look_for_ever, name="lcc-lookout", daemon=True)
        self._ended = threading.Event()

    def begin(self) -> None:
        self.look()
        self._thread.start()

    def end(self) -> None:
        """The place is about to be given up: what becomes of it is nothing to look at."""
        self._ended.set()

    @property
    def interval(self) -> float:
        """Seconds between two looks: a short limit must not be overrun by much."""
        return min(LOOK_SECONDS, self.idle_limit / 4 or LOOK_SECONDS)

    def look(self) -> None:
        """One look. Raises nothing."""
        for part in (self._look_at_place, self._look_at_program, self._look_at_limit, self._tidy):
            try:
                part()
            except Exception as error:
                failure = failure_of(error)
                if failure != self._last_failure:  # one line, and not one every two seconds
                    self._log.warning("looking after ourselves: %s", failure)
                self._last_failure = failure

    def _look_for_ever(self) -> None:
        while not self._ended.wait(self.interval):
            self.look()

    def _look_at_place(self) -> None:
        self.reason_to_stop = self.reason_to_stop or self._instance.why_lost()

    def _look_at_program(self) -> None:
        found = newest_source()
        if self._program is None:
            self._program = found
        elif found != self._program:
            self.reason_to_stop = self.reason_to_stop or "the program on disk is another one now"

    def _look_at_limit(self) -> None:
        try:
            config = load_config(self._env)
        except ConfigError:
            config = Config()
        self.idle_limit = config.idle_minutes * 60


def newest_source() -> float:
    """When a file of the program was last written, 0 where there is none any more: after an upgrade in place, or its
    removal, the daemon must not go on. Raises OSError where that cannot be told."""
    import lcc
    import lcc_hook

    newest = 0.0
    for package in (lcc.__file__, lcc_hook.__file__, __file__):
        for file in _sources(str(Path(package or "").parent)):
            try:
                newest = max(newest, os.stat(file).st_mtime)
            except FileNotFoundError:
                continue
    return newest


def _sources(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return
    for path, is_folder in found:
        if is_folder:
            yield from _sources(path)
        elif path.endswith(".py"):
            yield path
