"""When each call was made and answered, over the whole file: branches that were left and summarised parts too.

What a rewound call wrote stays written, and so does what the user ran or another program changed. Parallel calls have
no order but that of their answers.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lcc.transcript import ToolUse, Transcript

_OWN_COMMAND = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_CHANGED = re.compile(r"^(?:<system-reminder>\s*)?Note: (.+?) was modified, either by ", re.MULTILINE)


class Moment(NamedTuple):
    """A call; ``asked`` and ``answered`` count along the file. ``answered`` None: no result, so it may still run."""

    use: ToolUse
    asked: int
    answered: int | None


def timeline_of(transcript: Transcript) -> dict[str, Moment]:
    """Every call of the file by its id, in the order of the file.

    The user's own commands, and files that the client says were changed, are there as the calls that they amount to.
    """
    in_lines = bool(transcript.documents)
    asked: list[tuple[int, int, ToolUse]] = []
    answered: dict[str, tuple[int, int]] = {}
    count = 0
    for index, message in enumerate((*transcript.messages, *transcript.aside)):
        for use in message.tool_uses:
            count += 1
            asked.append((int(use.path[0]) if in_lines else index, count, use))
        for result in message.tool_results:
            count += 1
            place = (int(result.path[0]) if in_lines else index, count)
            answered[result.tool_use_id] = max(place, answered.get(result.tool_use_id, place))
        if message.role == "user" and message.text:
            for use in _unasked(message.text, count):
                count += 1
                place = (message.documents[0] if in_lines and message.documents else index, count)
                asked.append((*place, use))
                answered[use.id] = place
    for document, path in transcript.changed_files:
        count += 1
        use = ToolUse(f"changed {count}", "Write", {"file_path": path}, None, ())
        asked.append((document, count, use))
        answered[use.id] = (document, count)
    asked.sort(key=lambda item: item[:2])
    places = sorted([item[:2] for item in asked] + list(answered.values()))
    rank = {place: number for number, place in enumerate(places)}
    moments: dict[str, Moment] = {}
    for document, number, use in asked:
        end = answered.get(use.id)
        moments.setdefault(use.id, Moment(use, rank[document, number], None if end is None else rank[end]))
    return moments


def _unasked(text: str, count: int) -> list[ToolUse]:
    """What a user's message says was done outside of the calls."""
    found: list[ToolUse] = []
    if "<bash-input>" in text:
        for number, command in enumerate(_OWN_COMMAND.findall(text)):
            found.append(ToolUse(f"own {count}.{number}", "Bash", {"command": command}, None, ()))
    if " was modified, either by " in text:
        for number, path in enumerate(_CHANGED.findall(text)):
            found.append(ToolUse(f"noticed {count}.{number}", "Write", {"file_path": path}, None, ()))
    return found
