"""The figures of a session whose context holds thinking: a replacement has none, so it goes too."""

from __future__ import annotations

import json

import making
import pytest

from lcc.compaction.compact import compact
from lcc.contract.options import PassOptions
from lcc.relevance.ports import Ports
from lcc.tokens.usage import context_tokens
from lcc.transcript import read_transcript
from lcc_daemon.figures import Figures, TokenBook

THOUGHT = 3_000
STEPS = 12


def session_rows(thought: int) -> list[making.Row]:
    """Searches, before each of which the model thought for so many tokens, which the context kept."""
    rows = [making.user("u0", None, "Find the old name.")]
    parent, context = "u0", 20_000
    for number in range(STEPS):
        call = making.use(f"t{number}", "Grep", pattern=f"name{number}")
        row = making.assistant(f"m{number}", parent, f"m{number}", making.thinking(""), call)
        usage = {"input_tokens": context, "output_tokens": thought + 60}
        row["message"].update(model="claude-sonnet-5", usage=usage)
        rows.append(row)
        text = "\n".join(f"src/part{number}/file{at}.py:{at}: old name" for at in range(200))
        rows.append(making.answer(f"r{number}", f"m{number}", f"t{number}", text))
        parent, context = f"r{number}", context + thought + 4_000
    return rows


def figures_of(*rows: making.Row) -> Figures:
    raw = "".join(json.dumps(row) + "\n" for row in rows).encode()
    transcript = read_transcript(raw)
    done = compact(transcript, PassOptions(provider="rules", rules_mode="auto"), Ports(dry_run=True), rendered=False)
    book = TokenBook()
    book.measure("s", transcript, lambda: None)
    return book.figures("s", context_tokens(rows), done.result.transcript, done.edits, done.report)


def test_thinking_that_the_context_holds_goes_with_the_rest() -> None:
    """What is said to be left is less by about what was thought, as far as the pass's own share allows."""
    with_it, without = figures_of(*session_rows(THOUGHT)), figures_of(*session_rows(0))

    more = (with_it.before - with_it.after) - (without.before - without.after)
    assert more == pytest.approx(THOUGHT * (STEPS - 1), rel=0.1)


def test_what_was_thought_before_a_compaction_is_gone_already() -> None:
    """Behind a boundary only what came since counts."""
    freed = []
    for thought in (THOUGHT, 0):
        rows = session_rows(thought)
        middle = 1 + 2 * (STEPS // 2)
        rows[middle]["parentUuid"] = "b"
        boundary = making.row("system", "b", None, subtype="compact_boundary")
        found = figures_of(*rows[:middle], boundary, *rows[middle:])
        freed.append(found.before - found.after)

    assert freed[0] - freed[1] == pytest.approx(THOUGHT * (STEPS // 2 - 1), rel=0.1)
