"""Whatever an agent did: every pointer gives back the removed bytes, after one pass and after three.

`LCC_HYPOTHESIS_EXAMPLES` multiplies the number of examples.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from relevance.pass_world import Message, Op, World, authors, operations
from relevance.pointer_follower import (
    Result,
    call_id,
    changed_inputs,
    follow,
    results,
    results_of,
    stub_sources,
    uses_of,
)
from relevance.session_lines import from_lines, several, single, to_lines

from lcc.recovery.inputs import restore_inputs
from lcc.recovery.restore import removed_by, restore, restored_bytes
from lcc.relevance import (
    TranscriptCompactionRequest,
    compact_transcript,
    messages_to_payload,
    run_pass,
    verify_lossless,
    verify_recoverable,
)
from lcc.relevance.transcript_lossless import lossless_violations
from lcc.relevance.transcript_recoverable import recoverable_violations
from lcc.relevance.verification import Violation
from lcc.stash import Stash, stash_folder
from lcc.transcript import read_transcript, render

EXAMPLES = int(os.environ.get("LCC_HYPOTHESIS_EXAMPLES", "1")) * 60
SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def three_rounds(*, any_disk: bool) -> st.SearchStrategy[list[list[Op]]]:
    """What happens before each of three passes."""
    op = operations(any_disk=any_disk)
    later = st.lists(op, max_size=6)
    return st.tuples(st.lists(op, min_size=4, max_size=24), later, later).map(list)


def three_long_rounds() -> st.SearchStrategy[list[list[Op]]]:
    """The same with what `auto` takes from inputs and leaves beside notes; enough follows it to make it old."""
    op = st.one_of(authors(), authors(), operations(any_disk=True))
    later = st.lists(op, min_size=2, max_size=8)
    return st.tuples(st.lists(op, min_size=14, max_size=30), later, later).map(list)


def recall(object_id: str) -> str:
    """What the stash holds under an id, asked for as the user would."""
    return Stash(stash_folder()).get(object_id).decode()


class Passes:
    """Passes over one growing session; each output is the next one's input."""

    def __init__(self, world: World, *, session_cwd: bool, preserve_recent: int, **options: Any) -> None:
        self.world = world
        self.session_cwd = world.cwd if session_cwd else None
        self.root = world.root if session_cwd else world.cwd
        self.options = {"provider": "rules", "preserve_recent": preserve_recent, **options}
        self.compacted: list[Message] = []
        self.reports: list[dict[str, Any]] = []

    def original(self) -> list[Message]:
        """The session as it would be if no pass had been."""
        return self.world.messages

    def run(self) -> list[Message]:
        """One pass over the last output and what has been added since; returns what it was given."""
        given = self.compacted + self.world.messages[self.world.sealed :]
        payload: Any = given if self.session_cwd is None else {"messages": given, "cwd": self.session_cwd}
        result = compact_transcript(TranscriptCompactionRequest(payload=payload, **self.options))
        self.world.sealed = len(self.world.messages)
        self.compacted = messages_to_payload(result.messages)
        self.reports.append(result.report)
        return given

    def violations(self, given: list[Message]) -> list[Violation]:
        """What the mode's own verification says of the last pass, which was given ``given``."""
        verify = verify_lossless if self.options["rules_mode"] == "lossless" else verify_recoverable
        return verify(given, self.compacted)


