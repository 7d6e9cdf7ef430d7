"""Which kinds of rows, blocks and parts Claude Code session files hold, and what a live compaction does with each.

    python scripts/session_kinds.py FOLDER_OR_FILE …    counts each kind; exit code 1 where one is unknown
    python scripts/session_kinds.py --table             the table in hook/README.md, from the lists in the code

The lists are those of ``lcc_hook.inventory``. After an update of the client, run it over your own sessions
(``~/.claude/projects``).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lcc_hook import inventory
from lcc_hook.live_branch import documents

if TYPE_CHECKING:
    from lcc_hook.live_branch import Json, Row

UNKNOWN = "unknown"
LISTS = {
    "row": inventory.ROWS,
    "`system` row": inventory.SYSTEM,
    "`attachment` row": inventory.ATTACHMENTS,
    "block of the assistant": inventory.ASSISTANT,
    "block beside a result": inventory.USER,
    "part of a result": inventory.PARTS,
}


class Kind(NamedTuple):
    """One kind, and the list that it belongs to."""

    place: str
    name: str

    @property
    def fate(self) -> str:
        return LISTS[self.place].get(self.name, (UNKNOWN, ""))[0]


def kinds_of(row: Row) -> Iterator[Kind]:
    """Every kind in a row of the conversation. A prompt's blocks are not looked at: they come back by its handle."""
    name = str(row.get("type"))
    yield Kind("row", name)
    if name == "system":
        yield Kind("`system` row", str(row.get("subtype") or ""))
    elif name == "attachment":
        attachment = row.get("attachment")
        if not row.get("rendered"):  # what it holds as it was sent is carried, whatever its kind
            yield Kind("`attachment` row", str(attachment.get("type") if isinstance(attachment, dict) else None))
    elif name in ("assistant", "user"):
        blocks = _dicts(_content(row.get("message")))
        place = "block of the assistant" if name == "assistant" else "block beside a result"
        if name == "user" and row.get("isMeta") is not True and not any(b.get("type") == "tool_result" for b in blocks):
            return
        for block in blocks:
            yield from _with_strange_fields(place, block)
            if block.get("type") == "tool_result":
                for part in _dicts(block.get("content")):
                    yield from _with_strange_fields("part of a result", part)


def _with_strange_fields(place: str, block: Row) -> Iterator[Kind]:
    """A block's kind, and each of its fields that this kind is not known to have."""
    kind = str(block.get("type"))
    yield Kind(place, kind)
    yield from (Kind(place, f"{kind}.{field}") for field in sorted(block.keys() - inventory.FIELDS.get(kind, block)))


def _content(message: Json) -> Json:
    return message.get("content") if isinstance(message, dict) else None


def _dicts(content: Json) -> list[Row]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def count(paths: list[Path]) -> Counter[Kind]:
    """How often each kind stands in these files, and in the session files of these folders."""
    found: Counter[Kind] = Counter()
    for path in paths:
        for file in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            with file.open("rb") as lines:
                for line in lines:
                    for row in documents(line):
                        if isinstance(row.get("uuid"), str):
                            found.update(kinds_of(row))
    return found


def table() -> str:
    """All kinds, those with one fate and one way together."""
    rows = ["| what | kinds | fate | how |", "| --- | --- | --- | --- |"]
    for place, kinds in LISTS.items():
        together: dict[tuple[str, str], list[str]] = {}
        for name, fate in kinds.items():
            together.setdefault(fate, []).append(f"`{name}`" if name else "without a kind")
        rows += [
            f"| {place} | {', '.join(sorted(names))} | {fate} | {how} |" for (fate, how), names in together.items()
        ]
    rows.append("| any | what is not listed here | unknown | no replacement |")
    return "\n".join(rows)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, metavar="FOLDER_OR_FILE")
    parser.add_argument("--table", action="store_true", help="print the table of hook/README.md")
    asked = parser.parse_args(words)
    if asked.table:
        print(table())
        return 0
    if not asked.paths:
        parser.error("name a folder or a file with sessions, or --table")
    missing = [str(path) for path in asked.paths if not path.exists()]
    if missing:
        parser.error(f"there is no {missing[0]}")
    found = count(asked.paths)
    for kind, number in sorted(found.items()):
        print(f"{number:8} {kind.fate:12} {kind.place}: {kind.name or '(none)'}")
    return 1 if any(kind.fate == UNKNOWN for kind in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
