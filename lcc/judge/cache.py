"""Sticky decisions: a file of verdicts, so that a later pass over a grown session asks only about what is new.

Who else writes the file: any other pass, in any process. Writers take turns under a lock on the folder, read
the file again, and put a complete new file in its place; a reader sees the old one or the new one, never a
half. A line that cannot be read is left out and asked about again. The file holds hashes and probabilities,
no text of a session. A file that is something else is never written to.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import orjson

from lcc.contract.decision import Verdict
from lcc.contract.modes import JudgeName
from lcc.judge.errors import DecisionsCacheError
from lcc.judge.wire import dumps
from lcc.private_files import Beside, NotRegularError, TooLargeError, locked, read_bounded
from lcc.transcript import Json, Pair

HEADER = b'{"lcc_decisions_cache":1}'
MAX_BYTES = 64 * 1024 * 1024
MAX_ENTRIES = 200_000
"""More than this and the oldest entries are left out when the file is written."""
LOCK_SECONDS = 5.0
_WAY_OUT = "name another file, or leave the option out"


def decision_key(provider: JudgeName, model: str, goal: str, pair: Pair, text: str | None = None) -> str:
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
            # On the folder itself, so that no lock file stays behind.
            with locked(self.path.parent, "the lock of its folder", seconds=LOCK_SECONDS, is_folder=True):
                merged, _ = _parse(self.path, _read(self.path))
                merged.update(self._new)
                entries = list(merged.items())[-MAX_ENTRIES:]
                with Beside(self.path) as file:
                    file.write(b"\n".join([HEADER, *(_line(key, verdict) for key, verdict in entries), b""]))
                    file.commit()
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
        return read_bounded(file, MAX_BYTES, follow=False)
    except FileNotFoundError:
        return b""
    except TooLargeError as error:
        raise DecisionsCacheError(str(file), f"it is larger than 64 MiB; {_WAY_OUT}") from error
    except NotRegularError as error:
        raise DecisionsCacheError(str(file), f"it is {error.kind}, not a regular file; {_WAY_OUT}") from error
    except OSError as error:
        raise DecisionsCacheError(str(file), f"it cannot be opened ({error.strerror}); {_WAY_OUT}") from error


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
