"""The commands of hooks.json: whatever state the plugin's folder, the interpreter or the system is in, none blocks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN
from client.messages_api import Reply, Script, say, serve
from making import worked_on

HOOKS: dict[str, list[dict[str, list[dict[str, str]]]]] = json.loads((PLUGIN / "hooks.json").read_text())["hooks"]
COMMANDS = [(event, hook["command"]) for event, groups in HOOKS.items() for group in groups for hook in group["hooks"]]


def copy_of_the_plugin(lab: Lab, name: str = "plugin") -> Path:
    plugin = lab.root / name
    for part in ("hook", ".claude-plugin"):
        shutil.copytree(PLUGIN / part, plugin / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PLUGIN / "hooks.json", plugin)
    return plugin


def program_of(plugin: Path) -> Path:
    return plugin / "hook" / "lcc_hook" / "client.py"


def program_is_a_folder(plugin: Path) -> None:
    program_of(plugin).unlink()
    program_of(plugin).mkdir()


def program_is_garbled(plugin: Path) -> None:
    program_of(plugin).write_bytes(b"\0\xff(")


def program_is_a_loop(plugin: Path) -> None:
    program_of(plugin).unlink()
    program_of(plugin).symlink_to("client.py")


def program_ends_with_2(plugin: Path) -> None:
    program_of(plugin).write_text("raise SystemExit(2)\n")


def program_is_killed(plugin: Path) -> None:
    program_of(plugin).write_text("import os\nos.kill(os.getpid(), 9)\n")


FOLDERS: dict[str, Callable[[Path], None]] = {
    "whole": lambda plugin: None,
    "plugin folder gone": lambda plugin: shutil.rmtree(plugin),
    "program gone": lambda plugin: program_of(plugin).unlink(),
    "starter gone": lambda plugin: program_of(plugin).with_name("starter.py").unlink(),
    "all but the program gone": lambda plugin: program_of(plugin).with_name("unserved.py").unlink(),
    "program not readable": lambda plugin: program_of(plugin).chmod(0),
    "program a folder": program_is_a_folder,
    "program a loop of links": program_is_a_loop,
    "program garbled": program_is_garbled,
    "program ends with 2": program_ends_with_2,
    "program killed": program_is_killed,
}
INTERPRETERS = {
    "absent": None,
    "ends with 2": "#!/bin/sh\nexit 2\n",
    "killed by a signal": "#!/bin/sh\nkill -KILL $$\n",
    "no program": "\0\0garbage",
    "its own interpreter is gone": "#!/nowhere/python3\n",
    "cannot be run": "",
}


def run(command: str, plugin: Path, lab: Lab, path: str, shell: str) -> subprocess.CompletedProcess[bytes]:
    """As the client runs it."""
    env = {**lab.environment(), "PATH": path, "CLAUDE_PLUGIN_ROOT": str(plugin), "LCC_PYTHON": "/nowhere/python3"}
    return subprocess.run(
        [shell, "-c", command], input=b"{}", capture_output=True, cwd=lab.project, env=env, timeout=60, check=False
    )


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@pytest.mark.parametrize("state", FOLDERS)
@pytest.mark.parametrize(("event", "command"), COMMANDS)
def test_no_state_of_the_folder_blocks(lab: Lab, event: str, command: str, state: str, shell: str) -> None:
    """Exit code 0, and nothing on stdout that is no answer of ours."""
    plugin = copy_of_the_plugin(lab, "a plug'in $(exit 2) `exit 2` \"")
    FOLDERS[state](plugin)
    done = run(command, plugin, lab, os.environ["PATH"], shell)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert_harmless(event, done.stdout)


@pytest.mark.parametrize("kind", INTERPRETERS)
@pytest.mark.parametrize(("event", "command"), COMMANDS)
def test_no_interpreter_blocks(lab: Lab, event: str, command: str, kind: str) -> None:
    """A python3 that is missing, broken, or ends with 2; a session start says that lcc cannot run."""
    folder = lab.root / "bin"
    folder.mkdir()
    text = INTERPRETERS[kind]
    if text is not None:
        (folder / "python3").write_text(text)
        (folder / "python3").chmod(0o755 if text else 0o644)
    done = run(command, copy_of_the_plugin(lab), lab, str(folder), "/bin/sh")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert_harmless(event, done.stdout)
    if event == "SessionStart":
        assert b"lcc cannot run" in done.stdout


def assert_harmless(event: str, out: bytes) -> None:
    """Nothing, or for a session start one message for the user: no other word could change what the client does.

    The answer to `/lcc` blocks the prompt that it would become, and nothing else; without one, that prompt says so.
    """
    if event == "UserPromptExpansion" and out:
        answer = json.loads(out)
        assert answer["decision"] == "block"
        assert answer["reason"]
        return
    assert out == b"" or (event == "SessionStart" and list(json.loads(out)) == ["systemMessage"])


@pytest.mark.client
@pytest.mark.parametrize("age", ["current", "older"])
@pytest.mark.parametrize("state", ["program gone", "program ends with 2", "program a folder"])
def test_the_client_compacts_all_the_same(request: pytest.FixtureRequest, lab: Lab, age: str, state: str) -> None:
    """`/compact` is summarised, not "blocked by PreCompact hook", where the program went under a running session."""
    client: Path = request.getfixturevalue(f"{age}_client")
    plugin = copy_of_the_plugin(lab)
    session = worked_on(lab.project, lab.home, [lab.write("src/one.py", "one line\n" * 500)])
    with (
        serve(Script([Reply([say("Here.")])])) as (api, url),
        Claude(client, lab, url, plugin_dirs=[plugin], resume=session.id) as claude,
    ):
        claude.ask("Are you there?")
        FOLDERS[state](plugin)
        turn = claude.ask("/compact")
        assert "blocked" not in json.dumps(turn.events)
        assert len(api.of("summary")) == 1
