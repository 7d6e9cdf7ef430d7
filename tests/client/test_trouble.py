"""Whatever happens to the daemon, the folders or the options: the session goes on, and one line says what was done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import programs
import pytest
from client.claude_process import Claude, Lab, Turn
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results, texts
from client.messages_api import SUMMARY_REQUEST, MessagesApi, Reply, Script, say, serve, words_of
from making import SessionFile, worked_on

pytestmark = pytest.mark.client

HANDED_OVER = "lcc: left to the built-in summary: "
NOT_COMPACTED = "Not compacted · "


def text_of(turn: Turn) -> str:
    """Everything that the client said in a turn."""
    return json.dumps(turn.events, ensure_ascii=False)


def daemon(lab: Lab, *words: str) -> str:
    """What the daemon's own command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "lcc_daemon", *words],
        env=lab.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def running_daemon(lab: Lab) -> int:
    """The process id of the daemon, started first where none runs."""
    daemon(lab, "start")
    return int(json.loads(daemon(lab, "status", "--json"))["pid"])


def stop_daemon(lab: Lab) -> None:
    running_daemon(lab)
    daemon(lab, "stop")


def kill_daemon(lab: Lab) -> None:
    os.kill(running_daemon(lab), signal.SIGKILL)


def hang_daemon(lab: Lab) -> None:
    os.kill(running_daemon(lab), signal.SIGSTOP)


def open_folder(lab: Lab) -> None:
    running_daemon(lab)
    (lab.runtime / "lcc").chmod(0o777)


