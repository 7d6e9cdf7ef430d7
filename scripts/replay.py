"""Real sessions cut in the middle: what the model had seen, what it did next, and the files as they then were.

A session file records what tools read and wrote, so the workspace at any moment can be put together from it:
whole-file reads, writes, and edits with the file as it was before. What a command changed unseen is not there.
Paths of the session are moved under a folder of our own, in the calls and on disk alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lcc.transcript import Json, Message, Transcript, messages_to_payload, read_transcript
from lcc.transcript.formats.claude import CLAUDE_CODE
from lcc.transcript.lines import split

PATH_KEYS = frozenset({"file_path", "path", "notebook_path", "cwd", "workdir"})
_WINDOWS = re.compile(r"([A-Za-z]):[\\/]")
_ABSOLUTE = re.compile(r"(?<![\w.~/-])/(?=(?:Users|home|Volumes|workspace|root|tmp|private|var|opt|srv|mnt|repo)\b)")


@dataclass(frozen=True)
class Cut:
    """A session up to one moment, and what followed. Messages are in the seed's payload form."""

    session: str
    share: float
    model: str | None
    before: list[dict[str, Json]]
    after: list[dict[str, Json]]
    files: Mapping[str, str]
    """The workspace at that moment: path under ``root`` to text."""
    root: Path


@dataclass
class Workspace:
    """The files a session is known to have had, while its lines are read in order."""

    files: dict[str, str] = field(default_factory=dict)

    def take(self, document: Mapping[str, Json]) -> None:
        """Learn from one line of a Claude Code session."""
        result = document.get("toolUseResult")
        if not isinstance(result, dict):
            return
        read = result.get("file")
        if result.get("type") == "text" and isinstance(read, dict):
            self._read(read)
        path = result.get("filePath")
        if not isinstance(path, str):
            return
        content, original = result.get("content"), result.get("originalFile")
        if isinstance(content, str) and result.get("type") in ("create", "update"):
            self.files[path] = content
            return
        if isinstance(original, str):
            self.files[path] = original
        edits = result.get("edits")
        for edit in edits if isinstance(edits, list) else [result]:
            if isinstance(edit, dict):
                self._edit(path, edit)

    def _read(self, read: Mapping[str, Json]) -> None:
        path, content = read.get("filePath"), read.get("content")
        whole = read.get("startLine") in (0, 1) and read.get("numLines") == read.get("totalLines")
        if isinstance(path, str) and isinstance(content, str) and whole:
            self.files[path] = content

    def _edit(self, path: str, edit: Mapping[str, Json]) -> None:
        old, new = edit.get("oldString", edit.get("old_string")), edit.get("newString", edit.get("new_string"))
        text = self.files.get(path)
        if text is None or not isinstance(old, str) or not isinstance(new, str) or not old:
            return
        times = -1 if edit.get("replaceAll", edit.get("replace_all")) is True else 1
        self.files[path] = text.replace(old, new, times)


def moved(path: str, root: Path) -> str:
    """A path of the session, absolute in either notation, as a path under ``root``."""
    windows = _WINDOWS.match(path)
    if windows:
        return str(root / windows[1].upper() / path[windows.end() :].replace("\\", "/"))
    return str(root) + path if path.startswith("/") else path


def moved_input(value: Json, root: Path, key: str = "") -> Json:
    """A call's input with its absolute paths moved under ``root``."""
    if isinstance(value, dict):
        return {name: moved_input(inner, root, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [moved_input(inner, root, key) for inner in value]
    if not isinstance(value, str):
        return value
    if key in PATH_KEYS:
        return moved(value, root)
    return _ABSOLUTE.sub(f"{root}/", value) if key in ("command", "cmd") else value


def payload(messages: tuple[Message, ...], root: Path) -> list[dict[str, Json]]:
    """The messages in the seed's payload form, their paths moved under ``root``."""
    plain = messages_to_payload([message._replace(source=None) for message in messages])
    for message in plain:
        uses = message.get("toolUses")
        for use in uses if isinstance(uses, list) else []:
            if isinstance(use, dict):
                use["input"] = moved_input(use["input"], root)
    return plain


def cuts(path: Path, shares: tuple[float, ...], root: Path) -> Iterator[Cut]:
    """The session in ``path`` cut at each share of its calls, right after a message of results."""
    raw = path.read_bytes()
    transcript = read_transcript(raw, name=path.name)
    documents = [document.value for document in split(raw)]
    ends = [index + 1 for index, message in enumerate(transcript.messages) if message.tool_results]
    workspace, taken = Workspace(), 0
    for share in shares:
        position = int(share * len(ends)) - 1
        if position < 0:
            continue
        end = ends[position]
        last = transcript.messages[end - 1].tool_results[-1].path[0]
        if transcript.format is CLAUDE_CODE and isinstance(last, int):
            for document in documents[taken : last + 1]:
                workspace.take(document)
            taken = max(taken, last + 1)
        yield Cut(
            path.name,
            share,
            model_of(documents),
            payload(transcript.messages[:end], root),
            payload(transcript.messages[end:], root),
            {moved(name, root): text for name, text in workspace.files.items()},
            root,
        )


def model_of(documents: list[dict[str, Json]]) -> str | None:
    """The model that answered last."""
    for document in reversed(documents):
        message = document.get("message")
        if isinstance(message, dict) and isinstance(message.get("model"), str):
            return str(message["model"])
    return None


def write_files(files: Mapping[str, str]) -> None:
    """Put the workspace on disk, newlines as they are."""
    for name, text in files.items():
        place = Path(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogatepass"))


def sessions(folder: Path, fewest_results: int = 20) -> list[Path]:
    """The session files of ``folder`` that are long enough to be cut."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        messages = read_transcript(path.read_bytes(), name=path.name).messages
        if sum(len(message.tool_results) for message in messages) >= fewest_results:
            found.append(path)
    return found


__all__ = ["Cut", "Transcript", "Workspace", "cuts", "moved", "payload", "sessions", "write_files"]
