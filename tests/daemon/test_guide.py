"""The guide for the built-in summary, and what is given back after it, through the real client program and daemon."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from daemon.daemon_world import MARKER, World, append_rows, make_event, row, wait_until, write_session
from hypothesis import given
from hypothesis import strategies as st

from lcc_daemon.guide import LIMIT, give_back_text, guide_text

SESSION = "11111111-2222-3333-4444-555555555555"


def hook(world: World, command: str, path: Path, **fields: object) -> str:
    """One command hook as Claude Code runs it; returns its stdout."""
    stdin = {"session_id": SESSION, "transcript_path": str(path), "cwd": str(world.project), **fields}
    done = world.client(command, json.dumps(stdin), LCC_RULES_MODE="recoverable")
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def pre_compact(world: World, path: Path, **fields: object) -> str:
    return hook(world, "pre-compact", path, trigger="auto", custom_instructions=None, **fields)


def after_summary(world: World, path: Path, **fields: object) -> str:
    return hook(world, "session-start", path, source="compact", **fields)


def test_the_guide_names_what_is_verified_on_disk(world: World) -> None:
    """The summariser is told which outputs need only their pointer; plain text, and no JSON."""
    path = write_session(world)
    text = pre_compact(world, path)
    for number in range(6):
        assert f"- {world.project}/module_{number}.py" in text
    assert not text.startswith("{")
    assert len(text) <= LIMIT


def test_the_users_messages_come_back_verbatim_newest_first(world: World) -> None:
    """After the summary the new context is given every word of the user, and the pointers; once."""
    path = write_session(world)
    pre_compact(world, path)
    text = after_summary(world, path)
    places = [text.index(f"And now step {number}.") for number in range(6)]
    assert places == sorted(places, reverse=True)
    assert f"Mend the parser. {MARKER}" in text
    assert f"{world.project}/module_3.py" in text
    assert len(text) <= LIMIT
    assert after_summary(world, path) == ""


def test_what_the_client_wrote_is_not_given_back_as_the_users(world: World) -> None:
    """A skill's text and an error of the API are no words of the user, whatever they begin with."""
    path = write_session(world)
    error = {"isApiErrorMessage": True, "error": "rate_limit"}
    rows = [
        row("t5", "m1", "user", "Base directory for this skill: /s\n\nSKILL BODY", world, isMeta=True),
        row("m1", "e1", "assistant", [{"type": "text", "text": "LIMIT HIT"}], world, **error),
        row("e1", "h1", "user", "<system-reminder>\nCARRIED\n</system-reminder>", world, rowSource="hook"),
        row("h1", "t6", "user", "And the last one.", world),
    ]
    append_rows(path, rows)
    pre_compact(world, path)
    text = after_summary(world, path)
    assert "And the last one." in text
    assert not [words for words in ("SKILL BODY", "LIMIT HIT", "CARRIED") if words in text]


def test_a_changed_file_is_not_called_verified(world: World) -> None:
    """Only what stands on disk at that moment is named."""
    path = write_session(world)
    (world.project / "module_2.py").write_text("other\n")
    text = pre_compact(world, path)
    assert "module_2.py" not in text
    assert "module_3.py" in text


def test_after_a_replacement_nothing_is_added(world: World) -> None:
    """The module replaced the session: SessionStart(compact) prints nothing, also when a guide was there before."""
    path = write_session(world)
    pre_compact(world, path)
    plan = world.plan(make_event(world))
    assert plan["action"] == "replace"
    assert after_summary(world, path) == ""


def test_after_a_start_without_a_guide_nothing_is_added(world: World) -> None:
    """No PreCompact came (a replacement, or an older session): nothing to give back."""
    path = write_session(world)
    assert after_summary(world, path) == ""
    for source in ("startup", "resume", "clear"):
        assert hook(world, "session-start", path, source=source) == ""


def test_a_sub_agents_compaction_is_left_alone(world: World) -> None:
    """PreCompact and SessionStart run for sub-agents too; the main session's words are not theirs."""
    path = write_session(world)
    assert pre_compact(world, path, agent_id="a1") == ""
    pre_compact(world, path)
    assert after_summary(world, path, agent_id="a1") == ""
    assert after_summary(world, path) != ""


def test_the_guide_and_its_copies_are_private_and_whole(world: World) -> None:
    """The compacted session, the report and all messages are kept with 0600 for whoever wants them later."""
    path = write_session(world)
    pre_compact(world, path)
    folder = world.state / "guides" / SESSION
    assert wait_until(lambda: (folder / "report.json").exists())
    names = {"compacted.jsonl", "report.json", "user-messages.txt", "give-back.txt"}
    assert {file.name for file in folder.iterdir()} == names
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in folder.iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700
    compacted = (folder / "compacted.jsonl").read_bytes()
    assert compacted.count(b"re-read") == 6
    assert compacted.count(b"\n") == path.read_bytes().count(b"\n")


