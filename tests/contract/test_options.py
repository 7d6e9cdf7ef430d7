"""The table of options: every way in takes what it says, refuses what it does not allow, and is described by it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest
import typer
from cli.cli_world import ROOT, lay_out

from lcc.commands import flags
from lcc.config import Config, ConfigError, load_config
from lcc.contract.option import Option, Row, row_of
from lcc.contract.options import LiveOptions, PassOptions, RequestError, config_rows, table
from lcc.relevance import TranscriptCompactionRequest, compact_transcript

ROWS = list(table(PassOptions).values())
ALL_ROWS = list(table(LiveOptions).values())

WRONG: dict[str, list[object]] = {
    "switch": ["no", 1, 0, 1.0, None, []],
    "whole": [1.5, "6", True, False, math.nan, None, [1], b"6"],
    "number": ["x", True, math.nan, math.inf, -math.inf, None, [0.5], 1j],
    "word": ["oracle", 5, None, True, [], "", "Rules"],
    "text": [5, None, b"goal", ["goal"]],
    "name": [5, b"model", "", "two\nlines", "x" * 5000, ["m"], True],
    "path": [5, b"/tmp", "", "a\0b", ["/tmp"], True],
    "texts": ["one", [5], [""], None, {"a"}],
}
"""Values that no option of the kind may have; None is left out where an option may be none."""

SEED_DEFAULTS = {
    "threshold": 0.5,
    "trim_head_chars": 300,
    "preserve_recent": 6,
    "max_state_tokens": 25000,
    "max_request_tokens": 30000,
    "rules_mode": "lossless",
}


def wrong_values(row: Row) -> list[object]:
    values = [value for value in WRONG[row.kind] if not (value is None and row.may_be_none)]
    if row.option.low is not None:
        values.append(row.option.low - 1 if row.kind == "number" else int(row.option.low) - 1)
    if row.option.high is not None:
        values.append(row.option.high + 1)
    return values


def right_value(row: Row) -> Any:
    """A value that is not the default."""
    other = {"text": "mend it", "name": "claude-sonnet-4-5", "path": "/srv/work", "texts": ("a", "b")}
    if row.kind == "switch":
        return not row.default
    if row.kind == "word":
        return next(choice for choice in row.choices if choice != row.default)
    if row.kind in ("whole", "number"):
        low = row.option.low or 0
        other_number = low + 1 if low + 1 != row.default else low
        return float(other_number) if row.kind == "number" else int(other_number)
    return other[row.kind]


@pytest.mark.parametrize(
    ("name", "value"), [(row.name, value) for row in ALL_ROWS for value in wrong_values(row)], ids=repr
)
def test_a_wrong_value_is_refused_by_the_options_name(name: str, value: Any) -> None:
    """In Python: a RequestError with the option and the value, never a TypeError and never silence."""
    with pytest.raises(RequestError) as caught:
        LiveOptions(**{name: value})
    assert caught.value.option == name
    assert str(caught.value).startswith(f"{name}: ")
    assert caught.value.problem.endswith(f" is not {table(LiveOptions)[name].allowed}")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_request_refuses_as_the_options_do(row: Row) -> None:
    """`TranscriptCompactionRequest` is the options, the payload and the client."""
    with pytest.raises(RequestError) as caught:
        TranscriptCompactionRequest([], **{row.name: wrong_values(row)[0]})  # type: ignore[arg-type]
    assert caught.value.option == row.name
    right = TranscriptCompactionRequest([], **{row.name: right_value(row)})
    assert getattr(right, row.name) == right_value(row) != row.default


def test_the_default_of_a_pass_is_the_seeds() -> None:
    """§2 to §6, and a live session's is the ladder, which has §5's recommendation as its last resort."""
    assert {name: getattr(PassOptions(), name) for name in SEED_DEFAULTS} == SEED_DEFAULTS
    assert (PassOptions().provider, LiveOptions().provider, LiveOptions().rules_mode) == (
        "auto",
        "rules",
        "auto",
    )


def test_a_number_may_be_written_whole_and_a_path_may_be_a_path(tmp_path: Path) -> None:
    """What a Python programmer gives: 1 for a share, a Path for a folder or a file."""
    options = PassOptions(threshold=1, workspace_root=tmp_path, decisions_cache=tmp_path / "c")  # type: ignore[arg-type]
    assert (options.threshold, type(options.threshold)) == (1.0, float)
    assert (options.workspace_root, options.decisions_cache) == (str(tmp_path), str(tmp_path / "c"))
    payload = [{"role": "user", "text": "go"}]
    report = compact_transcript(TranscriptCompactionRequest(payload, provider="rules", workspace_root=tmp_path)).report  # type: ignore[arg-type]
    json.dumps(report)


@pytest.mark.parametrize("row", config_rows().values(), ids=lambda row: row.name)
def test_the_configuration_takes_each_of_its_options_from_every_source(row: Row, tmp_path: Path) -> None:
    """A variable, the file and the plugin's options: each alone, with the source that it came from."""
    value = right_value(row)
    written = list(value) if isinstance(value, tuple) else value
    file = tmp_path / "config.toml"
    file.write_text(f"{row.name} = {json.dumps(written)}\n")
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    for env, options in (
        ({"LCC_CONFIG": str(file)}, {}),
        ({"HOME": str(tmp_path), f"LCC_{row.name.upper()}": text}, {}),
        ({"HOME": str(tmp_path)}, {row.name: written}),
        ({"HOME": str(tmp_path)}, {row.name: text}),
    ):
        found = load_config(env, options)
        assert getattr(found, row.name) == value
        assert list(found.sources) == [row.name]
        assert found == Config(**{row.name: value})


