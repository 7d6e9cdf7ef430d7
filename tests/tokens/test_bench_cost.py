"""What the benchmark of costs is made of: a session replayed with a policy, checked by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import making
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from spending import Policy, Session, client_alone, run

from lcc.tokens.thinking import kept_thinking
from lcc.transcript import Json

COLD_S = 3000
PREFIX = 20_000
"""The system prompt and tools, which stay cached."""


def usage(read: int, written: int, output: int = 100) -> dict[str, Json]:
    return {
        "input_tokens": 0,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": output,
    }


def clock(seconds: int) -> str:
    return f"2026-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Twelve searches, a pause in which the cache runs out, a prompt that names nothing, and two more requests."""
    rows = [making.user("u0", None, "Find the old name.", timestamp=clock(0))]
    context, parent = PREFIX, "u0"
    for number in range(12):
        name = f"m{number}"
        call = making.use(f"t{number}", "Grep", pattern=f"name{number}")
        rows.append(_answer(name, parent, call, context, 3000, number))
        text = "\n".join(f"src/part{number}/file{at}.py:{at}: old name" for at in range(250))
        rows.append(making.answer(f"r{number}", name, f"t{number}", text, timestamp=clock(number + 1)))
        context, parent = context + 3000, f"r{number}"
    rows.append(_answer("done", parent, making.text("Found."), context, 3000, 13))
    rows.append(making.user("u1", "done", "Go on.", timestamp=clock(COLD_S)))
    cold = making.assistant("last", "u1", "last", making.text("Well."), timestamp=clock(COLD_S + 2))
    cold["message"].update(model="claude-sonnet-5", usage=usage(PREFIX, context + 3200 - PREFIX))
    rows.append(cold)
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Session(path, "project", tmp_path / "work" / "root")


def _answer(name: str, parent: str, block: making.Block, context: int, grown: int, at: int) -> making.Row:
    row = making.assistant(name, parent, name, block, timestamp=clock(at))
    row["message"].update(model="claude-sonnet-5", usage=usage(context, grown))
    return row


def test_without_a_compaction_it_costs_what_it_cost(session: Session) -> None:
    """A policy that never compacts is the client alone, to the token."""
    never = Policy("never", lambda state: False)

    assert run(session, never, set()).cost == pytest.approx(client_alone(session).cost)


def test_what_a_cold_compaction_frees_is_not_written_again(session: Session) -> None:
    """The cost falls by 1.25 for each token that it freed; nothing of it was needed again."""
    cold = Policy("cold", lambda state: state.gap.idle > session.prices.ttl_s)

    found = run(session, cold, set())

    assert (found.compactions, found.recalls) == (1, 0)
    assert found.freed > 10_000
    assert client_alone(session).cost - found.cost == pytest.approx(1.25 * found.freed, rel=0.01)


def test_a_pause_is_idle_only_where_the_user_speaks(session: Session) -> None:
    """Seconds count up to the prompt; a tool that runs long is no idle session."""
    assert session.gaps[-1].prompt
    assert session.gaps[-1].idle == pytest.approx(COLD_S - 13)
    assert not any(gap.prompt for gap in session.gaps[:-1])


class Letters:
    """A token for each letter."""

    def estimate(self, text: str, tool: str | None = None) -> int:
        return len(text)


def thought(name: str, context: int, output: int, words: str = "ab") -> making.Row:
    row = making.assistant(name, None, name, making.thinking(""), making.text(words))
    row["message"].update(model="claude-sonnet-5", usage=usage(context, 0, output))
    return row


def test_thinking_is_what_the_context_grew_by_unseen() -> None:
    """98 of 100 output tokens are not visible; the context kept them, then half, then none."""
    kept = [thought("a", 1000, 100), thought("b", 1100, 100)]

    assert kept_thinking(kept, Letters()) == [98]
    assert kept_thinking([kept[0], thought("b", 1050, 100)], Letters()) == [48]
    assert kept_thinking([kept[0], thought("b", 1002, 100)], Letters()) == [0]


def test_thinking_that_the_client_drops_later_is_taken_off() -> None:
    """The context grows by 60 less than what is visible: the newest thinking is gone first."""
    rows = [thought("a", 1000, 100), thought("b", 1100, 100), thought("c", 1200, 2), thought("d", 1142, 2)]

    assert kept_thinking(rows, Letters()) == [98, 38, 0]
