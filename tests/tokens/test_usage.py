"""A session's own usage records: the steps they give, and the calibration learned from them."""

from __future__ import annotations

from statistics import median

import making
import pytest
from making import SESSIONS

from lcc.tokens import Calibration, calibrate, context_tokens, counter, usage_steps
from lcc.tokens.calibration import checkable, predicted
from lcc.transcript import Json
from lcc.transcript.lines import split


def answer(number: int, context: int, output: int, *blocks: Json, **extra: Json) -> dict[str, Json]:
    """An assistant line of message ``number`` whose request had ``context`` input tokens."""
    usage: Json = {
        "input_tokens": 4,
        "cache_read_input_tokens": context - 1004,
        "cache_creation_input_tokens": 1000,
        "output_tokens": output,
    }
    message: Json = {"id": f"msg_{number}", "model": "claude-sonnet-5", "content": list(blocks), "usage": usage}
    return {"type": "assistant", "message": message, **extra}


def call(number: int, **arguments: str) -> Json:
    return making.use(f"toolu_{number}", **arguments)


def result(number: int, text: str) -> dict[str, Json]:
    return {"type": "user", "message": {"role": "user", "content": [making.result(f"toolu_{number}", text)]}}


class TestSteps:
    def test_lines_of_one_message_are_one_step(self) -> None:
        """Parallel calls stand on lines of their own, with results between; output tokens are the last figure."""
        documents = [
            answer(1, 5000, 3, {"type": "text", "text": "Looking."}),
            answer(1, 5000, 3, call(1, command="ls")),
            result(1, "a.py"),
            answer(1, 5000, 90, call(2, command="pwd")),
            result(2, "/p"),
            answer(2, 5200, 8, {"type": "text", "text": "Done."}),
        ]
        (step,) = usage_steps(documents)
        assert (step.context, step.growth, step.output) == (5000, 200, 90)
        assert step.written == ("Looking.", "Bash", "command", "ls", "Bash", "command", "pwd")
        assert step.added == ("a.py", "/p")
        assert (step.calls, step.parameters, step.results) == (2, 2, 2)

    def test_sub_agents_and_made_up_answers_make_no_step(self) -> None:
        """Side chains have a context of their own; a synthetic answer has no usage."""
        synthetic = answer(9, 1004, 0)
        synthetic["message"] = {"id": "x", "model": "<synthetic>", "content": [], "usage": {"input_tokens": 0}}
        documents = [
            answer(1, 5000, 30, call(1, command="ls")),
            answer(7, 90_000, 30, isSidechain=True),
            result(1, "a.py"),
            synthetic,
            answer(2, 5100, 8),
        ]
        (step,) = usage_steps(documents)
        assert step.growth == 100

    @pytest.mark.parametrize(
        "line",
        [
            {"type": "attachment", "attachment": {"type": "todo_reminder"}},
            {"type": "system", "subtype": "compact_boundary"},
            {"type": "system", "subtype": "microcompact_boundary"},
            {"type": "user", "isMeta": True, "message": {"content": "x"}},
            {"type": "user", "message": {"content": [{"type": "image", "source": {}}]}},
        ],
    )
    def test_what_the_file_does_not_show_is_said(self, line: dict[str, Json]) -> None:
        """A step with a reminder, an image or a cut in it proves nothing about texts."""
        documents = [answer(1, 5000, 30, call(1, command="ls")), result(1, "a.py"), line, answer(2, 5100, 8)]
        (step,) = usage_steps(documents)
        assert step.unseen
        assert checkable([step], counter()) == []

    def test_the_newest_request_gives_the_total(self) -> None:
        """The context in use is the last main request's input, new and cached together."""
        documents = [answer(1, 5000, 30), answer(2, 6000, 8), answer(3, 70_000, 9, isSidechain=True)]
        assert context_tokens(documents) == 6000
        assert context_tokens([{"type": "summary"}]) is None

    @pytest.mark.parametrize("line", [{}, {"type": "assistant"}, {"type": "user", "message": None}, {"type": "user"}])
    def test_unknown_shapes_are_passed_over(self, line: dict[str, Json]) -> None:
        """A line of a shape not known takes nothing from the others."""
        documents = [answer(1, 5000, 30, call(1, command="ls")), line, result(1, "a.py"), answer(2, 5100, 8)]
        assert len(list(usage_steps(documents))) == 1


class TestCalibration:
    def steps(self, factor: float, count: int) -> list[dict[str, Json]]:
        """A session whose true tokens are ``factor`` times our counts, plus the usual wrapping."""
        documents: list[dict[str, Json]] = []
        context = 5000
        for number in range(count):
            text = "\n".join(f"{number} line {line} of some output" for line in range(40 + number))
            documents += [answer(number, context, 30, call(number, command="ls")), result(number, text)]
            context += 30 + 5 + round(factor * counter().count(text))
        return [*documents, answer(count, context, 8)]

    @pytest.mark.parametrize("factor", [0.8, 1.0, 1.3])
    def test_a_session_teaches_its_own_factor(self, factor: float) -> None:
        """With enough steps the factor is found, held a little towards the family's."""
        found = calibrate(usage_steps(self.steps(factor, 200)), counter())
        assert found.source == "usage"
        assert found.factor == pytest.approx(factor, abs=0.05)

    def test_too_few_steps_teach_nothing(self) -> None:
        """A session's start leaves the family's figures as they are."""
        assert calibrate(usage_steps(self.steps(1.3, 5)), counter()) == Calibration(source="family")

    def test_a_wild_step_pulls_little(self) -> None:
        """Something unseen in one step does not move the median."""
        documents = self.steps(1.0, 60)
        usage = documents[-1]["message"]["usage"]  # type: ignore[index, call-overload]
        usage["cache_read_input_tokens"] += 50_000  # type: ignore[index, call-overload, operator]
        assert calibrate(usage_steps(documents), counter()).factor == pytest.approx(1.0, abs=0.03)


@pytest.mark.skipif(not SESSIONS.is_dir(), reason="no shared sessions beside the project")
class TestRealSessions:
    def test_predicted_growth_is_near_the_truth(self) -> None:
        """Calibrated on the earlier half of each session and tested on the later: the median error over all
        steps of 100 tokens and more is at most 6 percent (scripts/bench_tokens.py reports it)."""
        errors = []
        for path in sorted(SESSIONS.glob("cc-*.jsonl")):
            steps = list(usage_steps(document.value for document in split(path.read_bytes())))
            if not steps:
                continue
            counts = counter(steps[-1].model)
            middle = len(steps) // 2
            calibration = calibrate(steps[:middle], counts)
            later = [row for row in checkable(steps[middle:], counts) if row.true >= 100]
            errors += [abs(predicted(row, calibration) - row.true) / row.true for row in later]
        assert len(errors) > 200
        assert median(errors) <= 0.06
