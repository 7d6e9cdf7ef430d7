"""Compaction in the middle of a turn: the turn goes on, whatever the API demands of an open call."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import Item, conversation, results, texts
from client.messages_api import MessagesApi, Reply, Script, bash, call, say, serve, think
from making import SessionFile, worked_on

pytestmark = pytest.mark.client

FULL = 90_000
"""Input tokens reported where the context is to be full: the window below compacts at 67,000."""
ENABLED = "claude-sonnet-4-5-20250929"
"""A model that the client asks with ``thinking: enabled``."""
CLOSING, GO_ON = "[lcc] The context was compacted in the middle of this turn.", "[lcc] Go on with the task from here."


def long_text(name: str) -> str:
    return "".join(f"{name} line {number}: something worth removing\n" for number in range(500))


@pytest.fixture
def session(lab: Lab) -> SessionFile:
    """A session with two large reads far behind it, whose client compacts at 67,000 tokens."""
    lab.env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = "100000"
    files = [lab.write(f"src/{name}.py", long_text(name)) for name in ("one", "two")]
    return worked_on(lab.project, lab.home, files)


@dataclass
class Run:
    """A client on a session, with its script running."""

    client: Path
    lab: Lab
    api: MessagesApi
    url: str

    def resume(self, session: str, model: str | None = None, **settings: object) -> Claude:
        options = {"pluginConfigs": {"lcc@inline": {"options": settings}}} if settings else None
        return Claude(
            self.client, self.lab, self.url, plugin_dirs=[PLUGIN], resume=session, model=model, settings=options
        )

    def seen(self) -> list[Item]:
        return conversation(self.api.of("main")[-1].body)


def assert_compacted(run: Run, gone: tuple[str, ...] = ("toolu_old0", "toolu_old1")) -> None:
    """The old reads are notes, nothing was refused, and no summary was asked for."""
    after = results(run.seen())
    for call_id in gone:
        assert after[call_id].text.startswith("[removed: re-read ")
    assert [request.refusal for request in run.api.requests if request.refusal] == []
    assert "summary" not in run.api.kinds()


@pytest.mark.parametrize(("thinking", "model"), [("adaptive", None), ("enabled", ENABLED)])
def test_the_turn_goes_on(
    current_client: Path, lab: Lab, session: SessionFile, table: Table, thinking: str, model: str | None
) -> None:
    """Auto-compaction behind a tool result: the turn ends as scripted, and a new process sees the same."""
    script = Script([
        Reply([think("a step"), say("Working."), bash("toolu_step", "echo step")], input_tokens=FULL),
        Reply([think("the end"), say("Finished.")], input_tokens=500),
        Reply([say("In a new process.")]),
    ])  # fmt: skip
    with serve(script) as (api, url):
        run = Run(current_client, lab, api, url)
        with run.resume(session.id, model) as claude:
            turn = claude.ask("Do the step.")
            in_turn = run.seen()
        with run.resume(session.id, model) as claude:
            claude.ask("Are you there?")
        table.add(f"mid-turn, thinking {thinking}", "notes, every text, the turn closed and gone on", turn, lab)
        assert api.of("main")[0].body["thinking"]["type"] == thinking
        assert turn.result == "Finished."
        assert_compacted(run)
        assert [item.text for item in in_turn[-2:]] == [closing_of(in_turn), GO_ON]
        assert results(in_turn)["toolu_step"].text == "step"
        assert run.seen()[: len(in_turn)] == in_turn


def closing_of(items: list[Item]) -> str:
    return next(item.text for item in items if item.text.startswith(CLOSING))


def test_parallel_calls_that_are_open_keep_their_results(
    current_client: Path, lab: Lab, session: SessionFile, table: Table
) -> None:
    """Each of three calls that ended out of order has its own result after the compaction."""
    open_calls = [
        bash("toolu_slow", "sleep 0.3; echo slow"),
        bash("toolu_fast", "echo fast"),
        bash("toolu_bad", "exit 4"),
    ]
    script = Script([Reply(open_calls, input_tokens=FULL), Reply([say("Finished.")], input_tokens=500)])
    with serve(script) as (api, url):
        run = Run(current_client, lab, api, url)
        with run.resume(session.id) as claude:
            turn = claude.ask("All at once.")
        table.add("parallel calls, mid-turn", "each result at its call", turn, lab)
        assert_compacted(run)
        after = results(run.seen())
        assert [after[key].text.strip() for key in ("toolu_slow", "toolu_fast", "toolu_bad")] == [
            "slow",
            "fast",
            "Exit code 4",
        ]
        assert [after[key].flag for key in ("toolu_slow", "toolu_fast", "toolu_bad")] == [False, False, True]


def test_words_typed_at_the_last_moment_stay(
    current_client: Path, lab: Lab, session: SessionFile, table: Table
) -> None:
    """What the user typed while the last step ran is the last thing the model reads after the compaction."""
    gate = Event()
    words = "Stop there, please: QUOKKA."
    script = Script([
        Reply([bash("toolu_step", "echo step")], input_tokens=FULL, hold=gate),
        Reply([say("Stopped.")], input_tokens=500),
    ])  # fmt: skip
    with serve(script) as (api, url):
        run = Run(current_client, lab, api, url)
        with run.resume(session.id) as claude:
            since, begun = len(claude.events), time.monotonic()
            claude.send("Do the step.")
            api.wait_for("main", 1)
            claude.send(words)
            claude.wait_for_queue(words)
            gate.set()
            turn = claude.finish(since, begun)
        table.add("words typed mid-turn", "the words, last", turn, lab)
        assert_compacted(run)
        assert run.seen()[-1] == Item("user", "", words)
        assert run.seen()[-2].text.startswith(CLOSING)


def test_a_background_agents_report_stays(current_client: Path, lab: Lab, session: SessionFile, table: Table) -> None:
    """A sub-agent that ends while the last step runs: its report is there after the compaction."""
    gate = Event()
    task = "You are the helper. Say it."
    ask = {"description": "help", "prompt": task, "subagent_type": "general-purpose"}
    script = Script(
        [
            Reply([call("toolu_agent", "Agent", **ask)], input_tokens=500),
            Reply([bash("toolu_step", "echo step")], input_tokens=FULL, hold=gate),
            Reply([say("Thank you.")], input_tokens=500),
        ],
        agents={task: [Reply([say("HELPER-REPORT: seven.")], input_tokens=500)]},
    )
    with serve(script) as (api, url):
        run = Run(current_client, lab, api, url)
        with run.resume(session.id) as claude:
            since, begun = len(claude.events), time.monotonic()
            claude.send("Ask the helper.")
            api.wait_for("main", 2)
            claude.wait_for_queue("<task-notification>")
            gate.set()
            turn = claude.finish(since, begun)
        table.add("a background agent's report, mid-turn", "the report, last", turn, lab)
        assert_compacted(run)
        assert "HELPER-REPORT: seven." in run.seen()[-1].text
        assert run.seen()[-2].text.startswith(CLOSING)


def test_an_interrupted_call_can_be_compacted(
    current_client: Path, lab: Lab, session: SessionFile, table: Table
) -> None:
    """After Escape and /compact the next prompt is answered, and the interruption is still told."""
    script = Script([Reply([think("long"), bash("toolu_long", "tail -f /dev/null")]), Reply([say("Fine.")])])
    with serve(script) as (api, url):
        run = Run(current_client, lab, api, url)
        with run.resume(session.id, ENABLED) as claude:
            since, begun = len(claude.events), time.monotonic()
            claude.send("Do the long one.")
            claude.wait(lambda event: is_call(event, "toolu_long"), since)
            claude.interrupt()
            claude.finish(since, begun)
            turn = claude.ask("/compact")
            answer = claude.ask("Go on differently.")
        table.add("interrupted, then /compact", "the error result, closed, the next prompt", turn, lab)
        assert answer.result == "Fine."
        assert_compacted(run, gone=("toolu_old0",))  # the call before the latest error stays
        assert results(run.seen())["toolu_long"].flag
        assert any("interrupted" in text for text in texts(run.seen(), "user"))
        assert closing_of(run.seen())


def is_call(event: dict[str, object], call_id: str) -> bool:
    message = event.get("message")
    return (
        event.get("type") == "assistant"
        and isinstance(message, dict)
        and any(block.get("id") == call_id for block in message["content"])
    )


def test_two_compactions_in_one_turn_leave_one_closing_note(
    current_client: Path, lab: Lab, session: SessionFile, table: Table
) -> None:
    """The closing entries of an earlier compaction go at the next; the second is closed like the first."""
    third = lab.write("src/third.py", long_text("third"))
    script = Script([
        Reply([think("one"), bash("toolu_step", "echo step")], input_tokens=FULL),
        Reply([think("two"), call("toolu_third", "Read", file_path=str(third))], input_tokens=500),
        *[Reply([bash(f"toolu_more{number}", f"echo {number}")], input_tokens=500) for number in range(8)],
        Reply([bash("toolu_last", "echo last")], input_tokens=FULL),
        Reply([say("Finished.")], input_tokens=500),
    ])  # fmt: skip
    with serve(script) as (api, url):
        run = Run(current_client, lab, api, url)
        with run.resume(session.id, ENABLED) as claude:
            turn = claude.ask("A lot to do.")
        table.add("two compactions in one turn", "notes, one closing note", turn, lab)
        assert turn.result == "Finished."
        assert_compacted(run)
        assert results(run.seen())["toolu_third"].text.startswith("[removed: re-read ")
        ours = [item.text for item in run.seen() if item.text.startswith("[lcc]")]
        assert ours == [closing_of(run.seen()), GO_ON]


def test_a_subagents_own_context_is_compacted(
    current_client: Path, lab: Lab, session: SessionFile, table: Table
) -> None:
    """A sub-agent whose context is full goes on with notes; the main session is not touched."""
    task = "You are the helper. Read everything."
    file = lab.write("src/agent.py", long_text("agent"))
    steps = [Reply([bash(f"toolu_in{number}", f"echo {number}")], input_tokens=500) for number in range(8)]
    agent = [
        Reply([call("toolu_inner", "Read", file_path=str(file))], input_tokens=500),
        *steps,
        Reply([bash("toolu_inlast", "echo last")], input_tokens=FULL),
        Reply([say("HELPER-REPORT.")], input_tokens=500),
    ]
    ask = {"description": "help", "prompt": task, "subagent_type": "general-purpose", "run_in_background": False}
    script = Script(
        [Reply([call("toolu_agent", "Agent", **ask)], input_tokens=500), Reply([say("It told me.")], input_tokens=500)],
        agents={task: agent},
    )
    with serve(script) as (api, url):
        run = Run(current_client, lab, api, url)
        with run.resume(session.id) as claude:
            turn = claude.ask("Let the helper do it.")
        table.add("a sub-agent's own compaction", "the agent reads notes and goes on", turn, lab)
        assert turn.result == "It told me."
        after = conversation(api.of("agent")[-1].body)
        assert after[0].text.startswith(task)
        assert results(after)["toolu_inner"].text.startswith(f"[removed: re-read {file} ")
        assert "HELPER-REPORT." in results(run.seen())["toolu_agent"].text
        assert [request.refusal for request in api.requests if request.refusal] == []
        assert "summary" not in api.kinds()


def test_a_full_context_between_turns_is_compacted_ahead_of_the_prompt(
    current_client: Path, lab: Lab, session: SessionFile, table: Table
) -> None:
    """Auto-compaction at the next prompt: the prompt is answered, and nothing has to be closed."""
    script = Script([
        Reply([say("A long answer.")], input_tokens=FULL),
        Reply([say("Still here.")], input_tokens=500),
    ])  # fmt: skip
    with serve(script) as (api, url):
        run = Run(current_client, lab, api, url)
        with run.resume(session.id, ENABLED) as claude:
            claude.ask("Fill it.")
            turn = claude.ask("And now?")
        table.add("auto, between turns", "notes, every text, the prompt last", turn, lab)
        assert turn.result == "Still here."
        assert_compacted(run)
        assert run.seen()[-1] == Item("user", "", "And now?")
        assert not [item for item in run.seen() if item.text.startswith("[lcc]")]


def test_a_context_that_stays_over_its_limit_is_left_alone(
    current_client: Path, lab: Lab, session: SessionFile, table: Table
) -> None:
    """Where a replacement did not help, the client is not sent round in a circle. The limit of this session is far from
    the window's end, so nothing is summarised (test_stays has the one where it must be)."""
    script = Script([
        Reply([bash("toolu_step", "echo step")], input_tokens=FULL),
        Reply([bash("toolu_next", "echo next")], input_tokens=FULL),
        Reply([say("Finished.")], input_tokens=500),
    ])  # fmt: skip
    with serve(script) as (api, url):
        run = Run(current_client, lab, api, url)
        with run.resume(session.id) as claude:
            turn = claude.ask("Do both.")
        table.add("still over its limit after a replacement", "the notes, no summary", turn, lab)
        assert turn.result == "Finished."
        replaced, figures, skipped = turn.said_to_user()
        assert replaced.startswith("lcc: kept every message ")
        assert figures.startswith("lcc: the context is at 90k of 1000k tokens (9 %)")
        assert skipped.startswith("lcc: nothing new to remove since the last compaction; 90k of 1000k tokens in use")
        assert api.kinds() == "main main main"
        assert [request.refusal for request in api.requests if request.refusal] == []
