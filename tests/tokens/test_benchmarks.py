"""What the benchmarks are made of: the follower of notes, the finder of needs, and workspaces put together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from making import SESSIONS, MadeSession

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import bench_rounds
import follow
import grown
import needs
import replay
import retention

from lcc.relevance import TranscriptCompactionRequest, compact_transcript, messages_to_payload


def conversation(*results: tuple[str, str, dict[str, Any], str]) -> list[dict[str, Any]]:
    """A payload of one prompt and a call with its result for each (id, tool, input, text)."""
    session = MadeSession("Mend it.")
    for name, tool, given, text in results:
        session.call(tool, given, text, id=name)
    return session.messages


def with_texts(messages: list[dict[str, Any]], **texts: str) -> list[dict[str, Any]]:
    """The same conversation with other texts for some results."""
    return [
        {
            **message,
            "toolResults": [
                {**result, "text": texts.get(result["tool_use_id"], result["text"])}
                for result in message.get("toolResults", [])
            ],
        }
        for message in messages
    ]


class TestFollow:
    @pytest.mark.parametrize(
        ("note", "text", "works"),
        [
            ("[identical output kept at b]", "one\ntwo\nthree", True),
            ("[identical output kept at b]", "one\ntwo\nfour", False),
            ("[output = lines 1-2 of b]", "one\ntwo", True),
            ("[output = lines 2-3 of b]", "one\ntwo", False),
            ("[output = lines 2-9 of b]", "two\nthree", False),
            ("[identical output kept at nobody]", "one\ntwo\nthree", False),
        ],
    )
    def test_pointers_into_the_transcript(self, note: str, text: str, works: bool) -> None:
        """A note into another result works when, and only when, the named result gives the text."""
        before = conversation(("a", "Bash", {}, text), ("b", "Bash", {}, "one\ntwo\nthree"))
        found = follow.follow(before, with_texts(before, a=note))
        assert {name: result.works for name, result in found.items()} == {"a": works}

    def test_a_pointer_at_a_replaced_result_is_broken(self) -> None:
        """What a note names must itself be there."""
        before = conversation(("a", "Bash", {}, "x y"), ("b", "Bash", {}, "x y"), ("c", "Bash", {}, "x y"))
        after = with_texts(before, a="[identical output kept at b]", b="[identical output kept at c]")
        assert [followed.works for followed in follow.follow(before, after).values()] == [False, True]

    @pytest.mark.parametrize(
        ("shown", "span", "works"),
        [
            ("1\tone\n2\ttwo\n3\t", "", True),
            ("     1→one\n     2→two\n     3→", "", True),
            ("1\tone\n2\ttwo", "", True),
            ("2\ttwo", " (lines 2-2)", True),
            ("one\ntwo\n", "", True),
            ("1\tone\n2\ttow", "", False),
            ("1\ttwo", " (lines 2-2)", False),
            ("one\r\ntwo\r\n", "", False),
            ("3\tmore", " (lines 3-9)", False),
        ],
    )
    def test_pointers_at_files(self, tmp_path: Path, shown: str, span: str, works: bool) -> None:
        """A file pointer works when the file's lines, numbered as the tool did, are the removed text."""
        file = tmp_path / "a.txt"
        file.write_bytes(b"one\ntwo\n")
        before = conversation(("a", "Read", {"file_path": str(file)}, shown))
        note = f"[removed: re-read {file}{span} to recover; content verified on disk at compaction time]"
        (found,) = follow.follow(before, with_texts(before, a=note)).values()
        assert (found.kind, found.works) == ("file", works)

    def test_text_behind_a_file_note_must_be_the_end_of_the_output(self, tmp_path: Path) -> None:
        """A reminder stays, byte for byte, behind the note."""
        file = tmp_path / "a.txt"
        file.write_bytes(b"one")
        reminder = "\n\n<system-reminder>\nbe careful\n</system-reminder>\n"
        before = conversation(("a", "Read", {"file_path": str(file)}, "1\tone" + reminder))
        note = f"[removed: re-read {file} to recover]"
        assert follow.follow(before, with_texts(before, a=note + reminder))["a"].works
        assert not follow.follow(before, with_texts(before, a=note + reminder.upper()))["a"].works

    def test_the_stash_must_give_the_same_text(self) -> None:
        """A recall that gives other bytes, or none, is broken."""
        before = conversation(("a", "Bash", {}, "output"))
        after = with_texts(before, a="[removed: 9 tokens · lcc recall 0123456789ab]")
        assert follow.follow(before, after, {"0123456789ab": "output"}.get)["a"].works
        assert not follow.follow(before, after, {"0123456789ab": "outputs"}.get)["a"].works
        assert not follow.follow(before, after)["a"].works

    def test_what_went_without_a_note_is_told(self) -> None:
        """Trimmed and dropped results are none that can be followed."""
        before = conversation(("a", "Bash", {}, "long output"), ("b", "Bash", {}, "more output"))
        after = with_texts(before, a="long\n[trimmed]")[:-1]
        assert {name: found.kind for name, found in follow.follow(before, after).items()} == {
            "a": "trimmed",
            "b": "dropped",
        }


