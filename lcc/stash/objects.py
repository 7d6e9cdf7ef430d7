"""Packs: the files that hold the objects of one put, each object compressed and checked by itself.

A pack is written once, beside its place, flushed and renamed; a session's hundred outputs cost one flush
instead of a hundred. It is a run of objects, each with a header of its own, and an index behind them. A
damaged index is made good from the headers, and a damaged object spoils no other.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import re
import struct
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from lcc.private_files import Beside, open_regular

MAX_OBJECT_BYTES = 64 * 1024 * 1024
MIN_ID_LENGTH = 12
_START = MIN_ID_LENGTH // 2
_SETTLED_NS = 2 * 10**9
"""A folder's time is coarse: one that was modified so recently may be modified again with the same time."""
_INDEXES_KEPT = 16_384
"""More than a stash has packs: were it fewer, each look would read all of them again."""
_FEW_IDS = 4
"""So many are each looked up in an index, which is faster than to make a table of it."""
PACK_SUFFIX = ".pack"
_LEVEL = 3  # half of the time of zlib's default for a few percent more bytes
_HEADER = struct.Struct(">4s32sQQI")
"""Mark, sha256, size of the content, size of the body, CRC-32 of the body (deflate has bits that nothing checks)."""
_OBJECT_MARK = b"LCSO"
_ROW = struct.Struct(">32sQQ")
"""Index: sha256, offset of the header, size of the body."""
_TRAILER = struct.Struct(">QII4s")
"""Offset of the index, number of its rows, CRC-32 of its rows, mark."""
_INDEX_MARK = b"LCSI"
_WHOLE_ID = re.compile(r"[0-9a-f]{64}")
_PACK_NAME = re.compile(r"\d{20}-\d+-\d+\.pack")
"""Time in ns, process, number: what has another name is not ours."""
_counter = itertools.count()


class StashError(Exception):
    """What went wrong with an object, in words for the user. ``object_id`` is the id that was asked for."""

    def __init__(self, object_id: str, problem: str) -> None:
        super().__init__(problem)
        self.object_id = object_id


class DamagedObjectError(StashError):
    """The stash does not hold the bytes that were stored."""


class Place(NamedTuple):
    """Where an object stands: its pack, the offset of its header, and the bytes of its body."""

    sha256: str
    pack: Path
    offset: int
    body: int

    @property
    def stored_bytes(self) -> int:
        """What it takes on the disk."""
        return _HEADER.size + self.body + _ROW.size


def is_whole_id(value: str) -> bool:
    """Whether ``value`` is a full sha256 in lower-case hex."""
    return _WHOLE_ID.fullmatch(value) is not None


def pack_files(folder: Path) -> list[Path]:
    """The packs of the stash in ``folder``, the newest first; none when there is no stash. Raises ``OSError``."""
    packs = folder / "packs"
    try:
        modified = packs.stat().st_mtime_ns
        if time.time_ns() - modified < _SETTLED_NS:
            return list(_pack_files.__wrapped__(packs, modified))
        return list(_pack_files(packs, modified))
    except FileNotFoundError:
        return []


@lru_cache(maxsize=8)
def _pack_files(packs: Path, modified_ns: int) -> tuple[Path, ...]:
    """A folder that was not modified has the same packs: whoever follows many notes lists it once."""
    with os.scandir(packs) as found:
        names = [each.name for each in found if _PACK_NAME.fullmatch(each.name)]
    return tuple(packs / name for name in sorted(names, reverse=True))


def packed(sha256: str, content: bytes) -> bytes:
    """The object as it stands in a pack. Raises ``OSError`` (EFBIG) above ``MAX_OBJECT_BYTES``."""
    if len(content) > MAX_OBJECT_BYTES:
        raise OSError(errno.EFBIG, f"larger than the stash's limit of {MAX_OBJECT_BYTES} bytes")
    body = zlib.compress(content, _LEVEL)
    header = _HEADER.pack(_OBJECT_MARK, bytes.fromhex(sha256), len(content), len(body), zlib.crc32(body))
    return header + body


def write_pack(folder: Path, objects: Iterable[tuple[str, bytes]]) -> Path:
    """Write ``objects`` (sha256, as `packed` made them) as one pack, durably. The ``packs`` folder must exist.

    Raises ``OSError``; then there is no new pack, and nothing is left of it.
    """
    name = f"{time.time_ns():020d}-{os.getpid()}-{next(_counter)}"
    target = folder / "packs" / (name + PACK_SUFFIX)
    with Beside(target) as pack:
        offset, rows = 0, []
        for sha256, stored in objects:
            pack.write(stored)
            rows.append(_ROW.pack(bytes.fromhex(sha256), offset, len(stored) - _HEADER.size))
            offset += len(stored)
        index = b"".join(rows)
        pack.write(index + _TRAILER.pack(offset, len(rows), zlib.crc32(index), _INDEX_MARK))
        pack.commit()
    return target


