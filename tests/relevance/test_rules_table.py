"""The table in README.md is current."""

from __future__ import annotations

from pathlib import Path

from relevance.rules_table import rules, table


def test_the_table_names_every_test() -> None:
    """README.md is what `rules_table.py` writes, and each rule says where it is from."""
    assert (Path(__file__).parent / "README.md").read_text(encoding="utf-8") == table()
    assert all(rule.startswith(("§", "Intro", "Report page", "Issue")) for rule, _ in rules())
