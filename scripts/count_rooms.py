"""Counts what asks for a second look in lcc, the daemon and the hook: casts, ignores, long files, long functions.

Usage: python3 scripts/count_rooms.py [--list]

A cast is a call of `typing.cast`. An ignore is a comment that stills the type checker (`type: ignore`) or the linter
(`noqa`). A file is long above 300 lines, a function above 40, from its `def` to its last line. --list names each one.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("lcc", "daemon", "hook")
LONG_FILE = 300
LONG_FUNCTION = 40

Found = tuple[str, str, str]
"""What it is, where it stands, and a word on it."""


def findings(path: Path) -> Iterator[Found]:
    """What one file holds."""
    name = str(path.relative_to(ROOT))
    source = path.read_text(encoding="utf-8")
    lines = source.count("\n")
    if lines > LONG_FILE:
        yield f"file over {LONG_FILE} lines", name, f"{lines} lines"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "typing.cast"):
            yield "cast", f"{name}:{node.lineno}", ast.unparse(node)[:80]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONG_FUNCTION:
                yield f"function over {LONG_FUNCTION} lines", f"{name}:{node.lineno}", f"{node.name}, {length} lines"
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for kind in ("type: ignore", "noqa"):
                if kind in token.string:
                    yield kind, f"{name}:{token.start[0]}", token.string


def main() -> int:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [each for path in paths for each in findings(path)]
    kinds = ("cast", "type: ignore", "noqa", f"file over {LONG_FILE} lines", f"function over {LONG_FUNCTION} lines")
    print(f"{len(paths)} files")
    for kind in kinds:
        those = [each for each in found if each[0] == kind]
        print(f"{len(those):4} {kind}")
        if "--list" in sys.argv[1:]:
            for _, place, word in those:
                print(f"       {place}  {word}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
