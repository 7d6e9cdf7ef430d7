"""A session file's rows, and which of them belong to the conversation that the client would send.

The client writes the file and this only reads it, around damage as the client does: what is no JSON was never sent.
Runs on Python 3.8 and up.
"""

from __future__ import annotations

import json
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
    Row: TypeAlias = "dict[str, Json]"

SIZE_LIMIT = 1 << 30
FLUSH_LIMIT_S = 0.5
FLUSH_STEP_S = 0.01
FOLDERS_LIMIT = 10_000
"""How many folders of sub-agents are looked through for one agent's file."""
BOUNDARY = b'"compact_boundary"'
SYNTHETIC = "<synthetic>"
"""The model of the rows that no model wrote."""
DECODER = json.JSONDecoder()


def session_file(transcript: str, agent: str | None) -> str:
    """The file of the conversation: the session's own, or that of one of its sub-agents, in whatever folder.

    Raises FileNotFoundError where no folder of the session holds the agent's file.
    """
    if agent is None:
        return transcript
    name = f"agent-{agent}.jsonl"
    if os.path.basename(name) != name:
        raise FileNotFoundError(f"{agent!r} is no id of an agent")
    root = os.path.join(os.path.splitext(transcript)[0], "subagents")
    for number, (folder, _, files) in enumerate(os.walk(root)):
        if name in files:
            return os.path.join(folder, name)
        if number == FOLDERS_LIMIT:
            break
    raise FileNotFoundError(f"no {name} in the session's folder")


def read_when_written(path: str, last: str) -> bytes:
    """The file's bytes once it holds the row ``last`` to its end. Raises TimeoutError when that row does not come."""
    until = time.monotonic() + FLUSH_LIMIT_S
    while True:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise OSError("the session file is not a regular file")
            if state.st_size > SIZE_LIMIT:
                raise OverflowError("the session file is too large")
            data = file.read()
        found = data.rfind(last.encode())
        if found >= 0 and data.find(b"\n", found) >= 0:
            return data
        if time.monotonic() > until:
            raise TimeoutError("the session file does not hold the newest message")
        time.sleep(FLUSH_STEP_S)


class Branch:
    """The rows with a uuid, and what hangs on what.

    ``shown`` are the uuids of the messages that the client showed, ``first`` is the first of them, and ``early`` some
    of the first, one of which stands first in the file.
    """

    def __init__(self, data: bytes, shown: list[str], first: str, early: list[str]) -> None:
        self.shown = frozenset(shown)
        self.first = first
        start = start_of(data, early)
        self.rows = dict(rows_from(data, start))
        self.missing = [uuid for uuid in shown if uuid not in self.rows]
        if self.missing and start:
            self.rows = dict(rows_from(data, 0))
            self.missing = [uuid for uuid in shown if uuid not in self.rows]
        self._anchors: dict[str, str | None] = {}

    def unshown(self) -> Iterator[tuple[str, Row]]:
        """Each row that the client sends beside the messages it shows, with the message that it follows, in order.

        An empty uuid stands for the front of the conversation. Rows of branches that were left are not given.
        """
        ahead = self._ahead_of(self.first)
        for uuid, row in self.rows.items():
            if uuid in self.shown or is_message(row):
                continue
            anchor = self._anchor_of(uuid)
            if anchor or (anchor == "" and uuid in ahead):
                yield anchor, row

    def lost(self) -> list[Row]:
        """Messages that the conversation passes through and that the client did not show."""
        newest = next((n for n, row in enumerate(reversed(list(self.rows.values()))) if is_boundary(row)), None)
        order = {uuid: number for number, uuid in enumerate(self.rows)}
        since = -1 if newest is None else len(self.rows) - 1 - newest
        found: dict[str, Row] = {}
        for uuid in self.shown & self.rows.keys():
            parent = self._message_above(uuid)
            if parent is not None and parent not in self.shown and order[parent] > since:
                found[parent] = self.rows[parent]
        return list(found.values())

    def _anchor_of(self, uuid: str) -> str | None:
        """The shown message that a row follows; empty for the front, None on a branch that was left."""
        way: set[str] = set()
        place: str | None = uuid
        while True:
            if place is None or place not in self.rows or is_boundary(self.rows[place]):
                anchor: str | None = ""
            elif place in self.shown:
                anchor = place
            elif place in self._anchors:
                anchor = self._anchors[place]
            elif is_message(self.rows[place]) or place in way:
                anchor = None
            else:
                way.add(place)
                place = parent_of(self.rows[place])
                continue
            for each in way:
                self._anchors[each] = anchor
            return anchor

    def _ahead_of(self, uuid: str) -> set[str]:
        """The rows, and no messages, that lead to a shown message."""
        way: set[str] = set()
        place = parent_of(self.rows[uuid]) if uuid in self.rows else None
        while place is not None and place in self.rows and place not in self.shown and place not in way:
            if is_message(self.rows[place]) or is_boundary(self.rows[place]):
                break
            way.add(place)
            place = parent_of(self.rows[place])
        return way

    def _message_above(self, uuid: str) -> str | None:
        way = self._ahead_of(uuid)
        place = parent_of(self.rows[uuid])
        while place in way:
            place = parent_of(self.rows[place])
        return place if place in self.rows and is_message(self.rows[place]) else None


def start_of(data: bytes, first: list[str]) -> int:
    """Where the conversation begins: behind what lies before the last boundary that none of its first rows precedes."""
    places = [place for uuid in first if (place := data.find(b'"uuid":"%s"' % uuid.encode())) >= 0]
    boundary = data.rfind(BOUNDARY, 0, min(places, default=0))
    return data.rfind(b"\n", 0, boundary) + 1 if boundary >= 0 else 0


def rows_from(data: bytes, start: int) -> Iterator[tuple[str, Row]]:
    """The rows that have a uuid, with it, from a line's start on; a line that is not finished is no row yet."""
    end = data.find(b"\n", start)
    while end >= 0:
        for row in documents(data[start:end]):
            uuid = row.get("uuid")
            if isinstance(uuid, str):
                yield uuid, row
        start = end + 1
        end = data.find(b"\n", start)


def documents(line: bytes) -> Iterator[Row]:
    """The objects of a line: one, none where it is damaged, and each of several that were written as one line."""
    text = line.decode("utf-8", "replace").strip()
    place = 0
    while place < len(text):
        try:
            value, place = DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield value
        while place < len(text) and text[place].isspace():
            place += 1


def parent_of(row: Row) -> str | None:
    parent = row.get("parentUuid")
    return parent if isinstance(parent, str) else None


def is_boundary(row: Row) -> bool:
    """Whether this is where a compaction cut: what stands before it is no longer sent."""
    return row.get("type") == "system" and row.get("subtype") == "compact_boundary"


def is_message(row: Row) -> bool:
    """Whether a row is of the kind that the client shows as a message of the conversation."""
    kind = row.get("type")
    if kind == "assistant":
        return not is_unsent(row)
    return kind == "user" and row.get("isMeta") is not True and row.get("isVirtual") is not True


def is_unsent(row: Row) -> bool:
    """Whether a row is shown as a message and never sent: what the API's errors say, and what is for the screen."""
    if row.get("isVirtual") is True:
        return True
    message = row.get("message")
    return row.get("isApiErrorMessage") is True and isinstance(message, dict) and message.get("model") == SYNTHETIC
