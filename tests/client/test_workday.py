"""One long session with everything in it, compacted and resumed twice by the real client.

The session runs once; each test looks at one promise in each of its four stages.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest
from client.claude_process import TOOLS, Claude, Lab, Turn
from client.conftest import PLUGIN, Table, lab_folder
from client.conversation import Item, calls, conversation, results, texts
from client.messages_api import Block, MessagesApi, Reply, Script, bash, blocks_of, call, say, serve, think
from client.pictures import png

pytestmark = pytest.mark.client

STAGES = ("first", "first resumed", "second", "second resumed")
GONE = {"first": {"toolu_big", "toolu_other"}, "second": {"toolu_big", "toolu_other", "toolu_third"}}
"""What each compaction must have removed: reads of files that are unchanged on disk."""
NO_TEXT = {"toolu_picture", "toolu_screen", "toolu_search", "toolu_shot"}
"""Results that held something else than text before."""
QUEUED = "One more thing while you work: ZEBRA-2."
PROMPTS = ["Start with the picture and @att.txt: ZEBRA-1.", "Second question.", "Third question.", "Fourth one."]
MORE_PROMPTS = [f"More, {number}." for number in range(1, 8)]
LATER_PROMPTS = ["After the first.", "In a new process.", *MORE_PROMPTS, "After the second."]
SKILL = "---\nname: tidy\ndescription: how to tidy\n---\nSKILL-RULE: tidy every file.\n"
AGENT_TASK = "You are the helper. Report."
MCP_TOOLS = "mcp__test__words,mcp__test__picture"


@dataclass
class Day:
    """What was recorded at each stage: the first request after it, and the turn of the compaction itself."""

    lab: Lab
    api: MessagesApi
    before: dict[str, list[Item]] = field(default_factory=dict)
    after: dict[str, list[Item]] = field(default_factory=dict)
    whole: dict[str, list[Block]] = field(default_factory=dict)
    """Every block of the first request after each stage, with what the client adds around a conversation."""
    turns: dict[str, Turn] = field(default_factory=dict)

    def seen(self) -> list[Item]:
        """What the model was sent last."""
        return conversation(self.api.of("main")[-1].body)

    def note_after(self, stage: str) -> None:
        """Note what the model was sent at the end of a stage."""
        self.after[stage] = self.seen()
        self.whole[stage] = [b for m in self.api.of("main")[-1].body["messages"] for b in blocks_of(m)]


def source_text(name: str, lines: int) -> str:
    return "".join(f"{name} line {number}: something worth removing\n" for number in range(lines))


def fill_project(lab: Lab) -> None:
    for name, lines in (("big", 700), ("other", 400), ("third", 900)):
        lab.write(f"src/{name}.py", source_text(name, lines))
    lab.write("att.txt", "ATTACHED CONTENT\n")
    lab.write(".claude/skills/tidy/SKILL.md", SKILL)
    for name in ("picture.png", "screen.png"):
        (lab.project / name).write_bytes(png())
    server = {"command": "/usr/bin/env", "args": ["python3", str(Path(__file__).parent / "mcp_server.py")]}
    (lab.root / "mcp.json").write_text(json.dumps({"mcpServers": {"test": server}}), encoding="utf-8")


def read(lab: Lab, call_id: str, name: str) -> Block:
    return call(call_id, "Read", file_path=str(lab.project / name))


def script(lab: Lab, gate: Event) -> Script:
    ask_helper = {
        "description": "help",
        "prompt": AGENT_TASK,
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    first = [
        Reply([
            think("where to begin"),
            say("Reading."),
            say("Both at once."),
            read(lab, "toolu_big", "src/big.py"),
            read(lab, "toolu_other", "src/other.py"),
        ]),
        Reply([bash("toolu_works", "echo fine"), bash("toolu_fails", "echo out; exit 3")], hold=gate),
        Reply([call("toolu_words", "mcp__test__words"), call("toolu_shot", "mcp__test__picture")]),
        Reply([read(lab, "toolu_picture", "picture.png"), read(lab, "toolu_screen", "screen.png")]),
        Reply([call("toolu_skill", "Skill", skill="tidy")]),
        Reply([call("toolu_search", "ToolSearch", query="select:WebFetch", max_results=5)]),
        Reply([call("toolu_agent", "Agent", **ask_helper)]),
        Reply([think("enough"), say("Seen it all.")]),
    ]  # fmt: skip
    chat = [Reply([say(f"Answer {number}.")]) for number in range(2, 6)]
    later = [
        Reply([say("Here again.")]),
        Reply([read(lab, "toolu_third", "src/third.py")]),
        *[Reply([say(f"Later answer {number}.")]) for number in range(1, 8)],
        Reply([say("Done for today.")]),
        Reply([say("Good morning.")]),
    ]
    return Script([*first, *chat, *later], agents={AGENT_TASK: [Reply([say("HELPER-REPORT: all is well.")])]})


def morning(day: Day, claude: Claude, gate: Event) -> None:
    """The first prompts, with words typed while the agent works, and the first compaction."""
    image = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png()).decode()}
    since, begun = len(claude.events), time.monotonic()
    claude.send([{"type": "text", "text": PROMPTS[0]}, {"type": "image", "source": image}])
    day.api.wait_for("main", 2)
    claude.send(QUEUED)
    claude.wait_for_queue(QUEUED)
    gate.set()
    claude.finish(since, begun)
    for prompt in PROMPTS[1:]:
        claude.ask(prompt)
    day.before["first"] = day.seen()
    (day.lab.project / "screen.png").write_bytes(png(colour=(0, 0, 255)))
    day.turns["first"] = claude.ask("/compact mind the zebra")
    claude.ask(LATER_PROMPTS[0])
    day.note_after("first")


def afternoon(day: Day, claude: Claude) -> None:
    """The same session in a new process: more work, and the second compaction."""
    claude.ask(LATER_PROMPTS[1])
    day.note_after("first resumed")
    for prompt in MORE_PROMPTS:
        claude.ask(prompt)
    day.before["second"] = day.seen()
    day.turns["second"] = claude.ask("/compact")
    claude.ask(LATER_PROMPTS[-1])
    day.note_after("second")


@pytest.fixture(scope="module")
def day(current_client: Path, table: Table) -> Iterator[Day]:
    gate = Event()
    with lab_folder() as lab:
        fill_project(lab)
        with serve(script(lab, gate)) as (api, url):
            recorded = Day(lab, api)
            how = {
                "plugin_dirs": [PLUGIN],
                "tools": f"{TOOLS},ToolSearch,{MCP_TOOLS}",
                "arguments": ["--mcp-config", str(lab.root / "mcp.json")],
            }
            with Claude(current_client, lab, url, **how) as claude:
                morning(recorded, claude, gate)
                session = claude.session
            table.add("manual compaction", "notes and every text", recorded.turns["first"], lab)
            with Claude(current_client, lab, url, resume=session, **how) as claude:
                afternoon(recorded, claude)
            table.add("second compaction, resumed", "notes and every text", recorded.turns["second"], lab)
            with Claude(current_client, lab, url, resume=session, **how) as claude:
                claude.ask("Tomorrow.")
                recorded.note_after("second resumed")
            yield recorded


def base(stage: str) -> str:
    return stage.removesuffix(" resumed")


@pytest.mark.parametrize("stage", STAGES)
def test_proven_reads_become_notes_that_name_their_file(day: Day, stage: str) -> None:
    """Every read that is unchanged on disk is a note with its path, and nothing of its content is left."""
    after = results(day.after[stage])
    for call_id in GONE[base(stage)]:
        name = call_id.removeprefix("toolu_")
        path = day.lab.project / "src" / f"{name}.py"
        assert after[call_id].text.startswith(f"[removed: re-read {path} ")
        assert "something worth removing" not in after[call_id].text


@pytest.mark.parametrize("stage", STAGES)
def test_every_other_result_is_as_it_was(day: Day, stage: str) -> None:
    """What is not removed comes back byte for byte, with its error flag."""
    before, after = results(day.before[base(stage)]), results(day.after[stage])
    kept = before.keys() - GONE[base(stage)] - NO_TEXT
    assert {"toolu_fails", "toolu_works", "toolu_words", "toolu_agent", "toolu_skill"} <= kept
    assert {call_id: after[call_id] for call_id in kept} == {call_id: before[call_id] for call_id in kept}
    assert after["toolu_fails"].flag
    assert not after["toolu_works"].flag


@pytest.mark.parametrize("stage", STAGES)
def test_calls_stand_in_order_with_their_inputs(day: Day, stage: str) -> None:
    """No call is lost, doubled or moved."""
    before = calls(day.before[base(stage)])
    assert calls(day.after[stage]) == before


@pytest.mark.parametrize("stage", STAGES)
def test_the_assistants_words_are_untouched(day: Day, stage: str) -> None:
    """Each text of the assistant is there once, as its own block, in order."""
    before = texts(day.before[base(stage)], "assistant")
    assert texts(day.after[stage], "assistant")[: len(before)] == before


@pytest.mark.parametrize("stage", STAGES)
def test_the_users_words_are_untouched(day: Day, stage: str) -> None:
    """Each prompt is there once, in order, and so are the words typed while the agent worked."""
    said = PROMPTS + LATER_PROMPTS[: {"first": 1, "first resumed": 2}.get(stage)]
    expected = [said[0], QUEUED, *said[1:]]
    seen = [text for text in texts(day.after[stage], "user") if text in expected]
    assert seen == expected


@pytest.mark.parametrize("stage", STAGES)
def test_queued_words_stand_where_they_were_said(day: Day, stage: str) -> None:
    """Words typed while the agent worked follow the results that they came with."""
    items = day.after[stage]
    place = next(index for index, item in enumerate(items) if item.text == QUEUED)
    assert items[place - 1].key == "toolu_fails"
    assert items[place + 1].key == "toolu_words"


@pytest.mark.parametrize("stage", STAGES)
def test_a_prompts_picture_and_attachment_stay(day: Day, stage: str) -> None:
    """The picture of a prompt and the file that it mentioned are still in the context."""
    pictures = [item for item in day.after[stage] if item.kind == "image"]
    assert pictures == [item for item in day.before["first"] if item.kind == "image"]
    assert len(pictures) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_a_skills_text_stays(day: Day, stage: str) -> None:
    """What a skill told the agent is still there, once, behind the skill's result, as no word of the user's."""
    parts = day.whole[stage]
    (place,) = [index for index, part in enumerate(parts) if "SKILL-RULE" in json.dumps(part)]
    assert parts[place]["text"].startswith("<system-reminder>\n")
    assert parts[place - 1]["tool_use_id"] == "toolu_skill"


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("call_id", ["toolu_picture", "toolu_screen", "toolu_shot"])
def test_a_picture_in_a_result_becomes_a_line_with_a_file_of_its_bytes(day: Day, stage: str, call_id: str) -> None:
    """A picture that was read, one whose file was overwritten since, and one from an MCP server: each has its file."""
    after = results(day.after[stage])[call_id].text
    named = re.search(r"(?:read|Image: source:) (/\S+\.png)", after)
    assert named is not None
    assert Path(named[1]).read_bytes() == png()
    assert (Path(named[1]) == day.lab.project / "picture.png") is (call_id == "toolu_picture")
    assert after.startswith("here it is\n") is (call_id == "toolu_shot")


@pytest.mark.parametrize("stage", STAGES)
def test_tools_that_were_loaded_are_named(day: Day, stage: str) -> None:
    """The client unloads searched tools at a compaction; the result of the search says so and names them."""
    assert "WebFetch" in results(day.after[stage])["toolu_search"].text


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_of_ours_is_left_in_a_finished_turn(day: Day, stage: str) -> None:
    """No closing note stands in a session whose turns are finished."""
    assert not [item for item in day.after[stage] if item.text.startswith("[lcc]")]


@pytest.mark.parametrize("compaction", ["first", "second"])
def test_the_user_reads_one_line(day: Day, compaction: str) -> None:
    """One line: what was kept, what was removed, and how long it took."""
    (line,) = day.turns[compaction].said_to_user()
    assert line.startswith("lcc: kept ")
    assert line.endswith(" ms")


def test_no_model_was_asked_for_a_summary(day: Day) -> None:
    """A replaced compaction sends no request of its own, and the API refused none of the others."""
    assert "summary" not in day.api.kinds().split()
    assert [request.refusal for request in day.api.requests if request.refusal] == []
