"""Forking a session file: what changes in its lines, what does not, and when it is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import making
import programs
import pytest
from making import SESSIONS, jsonl

from lcc.sessions.fork import (
    ForkError,
    copy_agents,
    fork_bytes,
    new_session_id,
    note_ids,
    read_session,
    whole_lines,
    why_live,
)
from lcc.transcript import Edits, messages_to_payload, read_transcript, render

ID = "11111111-2222-4333-8444-555555555555"
Row = dict[str, Any]


def row(kind: str, name: str, parent: str | None, **more: Any) -> Row:
    return making.row(kind, name, parent, sessionId="old", **more)


def prompt(name: str, parent: str | None, text: str = "hello", **more: Any) -> Row:
    return making.user(name, parent, text, sessionId="old", **more)


def use(name: str, parent: str, call: str, message: str | None = None) -> Row:
    return making.assistant(name, parent, message or name, making.use(call, command=f"run {call}"), sessionId="old")


def result(name: str, parent: str, call: str, text: str = "output", **more: Any) -> Row:
    more = {"toolUseResult": {"stdout": text, "stderr": ""}, "sourceToolAssistantUUID": parent} | more
    return making.answer(name, parent, call, text, sessionId="old", **more)


def said(name: str, parent: str, text: str = "done") -> Row:
    return making.assistant(name, parent, name, making.text(text), sessionId="old")


def parsed(content: bytes) -> list[Row]:
    return [json.loads(line) for line in content.splitlines()]


SIMPLE = (
    prompt("p1", None),
    use("a1", "p1", "t1"),
    result("r1", "a1", "t1"),
    row("attachment", "x1", "r1", attachment={"type": "queued_command", "prompt": "and"}),
    said("a2", "x1"),
)


def test_ids_change_and_nothing_else() -> None:
    """Session id and uuids are new, links follow them, every other member stands byte for byte."""
    forked = parsed(fork_bytes(jsonl(*SIMPLE), set(), ID))
    assert [each["type"] for each in forked] == ["user", "assistant", "user", "attachment", "assistant"]
    assert {each["sessionId"] for each in forked} == {ID}
    assert forked[0]["parentUuid"] is None
    assert [each["parentUuid"] for each in forked[1:]] == [each["uuid"] for each in forked[:-1]]
    assert forked[2]["sourceToolAssistantUUID"] == forked[1]["uuid"]
    assert not {each["uuid"] for each in forked} & {each["uuid"] for each in SIMPLE}
    ids = ("sessionId", "uuid", "parentUuid", "sourceToolAssistantUUID")
    for new, old in zip(forked, SIMPLE, strict=True):
        assert {k: v for k, v in new.items() if k not in ids} == {k: v for k, v in old.items() if k not in ids}
        assert list(new) == list(old)


def test_the_second_copy_of_a_changed_result_goes_and_of_an_unchanged_one_stays() -> None:
    """toolUseResult does not bring a removed output back, wherever in the line it stands."""
    rows = [
        *SIMPLE,
        use("b1", "a2", "t2"),
        {"toolUseResult": {"stdout": 'SECRET "quoted", {x}'}, **result("s1", "b1", "t2", "SECRET")},
        use("b2", "s1", "t3"),
        {k: v for k, v in result("s2", "b2", "t3", "SECRET").items() if k != "toolUseResult"}
        | {"toolUseResult": "SECRET"},
        said("b3", "s2"),
    ]
    raw = jsonl(*rows)
    transcript = read_transcript(raw)
    edits = Edits({"t2": "[note]", "t3": "[note]"})
    forked = fork_bytes(render(transcript, edits), edits.texts.keys(), ID)
    assert b"SECRET" not in forked
    assert [("toolUseResult" in each) for each in parsed(forked) if "sourceToolAssistantUUID" in each] == [
        True,
        False,
        False,
    ]


def test_only_the_live_branch_is_forked() -> None:
    """What a rewind left, what stands before the boundary, side chains and lines outside the tree stay behind."""
    rows = (
        {"type": "summary", "summary": "x", "leafUuid": "p1"},
        prompt("old", None, "before the boundary"),
        row("system", "c1", None, subtype="compact_boundary", logicalParentUuid="old"),
        prompt("p1", "c1", "the summary"),
        said("left", "p1", "rewound"),
        prompt("side", "p1", "side chain") | {"isSidechain": True},
        said("a1", "p1", "kept"),
    )
    forked = parsed(fork_bytes(jsonl(*rows), set(), ID))
    contents = [json.dumps(each["message"]) for each in forked]
    assert len(forked) == 2
    assert "the summary" in contents[0]
    assert "kept" in contents[1]
    assert forked[0]["parentUuid"] is None


def test_parallel_calls_keep_their_branches_and_their_order() -> None:
    """Results that ended out of order come to the model as before."""
    rows = (
        prompt("p1", None),
        use("a1", "p1", "t1", "m"),
        use("a2", "a1", "t2", "m"),
        result("r2", "a2", "t2", "second ended first"),
        result("r1", "a1", "t1", "first ended second"),
        said("a3", "r1"),
    )
    raw = jsonl(*rows)
    forked = fork_bytes(raw, set(), ID)
    assert messages_to_payload(read_transcript(forked).messages) == messages_to_payload(read_transcript(raw).messages)
    assert len(parsed(forked)) == 6


def test_title_and_shown_replacements_go_along() -> None:
    """The newest of each kind under the new id; what the client shows for a changed call does not hide its note."""
    shown = [{"kind": "tool-result", "toolUseId": call, "replacement": "a preview"} for call in ("t1", "t9")]
    rows: list[Row] = [
        {"type": "custom-title", "customTitle": "old", "sessionId": "old"},
        *SIMPLE[:3],
        {"type": "content-replacement", "sessionId": "old", "replacements": shown},
        {"type": "content-replacement", "sessionId": "old", "agentId": "a1", "replacements": shown},
        {"type": "ai-title", "aiTitle": "by itself", "sessionId": "old"},
        *SIMPLE[3:],
        {"type": "custom-title", "customTitle": "the \u00fc title", "sessionId": "old"},
        {"type": "last-prompt", "lastPrompt": "no", "sessionId": "old"},
    ]
    source = jsonl(*rows)
    behind = parsed(fork_bytes(source, {"t1"}, ID))[len(SIMPLE) :]
    assert behind == [
        {"type": "content-replacement", "sessionId": ID, "replacements": shown[1:]},
        {"type": "custom-title", "customTitle": "the \u00fc title", "sessionId": ID},
        {"type": "ai-title", "aiTitle": "by itself", "sessionId": ID},
    ]
    again = fork_bytes(fork_bytes(source, (), ID), (), new_session_id())
    assert len(parsed(again)) == len(SIMPLE) + 3


def test_sub_agents_files_are_copied(tmp_path: Path) -> None:
    """Those in folders too; links and pipes are not followed; the source stays as it is."""
    source, fork = tmp_path / "old.jsonl", tmp_path / f"{ID}.jsonl"
    inner = tmp_path / "old" / "subagents" / "workflow"
    inner.mkdir(parents=True)
    (inner.parent / "agent-1.jsonl").write_bytes(b"one\n")
    (inner / "agent-2.jsonl").write_bytes(b"two\n")
    (inner / "agent-3.jsonl").symlink_to("/etc/hostname")
    os.mkfifo(inner / "agent-4.jsonl")
    copy_agents(source, fork)
    made = tmp_path / ID
    found = {str(path.relative_to(made)): path.read_bytes() for path in made.rglob("*") if path.is_file()}
    assert found == {"subagents/agent-1.jsonl": b"one\n", "subagents/workflow/agent-2.jsonl": b"two\n"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in made.rglob("*"))
    copy_agents(tmp_path / "none.jsonl", fork)


def test_two_objects_on_a_line_and_a_damaged_line_become_lines_of_their_own() -> None:
    """Every line of a fork is one whole object, so that the client reads all of them."""
    first, second, *rest = SIMPLE
    damaged = json.dumps(prompt("p2", "a2", "a path C:-users")).replace("C:-users", "C:\\users")
    raw = jsonl(json.dumps(first) + json.dumps(second), *rest, damaged, said("a3", "p2"))
    forked = parsed(fork_bytes(raw, set(), ID))
    assert len(forked) == 7
    assert forked[5]["message"]["content"] == "a path C:\\users"


def test_the_same_arguments_give_the_same_bytes_and_two_forks_share_no_uuid() -> None:
    """Forks are deterministic but for their id."""
    raw = jsonl(*SIMPLE)
    assert fork_bytes(raw, set(), ID) == fork_bytes(raw, set(), ID)
    other = parsed(fork_bytes(raw, set(), new_session_id()))
    assert not {each["uuid"] for each in other} & {each["uuid"] for each in parsed(fork_bytes(raw, set(), ID))}


def test_a_file_that_is_no_session_of_its_own_is_refused() -> None:
    """A sub-agent's file, and lines without links."""
    with pytest.raises(ForkError, match="sub-agent"):
        fork_bytes(jsonl(*({**each, "isSidechain": True} for each in SIMPLE)), set(), ID)
    unlinked = [{k: v for k, v in each.items() if k not in ("parentUuid", "uuid")} for each in SIMPLE]
    with pytest.raises(ForkError, match="links"):
        fork_bytes(jsonl(*unlinked), set(), ID)


