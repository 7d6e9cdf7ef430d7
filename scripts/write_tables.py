#!/usr/bin/env python
"""Writes what is made from the tables of options and of guards: the plugin's form, and tables in the documents.

``python scripts/write_tables.py`` rewrites them in place; ``--check`` writes nothing and exits with 1 where one is
other than the tables say. They are ``lcc/contract/options.py`` and ``lcc/relevance/evidence/guards.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from lcc.contract.modes import RULES_MODES
from lcc.contract.option import Row
from lcc.contract.options import LiveOptions, PassOptions, config_rows, table
from lcc.relevance.evidence.guards import GUARDS, DecidingMode, Firmness

CHECKOUT = Path(__file__).parents[1]
PLUGIN = CHECKOUT / ".claude-plugin" / "plugin.json"
TYPES = {"switch": "boolean", "whole": "number", "number": "number"}


def user_config() -> dict[str, dict[str, object]]:
    """The plugin's ``userConfig``: a field for each option that has a form."""
    return {row.name: _field(row) for row in config_rows().values() if row.option.form}


def _field(row: Row) -> dict[str, object]:
    form = row.option.form
    assert form is not None
    field: dict[str, object] = {
        "type": TYPES.get(row.kind, "string"),
        "title": form.title,
        "description": form.help,
    }
    if row.kind == "texts":
        field["multiple"] = True
    most = row.option.high if form.most is None else form.most
    field |= {key: value for key, value in (("min", row.option.low), ("max", most)) if value is not None}
    if row.default is not None:
        field["default"] = list(row.default) if isinstance(row.default, tuple) else row.default
    return field


def plugin() -> str:
    """``plugin.json`` with its form as the table says."""
    manifest = json.loads(PLUGIN.read_text())
    return json.dumps({**manifest, "userConfig": user_config()}, indent=2, ensure_ascii=False) + "\n"


def config_table() -> list[str]:
    """The keys of the configuration file, for daemon/README.md."""
    lines = (f"| `{row.name}` | {_value(row)} | {row.allowed} | {row.option.help} |" for row in config_rows().values())
    return ["| key | default | may be | what it is |", "| --- | --- | --- | --- |", *lines]


def options_table() -> list[str]:
    """The options of a pass and where each can be set, for lcc/README.md."""
    live = table(LiveOptions)
    lines = []
    for row in table(PassOptions).values():
        option = row.option
        default = _value(row)
        if option.in_config and live[row.name].default != row.default:
            default += f"; live {_value(live[row.name])}"
        if option.mcp_default is not None:
            default += f'; MCP "{option.mcp_default}"'
        flag = ", ".join(f"`{name}`" for name in (option.short, option.flag) if name)
        places = [place for place, has in (("configuration", option.in_config), ("MCP", option.in_mcp)) if has]
        lines.append(f"| `{row.name}` | {flag} | {', '.join(places)} | {default} | {option.help} |")
    return ["| option | flag | also in | default | what it is |", "| --- | --- | --- | --- | --- |", *lines]


def _value(row: Row) -> str:
    value = row.default
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def guards_table() -> list[str]:
    """What is never touched, and in which modes, for lcc/commands/README.md: a line for all rows of the same words."""
    modes = get_args(DecidingMode)
    cells: dict[str, dict[DecidingMode, Firmness]] = {}
    for guard in GUARDS:
        line = cells.setdefault(guard.words, {})
        for mode in guard.modes:
            line.setdefault(mode, guard.firmness)
    head = ["what stays", *(f"`{mode}`" if mode in RULES_MODES else mode.replace("_", " ") for mode in modes)]
    rows = ([words, *(line.get(mode, "") for mode in modes)] for words, line in cells.items())
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def always_table() -> list[str]:
    """What no mode touches, for README.md."""
    modes: dict[str, set[DecidingMode]] = {}
    for guard in GUARDS:
        if guard.firmness == "whole":
            modes.setdefault(guard.words, set()).update(guard.modes)
    always = [words for words, bound in modes.items() if bound == set(get_args(DecidingMode))]
    return [_row(["never touched, in any mode"]), _row(["---"]), *(_row([words]) for words in always)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def with_table(text: str, made: list[str]) -> str:
    """``text`` with the table that has the same head in place of the one that stands there."""
    lines = text.split("\n")
    start = lines.index(made[0])
    end = next(number for number in range(start, len(lines)) if not lines[number].startswith("|"))
    return "\n".join([*lines[:start], *made, *lines[end:]])


def made_files() -> Iterable[tuple[Path, str]]:
    """Each file that holds something of the table, and what it must hold."""
    yield PLUGIN, plugin()
    for path, made in (
        ("README.md", always_table()),
        ("lcc/commands/README.md", guards_table()),
        ("daemon/README.md", config_table()),
        ("lcc/README.md", options_table()),
    ):
        yield CHECKOUT / path, with_table((CHECKOUT / path).read_text(), made)


def main(arguments: list[str]) -> int:
    """Write or check; the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python scripts/write_tables.py [--check]", file=sys.stderr)
        return 2
    other = [(path, text) for path, text in made_files() if path.read_text() != text]
    for path, text in other:
        print(f"{path.relative_to(CHECKOUT)} {'is other than the tables say' if arguments else 'written'}")
        if not arguments:
            path.write_text(text)
    return 1 if arguments and other else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
