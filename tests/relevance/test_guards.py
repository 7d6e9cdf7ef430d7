"""The table of guards: in every mode that a row binds, what it keeps stays; and the texts that count as the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from judge.judge_world import jev_at
from judge.system_one_server import always, system_one
from making import Answer, MadeSession, long_text, numbered

from lcc.contract.modes import RULES_MODES
from lcc.relevance.evidence.failures import is_no_file, shows_error
from lcc.relevance.evidence.guards import ALL, GUARDS, DecidingMode
from lcc.relevance.evidence.said import goal_texts, newest_user_text, recent_texts, recent_user_texts
from lcc.transcript import parse_payload

LARGE = long_text("log", 200)
OPTIONS: dict[DecidingMode, dict[str, Any]] = {
    **{mode: {"provider": "rules", "rules_mode": mode} for mode in RULES_MODES},
    "judge_beside_proofs": {"provider": "jev", "rules_mode": "stashed"},
    "judge": {"provider": "jev"},
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Callable[..., Answer]]:
    """One pass in any mode, with a judge that needs nothing."""
    monkeypatch.setenv("LCC_STASH_DIR", str(tmp_path / "stash"))
    with system_one(always(0.0)) as server:
        for key, value in jev_at(server.url).items():
            monkeypatch.setenv(key, value)

        def passed(session: MadeSession, mode: DecidingMode, **options: Any) -> Answer:
            return session.compact(**{**OPTIONS[mode], "allow_command_pointers": True, **options})

        yield passed


def named_session(**calls: tuple[str, Any]) -> MadeSession:
    """Each call twice with the same large output, so that every mode would take it; then sixty messages."""
    session = MadeSession("Go on.", cwd="/w")
    for name, (tool, given) in calls.items():
        text = long_text(name, 200)
        session.call(tool, given, text, id=f"{name}_old")
        session.call(tool, given, text, id=f"{name}_new")
    session.talk(60)
    return session


CALLS: dict[str, tuple[str, Any]] = {
    "file": ("Read", {"file_path": "/w/src/lexer.py"}),
    "search": ("Grep", {"pattern": "parse_header"}),
    "place": ("Grep", {"pattern": "zzz", "path": "src/grammar.py"}),
    "command": ("Bash", {"command": "npm run build"}),
    "tests": ("Bash", {"command": "pytest tests/test_tokens.py -q"}),
    "page": ("WebFetch", {"url": "https://example.org/w?v=1", "prompt": "read"}),
    "other": ("Bash", {"command": "ls -la"}),
}
WORDS = {
    "file": "look at “lexer.py”",
    "search": "where is parse_header?",
    "place": "grammar.py#L10",
    "command": "npm run build is red",
    "tests": "why does test_tokens.py fail",
    "page": "as https://example.org/w?v=1 says",
}


@pytest.mark.parametrize("mode", sorted(ALL))
@pytest.mark.parametrize("name", WORDS)
def test_what_the_newest_message_names_stays_whole(run: Callable[..., Answer], mode: DecidingMode, name: str) -> None:
    """In every mode, whatever it is: not even a pointer to an identical result takes its place."""
    session = named_session(**CALLS)
    before = run(session, mode)
    session.say(WORDS[name])
    session.talk(8)
    after = run(session, mode)

    texts = {f"{name}_{age}": long_text(name, 200) for age in ("old", "new")}
    assert before.texts.get(f"{name}_old") != texts[f"{name}_old"]
    assert {call: after.texts[call] for call in texts} == texts
    expected = "named_in_recent_turns" if mode == "lossy" else "named_in_goal_or_recent_turns"
    assert {after.reason(call) for call in texts} == {expected}
    assert after.texts.get("other_old") != long_text("other", 200)


@pytest.mark.parametrize("mode", sorted(ALL))
@pytest.mark.parametrize("name", WORDS)
def test_what_the_goal_names(run: Callable[..., Answer], mode: DecidingMode, name: str) -> None:
    """`lossless` may point at an identical result whatever the goal names; a judge alone is not bound by it."""
    answer = run(named_session(**CALLS), mode, question=WORDS[name])
    new = answer.texts.get(f"{name}_new")

    if mode in ("recoverable", "stashed", "judge_beside_proofs"):
        assert (new, answer.reason(f"{name}_new")) == (long_text(name, 200), "named_in_goal_or_recent_turns")
    if mode == "lossless":
        assert answer.decision(f"{name}_old") == "dedupe"
        assert new == long_text(name, 200)
    if mode == "lossy":
        assert new == long_text(name, 200)
    if mode == "judge":
        assert answer.decision(f"{name}_new") == "drop"


@pytest.mark.parametrize("mode", sorted(ALL))
def test_failed_results(run: Callable[..., Answer], mode: DecidingMode) -> None:
    """Which modes keep the latest error, the call before it, other errors, and those that were overcome."""
    session = MadeSession("Go on.")
    for name, command, failed in (
        ("overcome", "make one", True),
        ("lasting", "make two", True),
        ("success", "make one", False),
        ("before", "make three", False),
        ("latest", "make four", True),
    ):
        session.bash(command, long_text(name, 200), failed, id=name)
    session.talk(60)
    answer = run(session, mode)
    kept = {name for name in answer.records if answer.texts.get(name) == long_text(name, 200)}

    everything = {"overcome", "lasting", "success", "before", "latest"}
    assert (
        kept
        == {
            "lossless": everything,
            "recoverable": everything,
            "stashed": {"lasting", "before", "latest"},
            "lossy": {"overcome", "lasting", "before", "latest"},
            "judge_beside_proofs": {"overcome", "lasting", "before", "latest"},
            "judge": set(),
        }[mode]
    )


@pytest.mark.parametrize("mode", sorted(ALL))
@pytest.mark.parametrize(
    ("option", "globs", "protected"),
    [
        ("protect_tools", ("grep",), {"search", "place"}),
        ("protect_tools", ("Web*", "nothing"), {"page"}),
        ("protect_paths", ("*.py",), {"file", "place", "tests"}),
        ("protect_paths", ("src",), {"file", "place"}),
        ("protect_paths", ("/w/tests/",), {"tests"}),
        ("protect_paths", ("/elsewhere/src", "*.sql"), set()),
    ],
)
def test_protected_tools_and_paths_stay_whole(
    run: Callable[..., Answer], mode: DecidingMode, option: str, globs: tuple[str, ...], protected: set[str]
) -> None:
    """Globs of tools and of paths, in every mode; a folder's glob covers all that is in it."""
    session = named_session(**CALLS)
    answer = run(session, mode, **{option: globs})
    reason = option.removesuffix("s").replace("protect_", "protected_")

    assert {call for call in answer.records if answer.reason(call) == reason} == {
        f"{name}_{age}" for name in protected for age in ("old", "new")
    }
    assert all(answer.decision(f"{name}_old") == "keep" for name in protected)


