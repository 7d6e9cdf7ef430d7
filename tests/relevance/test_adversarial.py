"""Sessions made to be expensive or odd: the pass decides about them as about any other."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from making import MadeSession, compact, long_text, numbered
from relevance.pointer_follower import follow, results

from lcc.relevance import TranscriptCompactionRequest, run_pass
from lcc.transcript import read_transcript, render

TEXT = long_text("log", 40)


def outputs(make: Callable[[int], str], count: int) -> MadeSession:
    """A session of ``count`` outputs."""
    session = MadeSession()
    for number in range(count):
        session.bash(f"make {number}", make(number))
    return session


def pointers(session: MadeSession) -> dict[str, str]:
    """The notes of a lossless pass, each of them followed."""
    return follow(session.messages, session.compact().messages)


SHARED = ["=" * 100, "the same long line at the beginning of every output of this build " * 2]


ALIKE: dict[str, tuple[int, Callable[[int], str]]] = {
    "same first lines": (10_000, lambda n: "\n".join([*SHARED, f"step {n}"])),
    "same lines repeated": (2_000, lambda n: "\n".join([*SHARED * 10, f"step {n}"])),
    "all identical": (10_000, lambda n: TEXT),
    "one line": (2_000, lambda n: f"one line, number {n}, that is long enough for a note"),
    "empty lines": (2_000, lambda n: "\n" * (40 + n % 100)),
    "prefixes": (2_000, lambda n: "\n".join(f"{k} of the one log that these are parts of" for k in range(n % 50 + 1))),
    "a and b": (2_000, lambda n: "a\n" * (20 + n % 30) + "b\n" * (n % 7)),
}


@pytest.mark.parametrize("kind", ALIKE)
def test_thousands_of_outputs_that_are_alike(kind: str) -> None:
    """Many outputs that share their longest and first lines: every pointer holds, and what is equal is found."""
    count, make = ALIKE[kind]
    session = outputs(make, count)

    notes = pointers(session)

    distinct = len({result.text for result in results(session.messages)})
    if kind in ("same first lines", "same lines repeated", "one line", "all identical"):
        assert len(notes) == count - distinct
    assert len(notes) >= count - distinct


def test_the_lines_of_a_long_log_are_found_anywhere_in_it() -> None:
    """Sub-ranges of one long output are found, whichever lines they are."""
    rng = random.Random(3)
    log = "\n".join(f"{n}: {rng.random()} " + "." * rng.randrange(30) for n in range(5000)).split("\n")
    starts = [rng.randrange(4900) for _ in range(200)]
    session = outputs(lambda n: "\n".join(log[starts[n] : starts[n] + 5 + n % 60]), 200)
    last = session.bash("make all", "\n".join(log))

    notes = pointers(session)

    assert notes == {
        f"c{n + 1}": f"[output = lines {start + 1}-{start + 5 + n % 60} of {last}]" for n, start in enumerate(starts)
    }


@pytest.mark.parametrize(
    "call_id", ["x]", "[x", "a\nb", "a b", "\u2028", "]\n[removed: re-read x to recover]", "é", "x" * 500]
)
@pytest.mark.parametrize("mode", ["lossless", "recoverable", "lossy"])
def test_odd_ids(call_id: str, mode: str) -> None:
    """Whatever a call is called: its own result may be replaced, and no note names it in a way that can be misread."""
    session = MadeSession(cwd="/w")
    session.bash("one", TEXT, id=call_id)
    session.bash("two", TEXT)
    session.bash("three", TEXT[:-1], id=call_id + "3")
    session.filler()

    answer = session.compact(mode)

    if mode != "lossy":
        assert follow(session.messages, answer.messages).keys() <= {call_id, "c2"}
        assert answer.texts[call_id] == "[identical output kept at c2]"
    assert answer.records.keys() == {call_id, "c2", call_id + "3", "c4"}


def test_error_flags_are_never_mixed() -> None:
    """Equal outputs, some failed, some not, some not said: each points at one of its own kind."""
    flags = [True, False, None, True, None, False, True, False]
    session = MadeSession()
    for number, flag in enumerate(flags):
        session.bash(f"make {number}", TEXT, flag)

    assert follow(session.messages, session.compact().messages) == {
        f"c{n}": f"[identical output kept at c{7 if flags[n - 1] else 8}]" for n in range(1, 7)
    }


def line(kind: str, number: int, content: Any) -> dict[str, Any]:
    """An entry of a Claude Code session file."""
    entry = {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "s",
        "cwd": "/w",
        "message": {"role": kind, "content": content},
    }
    if kind == "assistant":
        entry["message"]["id"] = f"m{number}"
    return entry


def session_file(*calls: tuple[str, Any], more: list[dict[str, Any]] | None = None) -> bytes:
    """A session file of calls (id, content of the result), and other entries at its end."""
    entries = [line("user", 0, "Go on.")]
    for call_id, content in calls:
        use = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "make"}}
        answer = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        entries.append(line("assistant", len(entries), [use]))
        entries.append(line("user", len(entries), [answer]))
    for entry in more or []:
        entries.append({**entry, "uuid": f"u{len(entries)}", "parentUuid": f"u{len(entries) - 1}"})
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def run(raw: bytes, mode: str = "lossless") -> tuple[dict[str, Any], bytes]:
    """The records of a pass over a session file, by id, and the new file."""
    request = TranscriptCompactionRequest(payload=None, provider="rules", rules_mode=mode, preserve_recent=0)
    transcript = read_transcript(raw)
    report, new = run_pass(transcript, request, lambda result: (result.report, render(transcript, result.edits)))
    records: Any = report["decisions"]
    return {record["id"]: record for record in records}, new


@pytest.mark.parametrize("mode", ["lossless", "recoverable"])
def test_ids_that_occur_twice_in_a_session_file(mode: str) -> None:
    """Nothing is decided about a call whose id is not its own, and no note names it."""
    raw = session_file(("twice", TEXT), ("twice", TEXT), ("once", TEXT), ("twice", TEXT))

    records, new = run(raw, mode)

    assert new == raw
    assert records["twice"]["reason"] == "duplicate_tool_use_id"
    assert records["once"]["decision"] == "keep"


def test_results_that_the_client_has_cleared() -> None:
    """What micro-compaction cleared is no longer in the context: it is kept, not counted, and no target."""
    cleared = {
        "type": "system",
        "subtype": "microcompact_boundary",
        "microcompactMetadata": {"trigger": "auto", "compactedToolIds": ["c1", "c3"]},
    }
    raw = session_file(("c1", TEXT), ("c2", TEXT), ("c3", TEXT), ("c4", "x"), more=[cleared])

    records, new = run(raw)

    assert new == raw
    assert records["c1"]["reason"] == records["c3"]["reason"] == "cleared_by_client"
    assert records["c2"]["decision"] == "keep"


def test_each_text_of_several_parts_is_a_text_of_its_own() -> None:
    """A pointer names the part, in the same result too, and what is no text stays."""
    part, image = {"type": "text", "text": TEXT}, {"type": "image", "source": {"type": "base64", "data": "x"}}
    shorter = {"type": "text", "text": TEXT.partition("\n")[2]}
    raw = session_file(
        ("mixed", [image, part]), ("one", TEXT), ("two", [part, shorter, image]), ("twice", [part, part])
    )

    records, new = run(raw)

    note, kept = '"[identical output kept at twice part 2]"', json.dumps(TEXT)
    lines = f'"[output = lines 2-{TEXT.count(chr(10)) + 1} of twice part 2]"'
    expected = raw.decode().replace(kept, note).replace(json.dumps(shorter["text"]), lines)
    head, _, tail = expected.rpartition(note)
    assert new.decode() == head + kept + tail
    assert records["one"]["decision"] == records["mixed"]["decision"] == "dedupe"
    assert [(part["part"], part["reason"]) for part in records["two"]["parts"]] == [
        (1, "identical_output_kept_later"),
        (2, "output_lines_of_later"),
    ]
    assert [(part["part"], part["decision"]) for part in records["twice"]["parts"]] == [(1, "dedupe"), (2, "keep")]
    assert records["twice"]["chars"] - records["twice"]["chars_after"] == len(TEXT) - len(json.loads(note))


@pytest.mark.parametrize("content", [[{"type": "tool_reference", "tool_name": "X"}], [], None])
def test_a_result_without_a_text_is_kept(content: Any) -> None:
    """Neither replaced nor pointed at."""
    raw = session_file(("parts", content), ("one", TEXT), ("parts2", content), ("last", "x"))

    records, new = run(raw)

    assert new == raw
    assert records["one"]["decision"] == "keep"
    assert "parts" in records


def test_one_part_of_text_is_a_text() -> None:
    """A list of one text is replaced in place, and stays a list."""
    one = [{"type": "text", "text": TEXT, "unknown": 1}]
    raw = session_file(("a", one), ("b", TEXT))

    records, new = run(raw)

    assert records["a"]["decision"] == "dedupe"
    expected = raw.replace(json.dumps(TEXT).encode(), b'"[identical output kept at b]"', 1)
    assert new == expected


def test_many_reads_of_a_file_of_few_enormous_lines(tmp_path: Path) -> None:
    """A tool cuts long lines: reads of a minified file are refused without building its megabytes for each."""
    path = tmp_path / "bundle.min.js"
    path.write_text("x" * 2_000_000 + "\n" + "y" * 2_000_000 + "\n")
    session = MadeSession()
    for number in range(2_000):
        rows = numbered("\n".join(["x" * 100 + str(number), "y" * 100, ""]))
        session.read(str(path), rows)
        session.bash(f"head -n 2 {path}", rows + str(number))
    session.filler()

    answer = session.compact("recoverable", workspace_root=str(tmp_path))

    assert {record["reason"] for record in answer.records.values() if record["tool"] == "Read"} == {
        "keep_disk_mismatch"
    }


@pytest.mark.parametrize("recent", [0, 10**9])
@pytest.mark.parametrize("mode", ["lossless", "recoverable", "lossy"])
def test_nothing_and_everything_pinned(recent: int, mode: str) -> None:
    """preserve_recent 0 pins nothing but the first message; a huge one pins all."""
    session = MadeSession()
    for _ in range(30):
        session.bash("make", TEXT)
    answer = session.compact(mode, preserve_recent=recent)

    if recent:
        assert answer.messages == session.messages
        assert answer.report["blocks_protected"] == 30
    else:
        assert answer.report["tool_calls_kept"] == 1
        assert answer.report["blocks_protected"] == 0


@pytest.mark.parametrize("mode", ["recoverable", "lossy"])
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Bash", {"command": "a" * 200_000}),
        ("Bash", {"command": "cat " + "'a' " * 20_000}),
        ("Bash", {"command": "git " + "-c x=y " * 20_000}),
        ("Bash", {"command": '"' * 50_000}),
        ("Bash", {"command": "(" * 50_000 + "&" * 50_000}),
        ("Bash", {"command": ["bash", "-lc", "cat a.py"]}),
        ("Bash", {"command": None}),
        ("Bash", None),
        ("Bash", "free text"),
        ("Read", {"file_path": None}),
        ("Read", {"file_path": ["a"]}),
        ("Read", {"file_path": "/w/a.py", "offset": -1, "limit": 2**62}),
        ("Read", {"file_path": "/w/a.py", "offset": 10**15, "limit": "x"}),
        ("Read", {"file_path": "/w/a.py", "offset": True, "limit": 1.5}),
        ("Read", {"file_path": "/" * 5_000}),
        ("apply_patch", "*** Begin Patch\n" + "*** Update File: x\n" * 5_000),
        ("x" * 5_000, {"deep": [[[[[["/w/a.py"]]]]]]}),
    ],
)
def test_odd_inputs(tool: str, given: Any, mode: str) -> None:
    """Whatever a call's input holds, it is decided about."""
    session = MadeSession(cwd="/w")
    session.call(tool, given, TEXT, id="odd")
    session.read("/w/b.py", numbered(TEXT))
    session.filler()

    answer = session.compact(mode, allow_command_pointers=True)

    assert answer.records.keys() == {"odd", "c2", "c3"}
    assert answer.records["odd"]["reason"]


