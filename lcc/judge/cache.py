"""Sticky decisions: a file of verdicts, so that a later pass over a grown session asks only about what is new.

Who else writes the file: any other pass, in any process. Writers take turns under a lock on the folder, read
the file again, and put a complete new file in its place; a reader sees the old one or the new one, never a
half. A line that cannot be read is left out and asked about again. The file holds hashes and probabilities,
no text of a session. A file that is something else is never written to.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson

from lcc.contract.decision import Verdict
from lcc.judge.errors import DecisionsCacheError
from lcc.judge.wire import dumps
from lcc.transcript import Json, Pair

HEADER = b'{"lcc_decisions_cache":1}'
MAX_BYTES = 64 * 1024 * 1024
MAX_ENTRIES = 200_000
"""More than this and the oldest entries are left out when the file is written."""
LOCK_SECONDS = 5.0
_WAY_OUT = "name another file, or leave the option out"


def decision_key(provider: str, model: str, goal: str, pair: Pair, text: str | None = None) -> str:
    """What a verdict holds for: the judge, the goal, the call with its id and input, and the exact result.

    The id is part of it because two calls may be alike in all else and still be judged differently.

    ``text`` takes the place of the result's text: what the result will be after this pass.
    """
    digest = hashlib.sha256()
    result = pair.result.text if text is None else text
    head: list[Json] = [
        1,
        provider,
        model,
        goal,
        pair.use.id,
        pair.use.tool,
        dumps(pair.use.input),
        pair.result.is_error,
    ]
    digest.update(dumps(head).encode())
    digest.update(b"\0")
    digest.update(result.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class DecisionCache:
    """The verdicts of one file. Open it, `get`, `put`, and `save` once at the end; not for several threads."""

    def __init__(self, path: Path, known: Mapping[str, Verdict], warnings: tuple[str, ...], read_only: bool) -> None:
        self.path = path
        self.warnings = warnings
        """What was wrong with the file and did not matter."""
        self._known = dict(known)
        self._new: dict[str, Verdict] = {}
        self._read_only = read_only

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False) -> DecisionCache:
        """Read ``path``; a missing file is an empty cache. With ``read_only``, `save` writes nothing (a dry run).

        Raises ``DecisionsCacheError`` when the file cannot be used: its folder is missing or may not be
        written to, it is a link or no regular file, it is larger than 64 MiB, or it is some other file.
        """
        file = Path(os.path.abspath(path))
        _check_folder(file, read_only)
        known, damaged = _parse(file, _read(file))
        text = f"decisions_cache_damaged:{damaged} lines of {file} could not be read and are asked about again"
        return cls(file, known, (text,) if damaged else (), read_only)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> Verdict | None:
        """The verdict under ``key`` (see `decision_key`), or None."""
        return self._known.get(key)

    def put(self, key: str, verdict: Verdict) -> None:
        """Remember a verdict; it is in the file after `save`."""
        if self._known.get(key) != verdict:
            self._known[key] = self._new[key] = verdict

    def save(self) -> tuple[str, ...]:
        """Write what is new. Returns a warning where that was not possible; the pass itself is not harmed."""
        if self._read_only or not self._new:
            return ()
        try:
            with _locked(self.path.parent):
                merged, _ = _parse(self.path, _read(self.path))
                merged.update(self._new)
                entries = list(merged.items())[-MAX_ENTRIES:]
                _replace(self.path, b"\n".join([HEADER, *(_line(key, verdict) for key, verdict in entries), b""]))
        except (OSError, DecisionsCacheError) as error:
            reason = error.strerror if isinstance(error, OSError) else error.problem
            return (f"decisions_cache_not_written:{self.path}: {reason}",)
        self._new.clear()
        return ()


def _check_folder(file: Path, read_only: bool) -> None:
    if not file.parent.is_dir():
        raise DecisionsCacheError(str(file), f"its folder does not exist; {_WAY_OUT}")
    if not read_only and not os.access(file.parent, os.W_OK | os.X_OK):
        raise DecisionsCacheError(str(file), f"its folder may not be written to; {_WAY_OUT}")


def _read(file: Path) -> bytes:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise DecisionsCacheError(str(file), f"it cannot be opened ({error.strerror}); {_WAY_OUT}") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
        os.close(descriptor)
        fault = "is larger than 64 MiB" if stat.S_ISREG(found.st_mode) else "is not a regular file"
        raise DecisionsCacheError(str(file), f"it {fault}; {_WAY_OUT}")
    with os.fdopen(descriptor, "rb") as opened:
        return opened.read(MAX_BYTES)


def _parse(file: Path, data: bytes) -> tuple[dict[str, Verdict], int]:
    """The verdicts in ``data`` and the number of lines that hold none."""
    if not data:
        return {}, 0
    lines = data.split(b"\n")
    if lines[0] != HEADER:
        raise DecisionsCacheError(str(file), f"it is some other file and is left as it is; {_WAY_OUT}")
    known: dict[str, Verdict] = {}
    damaged = 0
    for line in lines[1:]:
        if not line:
            continue
        try:
            key, keep_call, keep_result = orjson.loads(line)
        except (ValueError, TypeError):
            damaged += 1
            continue
        numbers = all(isinstance(n, int | float) and 0.0 <= n <= 1.0 for n in (keep_call, keep_result))
        if isinstance(key, str) and len(key) == 64 and numbers:
            known[key] = Verdict(float(keep_call), float(keep_result))
        else:
            damaged += 1
    return known, damaged


def _line(key: str, verdict: Verdict) -> bytes:
    return orjson.dumps([key, verdict.keep_call, verdict.keep_result])


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The lock of all writers in ``folder``: on the folder itself, so that no lock file stays behind."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _replace(file: Path, data: bytes) -> None:
    """Write ``data`` beside ``file`` (mode 0600), make it durable, and rename it over ``file``."""
    descriptor, beside = tempfile.mkstemp(prefix=f".{file.name[:100]}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(beside, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
