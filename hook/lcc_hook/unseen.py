"""What a session file holds that the session.compact event does not show, and a replacement would lose.

Run as ``python3 -I -S -E unseen.py`` by the module, beside the hook client. The event leaves out rows that hang
on calls and results: words the user typed while the agent worked, skill texts, rules of a subfolder, other
hooks' context; and every part of a result that is no text. This program finds them by their place in the
file, which the client writes and this program only reads.

stdin, JSON: ``{"transcript", "agent_id", "prompts": [uuid], "others": [uuid], "last": uuid, "reads": {id: path}}``.
``prompts`` are the entries whose handle is kept: what hangs on them comes back by itself. ``last`` is the newest.
stdout, JSON: ``{"texts": [{"after", "text"}], "lines": {id: line}, "lost": [what]}``. ``texts`` go back as messages,
a line goes below the text of its result, and anything in ``lost`` means: do not replace.

A picture's line names a file that holds its very bytes: the one that was read, the copy that the client saved, or
one that this program saves where the client keeps such copies, in the session's folder ``tool-results``.

Standard library only, and nothing imported that is not used: its start is most of its cost. Runs on Python 3.8
and up.
"""

from __future__ import annotations

import binascii
import json
import os
import re
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Row = dict[str, Any]

SIZE_LIMIT = 1 << 30
FLUSH_LIMIT_S = 0.5
FLUSH_STEP_S = 0.01

META, ATTACHMENT, SNAPSHOT = b'"isMeta":true', b'"type":"attachment"', b'"type":"prompt_snapshot"'
PARTS = (b'"type":"image"', b'"type":"document"', b'"type":"tool_reference"')
PARENT = re.compile(rb'"parentUuid":"([0-9a-f-]{36})"')
UUID = re.compile(rb'"uuid":"([0-9a-f-]{36})"')
SAVED_IMAGE = re.compile(r"\[Image: source: ([^\]\n]+)\]")
SUFFIXES = {
    "application/pdf": ".pdf",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
}
CAVEAT = "<local-command-caveat>"

REPEATED = frozenset(("date", "environment", "model", "prompt_snapshot", "remote_session_change", "session_context"))
REPEATED_ENDS = ("_delta", "_listing", "_reminder", "_reminder_sent", "_usage")
"""Attachments that the client itself announces again, after a compaction or from turn to turn."""


class Found:
    """What the replacement must add, and what it cannot."""

    def __init__(self, copies: str) -> None:
        self.copies = copies
        self.texts: list[dict[str, str]] = []
        self.lines: dict[str, str] = {}
        self.lost: list[str] = []


def session_file(transcript: str, agent: str | None) -> str:
    """The file of the conversation: the session's own, or that of one of its sub-agents."""
    if agent is None:
        return transcript
    return os.path.join(os.path.splitext(transcript)[0], "subagents", f"agent-{agent}.jsonl")


def read_when_written(path: str, last: str) -> bytes:
    """The file's bytes once it holds the row ``last``. Raises TimeoutError when that row does not come."""
    until = time.monotonic() + FLUSH_LIMIT_S
    while True:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise OSError("the session file is not a regular file")
            if state.st_size > SIZE_LIMIT:
                raise OverflowError("the session file is too large")
            data = file.read()
        if data.rfind(last.encode()) >= 0:
            return data
        if time.monotonic() > until:
            raise TimeoutError("the session file does not hold the newest message")
        time.sleep(FLUSH_STEP_S)


def live_lines(data: bytes, first: list[str]) -> Iterator[bytes]:
    """The whole lines from the earliest of the first shown rows on: what lies before is no longer sent."""
    starts = [place for uuid in first if (place := data.find(b'"uuid":"%s"' % uuid.encode())) >= 0]
    place = data.rfind(b"\n", 0, min(starts, default=0)) + 1
    end = data.find(b"\n", place)
    while end >= 0:
        yield data[place:end]
        place = end + 1
        end = data.find(b"\n", place)


def find(data: bytes, prompts: list[str], others: list[str], reads: dict[str, str], copies: str) -> Found:
    """Everything unseen that hangs on a call, a result or an answer (``others``), in the file's order.

    ``copies`` is the folder for copies of pictures, which is made and written to only where one must be kept.
    """
    comes_back, stays_out = set(prompts), set(others)
    anchors: dict[str, str] = {}
    found = Found(copies)
    for line in live_lines(data, [*prompts[:2], *others[:2]]):
        is_attachment = ATTACHMENT in line
        if is_attachment and SNAPSHOT in line:
            uuid, parent = UUID.search(line, max(0, len(line) - 1000)), PARENT.search(line, 0, 200)
            if uuid and parent:
                parent_of = parent[1].decode()
                anchors[uuid[1].decode()] = anchors.get(parent_of, parent_of)
        elif is_attachment or META in line:
            row = json.loads(line)
            uuid_of, parent_of = row.get("uuid"), row.get("parentUuid")
            if uuid_of in comes_back or uuid_of in stays_out or not isinstance(parent_of, str):
                continue
            anchors[uuid_of] = anchor = anchors.get(parent_of, parent_of)
            if anchor in stays_out:
                add_text(found, anchor, row)
        elif b'"tool_result"' in line and any(part in line for part in PARTS):
            row = json.loads(line)
            if row.get("uuid") in stays_out:
                add_lines(found, row, reads)
    return found


