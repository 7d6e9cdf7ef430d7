"""Which objects the notes of each session name: one append-only file per session, below ``refs``.

Written before a note is emitted, under the shared lock, and flushed. A line that was cut off by a crash is
ignored: every append starts on a new line, so it never spoils the next one. gc alone rewrites or removes
such a file, under the exclusive lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lcc.private_files import Beside, open_regular, read_all, sync, sync_folder, write_all
from lcc.stash.objects import is_whole_id

_FILE_NAME = re.compile(r"[0-9a-f]{32}")
"""What has another name is not ours."""
_MOST_BYTES = 256 * 1024 * 1024
_LOOKED_AT_BYTES = 4 * 1024 * 1024
UNNAMED_SESSION = "unnamed"
"""The session of passes over a transcript that has no id of its own."""


@dataclass(frozen=True, slots=True)
class References:
    """What one file says: its session, the files that hold the session's notes, and when each object was named."""

    session: str
    sources: tuple[str, ...]
    named: dict[str, float] = field(repr=False)
    """Full sha256 → the last time (seconds since the epoch) that a note was about to name it."""
    packs: dict[str, str] = field(repr=False)
    """Full sha256 → the name of the pack that held it then."""
    file: Path
    signature: tuple[int, int]
    """Size and modification time in ns: whether the file has been written to since."""
    lines: int = 0


def references_path(folder: Path, session: str) -> Path:
    """The session's file. Its name is a hash, since an id from a transcript can hold anything."""
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
    return folder / "refs" / digest[:32]


def append_references(folder: Path, session: str, source: str | None, shas: Mapping[str, str], now: float) -> None:
    """Record durably that ``session``'s notes are about to name ``shas`` (sha256 → name of its pack).

    The ``refs`` folder must exist. Raises ``OSError``.
    """
    path = references_path(folder, session)
    header = json.dumps({"session": session, "source": source})
    lines = [header, *(f"{sha} {now:.0f} {pack}" for sha, pack in shas.items())]
    content = ("\n" + "\n".join(lines) + "\n").encode("ascii")
    is_new = not path.exists()
    descriptor = open_regular(path, flags=os.O_WRONLY | os.O_APPEND | os.O_CREAT, follow=False)
    try:
        write_all(descriptor, content)
        sync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        sync_folder(path.parent)


def read_references(path: Path) -> References:
    """What ``path`` says. Lines that are not whole are ignored. Raises ``OSError``."""
    descriptor = open_regular(path, follow=False)
    try:
        found = os.fstat(descriptor)
        content = read_all(descriptor, _MOST_BYTES, found.st_size)
    finally:
        os.close(descriptor)
    session, sources, lines = "", dict[str, None](), 0
    named, packs = dict[str, float](), dict[str, str]()
    for line in content.decode("ascii", "replace").split("\n"):
        if line.startswith("{"):
            session, source = _header(line) or (session, None)
            if source:
                sources[source] = None
            continue
        sha, _, rest = line.partition(" ")
        at, _, pack = rest.partition(" ")
        if is_whole_id(sha) and at.isdigit() and pack:
            lines += 1
            named[sha] = max(named.get(sha, 0.0), float(at))
            packs[sha] = pack
    signature = (found.st_size, found.st_mtime_ns)
    return References(session, tuple(sources), named, packs, path, signature, lines)


def named_before(folder: Path, session: str) -> dict[str, str]:
    """What ``session`` has named before, and the pack of each; nothing when its file is too long to be read."""
    path = references_path(folder, session)
    try:
        if path.stat().st_size > _LOOKED_AT_BYTES:
            return {}
        return read_references(path).packs
    except FileNotFoundError:
        return {}


def all_references(folder: Path) -> Iterator[References]:
    """Every session's references. A file that vanishes meanwhile is passed over. Raises ``OSError``."""
    for path in reference_files(folder):
        try:
            yield read_references(path)
        except FileNotFoundError:
            continue


def reference_files(folder: Path) -> list[Path]:
    """The reference files, in the order of their names; none when the folder is missing."""
    try:
        with os.scandir(folder / "refs") as found:
            return sorted(Path(entry.path) for entry in found if _FILE_NAME.fullmatch(entry.name))
    except FileNotFoundError:
        return []


def rewrite_references(references: References, keep: Iterable[str]) -> None:
    """Leave only ``keep`` of what the file names, or no file when that is nothing. Only under the exclusive lock."""
    kept = sorted(set(keep) & references.named.keys())
    if not kept:
        references.file.unlink(missing_ok=True)
        return
    headers = [json.dumps({"session": references.session, "source": each}) for each in references.sources]
    if not headers:
        headers = [json.dumps({"session": references.session, "source": None})]
    lines = [*headers, *(f"{sha} {references.named[sha]:.0f} {references.packs[sha]}" for sha in kept)]
    with Beside(references.file) as file:
        file.write(("\n".join(lines) + "\n").encode("ascii"))
        file.commit()


def _header(line: str) -> tuple[str, str | None] | None:
    try:
        value = json.loads(line)
        session, source = value["session"], value["source"]
    except (ValueError, KeyError):
        return None
    if not isinstance(session, str) or not (source is None or isinstance(source, str)):
        return None
    return session, source
