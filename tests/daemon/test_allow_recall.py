"""A recall needs no permission, and nothing else is let through with it."""

from __future__ import annotations

import json

import pytest
from daemon.daemon_world import World

from lcc_daemon.commands.allow_recall import is_one_recall, is_recall_command, is_recall_tool

ID = "0123456789ab"


@pytest.mark.parametrize(
    "command",
    [
        f"lcc recall {ID}",
        f"lcc recall {ID * 5}abcd",
        f"lcc recall {ID} --lines 10-20",
        f"lcc recall --lines=10- {ID}",
        f"lcc recall {ID} --grep 'error: .* in (a|b); > $x `y`' --offset 100 --limit 50",
        f"lcc recall {ID} --grep Traceback",
        f"lcc recall {ID} --raw",
    ],
)
def test_one_recall(command: str) -> None:
    """Every form that only prints; what stands in single quotes is text for any shell."""
    assert is_one_recall(command)


@pytest.mark.parametrize(
    "command",
    [
        "lcc recall",
        "lcc stash gc",
        f"lcc  recall {ID}",
        f"./lcc recall {ID}",
        f"X=1 lcc recall {ID}",
        f"lcc recall {ID}\n",
        f"lcc recall {ID}\nevil",
        f"lcc recall {ID};evil",
        f"lcc recall {ID} && evil",
        f"lcc recall {ID} & evil",
        f"lcc recall {ID} | evil",
        f"lcc recall {ID} > file",
        f"lcc recall {ID} -o file",
        f"lcc recall {ID} --output file",
        f"lcc recall {ID} --grep '-o' file",
        f"lcc recall {ID} --grep -ofile",
        f'lcc recall {ID} --grep "$(evil)"',
        f"lcc recall {ID} --grep 'a'$(evil)",
        f"lcc recall {ID} --grep 'a\n'evil",
        f"lcc recall $(evil) {ID}",
        f"lcc recall `evil` {ID}",
        f"lcc recall {ID} <(evil)",
        f"lcc recall {ID} {{a,b}}",
        f"lcc recall {ID} *",
        f"lcc recall {ID} ~",
        f"lcc recall {ID} #",
        f"lcc recall {ID}\u2028evil",
        None,
        7,
    ],
)
def test_more_than_one_recall(command: object) -> None:
    """Chained, redirected, substituted, written to a file, or another command."""
    assert not is_one_recall(command)  # type: ignore[arg-type]


def test_switches_of_the_tool_count() -> None:
    """A recall outside of the sandbox is asked for; another tool is none of ours."""
    asked = {"tool_name": "Bash", "tool_input": {"command": f"lcc recall {ID}", "description": "d", "timeout": 5}}
    assert is_recall_command(asked)
    assert not is_recall_command({**asked, "tool_input": {**asked["tool_input"], "dangerouslyDisableSandbox": True}})
    assert not is_recall_command({**asked, "tool_name": "Other"})
    assert not is_recall_command({"tool_name": "Bash", "tool_input": "lcc recall"})
    assert is_recall_tool({"tool_name": "mcp__lcc__recall"})
    assert not is_recall_tool({"tool_name": "mcp__lcc__recall_all"})


def test_only_where_the_shell_finds_our_own(world: World) -> None:
    """Without our session start some other program may be called lcc: nothing is allowed. The option is the switch."""
    world.project.mkdir(parents=True, exist_ok=True)
    asked = json.dumps(
        {"session_id": "one", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
        | {"tool_input": {"command": f"lcc recall {ID}"}}
    )
    assert world.client("allow-recall", asked).stdout == b""
    world.cli("stop")
    started = json.dumps({"session_id": "one", "source": "startup"})
    world.client("session-start", started, CLAUDE_ENV_FILE=str(world.root / "a file's env"))
    assert (world.root / "a file's env").read_text().startswith("export PATH='")
    assert (world.runtime / "recall" / "one").exists(), "before the daemon is there: the first call may be sooner"
    answer = json.loads(world.client("allow-recall", asked).stdout)["hookSpecificOutput"]
    assert (answer["hookEventName"], answer["permissionDecision"]) == ("PreToolUse", "allow")
    assert world.client("allow-recall", asked, LCC_ALLOW_RECALL="false").stdout == b""
    assert world.client("allow-recall", asked, CLAUDE_PLUGIN_OPTION_ALLOW_RECALL="false").stdout == b""
    assert world.client("allow-recall", b"no json").stdout == b""