class TestNeeds:
    READ = ("r1", "Read", {"file_path": "/p/a.py"}, "1\timport os\n2\tcompute_total_value(3)\n3\t")
    EDIT: ClassVar = {"file_path": "/p/a.py", "old_string": "compute_total_value(3)", "new_string": "0"}

    def test_a_quote_is_told_with_all_that_show_it(self) -> None:
        """What an edit quotes exactly, and every earlier output that shows it, the newest first."""
        again = ("r2", "Grep", {"pattern": "x"}, "a.py:2:compute_total_value(3)")
        found = needs.needs(conversation(self.READ, again), conversation(("e", "Edit", self.EDIT, "ok")))
        assert ("quoted in an edit", "compute_total_value(3)", ("r2", "r1")) in [
            (need.kind, need.piece, need.sources) for need in found
        ]

    def test_what_was_read_in_between_is_not_needed(self) -> None:
        """A quote that a result after the cut shows is not needed from before it."""
        after = conversation(("n", "Bash", {"command": "cat a.py"}, self.READ[3]), ("e", "Edit", self.EDIT, "ok"))
        assert needs.needs(conversation(self.READ), after) == []

    def test_what_was_written_is_not_needed(self) -> None:
        """A line that an earlier input holds stands there."""
        wrote = ("w", "Write", {"file_path": "/p/a.py", "content": "import os\ncompute_total_value(3)\n"}, "ok")
        after = conversation(("e", "Edit", self.EDIT, "ok"))
        assert needs.needs(conversation(wrote, self.READ), after) == []

    def test_a_value_from_an_output_is_needed_once(self) -> None:
        """An identifier that only an output had shown, by which a call says what to work on."""
        before = conversation(("r", "Bash", {"command": "make"}, "built image sha_9f31ab77 for api-gateway"))
        after = conversation(
            ("x", "Bash", {"command": "run sha_9f31ab77"}, "ok"), ("y", "Bash", {"command": "stop sha_9f31ab77"}, "ok")
        )
        assert needs.needs(before, after) == [needs.Need(1, "x", "value", "sha_9f31ab77", ("r",))]

    def test_words_that_go_into_a_file_are_told_apart(self) -> None:
        """Many of them are the agent's own."""
        before = conversation(("r", "Bash", {"command": "make"}, "see compute_total_value"))
        after = conversation(("w", "Write", {"file_path": "/p/b.py", "content": "compute_total_value()"}, "ok"))
        assert [need.kind for need in needs.needs(before, after)] == ["written"]

    def test_a_path_is_known_in_another_spelling(self) -> None:
        """By its last two parts."""
        listed = ("r", "Glob", {"pattern": "*"}, "/home/somebody/p/src/widgets.py\n/home/somebody/p/src/other_part.py")
        said = ("s", "Bash", {"command": "wc src/widgets.py"}, "3")
        after = conversation(("n", "Read", {"file_path": "/home/somebody/p/src/widgets.py"}, "1\tx"))
        assert needs.needs(conversation(listed, said), after) == []
        other = conversation(("n", "Read", {"file_path": "./src/other_part.py"}, "1\tx"))
        assert [(need.kind, need.piece) for need in needs.needs(conversation(listed, said), other)] == [
            ("path", "src/other_part.py")
        ]

    def test_a_value_that_was_said_is_not_needed(self) -> None:
        """What stands in a text or an earlier input is known without the output; so is a word of many projects."""
        after = conversation(("x", "Bash", {"command": "run sha_9f31ab77"}, "ok"))
        before = conversation(("r", "Bash", {"command": "build sha_9f31ab77"}, "built sha_9f31ab77"))
        assert needs.needs(before, after) == []
        plain = conversation(("r", "Bash", {"command": "make"}, "built sha_9f31ab77"))
        assert needs.needs(plain, after, {"sha_9f31ab77"}) == []
        texts = {name: ["sha_9f31ab77 built"] for name in ("one", "two", "three")}
        assert needs.common_words(texts) == {"sha_9f31ab77"}


