#!/usr/bin/env python
"""Writes what is made from the table of options: the plugin's form, and the tables of options in the documents.

``python scripts/write_options.py`` rewrites them in place; ``--check`` writes nothing and exits with 1 where one is
other than the table says. The table is ``lcc/contract/options.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from lcc.contract.option import Row
from lcc.contract.options import LiveOptions, PassOptions, config_rows, table

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


def with_table(text: str, made: list[str]) -> str:
    """``text`` with the table that has the same head in place of the one that stands there."""
    lines = text.split("\n")
    start = lines.index(made[0])
    end = next(number for number in range(start, len(lines)) if not lines[number].startswith("|"))
    return "\n".join([*lines[:start], *made, *lines[end:]])


def made_files() -> Iterable[tuple[Path, str]]:
    """Each file that holds something of the table, and what it must hold."""
    yield PLUGIN, plugin()
    for path, made in (("daemon/README.md", config_table()), ("lcc/README.md", options_table())):
        yield CHECKOUT / path, with_table((CHECKOUT / path).read_text(), made)


def main(arguments: list[str]) -> int:
    """Write or check; the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python scripts/write_options.py [--check]", file=sys.stderr)
        return 2
    other = [(path, text) for path, text in made_files() if path.read_text() != text]
    for path, text in other:
        print(f"{path.relative_to(CHECKOUT)} {'is other than the table of options says' if arguments else 'written'}")
        if not arguments:
            path.write_text(text)
    return 1 if arguments and other else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