def find_in_pack(pack: Path, prefixes: Collection[str]) -> list[Place]:
    """The objects of ``pack`` whose sha256 begins with one of ``prefixes`` (12 digits or more), in their order.

    A pack that has vanished has none.
    """
    index = _index_bytes(pack)
    if index is None:
        places = places_in(pack)
        return [place for prefix in prefixes for place in places if place.sha256.startswith(prefix)]
    rows = _rows_by_start(index) if len(prefixes) > _FEW_IDS else None
    found = []
    for prefix in prefixes:
        wanted = bytes.fromhex(prefix[: len(prefix) // 2 * 2])
        for at in _rows_with(index, wanted) if rows is None else rows.get(wanted[:_START], ()):
            place = _place(pack, index, at)
            if place.sha256.startswith(prefix):
                found.append(place)
    return found


def _rows_with(index: bytes, start: bytes) -> Iterator[int]:
    """Where the rows begin whose sha256 begins with ``start``."""
    at = index.find(start)
    while at >= 0:
        if at % _ROW.size == 0:
            yield at
        at = index.find(start, at + 1)


def _rows_by_start(index: bytes) -> dict[bytes, list[int]]:
    """Where the rows begin, by the first bytes of their sha256: for many ids, one look at each row."""
    rows: dict[bytes, list[int]] = {}
    for at in range(0, len(index), _ROW.size):
        rows.setdefault(index[at : at + _START], []).append(at)
    return rows


def places_in(pack: Path) -> list[Place]:
    """Every object of ``pack``: by its index, or by the objects' own headers where the index is damaged."""
    index = _index_bytes(pack)
    if index is not None:
        return [_place(pack, index, at) for at in range(0, len(index), _ROW.size)]
    return list(_places_by_headers(pack))


def read_stored(place: Place) -> bytes:
    """The object with its header, as it stands in the pack, unchecked. Raises ``OSError``."""
    with _opened(place.pack) as file:
        return os.pread(file.fileno(), _HEADER.size + place.body, place.offset)


def read_object(place: Place) -> bytes:
    """The stored bytes, proven by their sha256.

    Raises ``OSError`` when the pack cannot be read, ``DamagedObjectError`` when something else stands there.
    """
    return _proven(place, read_stored(place))


def read_pack(pack: Path) -> Iterator[tuple[Place, bytes | DamagedObjectError]]:
    """Every object of the pack, or what is wrong with it; the file is opened once. Raises ``OSError``."""
    places = places_in(pack)
    with _opened(pack) as file:
        for place in places:
            stored = os.pread(file.fileno(), _HEADER.size + place.body, place.offset)
            try:
                yield place, _proven(place, stored)
            except DamagedObjectError as error:
                yield place, error


def _proven(place: Place, stored: bytes) -> bytes:
    if len(stored) < _HEADER.size:
        raise _damaged(place, "its pack is cut off")
    mark, sha256, size, body_size, check = _HEADER.unpack_from(stored)
    body = stored[_HEADER.size :]
    if mark != _OBJECT_MARK or sha256.hex() != place.sha256 or body_size != len(body) or size > MAX_OBJECT_BYTES:
        raise _damaged(place, "its header is not the one that was written")
    if zlib.crc32(body) != check:
        raise _damaged(place, "its compressed bytes have changed")
    unpacker = zlib.decompressobj()
    try:
        # One byte more than stated is enough to see a lie, and bounds what a forged object can unpack to.
        content = unpacker.decompress(body, size + 1)
    except zlib.error:
        raise _damaged(place, "its bytes cannot be decompressed") from None
    if len(content) != size or not unpacker.eof or hashlib.sha256(content).hexdigest() != place.sha256:
        raise _damaged(place, "its bytes do not have the sha256 that names them")
    return content


class _opened:  # noqa: N801 (a context like open)
    """A pack opened for reading: a regular file that is no link. Never waits."""

    def __init__(self, pack: Path) -> None:
        self._file = os.fdopen(open_regular(pack, follow=False), "rb", buffering=0)

    def __enter__(self) -> _opened:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def fileno(self) -> int:
        """The descriptor."""
        return self._file.fileno()


def pack_problem(pack: Path) -> str | None:
    """What is wrong with the pack as a whole, its objects left aside; None when nothing is."""
    try:
        damaged = _index_bytes(pack) is None
    except OSError as error:
        return f"{pack}: {error.strerror or error}"
    return f"{pack}: its index is damaged; objects are found by their own headers" if damaged else None


def _index_bytes(pack: Path) -> bytes | None:
    """The rows of the index; None where it is damaged. A pack that has vanished has no rows."""
    try:
        status = pack.lstat()
        return _read_index(pack, status.st_ino, status.st_mtime_ns, status.st_size)
    except FileNotFoundError:
        return b""


@lru_cache(maxsize=_INDEXES_KEPT)
def _read_index(pack: Path, inode: int, modified_ns: int, size: int) -> bytes | None:
    """A pack never changes; what stat says tells it from another one of its name."""
    with _opened(pack) as file:
        if size < _TRAILER.size:
            return None
        at, count, check, mark = _TRAILER.unpack(os.pread(file.fileno(), _TRAILER.size, size - _TRAILER.size))
        length = count * _ROW.size
        if mark != _INDEX_MARK or at + length + _TRAILER.size != size:
            return None
        index = os.pread(file.fileno(), length, at)
    return index if zlib.crc32(index) == check else None


def _place(pack: Path, index: bytes, at: int) -> Place:
    sha256, offset, body = _ROW.unpack_from(index, at)
    return Place(sha256.hex(), pack, offset, body)


def _places_by_headers(pack: Path) -> Iterator[Place]:
    """From header to header, until one is damaged."""
    with _opened(pack) as file:
        size, offset = os.fstat(file.fileno()).st_size, 0
        while offset + _HEADER.size <= size:
            header = os.pread(file.fileno(), _HEADER.size, offset)
            mark, sha256, _, body, _ = _HEADER.unpack(header)
            if mark != _OBJECT_MARK or offset + _HEADER.size + body > size:
                return
            yield Place(sha256.hex(), pack, offset, body)
            offset += _HEADER.size + body


def _damaged(place: Place, how: str) -> DamagedObjectError:
    return DamagedObjectError(
        place.sha256, f"the object {place.sha256[:12]} is damaged: {how} ({place.pack}). It is not returned."
    )