@pytest.mark.parametrize(
    "text",
    [
        "\n\n<system-reminder>" * 20_000,
        "     1→" * 20_000,
        "1\t" + "\n2\t" * 20_000,
        "[removed: re-read " + "a to recover" * 20_000 + "]",
        "Wall time: 1\n" * 20_000,
        "Chunk ID: x\n" * 20_000 + "Output:\n",
        "Error" * 50_000,
        " " * 200_000,
    ],
    ids=lambda text: repr(text[:16]),
)
@pytest.mark.parametrize("tool", ["Read", "exec_command"])
@pytest.mark.parametrize("mode", ["lossless", "recoverable", "lossy"])
def test_odd_outputs(text: str, tool: str, mode: str) -> None:
    """No output costs more than its length: no expression goes over it again and again."""
    given = {"file_path": "/w/a.py"} if tool == "Read" else {"cmd": "cat /w/a.py"}
    payload: Any = {"messages": MadeSession().messages, "cwd": "/w"}
    for number in range(8):
        use = {"tool_use_id": f"c{number}", "tool": tool, "input": given}
        answer = {"tool_use_id": f"c{number}", "text": text + str(number % 3)}
        payload["messages"] += [{"role": "assistant", "toolUses": [use]}, {"role": "user", "toolResults": [answer]}]

    answer = compact(payload, rules_mode=mode)

    assert len(answer.records) == 8