@pytest.mark.skipif(not SESSIONS.is_dir(), reason="the shared sessions are not here")
@pytest.mark.parametrize("name", sorted(path.name for path in SESSIONS.glob("cc-*.jsonl")))
def test_a_real_session_says_the_same_in_its_fork_and_in_the_forks_fork(name: str) -> None:
    """Messages, calls and results come back in the order and with the texts of the original."""
    raw = (SESSIONS / name).read_bytes()
    want = messages_to_payload(read_transcript(raw).messages)
    first = fork_bytes(raw, set(), ID)
    second = fork_bytes(first, set(), new_session_id())
    assert messages_to_payload(read_transcript(first).messages) == want
    assert messages_to_payload(read_transcript(second).messages) == want
    assert first.count(b"\n") == second.count(b"\n")


def test_the_notes_of_a_session_are_found() -> None:
    """Those of the stash alone, each once."""
    notes = [
        "[removed: 10 tokens · lcc recall 0123456789ab]",
        "[removed: 11 tokens · lcc recall 0123456789ab]",
        "[identical output kept at t1]",
        "[removed: 10 tokens · lcc recall ffffffffffff]",
    ]
    rows: list[Row] = [prompt("p", None)]
    for index, note in enumerate(notes):
        rows += [use(f"u{index}", rows[-1]["uuid"], f"t{index}"), result(f"r{index}", f"u{index}", f"t{index}", note)]
    assert note_ids(read_transcript(jsonl(*rows)).messages) == ["0123456789ab", "ffffffffffff"]