class FilePasses(Passes):
    """The same over the bytes of a session file."""

    raw = b""
    whole = b""
    given = b""
    shape = staticmethod(single)

    def original(self) -> list[Message]:
        """The session as it would be if no pass had been."""
        return from_lines(self.whole)

    def lines(self, messages: list[Message]) -> bytes:
        """New messages as lines of the file."""
        return to_lines(messages, self.world.sealed, self.world.cwd, self.shape)

    def run(self) -> list[Message]:
        """One pass over the last output's bytes and the lines added since; returns what it was given."""
        new = self.lines(self.world.messages[self.world.sealed :])
        self.world.sealed = len(self.world.messages)
        self.whole += new
        given = self.given = self.raw + new
        transcript = read_transcript(given)
        assert len(transcript.messages) == len(from_lines(given))
        self.raw, report = run_pass(
            transcript,
            TranscriptCompactionRequest(payload=None, **self.options),
            lambda result: (render(transcript, result.edits), result.report),
        )
        if self.options["rules_mode"] != "lossy":
            for old, now in zip(given.split(b"\n"), self.raw.split(b"\n"), strict=True):
                assert old == now or from_lines(old) != from_lines(now)
        self.compacted = from_lines(self.raw)
        self.reports.append(report)
        return from_lines(given)


class AutoPasses(FilePasses):
    """The whole ladder over a file that is written by one client, all of whose lines are escaped alike."""

    escaped = False

    def lines(self, messages: list[Message]) -> bytes:
        """New messages as lines of the file."""
        return to_lines(messages, self.world.sealed, self.world.cwd, self.shape, self.escaped)


class PartPasses(FilePasses):
    """The same where many results are several parts, which the seed's payload does not have."""

    shape = staticmethod(several)

    def violations(self, given: list[Message]) -> list[Violation]:
        before, after = read_transcript(self.given).messages, read_transcript(self.raw).messages
        lossless = self.options["rules_mode"] == "lossless"
        return lossless_violations(before, after) if lossless else recoverable_violations(before, after)


def check_proven_rounds(passes: Passes, rounds: list[list[Op]], *, verified: bool | None) -> None:
    """Three passes: what each removed comes back, and what it replaced stays as it was in the later ones."""
    notes: dict[str, str] = {}
    held: dict[str, bytes] = {}

    def file_of(call: str, path: str) -> bytes:
        if call not in held:
            held[call] = Path(path).read_bytes()
        return held[call]

    world = passes.world
    for happening in rounds:
        world.run(happening)
        given = passes.run()
        mode = passes.options["rules_mode"]
        replaced = follow(
            passes.original(),
            passes.compacted,
            file_of=None if mode == "lossless" else file_of,
            session_cwd=passes.session_cwd,
            root=passes.root,
            verified=verified,
            recall=recall if mode in ("stashed", "auto") else None,
            inputs=mode == "auto",
        )
        assert {call: replaced.get(call) for call in notes} == notes
        notes = replaced
        check_guards(passes, given)
        if mode == "auto":
            check_kept_inputs(passes, given)
        check_report(passes, given)
        if mode not in ("stashed", "auto"):
            assert passes.violations(given) == []


def check_guards(passes: Passes, given: list[Message]) -> None:
    """Pinned messages, what looks like a note, and what a stub refers to come out as they went in."""
    recent = passes.options["preserve_recent"]
    pinned = {0, *range(max(0, len(given) - recent), len(given))}
    for index in pinned:
        assert passes.compacted[index] == given[index]
    after = {result.id: result.text for result in results(passes.compacted)}
    before = {result.id: result.text for result in results(given)}
    for call, text in before.items():
        if text.startswith("[") and text.endswith("]") and "\n" not in text:
            assert after[call] == text
    sources = {source for _, source in stub_sources(given, passes.session_cwd, passes.root)}
    for old in results(given):
        assert old.call not in sources or after[old.id] == old.text


