"""Writes README.md's table: which test stands for which sentence of the specification.

    python tests/relevance/rules_table.py > tests/relevance/README.md

The sentence is the test's own docstring, which quotes the rule in our words with its section.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
HEAD = """# Tests of the pass

- `pointer_follower.py` follows every pointer of a compacted session with code that shares nothing with lcc, and
  `test_pointer_follower.py` shows that it refuses what it must.
- `pass_world.py` makes workspaces on a real disk and sessions over them; `test_properties.py` runs three passes over
  each, in every mode (`LCC_HYPOTHESIS_EXAMPLES=20 pytest tests/relevance/test_properties.py` for a long run).
- `disk_changer.py` is the process that changes files during a pass; `test_races.py` says what must hold then.
- `test_commands_in_a_shell.py` asks a real shell whether what is said of a command is so.
- `test_any_input.py` gives calls any input that JSON can hold.
- `test_real_sessions.py` runs passes over real session files, where they are at hand.
- `test_adversarial.py` holds sessions made to be expensive or odd.
- `test_seed_*.py` hold one test for each sentence of the specification that states a rule. "Intro" and "§" name its
  place there, "report page" the page of exact forms, "issue" what was asked for beyond both.

This table is written by `rules_table.py`, and `test_rules_table.py` checks that it is current.

| rule | test |
| --- | --- |
"""


def rules() -> Iterator[tuple[str, str]]:
    """Each rule with the test that stands for it."""
    for path in sorted(HERE.glob("test_seed_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield " ".join((ast.get_docstring(node) or "").split()).replace("|", "\\|"), f"{path.name}::{node.name}"


def table() -> str:
    """README.md as it should be."""
    return HEAD + "".join(f"| {rule} | `{test}` |\n" for rule, test in rules())


if __name__ == "__main__":
    print(table(), end="")
