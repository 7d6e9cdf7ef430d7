"""What Codex's calls are: scripts, agents, outputs of older versions, and processes that still run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lcc.relevance.reading.calls import command_of, cwd_of, effect_of, file_read_of, kind_of
from lcc.relevance.reading.headers import exit_code, is_json_output, still_runs
from lcc.relevance.reading.programs import prints_source
from lcc.transcript import ToolUse


def script(words: str, cwd: str | None = "/p", tool: str = "exec") -> ToolUse:
    return ToolUse("c1", tool, words, cwd, ())


@pytest.mark.parametrize(
    ("words", "command", "cwd"),
    [
        ('const r = await tools.exec_command({"cmd":"cat a.py"});\ntext(r.output);', "cat a.py", "/p"),
        ('const r = await tools.exec_command({"cmd":"cat a.py"}); text(r.output)', "cat a.py", "/p"),
        ('let out=await tools.exec_command({cmd:"ls","workdir":"/q"})\ntext(out.output);\n', "ls", "/q"),
        ("var a1 = await tools.exec_command({cmd: 'ls -l', workdir: 'sub',});text(a1.output)", "ls -l", "/p/sub"),
        ("text((await tools.exec_command({cmd: `ls`})).output);", "ls", "/p"),
        (
            '// @exec: {"yield_time_ms": 10}\n// read it\nconst r = await tools.exec_command({"cmd":"a \\"b\\"\\n{c}",'
            '"yield_time_ms":1000,"login":false});\ntext(r.output);',
            'a "b"\n{c}',
            "/p",
        ),
    ],
)
def test_the_command_of_a_script_that_is_one_plain_call_is_read(words: str, command: str, cwd: str) -> None:
    use = script(words)

    assert command_of(use) == command
    assert cwd_of(use) == cwd


@pytest.mark.parametrize(
    "words",
    [
        'const r = await tools.exec_command({"cmd":"cat a.py"});',
        'const r = await tools.exec_command({"cmd":"cat a.py"});\ntext(r);',
        'const r = await tools.exec_command({"cmd":"cat a.py"});\ntext(s.output);',
        'const r = await tools.exec_command({"cmd":"cat a.py"});\ntext(r.output.slice(0, 10));',
        'const r = await tools.exec_command({"cmd":"cat a.py"});\ntext(r.output);\ntext("more");',
        'await tools.apply_patch("x");const r = await tools.exec_command({"cmd":"cat a.py"});\ntext(r.output);',
        'const r = await tools.exec_command({"cmd":"cat a.py" + rest});\ntext(r.output);',
        "const r = await tools.exec_command({cmd:`cat ${name}`});\ntext(r.output);",
        "const r = await tools.exec_command({cmd:'it\\'s'});\ntext(r.output);",
        'const r = await tools.exec_command({"cmd":["cat","a.py"]});\ntext(r.output);',
        'const r = await tools.exec_command({...given, "cmd":"cat a.py"});\ntext(r.output);',
        'const r = await tools.exec_command({"cmd":"\\x41"});\ntext(r.output);',
        'const r = await tools.write_stdin({"cmd":"cat a.py"});\ntext(r.output);',
        'for (const f of files) text((await tools.exec_command({"cmd":"cat a.py"})).output);',
        'const r = await tools.exec_command({"cmd":"cat a.py"} /* {"x":1} */);\ntext(r.output);',
        "",
    ],
)
def test_any_other_script_may_do_anything(words: str) -> None:
    use = script(words)

    assert command_of(use) is None
    assert effect_of(use) == "opaque"
    assert file_read_of(use) is None


def test_a_script_reads_a_file_as_its_command_does() -> None:
    words = 'const r = await tools.exec_command({"cmd":"sed -n \'3,9p\' a.py","workdir":"/q"});\ntext(r.output);'
    read = file_read_of(script(words))

    assert read is not None
    assert (read.path, read.cwd, read.span, read.by_tool) == ("a.py", "/q", (3, 9), False)
    assert effect_of(script(words)) == "read_only"


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("collaboration__spawn_agent", "agent"),
        ("spawn_agent", "agent"),
        ("collaboration__followup_task", "agent"),
        ("collaboration__send_message", "agent"),
        ("collaboration__wait_agent", "report"),
        ("list_agents", "report"),
        ("wait", "poll"),
        ("exec", "command"),
        ("mcp__collaboration__wait_agent", "other"),
        ("mcp__site__fetch", "other"),
        ("mcp__files__read", "other"),
        ("x__", "other"),
        ("__read", "read"),
    ],
)
def test_the_kind_of_a_tool_with_or_without_its_namespace(tool: str, kind: str) -> None:
    assert kind_of(tool) == kind


def old(output: str, **metadata: Any) -> str:
    return json.dumps({"output": output, "metadata": metadata})


@pytest.mark.parametrize(
    ("tool", "text", "code"),
    [
        ("shell", old("x", exit_code=0, duration_seconds=0.1), 0),
        ("shell", old("x", exit_code=2, duration_seconds=0.1), 2),
        ("shell", old("x" * 5000, exit_code=-1), -1),
        ("container.exec", '{"output":"x","metadata":{"exit_code":137,"duration_seconds":1.0}}', 137),
        ("shell", old('"metadata": {"exit_code": 3}'), None),
        ("shell", old("x", duration_seconds=1), None),
        ("shell", '{"metadata":{"exit_code":3}}', None),
        ("Bash", old("x", exit_code=2), None),
        ("exec", "Script completed\nWall time 0.2 seconds\nOutput:\n", None),
        ("exec", "Script failed\nWall time 0.2 seconds\nOutput:\n\nScript error:\nboom", 1),
    ],
)
def test_the_exit_code_in_every_form(tool: str, text: str, code: int | None) -> None:
    assert exit_code(tool, text) == code


def test_an_old_output_is_told_from_one_that_looks_like_it() -> None:
    assert is_json_output("shell", old("x"))
    assert not is_json_output("Bash", old("x"))
    assert not is_json_output("shell", "cat said " + old("x"))


@pytest.mark.parametrize(
    ("tool", "text", "runs"),
    [
        ("exec_command", "Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 5\nOutput:\nx", True),
        ("exec", "Script running with cell ID 7\nWall time 10.0 seconds\nOutput:\n", True),
        (
            "exec_command",
            "Wall time: 1.0 seconds\nProcess exited with code 0\nOutput:\nProcess running with session ID 5",
            False,
        ),
        ("Bash", "Process running with session ID 5\nOutput:\nx", False),
    ],
)
def test_what_still_runs(tool: str, text: str, runs: bool) -> None:
    assert still_runs(tool, text) == runs


@pytest.mark.parametrize(
    ("command", "prints"),
    [
        ('for f in a.py b.py; do echo "FILE $f"; nl -ba "$f"; done', True),
        ("while read f; do cat $f; done", True),
        ("if [ -f a.py ]; then cat a.py; else ls; fi", True),
        ("for f in *.py; do python $f; done", False),
        ("if make; then cat log; fi", False),
    ],
)
def test_a_loop_over_files_prints_source_where_all_in_it_does(command: str, prints: bool) -> None:
    assert prints_source(command) == prints