def check_report(passes: Passes, given: list[Message]) -> None:
    """One record for each answered call, whose characters are those of the messages."""
    report = passes.reports[-1]
    after = {result.id: result for result in results(passes.compacted)}
    records = {record["id"]: record for record in report["decisions"]}
    by_call: dict[str, list[Result]] = {}
    for old in results(given):
        by_call.setdefault(old.call, []).append(old)
    assert records.keys() == by_call.keys()
    in_inputs: dict[str, int] = {}
    for _, use, old_text, new in changed_inputs(given, passes.compacted):
        in_inputs[call_id(use)] = in_inputs.get(call_id(use), 0) + json_size(old_text) - json_size(new)
    for call, texts in by_call.items():
        record = records[call]
        changed = [old for old in texts if after[old.id].text != old.text]
        assert (record["decision"] in ("dedupe", "replace")) == bool(changed)
        freed = sum(len(t.text) - len(after[t.id].text) for t in texts)
        assert record["chars"] - record["chars_after"] == freed + in_inputs.pop(call, 0)
        assert ("parts" in record) == (bool(changed) and texts[0].part is not None)
        notes = [after[old.id].text.startswith(record["note"]) for old in changed]
        assert any(notes) or not changed
        for part in record.get("parts", ()):
            old = next(old for old in texts if old.part == part["part"])
            assert (part["decision"] != "keep") == (old in changed)
            assert (part["chars"], part["chars_after"]) == (len(old.text), len(after[old.id].text))
            assert part["decision"] == "keep" or after[old.id].text.startswith(part["note"])
        assert len(record.get("parts", texts)) == len(texts)
        for went in (record, *record.get("parts", ())):
            if went.get("recoverability_check") == "stash":
                assert went["why"]
                assert went["points"] is not None
    assert in_inputs == {}
    assert report["lossless_violations"] == []
    assert report["degraded"] is False


def json_size(text: str) -> int:
    """The characters of a string within compact JSON."""
    return len(json.dumps(text, ensure_ascii=False))


def check_kept_inputs(passes: Passes, given: list[Message]) -> None:
    """Inputs that must stay did: of failed calls, of plans, and of the latest call on each file."""
    uses = [use for message in given for use in uses_of(message)]
    failed = {result.call for result in results(given) if result.failed}
    latest = {use["input"].get("file_path"): call_id(use) for use in uses if "file_path" in use["input"]}
    stays = failed | set(latest.values()) | {call_id(use) for use in uses if use["tool"] == "ExitPlanMode"}
    assert stays.isdisjoint(call_id(use) for _, use, _, _ in changed_inputs(given, passes.compacted))


@given(three_long_rounds(), st.sampled_from([0, 1, 2, 6]), st.sampled_from([0.05, 0.9]), st.booleans())
@SETTINGS
def test_the_whole_ladder_gives_everything_back(
    rounds: list[list[Op]], preserve_recent: int, min_reduction: float, escaped: bool
) -> None:
    """auto: notes, excerpts and inputs hold what they say over three passes, and the bytes of the file come back."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LCC_STASH_DIR", os.path.join(folder, "stash"))
        world = World(Path(folder))
        passes = AutoPasses(world, session_cwd=True, preserve_recent=preserve_recent, rules_mode="auto")
        passes.escaped = escaped
        passes.options.update(workspace_root=passes.root, min_reduction=min_reduction)
        check_proven_rounds(passes, rounds, verified=True)
        transcript, stash = read_transcript(passes.raw), Stash(stash_folder())
        removed = removed_by(passes.reports)
        restored = restore(transcript, removed, stash, passes.root)
        inputs = restore_inputs(transcript, passes.reports, stash)
        back = restored_bytes(transcript, replace(restored.edits, inputs=inputs.strings), removed)
        if not restored.failures and not inputs.failures:
            assert back == passes.whole
        failed = {failure.id for failure in (*restored.failures, *inputs.failures)}
        for old, new in zip(from_lines(passes.whole), from_lines(back), strict=True):
            assert old == new or not failed.isdisjoint(map(call_id, (*uses_of(old), *results_of(old))))


@given(three_rounds(any_disk=True), st.booleans(), st.sampled_from([0, 1, 1, 2, 6, 50]), st.booleans())
@SETTINGS
def test_lossless_pointers_give_everything_back(
    rounds: list[list[Op]], session_cwd: bool, preserve_recent: int, snake: bool
) -> None:
    """lossless: the kept results alone give back what was removed, whatever the disk holds."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), snake)
        passes = Passes(world, session_cwd=session_cwd, preserve_recent=preserve_recent, rules_mode="lossless")
        check_proven_rounds(passes, rounds, verified=None)