def test_a_folder_of_the_first_message_keeps_no_work_in_it(run: Callable[..., Answer]) -> None:
    """It names the folder's own listing; a question that was asked, and the newest message, name a search there."""
    session = MadeSession("Tidy up `lib/` and src/tools with `make`.", cwd="/w")
    session.call("Grep", {"pattern": "zzz", "path": "lib"}, long_text("search", 200), id="search")
    session.call("LS", {"path": "/w/lib"}, long_text("listing", 200), id="listing")
    session.call("Bash", {"command": "sort src/tools"}, long_text("sorted", 200), id="sorted")
    session.call("Bash", {"command": "make -k"}, long_text("made", 200), id="made")
    session.talk(60)

    def kept(answer: Answer) -> set[str]:
        return {call for call in answer.records if answer.reason(call) == "named_in_goal_or_recent_turns"}

    session.say("go on")
    session.talk(8)
    assert kept(run(session, "stashed")) == {"listing"}
    assert kept(run(session, "stashed", question=session.goal)) == {"search", "listing", "sorted", "made"}
    session.say("look into lib/ again, and `make`")
    session.talk(8)
    assert kept(run(session, "stashed")) == {"search", "listing", "made"}


@pytest.mark.parametrize(
    ("path", "goal"),
    [
        ("/w/my file.py", "Open file:///w/my%20file.py again."),
        ("/w/解析.py", "See vscode://file/w/%E8%A7%A3%E6%9E%90.py:3"),
        ("/w/100%.py", "And 100%.py?"),
    ],
)
def test_a_name_in_a_url_is_read_as_the_url_reads(path: str, goal: str) -> None:
    """The user pastes what an editor or a file manager gives."""
    for mode in ("recoverable", "lossy"):
        session = MadeSession(goal, cwd="/w")
        session.read(path, LARGE)
        session.talk(60)
        assert session.compact(mode).decision("c1") == "keep", mode