class TestRetention:
    """How it is counted: what takes a result's place may hold what is needed, and nothing counts twice."""

    @staticmethod
    def point(session: str, text: str, *calls: str) -> retention.Point:
        before = conversation(("r", "Bash", {"command": "make"}, text))
        after = conversation(*[(f"c{n}", "Bash", {"command": command}, "ok") for n, command in enumerate(calls)])
        cut = replay.Cut(session, 0.5, None, before, after, {}, Path("/nowhere"))
        found = needs.needs(before, after)
        return retention.Point(cut, session, retention.texts_of(cut), found, [f"c{n}" for n in range(len(calls))])

    def test_a_call_needs_what_is_gone_and_nothing_holds(self) -> None:
        point = self.point("s", "built sha_9f31ab77" + "." * 82, "run sha_9f31ab77", "ls")

        gone = retention.figures(retention.measure([point], lambda cut: {"r": "[note]"}))
        held = retention.figures(retention.measure([point], lambda cut: {"r": "[note] sha_9f31ab77"}))
        kept = retention.figures(retention.measure([point], lambda cut: {}))

        assert (gone.need, gone.recalls, round(gone.freed, 2)) == (0.5, 50.0, 0.94)
        assert (held.need, held.recalls) == (0.0, 0.0)
        assert (kept.need, kept.freed) == (0.0, 0.0)

    def test_the_same_need_at_two_cuts_is_one(self) -> None:
        """Of the calls behind both cuts."""
        point = self.point("s", "built sha_9f31ab77", "run sha_9f31ab77")
        found = retention.figures(retention.measure([point, point], lambda cut: {"r": ""}))
        assert (found.need, found.recalls) == (0.5, 50.0)

    def test_every_second_project_is_held_back(self) -> None:
        points = [self.point(name, "x", "ls") for name in ("a", "b", "c", "d")]
        fitted, held = retention.halves(points)
        assert ([point.project for point in fitted], [point.project for point in held]) == (["b", "d"], ["a", "c"])


class TestRounds:
    """A window that fills up: what a mode frees decides between going on and a summary."""

    @staticmethod
    def messages(count: int) -> list[dict[str, Any]]:
        return [{"role": "user", "text": "x" * 100} for _ in range(count)]

    def test_the_client_alone_summarises_at_each_full_window(self) -> None:
        found = bench_rounds.rounds(self.messages(33), None, 1000)
        assert (found.summaries, found.first, found.compactions) == (3, 1.1, 3)

    def test_a_mode_that_frees_enough_puts_the_summary_off(self) -> None:
        found = bench_rounds.rounds(self.messages(33), lambda context: context[5:], 1000)
        assert (found.summaries, found.compactions) == (0, 5)

    def test_a_mode_that_frees_too_little_does_not(self) -> None:
        found = bench_rounds.rounds(self.messages(33), lambda context: context[1:], 1000)
        assert found.summaries == 3


class TestWorkspace:
    def test_files_follow_reads_writes_and_edits(self) -> None:
        """The workspace is what the session recorded last of each file."""
        workspace = replay.Workspace()
        whole = {"filePath": "/p/a.py", "content": "one\ntwo\n", "startLine": 1, "numLines": 3, "totalLines": 3}
        part = {"filePath": "/p/b.py", "content": "x", "startLine": 5, "numLines": 1, "totalLines": 9}
        workspace.take({"toolUseResult": {"type": "text", "file": whole}})
        workspace.take({"toolUseResult": {"type": "text", "file": part}})
        assert workspace.files == {"/p/a.py": "one\ntwo\n"}
        workspace.take({"toolUseResult": {"filePath": "/p/a.py", "oldString": "one", "newString": "1"}})
        workspace.take({"toolUseResult": {"type": "create", "filePath": "/p/c.py", "content": "new"}})
        edit = {"filePath": "/p/b.py", "originalFile": "a a", "oldString": "a", "newString": "b", "replaceAll": True}
        workspace.take({"toolUseResult": edit})
        workspace.take({"toolUseResult": "Error: nothing"})
        assert workspace.files == {"/p/a.py": "1\ntwo\n", "/p/c.py": "new", "/p/b.py": "b b"}

    def test_paths_are_moved_in_calls(self, tmp_path: Path) -> None:
        """Absolute paths of either kind move under the root; relative ones and texts stay."""
        given = {"file_path": "/home/x/a.py", "pattern": "/home/x", "command": "cat /home/x/a.py b/home/c"}
        assert replay.moved_input(given, tmp_path) == {
            "file_path": f"{tmp_path}/home/x/a.py",
            "pattern": "/home/x",
            "command": f"cat {tmp_path}/home/x/a.py b/home/c",
        }
        assert replay.moved("D:\\p\\a.py", tmp_path) == f"{tmp_path}/D/p/a.py"
        assert replay.moved("src/a.py", tmp_path) == "src/a.py"

    @pytest.mark.skipif(not SESSIONS.is_dir(), reason="no shared sessions beside the project")
    def test_real_cuts_lose_nothing_and_every_note_works(self, tmp_path: Path) -> None:
        """A real session in the middle: with its workspace back on disk every note of `recoverable` is followed."""
        path = SESSIONS / "cc-2.1.209-d.jsonl"
        (cut,) = replay.cuts(path, (0.5,), tmp_path)
        replay.write_files(cut.files)
        request = TranscriptCompactionRequest(
            payload=cut.before, provider="rules", rules_mode="recoverable", workspace_root=str(tmp_path)
        )
        after = messages_to_payload(compact_transcript(request).messages)
        found = follow.follow(cut.before, after)
        assert sum(result.kind == "file" for result in found.values()) > 5
        assert all(result.works for result in found.values())


class TestGrown:
    def test_made_up_sessions_repeat(self) -> None:
        """The same length gives the same session, and a longer one begins like a shorter one."""
        assert grown.session(50) == grown.session(50)
        assert grown.session(60)[:90] == grown.session(50)[:90]