@given(three_rounds(any_disk=True), st.booleans(), st.sampled_from([0, 1, 1, 2, 6, 50]), st.booleans())
@SETTINGS
def test_pointers_verified_on_disk_give_everything_back(
    rounds: list[list[Op]], session_cwd: bool, preserve_recent: int, snake: bool
) -> None:
    """recoverable with the disk check: the file holds what was removed, whatever happened to it before the pass."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), snake)
        passes = Passes(world, session_cwd=session_cwd, preserve_recent=preserve_recent, rules_mode="recoverable")
        passes.options["workspace_root"] = passes.root
        check_proven_rounds(passes, rounds, verified=True)


@given(three_rounds(any_disk=True), st.booleans(), st.sampled_from([0, 1, 1, 2, 6, 50]))
@SETTINGS
def test_what_is_stashed_can_be_recalled(rounds: list[list[Op]], session_cwd: bool, preserve_recent: int) -> None:
    """stashed: the file, a kept result or the stash holds what was removed, and the stash holds it for good."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LCC_STASH_DIR", os.path.join(folder, "stash"))
        world = World(Path(folder))
        passes = Passes(world, session_cwd=session_cwd, preserve_recent=preserve_recent, rules_mode="stashed")
        passes.options["workspace_root"] = passes.root
        check_proven_rounds(passes, rounds, verified=True)


@given(three_rounds(any_disk=True), st.sampled_from([0, 1, 1, 2, 6, 50]), st.sampled_from(["lossless", "recoverable"]))
@SETTINGS
def test_session_files_give_everything_back(rounds: list[list[Op]], preserve_recent: int, mode: str) -> None:
    """The same over the bytes of a session file, of which only the replaced texts may change."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        passes = FilePasses(world, session_cwd=True, preserve_recent=preserve_recent, rules_mode=mode)
        passes.options["workspace_root"] = passes.root
        check_proven_rounds(passes, rounds, verified=True)


@given(
    three_rounds(any_disk=True),
    st.sampled_from([0, 1, 1, 2, 6, 50]),
    st.sampled_from(["lossless", "recoverable", "stashed"]),
)
@SETTINGS
def test_results_of_several_parts_give_everything_back(rounds: list[list[Op]], preserve_recent: int, mode: str) -> None:
    """Each text of a result is a text of its own, and what is no text stays; `lcc restore` puts all of it back."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LCC_STASH_DIR", os.path.join(folder, "stash"))
        world = World(Path(folder))
        passes = PartPasses(world, session_cwd=True, preserve_recent=preserve_recent, rules_mode=mode)
        passes.options["workspace_root"] = passes.root
        check_proven_rounds(passes, rounds, verified=True)
        transcript = read_transcript(passes.raw)
        restored = restore(transcript, removed_by(passes.reports), Stash(stash_folder()), passes.root)
        changed_files = {failure.id for failure in restored.failures}
        back = results(from_lines(restored_bytes(transcript, restored.edits)))
        for old, new in zip(results(from_lines(passes.whole)), back, strict=True):
            assert old.text == new.text or (old.id in changed_files and mode != "lossless")