def break_configuration(lab: Lab) -> None:
    file = lab.home / ".config" / "lcc" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[[[")


def nothing(lab: Lab) -> None:
    """Nothing happens."""


@dataclass(frozen=True)
class Trouble:
    """What happens before /compact, and what the user then reads: the start of the line, or None for no line.

    ``stays`` is said in the line's place where the session stays as it is.
    """

    name: str
    cause: Callable[[Lab], None]
    line: str | None
    stays: str | None = None
    options: dict[str, object] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    lines_of_file: int = 500


REPLACED = "lcc: kept every message and "
TROUBLES = [
    Trouble("daemon warm", running_daemon, REPLACED),
    Trouble("daemon stopped", stop_daemon, REPLACED),
    Trouble("daemon killed between", kill_daemon, REPLACED),
    Trouble("daemon hung", hang_daemon, REPLACED),
    Trouble("runtime folder open to others", open_folder, None, "/"),
    Trouble("configuration that cannot be read", break_configuration, None, "/"),
    Trouble("no interpreter", stop_daemon, HANDED_OVER, env={"LCC_PYTHON": "/nowhere/python3"}),
    Trouble("too little to remove", nothing, None, "only ", options={"min_reduction": 0.999}),
    Trouble("nothing to remove", nothing, None, "no tool result ", lines_of_file=1),
    Trouble("switched off", nothing, None, options={"enabled": False}),
]


@dataclass
class Outcome:
    """One /compact and the prompt after it."""

    turn: Turn
    answer: Turn
    api: MessagesApi
    session: SessionFile


def compact_once(client: Path, lab: Lab, trouble: Trouble, plugin: Path = PLUGIN) -> Outcome:
    """A session with old reads, the trouble, /compact, and one more prompt."""
    lab.env.update(trouble.env)
    lines = "".join(f"line {number}: something worth removing\n" for number in range(trouble.lines_of_file))
    session = worked_on(lab.project, lab.home, [lab.write("src/one.py", lines)])
    settings = {"pluginConfigs": {"lcc@inline": {"options": trouble.options}}}
    with (
        serve(Script([Reply([say("Here.")])])) as (api, url),
        Claude(client, lab, url, plugin_dirs=[plugin], resume=session.id, settings=settings) as claude,
    ):
        claude.wait(lambda event: event.get("subtype") == "hook_response")
        trouble.cause(lab)
        return Outcome(claude.ask("/compact"), claude.ask("Are you there?"), api, session)


def words_after_the_summary_request(done: Outcome) -> str:
    """What the summariser is told beside the conversation: the client's own request and what the guide adds."""
    (summary,) = done.api.of("summary")
    return words_of(summary.body["messages"]).partition(SUMMARY_REQUEST)[2]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_the_session_goes_on(current_client: Path, lab: Lab, table: Table, trouble: Trouble) -> None:
    """The next prompt is answered; the context holds notes after a replacement, else the summary."""
    done = compact_once(current_client, lab, trouble)
    said = done.turn.said_to_user()
    items = conversation(done.api.of("main")[-1].body)
    replaced = trouble.line == REPLACED
    sees = "notes and every text" if replaced else "everything" if trouble.stays else "the built-in summary"
    table.add(trouble.name, sees, done.turn, lab)
    assert done.answer.result == "Here."
    assert [request.refusal for request in done.api.requests if request.refusal] == []
    assert len(said) == (trouble.line is not None)
    assert all(line.startswith(trouble.line or "") for line in said)
    assert ("summary" in done.api.kinds()) is not (replaced or trouble.stays is not None)
    if trouble.stays:
        assert NOT_COMPACTED + trouble.stays in text_of(done.turn)
        assert results(items)["toolu_old0"].text.startswith("1\tline 0")
        return
    if trouble.line is None:
        assert str(lab.project / "src" / "one.py") not in words_after_the_summary_request(done)
    if replaced:
        assert results(items)["toolu_old0"].text.startswith("[removed: re-read ")
    else:
        assert any("THE BUILT-IN SUMMARY" in text for text in texts(items, "user"))


@pytest.mark.parametrize("word", ["", "shorter"], ids=["asked again", "asked for a summary"])
def test_a_second_compaction_at_the_same_point(current_client: Path, lab: Lab, table: Table, word: str) -> None:
    """/compact twice in a row: nothing is destroyed, unless a word of instructions asks for a summary."""
    lines = "".join(f"line {number}: something worth removing\n" for number in range(500))
    session = worked_on(lab.project, lab.home, [lab.write("src/one.py", lines)])
    with (
        serve(Script([Reply([say("Here.")])])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        first, second = claude.ask("/compact"), claude.ask(f"/compact {word}".strip())
        answer = claude.ask("Are you there?")
    table.add(
        f"compacted again at once, {word or 'no word'}", "the built-in summary" if word else "as it was", second, lab
    )
    assert [line.startswith(REPLACED) for line in first.said_to_user()] == [True]
    if word:
        assert second.said_to_user() == [HANDED_OVER + "nothing new to remove since the last compaction"]
        assert api.kinds() == "summary main"
    else:
        assert second.said_to_user() == []
        assert NOT_COMPACTED + "nothing new to remove since the last compaction" in text_of(second)
        assert api.kinds() == "main"
        assert results(conversation(api.of("main")[-1].body))["toolu_old0"].text.startswith("[removed: re-read ")
    assert answer.result == "Here."


def test_a_session_file_that_went_away_is_noticed(current_client: Path, lab: Lab, table: Table) -> None:
    """Without the session file nobody knows what the event hides: the built-in summary runs."""
    done = compact_once(current_client, lab, Trouble("session file gone", take_session_file_away, HANDED_OVER))
    (line,) = done.turn.said_to_user()
    table.add("session file gone", "the built-in summary", done.turn, lab)
    assert line.startswith(HANDED_OVER)
    assert "session file" in line or "No such file" in line
    assert done.answer.result == "Here."


def take_session_file_away(lab: Lab) -> None:
    for path in lab.home.glob(".claude/projects/*/*.jsonl"):
        path.rename(path.with_suffix(".gone"))


def test_a_refused_module_leaves_the_guide(current_client: Path, lab: Lab, table: Table) -> None:
    """A client that refuses the module still runs the command hooks: the summariser is told what is on disk."""
    plugin = lab.root / "plugin"
    for name in ("hook", ".claude-plugin"):
        shutil.copytree(PLUGIN / name, plugin / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PLUGIN / "hooks.json", plugin)
    module = plugin / "hook" / "compact.mjs"
    text = module.read_text(encoding="utf-8")
    assert "let why =" in text
    module.write_text(text.replace("let why =", "let why = globalThis.keep($) ??"), encoding="utf-8")
    done = compact_once(current_client, lab, Trouble("module refused", running_daemon, None), plugin)
    table.add("module refused", "the summary, and what the guide gives back", done.turn, lab)
    assert "module" in " ".join(line for line in lab.debug_log.read_text().splitlines() if "[ERROR]" in line)
    assert done.turn.said_to_user() == []
    assert str(lab.project / "src" / "one.py") in words_after_the_summary_request(done)
    assert done.answer.result == "Here."
    words = json.dumps(done.api.of("main")[-1].body["messages"])
    assert "THE BUILT-IN SUMMARY" in words
    assert "Question 7?" in words


@pytest.mark.parametrize("options", [{}, {"min_reduction": 0.999}], ids=["replaced", "handed over"])
def test_the_newest_pass_is_explained_by_hand(current_client: Path, lab: Lab, options: dict[str, object]) -> None:
    """`lcc explain --last` in the project: what went, or why nothing did; elsewhere none is there."""
    compact_once(current_client, lab, Trouble("explained", nothing, None, options=options))
    done = programs.run_text("lcc", "explain", "--last", env=lab.environment(), cwd=lab.project)
    assert done.returncode == 0, done.stderr
    assert f"Worth it: {'no' if options else 'yes'}" in done.stdout
    assert str(lab.home) in done.stderr
    elsewhere = programs.run_text("lcc", "explain", "--last", env=lab.environment(), cwd=lab.home)
    assert elsewhere.returncode == 2
    assert "no compaction of a live session of this folder" in elsewhere.stderr
