"""Whatever JSON a call's input is, and whatever text its result: a decision, never an exception."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import MadeSession
from relevance.pass_world import NAMES, SNIPPETS
from relevance.pointer_follower import require_rest_untouched

from lcc.contract.option import RequestError

EXAMPLES = int(os.environ.get("LCC_HYPOTHESIS_EXAMPLES", "1")) * 100

TOOLS = (
    "Read read_file view Bash exec_command shell local_shell write_stdin Edit MultiEdit Write apply_patch NotebookEdit "
    "TodoWrite AskUserQuestion WebFetch mcp__a__fetch Task Agent Grep Glob BashOutput unknown exec container.exec"
).split()
KEYS = (
    "file_path path filePath notebook_path command cmd workdir cwd offset limit start_line end_line pages view_range "
    "url run_in_background input patch content edits other"
).split()

TEXTS = st.one_of(
    st.sampled_from(
        [*NAMES, *SNIPPETS, "cat a.py", "sed -n '1,3p' a.py", "git status", "*** Update File: a.py", "/w/a.py"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), TEXTS), inner, max_size=3),
        st.lists(st.sampled_from(["bash", "-lc", "-c", "cat a.py", "ls"]), min_size=3, max_size=3),
    ),
    max_leaves=6,
)
INPUTS = st.one_of(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4), TEXTS, st.none())
OUTPUTS = st.builds(lambda lines, times: "\n".join(lines * times), st.lists(TEXTS, max_size=6), st.integers(1, 4))
CALLS = st.lists(
    st.tuples(st.sampled_from(TOOLS), INPUTS, OUTPUTS, st.sampled_from([None, None, True, False])),
    min_size=1,
    max_size=12,
)


@given(
    CALLS, st.sampled_from(["lossless", "recoverable", "lossy"]), st.sampled_from([None, "/w", "relative", ""]), TEXTS
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_input_is_decided_about(calls: list[Any], mode: str, root: str | None, question: str) -> None:
    """Every call gets its record; what is kept is untouched; the same session again gives the same decisions.

    An empty workspace is refused by its name.
    """
    session = MadeSession(cwd="/w" if root is None else None)
    for tool, given_input, text, flag in calls:
        session.call(tool, given_input, text, flag)

    options: dict[str, Any] = {
        "workspace_root": root,
        "question": question,
        "allow_command_pointers": len(calls) % 2 == 0,
    }
    if root == "":
        with pytest.raises(RequestError, match="workspace_root"):
            session.compact(mode, **options)
        return
    answer = session.compact(mode, **options)

    assert len(answer.records) == len(calls)
    if mode != "lossy":
        require_rest_untouched(session.messages, answer.messages)
        assert answer.report["lossless_violations"] == []
    for call, record in answer.records.items():
        if record["decision"] == "keep":
            index = int(call[1:]) - 1
            assert answer.texts[call] == calls[index][2]
    assert session.compact(mode, **options).messages == answer.messages
