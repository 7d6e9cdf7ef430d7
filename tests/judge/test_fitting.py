"""The seed's section 4: what the judge is shown, the stages, the budgets, and failing closed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from judge.judge_world import call, can_be_shown, jev_at, judge, session
from judge.system_one_server import SystemOneServer, always, system_one
from making import session_files

from lcc.contract.reasons import JEV_UNAVAILABLE_FAIL_SAFE
from lcc.judge.errors import TranscriptFitError
from lcc.judge.fitting import StateBudget, fit_state
from lcc.judge.plan import Limits, Plan, plan_requests
from lcc.judge.state import Stage, entries_of, render
from lcc.judge.wire import dumps, one_line
from lcc.relevance.evidence.pins import pin_reasons
from lcc.tokens import TokenCounter, budget_counter
from lcc.transcript import Json, Message, ToolResult, Transcript, parse_payload, read_transcript

# The side-chain file holds no call of its own.
WITH_CALLS = [file for file in session_files() if "sidechain" not in file.name]


class WordCounter:
    """A counter of four characters a token that remembers every text it was given."""

    method = "four characters"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def count(self, text: str) -> int:
        self.seen.append(text)
        return -(-len(text) // 4)


def plan_of(
    transcript: Transcript,
    *,
    state: int = 25000,
    request: int = 30000,
    batch: int = 8,
    counter: TokenCounter | None = None,
    recent: int = 6,
) -> Plan:
    pairs = list(transcript.pairs())
    pins = pin_reasons(pairs, len(transcript.messages), recent)
    return plan_requests(
        transcript,
        [pair for pair in pairs if pair.use.id not in pins],
        pins,
        goal="finish the parser fix",
        model="jev-latest",
        limits=Limits(state, request, batch, recent),
        counter=counter or WordCounter(),
    )


def state_of(plan: Plan) -> Any:
    return json.loads(plan.state.json)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


@pytest.fixture
def server() -> Iterator[SystemOneServer]:
    with system_one(always()) as running:
        yield running


class TestFull:
    """Stage ``full``: as written, and no payload."""

    def test_texts_and_inputs_stay_payloads_do_not(self, server: SystemOneServer) -> None:
        """Every word and every input is shown; of a result, only whether it failed and its length."""
        payload: Any = session(8)
        payload["messages"][4]["toolResults"][0]["is_error"] = True
        judge(parse_payload(payload), jev_at(server.url))

        asked = server.asked[0].json
        shown = list(strings(asked["state"]))
        for message in payload["messages"]:
            assert not message.get("text") or message["text"] in shown
            for use in message.get("toolUses", ()):
                assert use["input"]["command"] in shown
        assert "ok, 900 chars" in shown
        assert "error, 900 chars" in shown
        assert "of the output" not in server.asked[0].body.decode()

    def test_oldest_first(self) -> None:
        """The order is that of the session."""
        plan = plan_of(parse_payload(session(30)))

        numbers = [c["call"] for entry in state_of(plan)["conversation"] for c in entry.get("calls", ())]
        assert numbers == [f"#{n}" for n in range(1, 31)]
        assert plan.state.stage == "full"

    def test_call_without_result_and_result_without_call(self) -> None:
        """An open call and an orphan result are part of the conversation."""
        payload: Any = session(10)
        use: Json = {"tool_use_id": "open", "tool": "Bash", "input": {}}
        payload["messages"].append({"role": "assistant", "toolUses": [use]})
        transcript = parse_payload(payload)
        orphan = ToolResult("gone", "abc", None, (), None)
        messages = (*transcript.messages[:3], Message("user", "", (), (orphan,), None), *transcript.messages[3:])

        shown = list(strings(state_of(plan_of(replace(transcript, messages=messages)))))

        assert "no result yet" in shown
        assert "result without its call: ok, 3 chars" in shown


class TestInputs200:
    """Stage ``inputs-200``: inputs cut to 200 characters, long texts of unpinned messages abridged."""

    def plan(self) -> Plan:
        payload: Any = session(30, input_chars=900, text="Word {n} " + "of a long thought " * 200 + " end {n}")
        payload["messages"][0]["text"] += " goal" * 800
        return plan_of(parse_payload(payload), state=25000)

    def test_stage_and_cuts(self) -> None:
        """No input is longer than 200 characters and a mark; a long text keeps its head and its tail."""
        plan = self.plan()
        conversation = state_of(plan)["conversation"]

        assert plan.state.stage == "inputs-200"
        inputs = [c["input"] for entry in conversation for c in entry.get("calls", ())]
        assert {len(text) for text in inputs} == {201}
        old = conversation[5]["assistant"]
        assert old.startswith("Word 5 of a long thought")
        assert old.endswith("end 5")
        assert "chars left out" in old
        assert len(old) < 1000

    def test_pinned_texts_are_as_written(self) -> None:
        """The first message and the newest ones are not abridged."""
        conversation = state_of(self.plan())["conversation"]

        assert conversation[0]["user"].endswith(" goal" * 800)
        assert len(conversation[-2]["assistant"]) > 3000

    def test_short_inputs_keep_their_shape(self) -> None:
        """An input of up to 200 characters stays an object."""
        plan = plan_of(parse_payload(session(60, input_chars=150, text="word " * 400)))

        assert plan.state.stage == "inputs-200"
        assert all(isinstance(c["input"], dict) for e in state_of(plan)["conversation"] for c in e.get("calls", ()))


class TestCallsOneLine:
    """Stage ``calls-one-line``: a line for each unpinned call, old messages of calls collapsed."""

    def test_unpinned_calls_are_lines_pinned_ones_are_not(self) -> None:
        """A pinned call keeps its input; every other is one line."""
        plan = plan_of(parse_payload(session(200, input_chars=300)), state=16000)
        calls = [c for entry in state_of(plan)["conversation"] for c in entry.get("calls", ())]

        assert plan.state.stage == "calls-one-line"
        lines, objects = [c for c in calls if isinstance(c, str)], [c for c in calls if isinstance(c, dict)]
        assert [c["call"] for c in objects] == ["#198", "#199", "#200"]
        assert lines[0] == "#1 Read step 1 " + ("look at the next part " * 5)[:53] + "…: ok, 900 chars"
        assert all("\n" not in line for line in lines)

    def test_old_messages_of_calls_collapse_oldest_first(self) -> None:
        """Neighbouring messages without words become one entry; its oldest lines are counted when they must be."""
        payload: Any = {"messages": [{"role": "user", "text": "Go."}]}
        for n in range(1, 2001):
            payload["messages"] += call(n)

        plan = plan_of(parse_payload(payload))
        conversation = state_of(plan)["conversation"]

        assert plan.state.stage == "calls-one-line"
        collapsed = conversation[1]["calls"]
        first, last = collapsed[0].split(":")[0].split("-")
        assert first == "#1"
        assert collapsed[1].startswith(f"#{int(last[1:]) + 1} ")
        assert collapsed[-1].startswith("#1997 ")
        assert "Bash" in collapsed[0]
        assert 23000 < plan.state.tokens <= 25000  # no more is collapsed than has to be

    def test_old_texts_give_way_before_recent_ones(self) -> None:
        """Where lines are not enough, the oldest unpinned texts keep less; a pinned text never does."""
        payload: Any = session(150, text="{n} " + "word " * 150)
        payload["messages"][0]["text"] += " goal" * 300

        plan = plan_of(parse_payload(payload), state=23500)
        texts = [entry["assistant"] for entry in state_of(plan)["conversation"] if "assistant" in entry]

        lengths = [len(text) for text in texts[:140]]
        assert lengths == sorted(lengths)
        assert lengths[0] < 300
        assert lengths[-1] > 600
        assert len(state_of(plan)["conversation"][0]["user"]) > 1500

    def test_calls_beside_old_texts_become_a_count_last(self) -> None:
        """Short words with a call each, hundreds of them: the oldest calls are named by number and tool only."""
        plan = plan_of(parse_payload(session(400)), state=10000)
        conversation = state_of(plan)["conversation"]

        assert conversation[1] == {"assistant": "Looking at part 1.", "calls": ["#1 Read"]}
        assert conversation[397]["calls"][0].startswith("#397 Read step 397 ")
        assert 9900 < plan.state.tokens <= 10000

    def test_every_call_that_is_asked_about_can_be_told(self) -> None:
        """A call whose line was collapsed is described by its own questions."""
        payload: Any = {"messages": [{"role": "user", "text": "Go."}]}
        for n in range(1, 2001):
            payload["messages"] += call(n)

        plan = plan_of(parse_payload(payload))

        first = json.loads(plan.body(0))["questions"]["keep_call_t1"]["instructions"]
        assert first.endswith("#1 Read step 1 look at the n: ok, 900 chars")


class TestFailsClosed:
    """When even the last stage does not fit, nothing is judged."""

    def test_error_carries_the_figures(self, server: SystemOneServer) -> None:
        """TranscriptFitError, a ValueError, tells what is needed, what is allowed and what to do; nobody is asked."""
        payload: Any = session(40)
        payload["messages"][0]["text"] = "x " * 60000

        with pytest.raises(TranscriptFitError) as caught:
            judge(parse_payload(payload), jev_at(server.url))

        error = caught.value
        assert isinstance(error, ValueError)
        assert error.allowed == 25000 < error.needed
        assert error.calls == 40
        for figure in ("25000", str(error.needed), "40 calls", "--max-state-tokens", "--provider rules"):
            assert figure in str(error)
        assert server.asked == []

    def test_request_limit_is_named_when_it_is_the_one(self) -> None:
        """A state budget larger than a request can hold is bounded by the request, and the error says so."""
        payload: Any = session(40)
        payload["messages"][0]["text"] = "x " * 60000

        with pytest.raises(TranscriptFitError, match="--max-request-tokens"):
            plan_of(parse_payload(payload), state=100_000, request=30_000)

    def test_request_limit_too_small_for_one_question(self) -> None:
        """A request that cannot hold one call's questions is an error and no endless loop."""
        with pytest.raises(TranscriptFitError, match="questions alone"):
            plan_of(parse_payload(session(20)), request=50)

    def test_without_a_judge_nothing_has_to_fit(self) -> None:
        """Nobody to show it to: everything is kept, and size is no error."""
        payload: Any = session(40)
        payload["messages"][0]["text"] = "x " * 60000

        assert judge(parse_payload(payload), {"HOME": "/nonexistent"}).degradation_reason == JEV_UNAVAILABLE_FAIL_SAFE