@pytest.mark.parametrize("name", sorted({field.name for field in fields(LiveOptions)} - config_rows().keys()))
def test_what_is_not_for_the_configuration_is_refused_there(name: str, tmp_path: Path) -> None:
    """An option of one pass in the file would hold for every session."""
    (tmp_path / "config.toml").write_text(f'{name} = "x"\n')
    with pytest.raises(ConfigError, match=f"{name}: no such setting"):
        load_config({"LCC_CONFIG": str(tmp_path / "config.toml")})


def test_every_flag_is_in_the_help_with_its_words(tmp_path: Path) -> None:
    """And no option of a pass without a flag by accident: the two that only a program sets are named here."""
    shown = " ".join(lay_out(tmp_path).lcc("compact", "--help").text.split())
    for row in ROWS:
        if row.option.flag:
            assert row.option.flag in shown
            assert " ".join((row.option.flag_help or row.option.help).split()[:4]) in shown
    assert [row.name for row in ROWS if not row.option.flag] == ["laya_model", "judge_key_file"]


def test_what_is_made_from_the_table_is_as_the_table_says() -> None:
    """The plugin's form and the documents' tables; `python scripts/write_tables.py` rewrites them."""
    words = [sys.executable, ROOT / "scripts" / "write_tables.py", "--check"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_form_field_has_a_title_words_and_the_live_default() -> None:
    """What Claude Code shows of the plugin, for each option that has a form."""
    form = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text())["userConfig"]
    assert form.keys() == {row.name for row in config_rows().values() if row.option.form}
    for name, field in form.items():
        assert field["title"]
        assert field["description"].endswith(".")
        live = getattr(Config(), name)
        assert field.get("default") == (list(live) if isinstance(live, tuple) else live)
    defaults = {name: field.get("default") for name, field in form.items()}
    assert load_config({"HOME": "/nonexistent"}, defaults) == Config()


PROTECTED = row_of(
    "protect", Annotated[tuple[str, ...], Option("What is never touched.", flag="--protect", in_mcp=True)], ()
)
"""A list of texts, as a row of the table."""


@pytest.mark.parametrize("value", WRONG["texts"], ids=repr)
def test_a_list_of_texts_is_checked(value: object) -> None:
    """Each of its parts; a text alone is no list of its letters."""
    with pytest.raises(RequestError, match=r"^protect: .* is not a list of texts$"):
        PROTECTED.checked(value)


def test_a_list_of_texts_is_taken_from_every_form() -> None:
    """A list, a tuple, or one text with commas or lines, as variables and the plugin's form have it."""
    assert PROTECTED.checked(["src/**", "a b"]) == PROTECTED.checked(("src/**", "a b")) == ("src/**", "a b")
    assert PROTECTED.from_text("src/**, a b") == PROTECTED.from_text("src/**\na b\n") == ("src/**", "a b")
    assert PROTECTED.checked([]) == PROTECTED.from_text(" ") == ()


def test_a_list_of_texts_is_a_flag_that_may_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time it adds one; a command that is not given it has none."""
    monkeypatch.setattr(flags, "table", lambda options: {"protect": PROTECTED})
    seen: list[flags.Given] = []
    app = typer.Typer()

    @app.command()
    @flags.takes_options("protect")
    def command(given: flags.Given) -> None:
        seen.append(given)

    for words in (["--protect", "a", "--protect", "b, c"], []):
        app(words, standalone_mode=False)
    assert [PROTECTED.checked(given.values["protect"]) for given in seen] == [("a", "b, c"), ()]
    assert [given.flags for given in seen] == [("--protect",), ()]


MISTAKEN = [
    ("preserve_recent", True),
    ("preserve_recent", 1.5),
    ("threshold", True),
    ("threshold", 2),
    ("disk_check", "perhaps"),
    ("disk_check", 1),
    ("provider", "oracle"),
    ("workspace_root", 5),
]


@pytest.mark.parametrize(("name", "value"), MISTAKEN)
def test_mcp_refuses_a_wrong_value_by_its_name(name: str, value: object, tmp_path: Path) -> None:
    """The tool's error names the field; nothing is read."""
    pytest.importorskip("mcp", reason="the MCP server is an optional extra")
    from mcp.server.mcpserver.exceptions import ToolError

    from lcc.mcp.server import build_server

    with pytest.raises(ToolError, match=name):
        anyio.run(build_server().call_tool, "compact_transcript", {"path": str(tmp_path / "none"), name: value})


def test_mcp_offers_what_the_table_says() -> None:
    """Its names, its words, its default and its choices, for each option that MCP has, and no other."""
    pytest.importorskip("mcp", reason="the MCP server is an optional extra")
    from lcc.mcp.server import build_server

    (tool,) = [tool for tool in anyio.run(build_server().list_tools) if tool.name == "compact_transcript"]
    fields = tool.input_schema["properties"]
    offered = {row.name: row for row in ROWS if row.option.in_mcp}
    assert fields.keys() == {"path", "messages", "output", "report", *offered}
    for name, row in offered.items():
        default = row.default if row.option.mcp_default is None else row.option.mcp_default
        as_json = list(default) if isinstance(default, tuple) else default
        assert (fields[name]["description"], fields[name]["default"]) == (row.option.help, as_json)
        assert tuple(fields[name].get("enum", ())) == row.choices
        bounds = fields[name] | {key: of for each in fields[name].get("anyOf", ()) for key, of in each.items()}
        assert bounds.get("minimum") == row.option.low
