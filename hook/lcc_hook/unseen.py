"""What a session file holds that the session.compact event does not show, and a replacement would lose.

Run as ``python3 -I -S -E unseen.py`` by the module, beside the hook client. The event leaves out rows that hang
on calls and results: words the user typed while the agent worked, skill texts, rules of a subfolder, other
hooks' context; and every part of a result that is no text. This program finds them by their place in the
file, which the client writes and this program only reads.

stdin, JSON: ``{"transcript", "agent_id", "prompts": [uuid], "others": [uuid], "last": uuid, "reads": {id: path}}``.
``prompts`` are the entries whose handle is kept: what hangs on them comes back by itself. ``last`` is the newest.
stdout, JSON: ``{"texts": [{"after", "text"}], "lines": {id: line}, "lost": [what]}``. ``texts`` go back as messages,
a line goes below the text of its result, and anything in ``lost`` means: do not replace.

Standard library only, and nothing imported that is not used: its start is most of its cost. Runs on Python 3.8
and up.
"""

from __future__ import annotations

import json
import os
import re
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
CAVEAT = "<local-command-caveat>"

REPEATED = frozenset(("date", "environment", "model", "prompt_snapshot", "remote_session_change", "session_context"))
REPEATED_ENDS = ("_delta", "_listing", "_reminder", "_reminder_sent", "_usage")
"""Attachments that the client itself announces again, after a compaction or from turn to turn."""


class Found:
    """What the replacement must add, and what it cannot."""

    def __init__(self) -> None:
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
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > SIZE_LIMIT:
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


def find(data: bytes, prompts: list[str], others: list[str], reads: dict[str, str]) -> Found:
    """Everything unseen that hangs on a call, a result or an answer (``others``), in the file's order."""
    comes_back, stays_out = set(prompts), set(others)
    parents: dict[str, str] = {}
    found = Found()
    for line in live_lines(data, [*prompts[:2], *others[:2]]):
        is_attachment = ATTACHMENT in line
        if is_attachment and SNAPSHOT in line:
            uuid, parent = UUID.search(line, max(0, len(line) - 1000)), PARENT.search(line, 0, 200)
            if uuid and parent:
                parents[uuid[1].decode()] = parent[1].decode()
        elif is_attachment or META in line:
            row = json.loads(line)
            uuid_of, parent_of = row.get("uuid"), row.get("parentUuid")
            if uuid_of in comes_back or uuid_of in stays_out or not isinstance(parent_of, str):
                continue
            parents[uuid_of] = parent_of
            anchor = parent_of
            while anchor in parents:
                anchor = parents[anchor]
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
                found.lost.append(f"an {part['type']} that came while the agent worked")
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
        line = way_back(parts, text, reads.get(block["tool_use_id"]), row)
        if line is None:
            found.lost.append(f"an {parts[0]['type']} in the result of {block['tool_use_id']}")
        elif line:
            found.lines[block["tool_use_id"]] = line


def way_back(parts: list[Row], text: str, path: str | None, row: Row) -> str | None:
    """A line that names the parts' file; "" where the text names it already; None where there is no way."""
    names = [part["tool_name"] for part in parts if part["type"] == "tool_reference"]
    if len(names) == len(parts):
        return f"[loaded here, to be loaded again with ToolSearch before use: {', '.join(names)}]"
    if path is not None:
        if "\n" in path or not is_unchanged(path, parts, row):
            return None
        kind = "image" if any(part["type"] == "image" for part in parts) else "document"
        return f"[the {kind} shown here is no longer in context: read {path} again to see it]"
    saved = SAVED_IMAGE.findall(text)
    return "" if len(saved) >= len(parts) and all(os.path.isfile(name) for name in saved) else None


def is_unchanged(path: str, parts: list[Row], row: Row) -> bool:
    """Whether a file still is what the read showed: the same bytes, or not written since (it was resized)."""
    import binascii
    from datetime import datetime

    try:
        state = os.stat(path)
        if not os.path.isfile(path):
            return False
        data = str(parts[0].get("source", {}).get("data", ""))
        if len(parts) == 1 and state.st_size <= len(data):
            with open(path, "rb") as file:
                if file.read() == binascii.a2b_base64(data):
                    return True
        return state.st_mtime <= datetime.fromisoformat(row["timestamp"].replace("Z", "+00:00")).timestamp()
    except (OSError, ValueError):
        return False


def main() -> int:
    """Answer one question from stdin. Exit code 1, and the reason on stderr, where the file does not tell."""
    try:
        asked = json.loads(sys.stdin.buffer.read())
        data = read_when_written(session_file(asked["transcript"], asked["agent_id"]), asked["last"])
        found = find(data, asked["prompts"], asked["others"], asked["reads"])
    except (OSError, OverflowError) as error:
        print(f"what the event hides cannot be found: {error}", file=sys.stderr)
        return 1
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        print(f"the session file has a row of an unknown shape ({error!r})", file=sys.stderr)
        return 1
    json.dump(vars(found), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