def add_text(found: Found, anchor: str, row: Row) -> None:
    """The words of one row that the event does not show, as one message."""
    attachment = row.get("attachment")
    if isinstance(attachment, dict):
        kind = str(attachment.get("type"))
        if kind in REPEATED or kind.endswith(REPEATED_ENDS):
            return
        contents = [attachment["prompt"]] if kind == "queued_command" else rendered(row)
    elif row.get("type") == "user" and row.get("isMeta") is True:
        contents = [row["message"]["content"]]
    else:
        return
    texts: list[str] = []
    for content in contents:
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if part["type"] == "text":
                texts.append(part["text"])
            else:
                texts.append(line_for(found, [part], "what came while the agent worked"))
    text = "\n".join(texts)
    if text.strip() and not text.startswith(CAVEAT):
        found.texts.append({"after": anchor, "text": text})


def rendered(row: Row) -> list[Any]:
    """The contents that the client sends for an attachment; none for one it does not send."""
    return [part["content"] for part in row.get("rendered") or []]


def add_lines(found: Found, row: Row, reads: dict[str, str]) -> None:
    """For each result with parts that are no text: the line that says how to have them back."""
    for block in row["message"]["content"]:
        if block.get("type") != "tool_result" or not isinstance(block.get("content"), list):
            continue
        parts = [part for part in block["content"] if part["type"] != "text"]
        if not parts:
            continue
        text = "\n".join(part["text"] for part in block["content"] if part["type"] == "text")
        call_id = block["tool_use_id"]
        names = [part["tool_name"] for part in parts if part["type"] == "tool_reference"]
        if len(names) == len(parts):
            found.lines[call_id] = f"[loaded here, to be loaded again with ToolSearch before use: {', '.join(names)}]"
        elif not names_copies(text, parts):
            found.lines[call_id] = line_for(found, parts, f"the result of {call_id}", reads.get(call_id))


def names_copies(text: str, parts: list[Row]) -> bool:
    """Whether the result's own text names the copies that the client saved of its pictures, and they are there."""
    paths = SAVED_IMAGE.findall(text)
    return len(paths) == len(parts) and all(map(holds, paths, map(bytes_of, parts)))


def line_for(found: Found, parts: list[Row], where: str, read: str | None = None) -> str:
    """The line that says which file shows the parts again: ``read``, the file they came from, or copies."""
    paths: list[str] = []
    for part in parts:
        data = bytes_of(part)
        if read is not None and "\n" not in read and len(parts) == 1 and holds(read, data):
            paths.append(read)
        else:
            try:
                paths.append(keep_copy(found.copies, data, SUFFIXES[part["source"]["media_type"]]))
            except (OSError, LookupError, TypeError) as error:
                found.lost.append(f"a part ({part['type']}) of {where}: no copy of it could be kept ({error})")
    return f"[{parts[0]['type']} no longer in context: read {', '.join(paths)} to see it again]"


def bytes_of(part: Row) -> bytes:
    """What a part shows, as a file's bytes; none for a part that does not carry them."""
    try:
        return binascii.a2b_base64(part["source"]["data"])
    except (KeyError, TypeError, ValueError):
        return b""


def holds(path: str, data: bytes) -> bool:
    """Whether a regular file is there and holds exactly these bytes. Never waits for a pipe or a device."""
    if not data:
        return False
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            state = os.fstat(file.fileno())
            return stat.S_ISREG(state.st_mode) and state.st_size == len(data) and file.read(len(data) + 1) == data
    except (OSError, ValueError):
        return False


def keep_copy(folder: str, data: bytes, suffix: str) -> str:
    """Save the bytes under a name made of them, durable and read back, and return the path. Raises OSError."""
    from hashlib import sha256

    if not data:
        raise LookupError("the session file does not hold it")
    path = os.path.join(folder, f"lcc-{sha256(data).hexdigest()[:16]}{suffix}")
    if holds(path, data):
        return path
    os.makedirs(folder, mode=0o700, exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    except OSError:
        os.unlink(beside)
        raise
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    if not holds(path, data):
        raise OSError(f"{path} does not read back as it was written")
    return path


def main() -> int:
    """Answer one question from stdin. Exit code 1, and the reason on stderr, where the file does not tell."""
    try:
        asked = json.loads(sys.stdin.buffer.read())
        data = read_when_written(session_file(asked["transcript"], asked["agent_id"]), asked["last"])
        copies = os.path.join(os.path.splitext(asked["transcript"])[0], "tool-results")
        found = find(data, asked["prompts"], asked["others"], asked["reads"], copies)
    except (OSError, OverflowError) as error:
        print(f"what the event hides cannot be found: {error}", file=sys.stderr)
        return 1
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        print(f"the session file has a row of an unknown shape ({error!r})", file=sys.stderr)
        return 1
    json.dump({"texts": found.texts, "lines": found.lines, "lost": found.lost}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
