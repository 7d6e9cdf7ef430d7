"""The script that counts casts, ignores, long files and long functions; and the casts that it may find."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import count_rooms

MOST_CASTS = 10

CODE = """from typing import cast
import typing
short = cast(int, 1), typing.cast("str", "cast(int, 1)")  # type: ignore[assignment]
words = "# type: ignore is a comment, and noqa too"


def forty() -> None:
{forty}


async def more() -> None:  # noqa: X
{more}
"""


def lines(count: int) -> str:
    return "\n".join(["    pass"] * count)


def test_what_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls and comments, not words in a text; a function to its last line."""
    monkeypatch.setattr(count_rooms, "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(CODE.format(forty=lines(39), more=lines(40)))

    found = list(count_rooms.findings(path))

    assert Counter(kind for kind, _, _ in found) == {
        "cast": 2,
        "type: ignore": 1,
        "noqa": 1,
        "function over 40 lines": 1,
    }
    assert ("function over 40 lines", "module.py:49", "more, 41 lines") in found
    path.write_text("\n" * 301)
    assert list(count_rooms.findings(path)) == [("file over 300 lines", "module.py", "301 lines")]
    path.write_text("\n" * 300)
    assert list(count_rooms.findings(path)) == []


def test_there_are_few_casts() -> None:
    """What is cast is what the type checker does not hold."""
    paths = [path for folder in count_rooms.FOLDERS for path in (count_rooms.ROOT / folder).rglob("*.py")]
    casts = [place for path in paths for kind, place, _ in count_rooms.findings(path) if kind == "cast"]
    assert len(casts) <= MOST_CASTS, casts
