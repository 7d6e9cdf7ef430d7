"""What a judged pass sends and costs, without a judge: every figure is from a server on this machine.

    python scripts/bench_judge.py            all tables
    python scripts/bench_judge.py requests   a 2,000-call session at each fitting stage: sizes, bytes, time
    python scripts/bench_judge.py growth     time to build the requests from 500 to 20,000 calls
    python scripts/bench_judge.py faults     fault, what the report says, what was kept
    python scripts/bench_judge.py sticky     what a second pass asks, with and without a decisions cache

The sessions and the server are those of tests/judge.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from judge.judge_world import call, jev_at, judge, session, transcript_of
from judge.system_one_server import Asked, Step, always, answers, http, system_one
from judge.test_fail_safe import FAULTS, NO_ANSWERS, slow_body, slow_headers

from lcc.judge.plan import Limits, Plan, plan_requests
from lcc.judge.state import STAGES, Stage, entries_of, render
from lcc.relevance.evidence.pins import pin_reasons
from lcc.tokens import TokenCounter, budget_counter
from lcc.transcript import Transcript

GROWTH = (500, 1_000, 2_000, 5_000, 10_000, 20_000)


def build(transcript: Transcript, state_tokens: int, counter: TokenCounter) -> Plan:
    """The requests of one pass, as the pass builds them."""
    pairs = list(transcript.pairs())
    pins = pin_reasons(pairs, len(transcript.messages), 6)
    asked = [pair for pair in pairs if pair.use.id not in pins]
    limits = Limits(state_tokens, state_tokens + 5_000, 8, 6)
    return plan_requests(transcript, asked, pins, goal="", model="jev-latest", limits=limits, counter=counter)


def requests() -> None:
    """Record every request of a 2,000-call session at each stage, as the server receives it."""
    transcript = transcript_of(session(2_000, input_chars=320, text=""))
    entries, _ = entries_of(transcript, {}, 6)
    print(f"token counts: {budget_counter().method}\n")
    print("| stage | state budget | state | requests | largest request | request budget | bytes sent | build | pass |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for stage in STAGES:
        counter = budget_counter()
        budget = 25_000 if stage == STAGES[-1] else _room(entries, stage, counter)
        started = time.process_time()
        plan = build(transcript, budget, counter)
        built = time.process_time() - started
        sizes: list[tuple[int, int]] = []

        def record(asked: Asked, counter: TokenCounter = counter, sizes: list[tuple[int, int]] = sizes) -> list[Step]:
            sizes.append((len(asked.body), counter.count(asked.body.decode()) if not len(sizes) % 50 else 0))
            server.asked.clear()
            return http(200, answers(asked))

        with system_one(record) as server:
            started = time.perf_counter()
            outcome = judge(transcript, jev_at(server.url), max_state_tokens=budget, max_request_tokens=budget + 5_000)
            took = time.perf_counter() - started
        largest = max(tokens for _, tokens in sizes)
        assert outcome.state_fit_stage == stage
        assert len(sizes) == len(plan.batches)
        assert max(batch.tokens for batch in plan.batches) <= budget + 5_000
        assert largest <= max(batch.tokens for batch in plan.batches)
        total = sum(size for size, _ in sizes)
        most = max(batch.tokens for batch in plan.batches)
        print(
            f"| `{stage}` | {budget:,} | {plan.state.tokens:,} | {len(sizes)} | {most:,} | {budget + 5_000:,} "
            f"| {total:,} | {built * 1000:.0f} ms | {took:.1f} s |"
        )


def _room(entries: list, stage: Stage, counter: TokenCounter) -> int:  # type: ignore[type-arg]
    return sum(counter.count(render(entry, stage)) + 2 for entry in entries) + 500


def growth() -> None:
    """Processor time to build all requests of a session, by its number of calls; best of three."""
    print("| calls | build | for each call | all bodies |")
    print("| --- | --- | --- | --- |")
    points: list[tuple[float, float]] = []
    for calls in GROWTH:
        transcript = transcript_of(session(calls, input_chars=320, text=""))
        best, size = math.inf, 0
        for _ in range(3):
            started = time.process_time()
            plan = build(transcript, 25_000, budget_counter())
            best = min(best, time.process_time() - started)
            size = sum(len(plan.body(index)) for index in range(len(plan.batches)))
        points.append((math.log(calls), math.log(best)))
        print(f"| {calls:,} | {best * 1000:.0f} ms | {best / calls * 1e6:.0f} µs | {size / 2**20:.0f} MiB |")
    print(f"\nexponent: {_slope(points):.2f}")


def _slope(points: list[tuple[float, float]]) -> float:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def faults() -> None:
    """Two requests of eight calls each, whose judge would drop all; the fault hits the first, or both."""
    transcript = transcript_of(session(19))
    print("| fault | hits | `provider_used` | `degraded` | `semantic_guarantee` | kept | dropped | first warning |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    rows: dict[str, Callable[[Asked], list[Step]]] = {name: fault[0] for name, fault in FAULTS.items()}
    rows["slow headers"], rows["slow body"] = slow_headers, slow_body
    rows["500 then 200"] = lambda asked: http(500 if asked.number == 0 else 200, answers(asked, 0.1))
    for name, (value, _) in NO_ANSWERS.items():
        rows[f"answer: {name}"] = _bad_answer(value)
    for name, respond in rows.items():
        for both in (False, True) if not name.startswith(("answer: ", "500 then")) else (True,):

            def chosen(asked: Asked, respond: Callable[[Asked], list[Step]] = respond, both: bool = both) -> list[Step]:
                return respond(asked) if both or "keep_call_t1" in asked.questions else http(200, answers(asked, 0.1))

            with system_one(chosen) as server:
                host = server.url.removeprefix("http://")
                outcome = judge(
                    transcript, jev_at(server.url), max_workers=1 if "slow" not in name else 2,
                    deadline=time.monotonic() + (2 if "slow" in name else 60),
                )  # fmt: skip
            decided = [decision.action for decision in outcome.decisions.values()]
            warning = (outcome.warnings or ("",))[0].replace("|", "\\|")
            print(
                f"| {name} | {'both' if both else 'one of two'} | `{outcome.provider_used}` | {outcome.degraded} "
                f"| {outcome.semantic_guarantee} | {decided.count('keep')} | {decided.count('drop')} "
                f"| {warning.replace(host, 'HOST')} |"
            )


def _bad_answer(value: object) -> Callable[[Asked], list[Step]]:
    def respond(asked: Asked) -> list[Step]:
        reply = answers(asked, 0.1)
        if "keep_call_t3" in reply["answers"]:
            if value is KeyError:
                del reply["answers"]["keep_call_t3"]
            else:
                reply["answers"]["keep_call_t3"] = value
        return http(200, reply)

    return respond


def sticky() -> None:
    """A session of 202 messages, and the same with 50 more."""
    grown = session(100)
    for n in range(101, 126):
        grown["messages"] += call(n)  # type: ignore[index, call-overload, operator]
    before = {"messages": grown["messages"][:202]}  # type: ignore[index, call-overload]
    print("| pass | decisions cache | questions asked | requests |")
    print("| --- | --- | --- | --- |")
    for cached in (False, True):
        with tempfile.TemporaryDirectory() as folder, system_one(always(0.6)) as server:
            file = str(Path(folder) / "decisions") if cached else None
            for name, payload in (("first", before), ("after 50 more messages", grown), ("the same again", grown)):
                outcome = judge(transcript_of(payload), jev_at(server.url), decisions_cache=file)  # type: ignore[arg-type]
                print(f"| {name} | {'yes' if cached else 'no'} | {outcome.questions_asked} | {outcome.requests} |")


def main() -> None:
    tables = {"requests": requests, "growth": growth, "faults": faults, "sticky": sticky}
    asked = sys.argv[1:] or list(tables)
    unknown = [name for name in asked if name not in tables]
    if unknown:
        sys.exit(f"{', '.join(unknown)}: none of {', '.join(tables)}")
    for name in asked:
        print(f"\n## {name}\n")
        tables[name]()


if __name__ == "__main__":
    main()