class TestRequests:
    """Batches, and the sizes of whole requests."""

    @pytest.mark.parametrize("batch", [1, 3, 8, 100])
    def test_batch_size_caps_the_calls(self, batch: int) -> None:
        """No request asks about more calls than allowed, none is empty, and every call is asked about once."""
        plan = plan_of(parse_payload(session(50)), batch=batch)

        sizes = [len(one.questions) for one in plan.batches]
        assert max(sizes) <= batch
        assert min(sizes) > 0
        assert [q.id for one in plan.batches for q in one.questions] == [f"t{n}" for n in range(1, 48)]

    def test_request_limit_splits_batches(self) -> None:
        """State and one batch together stay under the limit, by fewer calls in a request where needed."""
        plan = plan_of(parse_payload(session(50)), state=8000, request=9200, batch=50)

        assert len(plan.batches) > 1
        assert all(one.tokens <= 9200 for one in plan.batches)

    @pytest.mark.parametrize("stage", ["full", "inputs-200", "calls-one-line"])
    def test_2000_calls_at_each_stage(self, stage: Stage) -> None:
        """The whole body of every request, counted as it is sent, is under the budget."""
        transcript = parse_payload(session(2000, input_chars=320, text=""))
        counter = budget_counter()
        entries, _ = entries_of(transcript, {}, 6)
        room = sum(counter.count(render(entry, stage)) + 2 for entry in entries) + 500
        state = 25000 if stage == "calls-one-line" else room

        plan = plan_of(transcript, state=state, request=state + 5000, counter=counter)

        assert plan.state.stage == stage
        assert len(plan.batches) == 250
        bodies = [plan.body(index).decode() for index in (0, 125, 249)]
        assert all(counter.count(body) <= state + 5000 for body in bodies)
        assert counter.count(plan.state.json) <= plan.state.tokens <= state
        assert all(one.tokens <= state + 5000 for one in plan.batches)

    @pytest.mark.parametrize("file", WITH_CALLS or [None], ids=lambda f: f.name if f else "none")
    def test_shared_sessions_are_never_undercounted(self, file: Any) -> None:
        """On real sessions the sum of the parts is at least the count of the whole request, and under the limit."""
        if file is None:
            pytest.skip("the shared sessions are not beside this checkout")
        transcript = read_transcript(file.read_bytes())
        counter = budget_counter()
        if not can_be_shown(transcript):
            with pytest.raises(TranscriptFitError):
                plan_of(transcript, counter=counter)
            return

        plan = plan_of(transcript, counter=counter)

        for index in (0, len(plan.batches) // 2, len(plan.batches) - 1):
            assert counter.count(plan.body(index).decode()) <= plan.batches[index].tokens <= 30000

    def test_same_input_same_bytes(self) -> None:
        """Composition is deterministic."""
        plans = [plan_of(parse_payload(session(100)), state=12000) for _ in range(2)]

        bodies = [[plan.body(i) for i in range(len(plan.batches))] for plan in plans]
        assert bodies[0] == bodies[1]


class TestLinear:
    """No stage recounts what did not change, and each costs what the session is long."""

    def test_unchanged_entries_are_counted_once(self) -> None:
        """Across the stages the counter is given the same entry text no more than once."""
        payload: Any = session(300, input_chars=30)
        payload["messages"][3]["text"] = "long " * 20000
        transcript = parse_payload(payload)
        entries, _ = entries_of(transcript, {}, 6)
        counter = WordCounter()

        fitted = fit_state(entries, "", counter, StateBudget(25000, "--max-state-tokens", ""))

        assert fitted.stage == "inputs-200"
        long_ones = [text for text in counter.seen if text.startswith('{"assistant"')]
        assert len(long_ones) == len(set(long_ones))

    def test_work_grows_with_the_session(self) -> None:
        """Four times the calls give no more than about four times the counted texts, at the last stage."""
        stage = "calls-one-line"
        counted = []
        for calls in (500, 2000):
            counter = WordCounter()
            assert plan_of(parse_payload(session(calls, text="")), state=3000, counter=counter).state.stage == stage
            counted.append((len(counter.seen), sum(map(len, counter.seen))))

        assert counted[1][0] <= 4.2 * counted[0][0]
        assert counted[1][1] <= 4.2 * counted[0][1]

    def test_first_stages_stop_early(self) -> None:
        """A session that is far too long for a stage is not counted to its end there."""
        transcript = parse_payload(session(4000, input_chars=2000, text=""))
        entries, _ = entries_of(transcript, {}, 6)
        counter = WordCounter()

        fitted = fit_state(entries, "", counter, StateBudget(3000, "--max-state-tokens", ""))

        assert fitted.stage == "calls-one-line"
        assert sum(1 for text in counter.seen if len(text) > 1000) < 10


class TestForeignContent:
    """What a transcript may hold and JSON or a tokenizer may not like."""

    @pytest.mark.parametrize("value", ["", "a\r\nb", "\x00\u2028\u0085é🙂", {"k": ["\x1b[0m", None, 1.5]}, {"🙂": {}}])
    def test_any_input_can_be_sent(self, value: Any, server: SystemOneServer) -> None:
        """No input makes a request that cannot be encoded or parsed."""
        payload: Any = session(8)
        payload["messages"][1]["toolUses"][0]["input"] = value

        outcome = judge(parse_payload(payload), jev_at(server.url))

        assert outcome.semantic_guarantee == "judged"
        shown = server.asked[0].json["state"]["conversation"][1]["calls"][0]["input"]
        assert shown == value

    @pytest.mark.parametrize("value", ["\ud800 lone", {"k\udfff": 1}, 2**70, float("nan"), {"\ud83d": "\ude00"}])
    def test_what_json_does_not_like_is_sent_all_the_same(self, value: Any) -> None:
        """A transcript holds no such value today; should one come to, a request is still JSON in UTF-8."""
        text = dumps({"input": value})

        assert list(json.loads(text.encode())) == ["input"]

    def test_deep_input(self) -> None:
        """An input nested thousands deep is named as such."""
        deep: Any = 1
        for _ in range(5000):
            deep = [deep]
        assert "nested too deeply" in dumps({"input": deep})

    @pytest.mark.parametrize("call_id", ["x" * 500, "a\nb", "é" * 100, '"}],'])
    def test_any_id_is_asked_about_and_answered(self, call_id: str, server: SystemOneServer) -> None:
        """A call keeps its own verdict, whatever its id looks like."""
        payload: Any = session(8)
        payload["messages"][1]["toolUses"][0]["tool_use_id"] = call_id
        payload["messages"][2]["toolResults"][0]["tool_use_id"] = call_id

        outcome = judge(parse_payload(payload), jev_at(server.url))

        assert outcome.decisions[call_id].source == "jev"
        assert all(len(name) < 200 for name in server.asked[0].questions)

    def test_one_line_is_one_line_and_short(self) -> None:
        """A megabyte of input is described by its beginning, without reading the rest."""
        line = one_line({"file_path": "/a/b.py", "content": "x\ny\r\n" * 200_000, "n": [1, 2]}, 60)

        assert line.startswith("/a/b.py, x y x y")
        assert len(line) <= 61
        assert "\n" not in line


def test_entry_of_a_message_says_who_spoke() -> None:
    """Roles are kept."""
    payload: Any = [{"role": "system", "text": "Be brief."}, {"role": "user", "text": "Hi."}]
    entries, _ = entries_of(parse_payload(payload), {}, 0)

    assert [json.loads(render(entry, "full")) for entry in entries] == [{"system": "Be brief."}, {"user": "Hi."}]
