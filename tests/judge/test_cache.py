"""Sticky decisions: what a second pass asks, that earlier bytes stand, and a file that two passes share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from judge.judge_world import call, can_be_shown, jev_at, judge, session
from judge.system_one_server import Asked, Step, always, answers, http, system_one
from making import session_files

from lcc.contract.decision import Verdict
from lcc.judge import cache as cache_module
from lcc.judge.cache import HEADER, DecisionCache, decision_key
from lcc.judge.errors import DecisionsCacheError, TranscriptFitError
from lcc.relevance.policies import edits_of
from lcc.transcript import Transcript, apply_edits, messages_to_payload, parse_payload, read_transcript


def by_number(name: str) -> float:
    """A verdict of keep, trim or drop, by the number in the call's id."""
    number = int(name.rsplit("t", 1)[1])
    return (0.9, 0.9 if name.startswith("keep_call_") else 0.1, 0.1)[number % 3]


def output_of(transcript: Transcript, outcome: Any) -> list[Any]:
    payload = messages_to_payload(apply_edits(transcript, edits_of(outcome.decisions)))
    assert isinstance(payload, list)
    return payload


class TestSecondPass:
    """A pass over a grown session asks only about new or changed pairs (the seed's section 9 names the gap)."""

    def test_after_50_more_messages(self, tmp_path: Path) -> None:
        """Only the new pairs are asked about, and the output that stood before still stands, byte for byte."""
        file = str(tmp_path / "decisions")
        grown: Any = session(100)
        for n in range(101, 126):
            grown["messages"] += call(n)
        before: Any = {"messages": grown["messages"][:202]}
        with system_one(always(by_number)) as server:
            one = judge(parse_payload(before), jev_at(server.url), decisions_cache=file)
            asked_once = [name for asked in server.asked for name in asked.questions]
            server.asked.clear()
            # The judge would now say otherwise; what it said before stays.
            server.respond = always(lambda name: 1 - by_number(name))
            two = judge(parse_payload(grown), jev_at(server.url), decisions_cache=file)
            asked_twice = [name for asked in server.asked for name in asked.questions]

        assert len(asked_once) == 2 * 97 == one.questions_asked
        assert {name.rsplit("_", 1)[1] for name in asked_twice} == {f"t{n}" for n in range(98, 123)}
        assert len(asked_twice) == 2 * 25 == two.questions_asked
        first, second = (output_of(parse_payload(p), o) for p, o in ((before, one), (grown, two)))
        decided = sum(2 for d in one.decisions.values() if d.action != "drop") + 1
        texts_of_dropped = sum(1 for d in one.decisions.values() if d.action == "drop")
        stands = first[: decided + texts_of_dropped]
        assert len(stands) > 150
        assert second[: len(stands)] == stands
        assert two.semantic_guarantee == "judged"

    def test_nothing_new_asks_nobody(self, tmp_path: Path) -> None:
        """The same session again is judged without a request, and gives the same decisions."""
        file = str(tmp_path / "decisions")
        with system_one(always(by_number)) as server:
            one = judge(parse_payload(session(30)), jev_at(server.url), decisions_cache=file)
            server.asked.clear()
            two = judge(parse_payload(session(30)), jev_at(server.url), decisions_cache=file)

        assert server.asked == []
        assert one.decisions == two.decisions
        assert (two.requests, two.questions_asked, two.degraded, two.semantic_guarantee) == (0, 0, False, "judged")

    def test_a_pass_over_the_compacted_session_changes_nothing(self, tmp_path: Path) -> None:
        """What was trimmed is recognised in its trimmed form: nobody is asked, and the bytes stand."""
        file = str(tmp_path / "decisions")
        with system_one(always(by_number)) as server:
            transcript = parse_payload(session(30))
            compacted = output_of(transcript, judge(transcript, jev_at(server.url), decisions_cache=file))
            server.asked.clear()
            again = parse_payload(compacted)
            outcome = judge(again, jev_at(server.url), decisions_cache=file)

        assert server.asked == []
        assert output_of(again, outcome) == compacted

    def test_changed_pairs_are_asked_about_again(self, tmp_path: Path) -> None:
        """Another result, another input or another error flag makes it another pair."""
        file = str(tmp_path / "decisions")
        changed: Any = session(12)
        changed["messages"][1]["toolUses"][0]["input"]["command"] = "something else"
        changed["messages"][4]["toolResults"][0]["text"] += "."
        changed["messages"][6]["toolResults"][0]["is_error"] = True
        with system_one(always()) as server:
            judge(parse_payload(session(12)), jev_at(server.url), decisions_cache=file)
            server.asked.clear()
            judge(parse_payload(changed), jev_at(server.url), decisions_cache=file)
            names = {name.rsplit("_", 1)[1] for asked in server.asked for name in asked.questions}

        assert names == {"t1", "t2", "t3"}

    @pytest.mark.parametrize("other", [{"question": "another goal"}, {"jev_model": "jev-1.12"}])
    def test_another_goal_or_model_is_another_verdict(self, tmp_path: Path, other: dict[str, str]) -> None:
        """A verdict holds for the goal and the model that it was given for."""
        file = str(tmp_path / "decisions")
        with system_one(always()) as server:
            judge(parse_payload(session(12)), jev_at(server.url), decisions_cache=file)
            outcome = judge(parse_payload(session(12)), jev_at(server.url), decisions_cache=file, **other)

        assert outcome.questions_asked == 2 * 9

    def test_threshold_is_applied_to_what_is_remembered(self, tmp_path: Path) -> None:
        """Probabilities are kept, not decisions: another threshold needs no question."""
        file = str(tmp_path / "decisions")
        with system_one(always(0.6)) as server:
            kept = judge(parse_payload(session(12)), jev_at(server.url), decisions_cache=file)
            dropped = judge(parse_payload(session(12)), jev_at(server.url), decisions_cache=file, threshold=0.7)

        assert {d.action for d in kept.decisions.values()} == {"keep"}
        assert {d.action for d in dropped.decisions.values()} == {"drop"}
        assert dropped.requests == 0

    def test_fail_safe_keeps_are_not_remembered(self, tmp_path: Path) -> None:
        """What was kept because a request failed is asked about the next time; what was judged is not."""
        file = str(tmp_path / "decisions")

        def first_fails(asked: Asked) -> list[Step]:
            return http(422, b"") if "keep_call_t1" in asked.questions else http(200, answers(asked, 0.1))

        with system_one(first_fails) as server:
            judge(parse_payload(session(19)), jev_at(server.url), decisions_cache=file)
            server.respond = always(0.1)
            outcome = judge(parse_payload(session(19)), jev_at(server.url), decisions_cache=file)

        assert outcome.questions_asked == 16
        assert {d.action for d in outcome.decisions.values()} == {"drop"}

    def test_without_a_judge_the_cache_decides_nothing(self, tmp_path: Path) -> None:
        """No key means no judged pass, whatever is remembered: everything is kept (section 5, first row)."""
        file = str(tmp_path / "decisions")
        with system_one(always(0.1)) as server:
            judge(parse_payload(session(12)), jev_at(server.url), decisions_cache=file)
        outcome = judge(parse_payload(session(12)), {"HOME": "/nonexistent"}, decisions_cache=file)

        assert {d.action for d in outcome.decisions.values()} == {"keep"}
        assert outcome.semantic_guarantee == "none"

    @pytest.mark.parametrize("file", session_files() or [None], ids=lambda f: f.name if f else "none")
    def test_shared_sessions(self, tmp_path: Path, file: Any) -> None:
        """On real sessions the second pass asks nothing and decides the same."""
        if file is None:
            pytest.skip("the shared sessions are not beside this checkout")
        transcript = read_transcript(file.read_bytes())
        cache = str(tmp_path / "decisions")
        with system_one(always(lambda name: sum(map(ord, name)) % 10 / 10)) as server:
            if not can_be_shown(transcript):
                with pytest.raises(TranscriptFitError):
                    judge(transcript, jev_at(server.url), decisions_cache=cache)
                assert server.asked == []
                return
            one = judge(transcript, jev_at(server.url), decisions_cache=cache)
            server.asked.clear()
            two = judge(transcript, jev_at(server.url), decisions_cache=cache)

        assert server.asked == []
        assert one.decisions == two.decisions