def test_the_session_file_is_never_written_to(world: World) -> None:
    """Whatever the hooks do, the transcript's bytes and times stay."""
    path = write_session(world)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    hook(world, "session-start", path, source="startup")
    pre_compact(world, path)
    after_summary(world, path)
    hook(world, "session-end", path, reason="other")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_followed_session_that_grows_is_read_to_its_end(world: World) -> None:
    """What was appended since the start is in the guide, a torn last line is not waited for."""
    path = write_session(world, files=2)
    hook(world, "session-start", path, source="startup")
    assert wait_until(lambda: world.status().get("sessions", []) != [])
    append_rows(path, [row("t5", "late", "user", "One more thing: the flag.", world)])
    with open(path, "a") as out:
        out.write('{"type":"user","uuid":"torn","message":{"role":"user","content":"half')
    pre_compact(world, path)
    text = after_summary(world, path)
    assert text.index("One more thing: the flag.") < text.index("And now step 5.")


def test_a_session_that_ended_is_not_followed_any_more(world: World) -> None:
    """SessionEnd lets go of it; another session stays followed."""
    path = write_session(world)
    world.start()
    hook(world, "session-start", path, source="startup")
    other = path.with_name("other.jsonl")
    shutil.copy(path, other)
    world.client("session-start", json.dumps({"session_id": "other", "transcript_path": str(other)}))
    hook(world, "session-end", path, reason="other")
    sessions = world.status()["sessions"]
    assert isinstance(sessions, list)
    assert [each["session"] for each in sessions] == ["other"]


@pytest.mark.parametrize("content", ["", "not json\n", '{"type":"user"', "\x00\x00\n"])
def test_a_session_file_that_cannot_be_read_gives_no_guide(world: World, content: str) -> None:
    """Nothing is guessed over a broken file, the hook exits 0, and the daemon goes on."""
    path = write_session(world)
    path.write_text(content)
    assert pre_compact(world, path) == ""
    assert world.status()["state"] == "running"


def test_a_session_file_that_is_no_file_gives_no_guide(world: World) -> None:
    """Missing, a folder, a pipe: nothing hangs."""
    import os

    pipe = world.root / "pipe.jsonl"
    os.mkfifo(pipe)
    for path in (world.root / "none.jsonl", world.root, pipe):
        assert pre_compact(world, path) == ""


def test_the_plugins_options_count_for_the_guide_too(world: World) -> None:
    """Claude Code gives them to a command hook as variables."""
    path = write_session(world)
    stdin = json.dumps({"session_id": SESSION, "transcript_path": str(path), "cwd": str(world.project)})
    assert world.client("pre-compact", stdin, CLAUDE_PLUGIN_OPTION_ENABLED="false").stdout == b""
    assert world.client("pre-compact", stdin, CLAUDE_PLUGIN_OPTION_PRESERVE_RECENT="500").stdout == b""
    assert world.client("pre-compact", stdin, CLAUDE_PLUGIN_OPTION_PRESERVE_RECENT="6").stdout != b""


def test_when_each_hook_last_came_is_on_file(world: World) -> None:
    """`lcc doctor` reads it from here."""
    path = write_session(world)
    hook(world, "session-start", path, source="startup")
    pre_compact(world, path)
    hook(world, "session-end", path, reason="other")
    file = world.state / "hooks.json"
    wanted = {"session-start", "pre-compact", "session-end"}
    assert wait_until(lambda: file.exists() and set(json.loads(file.read_text())) == wanted)


def test_the_words_of_hooks_and_commands_are_not_the_users(world: World) -> None:
    """What the client writes in the user's name is not given back as theirs."""
    path = write_session(world)
    rows = [
        row("t5", "x1", "user", "<command-name>/compact</command-name>", world),
        row("x1", "x2", "user", "<local-command-stdout>done</local-command-stdout>", world),
        row("x2", "x3", "user", "[Request interrupted by user]", world),
        row("x3", "x4", "user", "These are my words.", world),
    ]
    append_rows(path, rows)
    pre_compact(world, path)
    text = after_summary(world, path)
    assert "These are my words." in text
    assert "command-name" not in text
    assert "interrupted" not in text


@given(
    st.lists(st.text(min_size=1, max_size=4000), max_size=40),
    st.lists(st.text(st.characters(exclude_characters="\n"), max_size=300), max_size=80),
)
def test_what_is_given_back_always_fits(messages: list[str], pointers: list[str]) -> None:
    """Never over the limit, and every message that is there is whole or marked as cut."""
    text = give_back_text(messages, [f"- {pointer}" for pointer in pointers], "/state/file.txt")
    assert len(text) <= LIMIT
    if messages and len(messages[0]) < 3000:
        assert messages[0].strip("\n") in text


def test_a_message_too_long_to_fit_is_cut_and_says_where_the_whole_is() -> None:
    """A pasted log does not push everything out silently."""
    text = give_back_text(["x" * 50_000, "older"], [], "/state/all.txt")
    assert len(text) <= LIMIT
    assert "[cut here; the whole message and 1 older ones: /state/all.txt]" in text


@given(st.lists(st.text(st.characters(exclude_characters="\n"), min_size=1, max_size=500), max_size=100))
def test_the_guide_always_fits(paths: list[str]) -> None:
    """Many long paths: as many whole lines as fit, and how many were left out."""
    decisions = [
        {
            "decision": "replace",
            "recoverability_check": "disk",
            "recover": {"kind": "file", "path": path, "lines": [1, 2]},
        }
        for path in paths
    ]
    text = guide_text({"decisions": decisions})  # type: ignore[dict-item]
    assert len(text) <= LIMIT
    assert (text == "") == (not paths)
