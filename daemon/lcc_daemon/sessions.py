"""The sessions that are followed: their files are read as they grow, so that a compaction parses only what is new.

Claude Code appends to these files at any moment; they are opened read-only, always.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from lcc.private_files import NotRegularError, open_regular, read_all
from lcc.transcript import SessionReader, Transcript, TranscriptError, read_transcript
from lcc_daemon.logs import failure_of

MOST_FOLLOWED = 16
FILE_LIMIT = 512 * 1024 * 1024
FOLLOW_LIMIT = 64 * 1024 * 1024
"""Bytes of a session file; a larger one is read only when it is needed, and not kept in memory."""
TOTAL_LIMIT = 256 * 1024 * 1024
"""Bytes of all followed files together; beyond it, those that changed longest ago are let go."""
LIVE_SECONDS = 2 * 3600.0
"""A session counts as live for so long after its file last changed."""
CHECKED_TAIL = 4096
ANNOUNCE_BYTES = 64 * 1024
"""A transcript is passed on once it has grown by a tenth and this much: the cost stays linear in the session."""
RECHECK_SECONDS = 60.0
READ_SECONDS = 10.0


class SessionFileError(Exception):
    """A session file that cannot be read; the text names it."""


@dataclass(eq=False)
class Followed:
    """One followed file: what has been fed of it, and how its end looked then."""

    path: Path
    reader: SessionReader = field(default_factory=SessionReader)
    fed: int = 0
    tail: bytes = b""
    identity: tuple[int, int] = (0, 0)
    changed: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    announced: int = 0
    """How much had been fed when the whole transcript was last passed on."""
    has_folder: bool = False
    """Whether the file's folder was there when it was last looked for."""

    def catch_up(self) -> None:
        """Feed what was appended; a file that was replaced, cut or rewritten is read from its start again.

        Raises SessionFileError, TranscriptError.
        """
        with self.lock, open_session(self.path) as file:
            found = os.fstat(file.fileno())
            identity = (found.st_dev, found.st_ino)
            if identity != self.identity or found.st_size < self.fed or not self._tail_stands(file.fileno()):
                self.reader, self.fed, self.tail, self.identity = SessionReader(), 0, b"", identity
            if found.st_size == self.fed:
                return
            if found.st_size > FOLLOW_LIMIT:
                raise SessionFileError(f"{self.path} is too large to be followed")
            new = os.pread(file.fileno(), found.st_size - self.fed, self.fed)
            try:
                self.reader.feed(new)
            except TranscriptError:
                self.reader, self.fed, self.tail, self.identity = SessionReader(), 0, b"", (0, 0)
                raise
            self.fed += len(new)
            self.tail = (self.tail + new)[-CHECKED_TAIL:]
            self.changed = time.monotonic()

    def _tail_stands(self, fd: int) -> bool:
        return os.pread(fd, len(self.tail), self.fed - len(self.tail)) == self.tail


def open_session(path: Path) -> BinaryIO:
    """A session file, read-only. Raises SessionFileError for what is no regular file of a bearable size."""
    unbearable = f"{path}: no regular file of at most {FILE_LIMIT} bytes"
    try:
        file = open(open_regular(path), "rb")  # noqa: SIM115 - the caller's
    except NotRegularError:
        raise SessionFileError(unbearable) from None
    except OSError as error:
        raise SessionFileError(f"{path}: {error.strerror}") from None
    if os.fstat(file.fileno()).st_size > FILE_LIMIT:
        file.close()
        raise SessionFileError(unbearable)
    return file