def test_a_url_that_ends_a_sentence_is_named() -> None:
    """Its last slash, and the stop behind it."""
    session = MadeSession("Look at https://docs.example/guide/. Then go on.")
    session.call("WebFetch", {"url": "https://docs.example/guide/", "prompt": "x"}, LARGE)
    session.talk(60)
    assert session.compact("lossy").decision("c1") == "keep"


@pytest.mark.parametrize(
    "command", ["git -C /w --no-pager log -3", "git --git-dir /w/.git log", "cd x && git -c a=b log"]
)
def test_git_states_are_found_behind_gits_own_options(command: str) -> None:
    """And a mention of one in quotes is none."""
    session = MadeSession("Go on.")
    session.bash(command, LARGE, id="state")
    session.bash("git commit -m 'as git log says'", "one\n" * 30, id="commit")
    session.filler(30)
    answer = session.compact("lossy")
    assert answer.reason("state") == "latest_git_state"
    assert answer.reason("commit") != "latest_git_state"


def test_lossy_looks_into_all_recent_turns_and_into_every_input() -> None:
    """A recent message of the assistant names a file; an option's path is named by the goal."""
    session = MadeSession("Go on.")
    session.read("/w/a.py", "one\n" * 9)
    session.bash("tool --file=src/b.py", LARGE, id="tool")
    session.filler(30)
    session.say("Next I change /w/a.py", "assistant")
    answer = session.compact("lossy", question="mend src/b.py", preserve_recent=6)
    assert (answer.reason("c1"), answer.reason("tool")) == ("named_in_recent_turns", "trim_guard_named")
    assert session.compact("recoverable", preserve_recent=6).reason("c1") != "named_in_goal_or_recent_turns"


def test_every_row_has_its_words_and_binds_a_mode() -> None:
    """And no two rows that are apart have the same words: they would be one line of the README."""
    assert all(guard.words and guard.modes <= ALL for guard in GUARDS)
    assert set(get_args(DecidingMode)) == ALL
    assert {guard.reason.code for guard in GUARDS if guard.firmness == "untrimmed"} == {
        f"trim_guard_{name}" for name in ("recent_messages", "poll", "error", "edited_later", "named")
    }


