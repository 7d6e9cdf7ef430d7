"""The opt-in request log: figures alone, in a private file, and the summaries made of it."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import programs
import pytest
from cli.report_world import report_of
from odd_files import Holder

from lcc.log.lines import LogError
from lcc.log.request_log import MAX_BYTES, append, entry, log_path, read
from lcc.log.request_summary import markdown, summarize
from lcc.transcript import Json

SECRET = "hunter2-in-src/auth.py"


def report(**changes: Any) -> Any:
    """A report as a pass makes it, with words in every place where a transcript's words can stand."""
    decisions: list[Json] = [
        {"id": f"toolu_{SECRET}", "reason": "replace_disk_verified", "note": f"[removed: re-read {SECRET}]"},
        {"id": "b", "reason": f"superseded_by_later_call:{SECRET}", "subject": SECRET},
        {"id": "c", "reason": f"stashed:superseded_by_later_call:{SECRET}"},
        {"id": "d", "reason": f"jev_missing_answer:keep_{SECRET}"},
        {"id": "e", "reason": "stash_write_failed:OSError"},
        {"id": "f", "reason": "pinned_recent"},
        {"id": "g", "reason": "pinned_recent"},
    ]
    return {
        **report_of([]),
        "objective": SECRET,
        "provider_used": "rules",
        "rules_mode": "recoverable",
        "recoverability_check": "disk",
        "workspace_root": f"/home/{SECRET}",
        "degraded": False,
        "degradation_reason": SECRET,
        "worth_it": True,
        "latency_ms": 12.3456,
        "messages_before": 40,
        "messages_after": 40,
        "tool_calls_total": 7,
        "tool_calls_replaced": 2,
        "chars_before": 1000,
        "chars_after": 400,
        "tokens_before": 420,
        "tokens_after": 168,
        "token_count_method": "~characters-by-tool",
        "warnings": [SECRET],
        "decisions": decisions,
        **changes,
    }


class TestEntry:
    def test_no_words_of_a_session_reach_the_log(self) -> None:
        """Ids, notes, subjects, goals, paths, warnings and what follows a reason's name stay out."""
        line = orjson.dumps(entry(report(), client_version="2.1.332")).decode()
        assert SECRET not in line
        assert "hunter2" not in line
        assert "auth" not in line
        assert "/" not in line

    def test_names_that_are_no_names_are_left_out(self) -> None:
        """A version or a mode that is free text is not written."""
        line = entry(report(rules_mode=f"x {SECRET}", provider_used="a/b"), client_version="rm -rf / # 2.1")
        assert (line["mode"], line["provider"], line["client_version"]) == (None, None, None)

    def test_what_is_kept(self) -> None:
        """Counts, sizes, duration and reasons by count."""
        line = entry(report(), client_version="2.1.332")
        assert line["reasons"] == {
            "jev_missing_answer": 1,
            "pinned_recent": 2,
            "replace_disk_verified": 1,
            "stash_write_failed": 1,
            "stashed:superseded_by_later_call": 1,
            "superseded_by_later_call": 1,
        }
        assert (line["tokens_before"], line["tokens_after"], line["duration_ms"]) == (420, 168, 12.346)
        assert line["token_count"] == "estimated"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(line["time"]))