class Sessions:
    """Which sessions are followed, by session id. Methods may be called from any thread."""

    def __init__(self, log: logging.Logger, caught_up: Callable[[str, Transcript], None] | None = None) -> None:
        self._log = log
        self._caught_up = caught_up
        self._followed: dict[str, Followed] = {}
        self._guard = threading.Lock()
        self._changed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading: dict[str, asyncio.Task[None]] = {}

    def follow(self, session_id: str, path: Path) -> None:
        """Follow a session; beyond a number of them, the one that changed longest ago is let go."""
        if not path.is_absolute() or path.suffix != ".jsonl":
            return
        with self._guard:
            known = self._followed.pop(session_id, None)
            self._followed[session_id] = known if known is not None and known.path == path else Followed(path)
            self._let_go()
        self._wake()

    def _let_go(self) -> None:
        """Keep to the limits. The caller holds the guard."""
        while self._followed and (
            len(self._followed) > MOST_FOLLOWED or sum(each.fed for each in self._followed.values()) > TOTAL_LIMIT
        ):
            del self._followed[min(self._followed, key=lambda key: self._followed[key].changed)]

    def unfollow(self, session_id: str) -> None:
        with self._guard:
            self._followed.pop(session_id, None)
        self._wake()

    def transcript(self, session_id: str, path: Path) -> Transcript:
        """The session as its file has it now. Raises SessionFileError, TranscriptError."""
        with self._guard:
            followed = self._followed.get(session_id)
        if followed is not None and followed.path == path:
            try:
                followed.catch_up()
                with followed.lock:
                    return followed.reader.transcript()
            except SessionFileError:
                self.unfollow(session_id)
        with open_session(path) as file:
            try:
                raw = read_all(file.fileno(), FILE_LIMIT)
            except OSError as error:
                raise SessionFileError(f"{path}: {error.strerror}") from None
        return read_transcript(raw[: raw.rfind(b"\n") + 1] or raw, name=path.name)

    def listing(self) -> list[dict[str, object]]:
        """For `status`: each session's id, how much of it has been read, and how long ago it changed."""
        now = time.monotonic()
        with self._guard:
            return [
                {"session": key, "bytes": each.fed, "idle_s": round(now - each.changed)}
                for key, each in self._followed.items()
            ]

    def is_any_live(self) -> bool:
        """Whether a followed session's file changed lately."""
        now = time.monotonic()
        with self._guard:
            return any(now - each.changed < LIVE_SECONDS for each in self._followed.values())

    def _wake(self) -> None:
        if self._loop is not None and self._changed is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._changed.set)

    async def watch(self) -> None:
        """Keep the followed sessions' state warm until cancelled."""
        if find_spec("watchfiles") is None:  # before the plugin's environment is there: a file is read when asked for
            return
        self._loop, self._changed = asyncio.get_running_loop(), asyncio.Event()
        while True:
            self._changed.clear()
            try:
                await self._watch_until_changed(self._changed)
            except Exception as error:  # a folder went away, or the system gives no more watches
                self._log.warning("watching failed: %s", failure_of(error))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), RECHECK_SECONDS)

    async def _watch_until_changed(self, changed: asyncio.Event) -> None:
        """Read ahead what is followed, until something else is followed."""
        from watchfiles import awatch

        with self._guard:
            wanted = {str(each.path): key for key, each in self._followed.items()}
        await self._read(wanted.values())
        with self._guard:
            folders = sorted({str(each.path.parent) for each in self._followed.values() if each.has_folder})
        if not folders:  # a session's folder comes with its first prompt
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), RECHECK_SECONDS if wanted else None)
            return
        async for batch in awatch(
            *folders, recursive=False, stop_event=changed, watch_filter=None, step=200, debounce=2000
        ):
            await self._read({wanted[path] for _, path in batch if path in wanted})

    async def _read(self, keys: Iterable[str]) -> None:
        """Have sessions read ahead, each in a thread of its own; one on a disk that hangs is not waited for."""
        for key in keys:
            if key not in self._reading:
                self._reading[key] = task = asyncio.create_task(_in_thread(self.read_ahead, key))
                task.add_done_callback(lambda task, key=key: self._reading.pop(key))  # type: ignore[misc]
        if self._reading:
            await asyncio.wait(self._reading.values(), timeout=READ_SECONDS)

    def read_ahead(self, session_id: str) -> None:
        """Parse what was appended, before anybody asks. A file that cannot be read is let go."""
        with self._guard:
            followed = self._followed.get(session_id)
        if followed is None:
            return
        try:
            followed.has_folder = followed.path.parent.is_dir()
            if not followed.path.exists():  # a session's file comes with its first prompt
                return
            followed.catch_up()
            with self._guard:
                self._let_go()
            if self._caught_up is not None and followed.fed > 1.1 * followed.announced + ANNOUNCE_BYTES:
                followed.announced = followed.fed
                with followed.lock:
                    transcript = followed.reader.transcript()
                self._caught_up(session_id, transcript)
        except Exception as error:
            self._log.warning("a session is not followed any more: %s", failure_of(error))
            self.unfollow(session_id)


async def _in_thread(job: Callable[[str], None], key: str) -> None:
    """Run ``job`` in a thread that nothing waits for at the end. It must raise nothing."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        job(key)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="lcc-read", daemon=True).start()
    await done.wait()