def test_a_guard_keeps_what_it_finds(run: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    """A row more is all that a guard needs: every policy looks its answer up."""
    from lcc.contract.reasons import NOT_RECOVERABLE
    from lcc.relevance.evidence import guards

    row = guards.Guard(NOT_RECOVERABLE, "a test's", lambda facts: ["other_old", "other_new"], ALL, "whole")
    monkeypatch.setattr(guards, "GUARDS", (row, *guards.GUARDS))
    for mode in sorted(ALL):
        answer = run(named_session(**CALLS), mode)
        assert answer.reason("other_old") == answer.reason("other_new") == "not_recoverable"
        assert answer.texts["other_old"] == long_text("other", 200)


# ---------------------------------------------------------------- what was said


def said(*messages: tuple[str, str]) -> Any:
    return parse_payload([{"role": role, "text": text} for role, text in messages]).messages


def test_the_newest_message_of_the_user_is_the_users() -> None:
    """What a client writes in the user's name is passed over, and their words beside it are not."""
    messages = said(
        ("user", "mend a.py"),
        ("assistant", "b.py"),
        ("user", "then c.py"),
        ("user", "<system-reminder>d.py</system-reminder>"),
        ("user", "[Request interrupted by user]"),
    )
    assert newest_user_text(messages) == "then c.py"
    both = "<system-reminder>d.py</system-reminder>\nthen e.py"
    assert newest_user_text(said(("user", "mend a.py"), ("user", both))) == both
    assert newest_user_text(said(("user", "<system-reminder>d.py"))) == ""
    assert newest_user_text(said(("assistant", "x"))) == ""
    assert goal_texts("", messages) == ["then c.py", "mend a.py"]
    assert goal_texts("g", messages) == ["g"]


def test_a_name_binds_for_a_few_turns() -> None:
    """What a first message names does not keep half a session; a question that was asked does."""
    messages = said(("user", "mend a.py"), ("user", "then b.py"), ("user", "and c.py"))
    assert goal_texts("", messages) == ["and c.py", "then b.py"]
    assert goal_texts("mend a.py", messages) == ["mend a.py"]


def test_of_something_pasted_the_two_ends_count() -> None:
    """A person names things in what they write, not in a log that they paste."""
    (text,) = goal_texts("", said(("user", "look at a.py\n" + "b.py\n" * 4000 + "and c.py")))
    assert text.startswith("look at a.py")
    assert text.endswith("and c.py")
    assert len(text) < 4100


@pytest.mark.parametrize(
    "text",
    [
        "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>read a.py</INSTRUCTIONS>",
        "<environment_context>a.py</environment_context>",
        "<system-reminder>a.py</system-reminder>\n<local-command-stdout>b</local-command-stdout>",
        "This session is being continued from a previous conversation that ran out of context. a.py",
    ],
)
def test_the_goal_is_what_the_user_wrote(text: str) -> None:
    """What a client writes for them is none."""
    assert goal_texts("", said(("user", text), ("user", "mend b.py"))) == ["mend b.py"]
    assert goal_texts(" ", said(("user", text))) == []


def test_recent_turns_are_anyones_and_recent_user_turns_the_users() -> None:
    """`lossy` looks into both, `recoverable` into the user's; the newest thing that they wrote always counts."""
    messages = said(("user", "one"), ("user", "two"), ("assistant", "three"), ("assistant", "four"))
    assert recent_user_texts(messages, 2) == ["two"]
    assert recent_texts(messages, 2) == ["three", "four", "two"]
    assert recent_user_texts(messages, 99) == ["one", "two", "two"]


# ---------------------------------------------------------------- what failed


@pytest.mark.parametrize(
    "text",
    [
        "a.c:1:2: error: expected ';'",
        "foo.c:3:10: fatal error: x.h: No such file or directory",
        "error[E0308]: mismatched types",
        "a.ts(1,2): error TS2304: Cannot find name 'x'.",
        "a.cs(3,4): error CS1002: ; expected",
        "a.cpp(3): error C2065: 'x': undeclared identifier",
        "collect2: error: ld returned 1 exit status",
        "make: *** [Makefile:3: all] Error 2",
        "npm ERR! code ELIFECYCLE",
        "npm error code 1",
        "ERROR: could not install",
        "bash: frob: command not found",
        "sh: 1: frob: not found",
        "bash: ./x: Permission denied",
        "ls: cannot access 'x': No such file or directory",
        "thread 'main' panicked at src/main.rs:2:5",
        "panic: runtime error",
        "Segmentation fault (core dumped)",
        "zsh: segmentation fault  ./a.out",
        "Aborted (core dumped)",
        "Bus error",
        "Killed",
        "Traceback (most recent call last):",
        "KeyError: 'x'",
        "java.lang.NullPointerException",
        "fatal: not a git repository",
        "1 failed, 24 passed",
        "2 failing",
        "Found 10 errors in 2 files",
        "FAILED tests/test_a.py::test_b",
        "not ok 3 - parses",
        "exit status 1",
        "Exit code 2",
        "Error [ERR_MODULE_NOT_FOUND]",
        "chown: changing ownership: Operation not permitted",
        "main.o: undefined reference to `parse'",
        "./main.go:3:2: undefined: Parse",
        "Caused by: the reader was closed",
        "'frob' is not recognized as an internal or external command,",
        "zsh: abort: Aborted",
        "Abort trap: 6",
        "terminate called after throwing an instance of 'std::logic_error'",
        "virtual memory exhausted: Out of memory",
        "code: 'ENOENT', path: 'x'",
        "connect ECONNREFUSED 127.0.0.1:5432",
        "ssh: connect to host h port 22: Connection refused",
        "curl: (7) Failed to connect to h",
        "triggerUncaughtException: Unhandled promise rejection",
        "Process exited with code 3",
        " ! [rejected]        main -> main (fetch first)",
        "ORA-00942: table or view does not exist",
        "ninja: build stopped: subcommand failed.",
    ],
)
def test_the_error_words_of_compilers_and_shells(text: str) -> None:
    """Each anywhere in an output."""
    assert shows_error(text)
    assert shows_error(f"{LARGE}{text}\n{LARGE}")


@pytest.mark.parametrize(
    "text",
    [
        *("ok", "0 failed, 24 passed", "0 errors", "no errors", "Errors: 0", "error: 0", "exit code 0", "mirror: x"),
        *("TERROR", "FAILSAFE", "Exceptional", "it did not work", "a panicky day"),
    ],
)
def test_words_that_only_look_like_errors(text: str) -> None:
    """Counts of nothing, and longer words."""
    assert not shows_error(text)


@pytest.mark.parametrize(
    ("tool", "given", "text", "failed"),
    [
        ("Bash", {"command": "gcc a.c"}, "a.c:1: error: x\n", True),
        ("Bash", {"command": "cat a.py"}, "raise ValueError: x\n", False),
        ("Bash", {"command": "cat a.py"}, "cat: a.py: No such file or directory\n", True),
        ("Bash", {"command": "grep -rn ValueError src | head -3"}, "src/a.py:1: raise ValueError\n", False),
        ("Bash", {"command": "cd src && git diff"}, "+    raise ValueError('error: x')\n", False),
        ("Bash", {"command": "git diff"}, "fatal: not a git repository: error: x\n", True),
        ("Bash", {"command": "cat a.py; make"}, "ValueError\n", True),
        ("Read", {"file_path": "/w/a.py"}, "raise ValueError\n", False),
        ("Grep", {"pattern": "x"}, "ValueError\n", False),
        ("exec_command", {"cmd": "x"}, "Process exited with code 3\nOutput:\nfine\n", True),
        ("exec_command", {"cmd": "x"}, "Process exited with code 0\nOutput:\nValueError\n", False),
    ],
)
def test_what_counts_as_failed_without_flags(tool: str, given: Any, text: str, failed: bool) -> None:
    """Command output with an error in it; never what a read or a search printed, in a shell too."""
    session = MadeSession("Go on.")
    session.call(tool, given, text * 30, id="r")
    session.filler(2)
    assert (session.compact("recoverable").reason("r") == "latest_error_result") is failed


@pytest.mark.parametrize(
    "text",
    [
        "<tool_use_error>File does not exist.</tool_use_error>",
        "File does not exist.",
        "Error: ENOENT: no such file or directory",
        "EISDIR: illegal operation on a directory, read",
        "File content (30000 tokens) exceeds maximum allowed tokens",
        "The user doesn't want to proceed with this tool use.",
    ],
)
def test_a_read_that_failed_supersedes_nothing(text: str) -> None:
    """Also where the host set no flag; and it is no successful read that could go as stale."""
    assert is_no_file(text)
    session = MadeSession("Go on.")
    session.call("Read", {"file_path": "/w/a.py"}, "one\n" * 9, id="r")
    session.call("Read", {"file_path": "/w/a.py"}, text, id="failed")
    session.filler()
    answer = session.compact("lossy")
    assert answer.decision("r") == "keep"
    session.filler(30)
    assert session.compact("lossy").decision("failed") == "keep"


def cut(text: str) -> str:
    return numbered(text) + "\n\n... [900 lines truncated] ..."


@pytest.mark.parametrize(
    ("text", "supersedes"),
    [
        (numbered("x\n" * 30), True),
        ("a plain text of another host\n", True),
        (numbered("x\n" * 1999), False),
        (numbered("x\n" * 2400), False),
        (numbered("x\n" * 30, first=40), False),
        (cut("x\n" * 30), False),
        (numbered("x\n" * 30) + "\nThe file has been truncated to its first lines.", False),
        ("<persisted-output>\nOutput too large (90KB). Full output saved to: /tmp/x\n</persisted-output>", False),
        ("[removed: re-read /w/a.py to recover]", False),
        ("File unchanged since last read. The content from the earlier Read is still current.", False),
    ],
)
def test_only_a_read_that_shows_the_whole_file_supersedes(text: str, supersedes: bool) -> None:
    """A read that was cut, put into a file by the client, or is only a note or a stub supersedes nothing."""
    session = MadeSession("Go on.")
    session.call("Read", {"file_path": "/w/a.py", "offset": 3000, "limit": 9}, "3000→x", id="r")
    session.call("Read", {"file_path": "/w/a.py"}, text, id="later")
    session.filler()
    answer = session.compact("lossy")
    assert (answer.decision("r") == "drop") is supersedes
    assert not supersedes or answer.reason("r") == "superseded_by_later_call:later"