class TestFile:
    def test_the_file_is_private_and_grows_by_lines(self, tmp_path: Path) -> None:
        """Mode 0600 in a 0700 folder; each pass is one line."""
        path = tmp_path / "state" / "requests.jsonl"
        for _ in range(3):
            append(report(), client_version="2.1.332", path=path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert len(list(read(path))) == 3

    def test_an_open_file_is_closed_to_others(self, tmp_path: Path) -> None:
        """A log that was made readable for all becomes private with the next line."""
        path = tmp_path / "requests.jsonl"
        path.touch(0o644)
        path.chmod(0o644)
        append(report(), client_version=None, path=path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_links_and_odd_files_are_refused(self, tmp_path: Path) -> None:
        """A log that is a link, a folder or a pipe is not written to and does not hang."""
        target = tmp_path / "elsewhere"
        target.write_text("mine")
        link, pipe = tmp_path / "link.jsonl", tmp_path / "pipe.jsonl"
        link.symlink_to(target)
        os.mkfifo(pipe)
        for path in (link, pipe, tmp_path):
            with pytest.raises(LogError, match=re.escape(str(path))):
                append(report(), client_version=None, path=path)
        assert target.read_text() == "mine"
        for path in (link, pipe):
            with pytest.raises(LogError):
                list(read(path))

    def test_a_large_log_is_set_aside_once(self, tmp_path: Path) -> None:
        """The log stays within twice its limit, and the older part is still read."""
        path = tmp_path / "requests.jsonl"
        append(report(), client_version="1.0.0", path=path)
        with open(path, "ab") as opened:
            opened.truncate(MAX_BYTES + 1)
        append(report(), client_version="2.0.0", path=path)
        assert path.stat().st_size < 10_000
        assert [line["client_version"] for line in read(path)] == ["1.0.0", "2.0.0"]

    def test_a_log_that_another_process_sets_aside_only_takes_lines(self, tmp_path: Path, hold: Holder) -> None:
        """Its lock is held by a process that is stopped: nothing waits, and nothing is lost."""
        path = tmp_path / "requests.jsonl"
        append(report(), client_version="1.0.0", path=path)
        with open(path, "ab") as opened:
            opened.truncate(MAX_BYTES + 1)
        holder = hold(path)
        os.kill(holder.pid, signal.SIGSTOP)
        append(report(), client_version="2.0.0", path=path)
        assert not path.with_name("requests.jsonl.1").exists()
        holder.kill()
        holder.wait()
        append(report(), client_version="3.0.0", path=path)
        assert [line["client_version"] for line in read(path)][-1] == "3.0.0"
        assert path.stat().st_size < 10_000
        assert b'"2.0.0"' in path.with_name("requests.jsonl.1").read_bytes()

    def test_of_two_that_find_the_log_full_one_sets_it_aside(self, tmp_path: Path) -> None:
        """The later one finds a log that is not full any more; a second renaming would lose the first one's."""
        path = tmp_path / "requests.jsonl"
        for _ in range(20):
            with open(path, "ab") as opened:
                opened.write(b'{"v":1}\n')
                opened.truncate(MAX_BYTES + 1)
            starts = threading.Barrier(8)

            def write(starts: threading.Barrier) -> None:
                starts.wait()
                append(report(), client_version="1.0.0", path=path)

            with ThreadPoolExecutor(8) as pool:
                for written in [pool.submit(write, starts) for _ in range(8)]:
                    written.result()  # a line that is lost says so here
            assert path.with_name("requests.jsonl.1").stat().st_size > MAX_BYTES

    @pytest.mark.parametrize("name", ["requests.jsonl", "requests.jsonl.1"])
    def test_some_other_programs_log_is_not_written_to_and_not_replaced(self, tmp_path: Path, name: str) -> None:
        """Known by how it begins: the state folder may be one that holds other things."""
        path = tmp_path / "requests.jsonl"
        if name != path.name:
            path.write_bytes(b'{"v":1}\n'.ljust(MAX_BYTES + 1))
        (tmp_path / name).write_text('{"request": "mine"}\n')
        with pytest.raises(LogError, match="LCC_STATE_DIR"):
            append(report(), client_version=None, path=path)
        assert (tmp_path / name).read_text() == '{"request": "mine"}\n'

    def test_writers_at_the_same_time_never_mix_lines(self, tmp_path: Path) -> None:
        """Eight threads write forty lines each; every line is whole."""
        path = tmp_path / "requests.jsonl"

        def write() -> None:
            for _ in range(40):
                append(report(), client_version="2.1.332", path=path)

        threads = [threading.Thread(target=write) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(read(path))) == 320

    def test_damaged_lines_are_passed_over(self, tmp_path: Path) -> None:
        """A torn line costs that line alone."""
        path = tmp_path / "requests.jsonl"
        append(report(), client_version=None, path=path)
        with open(path, "ab") as opened:
            opened.write(b'{"v":1,"time":"20\n[1]\n')
        append(report(), client_version=None, path=path)
        assert len(list(read(path))) == 2

    def test_the_state_folder_holds_it(self) -> None:
        """The place follows the state folder's own rule."""
        assert log_path({"LCC_STATE_DIR": "/s"}) == Path("/s/requests.jsonl")


class TestSummary:
    def test_figures_by_mode(self, tmp_path: Path) -> None:
        """Passes, tokens freed, the middle share and times, each mode on its own."""
        path = tmp_path / "requests.jsonl"
        for after in (168, 210, 420):
            append(report(tokens_after=after, worth_it=after < 300), client_version="2.1.332", path=path)
        append(report(rules_mode="lossless", tokens_after=400), client_version="2.1.197", path=path)
        found = summarize(read(path))
        assert found.passes == 4
        assert found.client_versions == ("2.1.197", "2.1.332")
        lossless, recoverable = found.modes
        assert (lossless.mode, lossless.passes, lossless.tokens_freed) == ("lossless", 1, 20)
        assert (recoverable.passes, recoverable.worth_it, recoverable.tokens_freed) == (3, 2, 462)
        assert recoverable.median_freed == 0.5
        assert dict(found.reasons)["pinned_recent"] == 8

    def test_markdown_is_a_table_to_paste(self, tmp_path: Path) -> None:
        """Every mode and reason has its row."""
        path = tmp_path / "requests.jsonl"
        append(report(), client_version="2.1.332", path=path)
        text = markdown(summarize(read(path)))
        assert "| recoverable | 1 | 1 | 0 | 252 | 60.0% | 12 ms | 12 ms |" in text
        assert "| `replace_disk_verified` | 1 |" in text

    def test_an_empty_log_has_a_summary(self) -> None:
        """Nothing logged is no error."""
        assert summarize([]).passes == 0
        assert markdown(summarize([])).startswith("0 passes")


class TestCommand:
    def run(self, *words: str, state: Path) -> subprocess.CompletedProcess[str]:
        """``lcc log`` in a process of its own."""
        env = {**os.environ, "LCC_STATE_DIR": str(state), "LCC_REQUEST_LOG": "1", "HOME": str(state)}
        return programs.run_text("lcc", "log", *words, env=env)

    def test_each_form_prints_the_figures(self, tmp_path: Path) -> None:
        """The last passes, the summary, Markdown and JSON all come from the same log."""
        append(report(), client_version="2.1.332", path=tmp_path / "requests.jsonl")
        plain = self.run(state=tmp_path)
        assert plain.returncode == 0, plain.stderr
        assert "log is on" in plain.stdout
        assert "1 passes" in plain.stdout
        assert "252" in self.run("--summary", state=tmp_path).stdout
        assert self.run("--markdown", state=tmp_path).stdout.startswith("1 passes of lcc")
        assert orjson.loads(self.run("--summary", "--json", state=tmp_path).stdout)["passes"] == 1
        assert orjson.loads(self.run("--json", state=tmp_path).stdout)[0]["tokens_before"] == 420

    def test_no_log_is_no_error(self, tmp_path: Path) -> None:
        """Before the first pass the command says that there is nothing."""
        for words in ((), ("--summary",), ("--markdown",)):
            done = self.run(*words, state=tmp_path)
            assert done.returncode == 0, done.stderr
            assert "0 passes" in done.stdout or "No passes" in done.stdout