class TestLive:
    """When a client may be writing to the session."""

    @pytest.fixture
    def session(self, tmp_path: Path) -> Path:
        path = tmp_path / "projects" / "-p" / f"{ID}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(jsonl(*SIMPLE))
        os.utime(path, (time.time() - 3600,) * 2)
        return path

    def register(self, session: Path, pid: int, **more: Any) -> None:
        folder = session.parents[2] / "sessions"
        folder.mkdir()
        (folder / f"{pid}.json").write_text(json.dumps({"pid": pid, "sessionId": session.stem, **more}))
        (folder / "broken.json").write_text("{")

    def test_a_quiet_session_is_read_whole(self, session: Path) -> None:
        """An hour after its last line."""
        assert why_live(session, time.time()) is None
        assert read_session(session, snapshot=False) == jsonl(*SIMPLE)

    def test_a_session_that_was_just_written_is_refused(self, session: Path) -> None:
        """And given with a snapshot."""
        os.utime(session)
        with pytest.raises(ForkError, match="--snapshot"):
            read_session(session, snapshot=False)
        assert read_session(session, snapshot=True) == jsonl(*SIMPLE)

    def test_a_running_client_that_registered_the_session_is_found(self, session: Path) -> None:
        """However long ago it wrote."""
        self.register(session, os.getpid())
        with pytest.raises(ForkError, match=str(os.getpid())):
            read_session(session, snapshot=False)

    def test_a_client_that_has_ended_does_not_count(self, session: Path) -> None:
        """Its register entry may be left behind, and its process id used again."""
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        self.register(session, ended.pid)
        assert why_live(session, time.time()) is None

    @pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to tell two processes apart")
    def test_a_recycled_process_id_does_not_count(self, session: Path) -> None:
        """The register says when the process began."""
        self.register(session, os.getpid(), procStart="1")
        assert why_live(session, time.time()) is None

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to list open files")
    def test_a_process_that_has_it_open_for_writing_is_found(self, session: Path) -> None:
        """Reading it does not count."""
        with session.open("rb"):
            assert why_live(session, time.time()) is None
        with session.open("ab"):
            assert f"process {os.getpid()}" in str(why_live(session, time.time()))

    def test_a_snapshot_ends_with_the_last_whole_line(self) -> None:
        """A line that the client is still writing is left out; a whole one without its newline stays."""
        whole = jsonl(*SIMPLE)
        assert whole_lines(whole + b'{"type":"user","mess') == whole
        assert whole_lines(whole[:-1]) == whole[:-1]