@given(three_rounds(any_disk=False), st.booleans(), st.sampled_from([0, 1, 1, 2, 6, 50]))
@SETTINGS
def test_pointers_by_proxy_give_everything_back(rounds: list[list[Op]], rooted: bool, preserve_recent: int) -> None:
    """recoverable by the transcript alone: where only calls change files, the file still holds what was removed."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        passes = Passes(world, session_cwd=True, preserve_recent=preserve_recent, rules_mode="recoverable")
        if rooted:
            passes.options.update(workspace_root=passes.root, disk_check=False)
        check_proven_rounds(passes, rounds, verified=False)


@given(three_rounds(any_disk=True), st.sampled_from([0, 1, 1, 2, 6, 50]), st.sampled_from(["camel", "snake", "file"]))
@SETTINGS
def test_lossy_keeps_words_and_pairs(rounds: list[list[Op]], preserve_recent: int, shape: str) -> None:
    """lossy: every word stays, pairs go whole, a kept result is untouched, a trim holds both ends of the output."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), shape == "snake")
        kind = FilePasses if shape == "file" else Passes
        passes = kind(world, session_cwd=True, preserve_recent=preserve_recent, rules_mode="lossy")
        for happening in rounds:
            world.run(happening)
            before = passes.run()
            after = passes.compacted
            assert [(m["role"], m["text"]) for m in before if m.get("text")] == [
                (m["role"], m["text"]) for m in after if m.get("text")
            ]
            new_uses = {call_id(use): use for message in after for use in uses_of(message)}
            old_uses = {call_id(use): use for message in before for use in uses_of(message)}
            new_results = {call_id(r): r for message in after for r in results_of(message)}
            old_results = {call_id(r): r for message in before for r in results_of(message)}
            assert all(old_uses[call] == use for call, use in new_uses.items())
            assert new_uses.keys() & old_results.keys() == new_results.keys()
            assert all(call in new_uses for call in old_uses if call not in old_results)
            for record in passes.reports[-1]["decisions"]:
                call, decision = record["id"], record["decision"]
                assert (decision == "drop") == (call not in new_results)
                if decision == "keep":
                    assert new_results[call] == old_results[call]
                elif decision == "trim":
                    old, new = old_results[call]["text"], new_results[call]["text"]
                    assert new.startswith(old[:1000] + "\n")
                    assert new.endswith("\n" + old[-1000:])
                    assert "\n" not in new[1001:-1001]


@pytest.mark.parametrize("mode", ["lossless", "recoverable", "lossy"])
def test_the_same_session_and_disk_give_the_same_answer(mode: str, tmp_path: Path) -> None:
    """The same input and the same disk give the same output."""
    world = World(tmp_path)
    world.run(_fixed_operations())
    payload: Any = {"messages": world.messages, "cwd": world.cwd}
    request = TranscriptCompactionRequest(
        payload=payload, provider="rules", rules_mode=mode, workspace_root=world.root, preserve_recent=2
    )
    first, second = compact_transcript(request), compact_transcript(request)
    assert messages_to_payload(first.messages) == messages_to_payload(second.messages)
    assert {**first.report, "latency_ms": 0} == {**second.report, "latency_ms": 0}


_OTHER_PROCESS = """
import hashlib, json, sys
from lcc.relevance import TranscriptCompactionRequest, compact_transcript, messages_to_payload
given = json.load(sys.stdin)
for mode in ("lossless", "recoverable", "lossy"):
    options = {"provider": "rules", "rules_mode": mode, **given["options"]}
    request = TranscriptCompactionRequest(payload=given["payload"], **options)
    result = compact_transcript(request)
    answer = [messages_to_payload(result.messages), {**result.report, "latency_ms": 0}]
    print(hashlib.sha256(json.dumps(answer).encode()).hexdigest())
"""


def test_another_process_gives_the_same_answer(tmp_path: Path) -> None:
    """Nothing depends on the order of a set, which differs from process to process."""
    world = World(tmp_path)
    world.run(_fixed_operations())
    given = {
        "payload": {"messages": world.messages, "cwd": world.cwd},
        "options": {"workspace_root": world.root, "preserve_recent": 2},
    }

    answers = {
        subprocess.run(
            [sys.executable, "-c", _OTHER_PROCESS],
            input=json.dumps(given),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert len(answers) == 1


def _fixed_operations() -> list[Op]:
    from relevance.pass_world import NAMES, Read, Repeat, Shell

    operations: list[Op] = []
    for name in NAMES:
        operations.append(Read(name, "arrow", None, None, True, True, "absolute"))
        operations.append(Shell(name, "cat", 1, True, "", "session", ""))
        operations.append(Repeat(1, 3, 4, "x", False, None))
    return operations