class TestFile:
    """The file itself: private, replaced whole, never another file's end."""

    def pair(self) -> Any:
        return next(parse_payload(session(3)).pairs())

    def key(self, n: int) -> str:
        return decision_key("jev", "jev-latest", str(n), self.pair())

    def filled(self, path: Path, count: int = 5) -> DecisionCache:
        cache = DecisionCache.open(path)
        for n in range(count):
            cache.put(self.key(n), Verdict(n / 100, 0.5))
        assert cache.save() == ()
        return cache

    def test_private_and_without_text(self, tmp_path: Path) -> None:
        """Mode 0600, and nothing of the session can be read in it."""
        file = tmp_path / "decisions"
        with system_one(always()) as server:
            judge(parse_payload(session(12)), jev_at(server.url), question="secret goal", decisions_cache=str(file))

        data = file.read_bytes()
        assert file.stat().st_mode & 0o777 == 0o600
        for text in (b"secret goal", b"step 1", b"of the output", b"toolu", b"Bash"):
            assert text not in data
        assert [path.name for path in tmp_path.iterdir()] == ["decisions"]

    def test_read_back(self, tmp_path: Path) -> None:
        """What was saved is there for the next one who opens it."""
        self.filled(tmp_path / "decisions")

        again = DecisionCache.open(tmp_path / "decisions")

        assert len(again) == 5
        assert again.get(self.key(3)) == Verdict(0.03, 0.5)
        assert again.get(self.key(99)) is None

    def test_read_only_writes_nothing(self, tmp_path: Path) -> None:
        """A dry run leaves no file."""
        cache = DecisionCache.open(tmp_path / "decisions", read_only=True)
        cache.put(self.key(1), Verdict(0.1, 0.1))

        assert cache.save() == ()
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "line",
        [b"{", b"[]", b'["x",0.1,0.2]', b'["' + b"a" * 64 + b'",0.1,7]', b"\x00\xff", b'["' + b"a" * 64 + b'",0.1'],
    )
    def test_damaged_lines_are_asked_about_again(self, tmp_path: Path, line: bytes) -> None:
        """A line that is no verdict is left out with a warning; the others count."""
        file = tmp_path / "decisions"
        self.filled(file)
        file.write_bytes(file.read_bytes() + line + b"\n")

        cache = DecisionCache.open(file)

        assert len(cache) == 5
        assert cache.warnings[0].startswith("decisions_cache_damaged:1 lines")

    def test_cut_at_any_byte(self, tmp_path: Path) -> None:
        """A file that ends anywhere is either refused as foreign or read up to its last whole line."""
        file = tmp_path / "decisions"
        self.filled(file)
        whole = file.read_bytes()
        for end in range(0, len(whole), 7):
            file.write_bytes(whole[:end])
            try:
                cache = DecisionCache.open(file)
            except DecisionsCacheError:
                assert end < len(HEADER)
                continue
            for n in range(5):
                assert cache.get(self.key(n)) in (None, Verdict(n / 100, 0.5))

    @pytest.mark.parametrize("content", [b"my diary\n", b"{}", b"\x00" * 100, HEADER + b"x\n"])
    def test_another_file_is_never_written_to(self, tmp_path: Path, content: bytes) -> None:
        """A file that is no decisions cache is refused before anything is asked, and left as it is."""
        file = tmp_path / "diary"
        file.write_bytes(content)
        with system_one(always()) as server, pytest.raises(DecisionsCacheError, match="some other file") as caught:
            judge(parse_payload(session(12)), jev_at(server.url), decisions_cache=str(file))

        assert isinstance(caught.value, ValueError)
        assert str(file) in str(caught.value)
        assert file.read_bytes() == content
        assert server.asked == []

    def test_unusable_paths(self, tmp_path: Path) -> None:
        """A missing folder, a folder, a link, a pipe and a huge file are refused with the path and the way out."""
        link, pipe, huge = tmp_path / "link", tmp_path / "pipe", tmp_path / "huge"
        link.symlink_to(tmp_path / "target")
        os.mkfifo(pipe)
        with huge.open("wb") as opened:
            opened.truncate(cache_module.MAX_BYTES + 1)

        for path in (tmp_path / "no" / "file", tmp_path, link, pipe, huge):
            with pytest.raises(DecisionsCacheError, match="leave the option out") as caught:
                DecisionCache.open(path)
            assert str(path) in str(caught.value)
        assert not (tmp_path / "target").exists()

    def test_file_that_became_another_one_is_left_alone(self, tmp_path: Path) -> None:
        """When the path holds something else by the time of saving, the pass stands and a warning says so."""
        file = tmp_path / "decisions"
        cache = DecisionCache.open(file)
        cache.put(self.key(1), Verdict(0.1, 0.1))
        file.write_text("somebody else's")

        (warning,) = cache.save()

        assert warning.startswith("decisions_cache_not_written:")
        assert file.read_text() == "somebody else's"

    def test_folder_that_is_gone_is_a_warning(self, tmp_path: Path) -> None:
        """A pass that judged well does not fail because its cache cannot be written."""
        folder = tmp_path / "f"
        folder.mkdir()
        cache = DecisionCache.open(folder / "decisions")
        cache.put(self.key(1), Verdict(0.1, 0.1))
        folder.rmdir()

        (warning,) = cache.save()

        assert "No such file" in warning

    def test_full_disk_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """When the new file cannot be made durable, the old one stays alone, and a warning says so."""
        file = tmp_path / "decisions"
        self.filled(file)
        before = file.read_bytes()
        cache = DecisionCache.open(file)
        cache.put(self.key(9), Verdict(0.9, 0.9))

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        (warning,) = cache.save()

        assert "No space left" in warning
        assert file.read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["decisions"]

    def test_two_writers_lose_nothing(self, tmp_path: Path) -> None:
        """Two caches opened before either was saved: both verdicts are in the file."""
        file = tmp_path / "decisions"
        one, two = DecisionCache.open(file), DecisionCache.open(file)
        one.put(self.key(1), Verdict(0.1, 0.1))
        two.put(self.key(2), Verdict(0.2, 0.2))
        one.save()
        two.save()

        assert len(DecisionCache.open(file)) == 2

    def test_processes_at_once_lose_nothing(self, tmp_path: Path) -> None:
        """Six processes that save at the same moment, ten times each: sixty verdicts, no damage, no litter."""
        file = tmp_path / "decisions"
        program = """
import sys
from lcc.contract.decision import Verdict
from lcc.judge.cache import DecisionCache
for n in range(10):
    cache = DecisionCache.open(sys.argv[1])
    cache.put(f"{sys.argv[2]}{n}".rjust(64, "0"), Verdict(0.5, 0.5))
    assert cache.save() == (), "not saved"
"""
        started = [subprocess.Popen([sys.executable, "-c", program, str(file), letter]) for letter in "abcdef"]
        assert [process.wait(60) for process in started] == [0] * 6

        found = DecisionCache.open(file)
        assert len(found) == 60
        assert found.warnings == ()
        assert [path.name for path in tmp_path.iterdir()] == ["decisions"]

    def test_lock_that_stays_taken_is_a_warning(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another writer that hangs costs a moment and a warning, not the pass."""
        import fcntl

        monkeypatch.setattr(cache_module, "LOCK_SECONDS", 0.1)
        cache = DecisionCache.open(tmp_path / "decisions")
        cache.put(self.key(1), Verdict(0.1, 0.1))
        descriptor = os.open(tmp_path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            started = time.monotonic()
            (warning,) = cache.save()
        finally:
            os.close(descriptor)

        assert warning.startswith("decisions_cache_not_written:")
        assert time.monotonic() - started < 5

    def test_oldest_entries_make_room(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The file does not grow without end."""
        monkeypatch.setattr(cache_module, "MAX_ENTRIES", 10)
        self.filled(tmp_path / "decisions", 25)

        found = DecisionCache.open(tmp_path / "decisions")

        assert len(found) == 10
        assert found.get(self.key(24)) is not None
        assert found.get(self.key(0)) is None