def lcc(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LCC_", "XDG_", "CLAUDE_"))}
    environment |= {"HOME": str(home), "LCC_STASH_DIR": str(home / "stash")}
    return programs.run_text("lcc", *arguments, env=environment)


class TestCommand:
    """`lcc compact --fork`."""

    @pytest.fixture
    def session(self, tmp_path: Path) -> Path:
        rows: list[Row] = [prompt("p1", None, "make it")]
        text = "a long line of output that says nothing in particular\n" * 60
        for index in range(30):
            rows += [
                use(f"u{index}", rows[-1]["uuid"], f"t{index}"),
                result(f"r{index}", f"u{index}", f"t{index}", f"{index}\n{text}"),
            ]
        path = tmp_path / "projects" / "-p" / f"{ID}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(jsonl(*rows, said("end", rows[-1]["uuid"])))
        os.utime(path, (time.time() - 3600,) * 2)
        return path

    def test_a_fork_stands_beside_the_session_and_its_notes_can_be_followed(
        self, session: Path, tmp_path: Path
    ) -> None:
        """The original is untouched; a second fork keeps the first one's notes and their objects."""
        before = session.read_bytes()
        done = lcc("compact", str(session), "--provider", "rules", "--rules-mode", "stashed", "--fork", home=tmp_path)
        assert done.returncode == 0, done.stderr
        assert session.read_bytes() == before
        (forked,) = [path for path in session.parent.iterdir() if path != session]
        assert f"claude --resume {forked.stem}" in done.stderr
        assert done.stdout == ""
        named = note_ids(read_transcript(forked.read_bytes()).messages)
        assert len(named) > 10
        assert lcc("recall", named[0], "--lines", "1", home=tmp_path).stdout == "0"

        rows = parsed(forked.read_bytes())
        text = "what was printed after the first fork\n" * 60
        for index in range(30, 60):
            rows += [
                use(f"u{index}", rows[-1]["uuid"], f"t{index}"),
                result(f"r{index}", f"u{index}", f"t{index}", f"{index}\n{text}"),
            ]
        forked.write_bytes(jsonl(*rows, said("later end", rows[-1]["uuid"])))
        again = ["compact", str(forked), "--provider", "rules", "--rules-mode", "stashed", "--fork", "--snapshot"]
        assert lcc(*again, home=tmp_path).returncode == 0
        (second,) = [path for path in session.parent.iterdir() if path not in (session, forked)]
        assert note_ids(read_transcript(second.read_bytes()).messages)[: len(named)] == named
        listed = json.loads(
            lcc("stash", "list", "--json", "--limit", "0", "--session", second.stem, home=tmp_path).stdout
        )
        assert set(named) <= {each["sha256"][:12] for each in listed["listed"]}

    def test_without_a_word_about_who_decides_the_rules_do_by_the_ladder(self, session: Path, tmp_path: Path) -> None:
        """The fork is the one that the ladder makes, and the summary names them."""
        doubled = "the same line of output, again and again\n" * 60
        rows = parsed(session.read_bytes())
        rows[2]["message"]["content"][0]["content"] = rows[4]["message"]["content"][0]["content"] = doubled
        session.write_bytes(jsonl(*rows))
        os.utime(session, (time.time() - 3600,) * 2)
        done = lcc("compact", str(session), "--fork", home=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "--provider rules --rules-mode auto" in done.stderr
        (forked,) = [path for path in session.parent.iterdir() if path != session]
        results = [each["message"]["content"][0]["content"] for each in parsed(forked.read_bytes())[2:6:2]]
        assert all(len(each) < len(doubled) for each in results)

    @pytest.mark.parametrize("who", [("--provider", "rules"), ("--provider", "auto")])
    def test_no_fork_is_written_where_nothing_could_be_removed(
        self, session: Path, tmp_path: Path, who: tuple[str, ...]
    ) -> None:
        """It would be a second session that holds the same as the first; the report is written all the same."""
        report = tmp_path / "report.json"
        done = lcc("compact", str(session), "--fork", "-r", str(report), *who, home=tmp_path)
        assert done.returncode == 0, done.stderr
        assert list(session.parent.iterdir()) == [session]
        assert "no fork was written" in done.stderr
        assert "claude --resume" not in done.stderr
        assert json.loads(report.read_text())["chars_before"] == json.loads(report.read_text())["chars_after"]

    def test_a_dry_run_writes_nothing(self, session: Path, tmp_path: Path) -> None:
        """No fork, no stash."""
        asked = ["--provider", "rules", "--rules-mode", "stashed", "--fork", "--dry-run"]
        assert lcc("compact", str(session), *asked, home=tmp_path).returncode == 0
        assert list(session.parent.iterdir()) == [session]
        assert not (tmp_path / "stash").exists()

    @pytest.mark.parametrize(
        ("arguments", "what"),
        [
            (["--fork", "-o", "x.jsonl"], "-o"),
            (["--snapshot"], "--fork"),
            (["--fork", "--format", "codex"], "Claude Code"),
        ],
    )
    def test_options_that_do_not_go_together_are_refused(
        self, session: Path, tmp_path: Path, arguments: list[str], what: str
    ) -> None:
        """Exit 2, nothing written."""
        done = lcc("compact", str(session), "--provider", "rules", *arguments, home=tmp_path)
        assert done.returncode == 2
        assert what in done.stderr
        assert list(session.parent.iterdir()) == [session]

    @pytest.mark.parametrize("name", ["-", "none.jsonl", "payload.json", "codex.jsonl"])
    def test_what_is_no_session_file_is_refused(self, tmp_path: Path, name: str) -> None:
        """Standard input, a missing file, a payload, a Codex rollout."""
        (tmp_path / "payload.json").write_text('{"messages": []}')
        (tmp_path / "codex.jsonl").write_text('{"type": "session_meta", "payload": {}}\n')
        os.utime(tmp_path / "codex.jsonl", (1, 1))
        source = name if name == "-" else str(tmp_path / name)
        done = lcc("compact", source, "--provider", "rules", "--fork", home=tmp_path)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
