"""`lcc --help` is quick, says what there is, and a command imports only what it needs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from cli.cli_world import World

from lcc.cli import COMMANDS

HEAVY = ("httpx", "tokenizers", "watchfiles", "orjson", "rich", "mcp", "anyio", "lcc.relevance", "lcc.transcript")


_TELL_AT_EXIT = """
import atexit, sys
atexit.register(lambda: print("modules:", *sys.modules, file=sys.stderr))
from lcc.cli import main
main()
"""


def imported_by(world: World, *arguments: str) -> set[str]:
    """The modules that one run of the program has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", _TELL_AT_EXIT, *arguments],
        cwd=world.folder,
        env=world.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return set(done.stderr.rpartition("modules:")[2].split())


def test_help_imports_nothing_that_it_does_not_use(world: World) -> None:
    """The list of commands costs neither the libraries of the commands nor the commands themselves."""
    imported = imported_by(world, "--help")

    assert "typer" in imported
    assert not {name for name in imported if name.split(".")[0] in HEAVY or name.startswith(HEAVY)}


def test_an_explanation_imports_no_network_and_no_tokenizer(world: World) -> None:
    """Reading a report needs neither a client nor a vocabulary."""
    imported = imported_by(world, "explain", "missing.json")

    assert "lcc.commands.explain" in imported
    assert not {"httpx", "tokenizers", "watchfiles", "mcp"} & imported


def test_a_rules_pass_never_loads_the_http_client(world: World) -> None:
    """Without a judge there is nothing to call."""
    imported = imported_by(world, "compact", "session.jsonl", "--rules-mode", "recoverable", "--dry-run")

    assert "lcc.relevance.transcript" in imported
    assert not {"httpx", "watchfiles", "mcp"} & imported


def test_help_lists_every_command_with_a_line(world: World) -> None:
    """Whoever asks sees all there is."""
    ran = world.lcc("--help")

    assert ran.code == 0
    for name, command in COMMANDS.items():
        assert name in ran.text
        assert command.help.split(":")[0][:30] in ran.text


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_of_its_own(world: World, name: str) -> None:
    """A name in the list is a command that can be run."""
    ran = world.lcc(name, "--help")

    assert ran.code == 0, ran.err
    assert f"lcc {name}" in ran.text


def test_an_unknown_command_is_bad_input_with_a_suggestion(world: World) -> None:
    """A slip of the finger costs no search."""
    ran = world.lcc("explian", "x")

    assert ran.code == 2
    assert "explain" in ran.err
    assert "Traceback" not in ran.err


def test_the_version_is_the_installed_one(world: World) -> None:
    """--version prints it and stops."""
    from importlib.metadata import version

    assert world.lcc("--version").text == f"lcc {version('lcc-claude-code')}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_with_examples_and_exit_codes(world: World, name: str) -> None:
    """Each example's options are options of the command, and the help says what the exit codes mean."""
    shown = world.lcc(name, "--help").text
    assert "Exit codes: 0 done; 1 the run failed; 2 the input or an option is wrong." in shown
    assert COMMANDS[name].examples
    for line in COMMANDS[name].examples:
        assert f"\n    {line}\n" in shown
        program, command, *words = line.partition("-- ")[2].split() if " -- " in line else line.split()
        assert (program, command) == ("lcc", name)
        for word in words:
            if word.startswith("-"):
                assert re.search(rf"(?m)^  (?:-\w, )?{word}\b|^  {word}\b", shown), line


COMPLETIONS = {
    "lcc ": ["compact", "doctor", "explain", "log", "mcp", "recall", "restore", "sessions", "stash", "watch"],
    "lcc compact --rules-m": ["--rules-mode"],
    "lcc compact --rules-mode ": ["auto", "lossless", "lossy", "recoverable", "stashed"],
    "lcc stash v": ["verify"],
    "lcc explain --la": ["--last"],
}


@pytest.mark.parametrize("line", COMPLETIONS)
def test_a_shell_completes_commands_options_and_values(world: World, line: str) -> None:
    """As bash asks; zsh and fish ask in their own variables, with the same answers."""
    words = line.split(" ")
    bash = {"_LCC_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    assert sorted(world.lcc(env=bash).text.split()) == COMPLETIONS[line]
    fish = {"_LCC_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert sorted(row.split("\t")[0] for row in world.lcc(env=fish).text.splitlines()) == COMPLETIONS[line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown(world: World, shell: str) -> None:
    """The text to put into the shell's own file."""
    ran = world.lcc("--show-completion", shell)
    assert (ran.code, "_LCC_COMPLETE" in ran.text) == (0, True)
