"""What the module makes of the hook client's answers, with a client whose answer is scripted.

The module and the program beside it are the real ones; only ``client.py`` is replaced in a copy of the plugin.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN
from client.conversation import calls, conversation, results, texts
from client.messages_api import MessagesApi, Reply, Script, say, serve
from making import worked_on

from lcc.contract.options import LiveOptions, table

pytestmark = pytest.mark.client

HANDED_OVER = "lcc: left to the built-in summary: "
SCRIPTED = """
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
if sys.argv[1] == "compact":
    asked = sys.stdin.read()
    with open(here + "/asked.json", "w") as file:
        file.write(asked)
    with open(here + "/answer.json") as file:
        answer = json.load(file)
    sys.stderr.write(answer.get("stderr", ""))
    sys.stdout.write(answer["stdout"])
    sys.stdout.flush()
    os._exit(answer.get("exit", 0))
"""


def plan(**changes: Any) -> str:
    """A plan that replaces the first old read, with changes."""
    whole = {"v": 1, "action": "replace", "results": {"toolu_old0": "[a note]"}, "dropped": [], "say": "done"}
    return json.dumps({**whole, **changes})


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "exit code": ({"stdout": plan(), "exit": 3, "stderr": "no disk\nleft"}, "no disk left"),
    "exit code without a word": ({"stdout": plan(), "exit": 3}, "client.py ended with 3"),
    "nothing": ({"stdout": ""}, ""),
    "no JSON": ({"stdout": "Traceback (most recent call last):"}, ""),
    "other version": ({"stdout": plan(v=2)}, "the hook client answered with version 2"),
    "unknown action": ({"stdout": plan(action="melt")}, "the hook client's answer is no plan"),
    "no results": ({"stdout": plan(results=None)}, "the hook client's answer is no plan"),
    "a result that is no text": ({"stdout": plan(results={"toolu_old0": 5})}, "the hook client's answer is no plan"),
    "over 4 MiB": ({"stdout": plan(results={"x": "y" * 5_000_000})}, "the answer of client.py was cut"),
    "a part that is missing": ({"stdout": plan(action="parts", parts=["/nowhere/part"])}, ""),
    "hand-over": ({"stdout": plan(action="hand-over", say="left to the built-in summary: too little")}, "too little"),
}


@dataclass
class Session:
    """A session with three old reads and a client whose next answer can be set."""

    claude: Claude
    api: MessagesApi
    folder: Path

    def answer(self, **answer: Any) -> None:
        (self.folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")

    def asked(self) -> dict[str, Any]:
        asked: dict[str, Any] = json.loads((self.folder / "asked.json").read_text(encoding="utf-8"))
        return asked


@pytest.fixture
def session(current_client: Path, lab: Lab) -> Iterator[Session]:
    plugin = lab.root / "plugin"
    for name in ("hook", ".claude-plugin"):
        shutil.copytree(PLUGIN / name, plugin / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PLUGIN / "hooks.json", plugin)
    folder = plugin / "hook" / "lcc_hook"
    (folder / "client.py").write_text(SCRIPTED, encoding="utf-8")
    files = [lab.write(f"src/{name}.py", f"{name} line\n" * 100) for name in ("one", "two", "three")]
    old = worked_on(lab.project, lab.home, files)
    with (
        serve(Script([Reply([say(f"Reply {number}.")]) for number in range(40)])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[plugin], resume=old.id) as claude,
    ):
        yield Session(claude, api, folder)


def test_broken_answers_hand_over_with_one_line(session: Session) -> None:
    """Each broken answer leaves the built-in summary and one line with the reason; the session stays usable."""
    for number, (name, (answer, reason)) in enumerate(BROKEN.items(), start=1):
        session.answer(**answer)
        said = session.claude.ask("/compact").said_to_user()
        assert len(said) == 1, name
        assert said[0].startswith(HANDED_OVER + reason), name
        assert "\n" not in said[0], name
        assert len(session.api.of("summary")) == number, name
        assert session.claude.ask("Still there?").result == f"Reply {number - 1}.", name


def test_the_client_is_sent_what_it_needs_and_no_more(session: Session) -> None:
    """Trigger, instructions, session, folder, options, and the messages once: no second copy of a result."""
    session.answer(stdout=plan())
    session.claude.ask("/compact keep the names")
    asked = session.asked()
    assert asked.keys() == {
        "v", "trigger", "instructions", "session_id", "cwd", "transcript_path", "agent_id", "options", "messages",
        "context_tokens", "window_tokens", "recall_tool", "moment",
    }  # fmt: skip
    assert (asked["trigger"], asked["instructions"]) == ("manual", "keep the names")
    assert (asked["session_id"], asked["agent_id"]) == (session.claude.session, None)
    assert asked["cwd"] == str(session.claude.lab.project)
    form = {
        row.name: list(row.default) if isinstance(row.default, tuple) else "" if row.default is None else row.default
        for row in table(LiveOptions).values()
        if row.option.form
    }
    assert asked["options"] == form
    assert json.dumps(asked).count("100\\tone line") == 1
    assert {"role", "text"} <= asked["messages"][0].keys() <= {"role", "text", "toolUses", "toolResults"}


def test_a_plan_may_drop_calls_with_their_results(session: Session) -> None:
    """A dropped call goes with its result, the rest of its message stays, and the API takes what is left."""
    session.answer(stdout=plan(dropped=["toolu_old1"]))
    session.claude.ask("/compact")
    session.claude.ask("What is left?")
    items = conversation(session.api.of("main")[-1].body)
    assert [item.key for item in calls(items)] == ["toolu_old0", "toolu_old2"]
    assert results(items)["toolu_old0"].text == "[a note]"
    assert results(items).keys() == {"toolu_old0", "toolu_old2"}
    assert texts(items, "assistant")[0] == "I have read it."
    assert [request.refusal for request in session.api.requests if request.refusal] == []


def test_a_plan_in_parts_is_put_together(session: Session) -> None:
    """A plan too large for the client's pipe comes in files; one that ends inside a word still makes one plan."""
    whole = plan(results={"toolu_old0": "[a note] " + "å" * 1_000_000, "toolu_old1": "[another]"})
    paths = [session.folder / f"part{number}" for number in range(3)]
    size = len(whole) // 3 + 1
    for number, path in enumerate(paths):
        path.write_text(whole[number * size : (number + 1) * size], encoding="utf-8")
    session.answer(stdout=json.dumps({"v": 1, "action": "parts", "parts": [str(path) for path in paths]}))
    said = session.claude.ask("/compact").said_to_user()
    session.claude.ask("What is left?")
    after = results(conversation(session.api.of("main")[-1].body))
    assert said[0].startswith("lcc: done in ")
    assert after["toolu_old0"].text == "[a note] " + "å" * 1_000_000
    assert after["toolu_old1"].text == "[another]"
