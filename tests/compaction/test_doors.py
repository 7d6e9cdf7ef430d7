"""One session through every way in: the same texts, decisions and report, whoever asks."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import programs
import pytest
from contract.test_options import right_value
from stash.test_images import image, png

from lcc.compaction.compact import Compacted, compact
from lcc.contract.modes import LIVE_MODES
from lcc.contract.option import Row as OptionRow
from lcc.contract.options import PassOptions, config_rows, table
from lcc.relevance import TranscriptCompactionRequest, compact_transcript, messages_to_payload
from lcc.relevance.ports import Ports
from lcc.sessions.listing import look_at
from lcc.sessions.watch import MODES as WATCHED_MODES
from lcc.sessions.watch import Watched
from lcc.stash import Stash
from lcc.transcript import Transcript, read_transcript
from lcc_daemon.commands import compact as live_command
from lcc_daemon.commands import pre_compact as guide_command
from lcc_daemon.figures import Figures, TokenBook
from lcc_daemon.protocol import Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services, build_services
from lcc_daemon.stats import Stats

SESSION_ID = "11111111-2222-4333-8444-555555555555"
TIMES = {"latency_ms"}
"""What differs from one run to the next."""
OF_A_PAYLOAD = {"format", "workspace_root_source"}
"""What a payload cannot have as a session file has it: its format, and the folder, which each row of a file names."""
OF_BYTES = {"images_stashed"}
"""What is known only where the answer has bytes."""

Row = dict[str, Any]
Report = dict[str, Any]
Texts = dict[str, str]

OPTION_SETS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "an older model": {"model": "claude-sonnet-4-5"},
    "other numbers": {"preserve_recent": 2, "min_reduction": 0.01, "threshold": 0.9, "trim_head_chars": 10},
    "no disk": {"disk_check": False},
    "command pointers": {"allow_command_pointers": True},
}


class Place:
    """A home, a project with files, a session about them, and a daemon's services."""

    def __init__(self, root: Path, contents: list[Any] | None = None) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir(parents=True)
        folder = "".join(c if c.isalnum() else "-" for c in str(self.project))
        self.session = root / ".claude" / "projects" / folder / f"{SESSION_ID}.jsonl"
        self.session.parent.mkdir(parents=True)
        self.session.write_bytes(self._rows(contents or []))
        self.env = {"HOME": str(root), "LCC_STASH_DIR": str(root / "stash"), "LCC_STATE_DIR": str(root / "state")}
        stats = Stats(root / "saved.json")
        self.services: Services = build_services(bytes(root / "run"), self.env, stats, logging.getLogger("doors"))
        self.services.keepers.note_recall(self.services.folder, SESSION_ID)  # as its session start does

    def _rows(self, contents: list[Any]) -> bytes:
        calls: list[tuple[str, Row, Any]] = []
        for number in range(4):
            path = self.project / f"part_{number}.py"
            text = "".join(f"value_{line} = {line * number}  # of part {number}\n" for line in range(90))
            path.write_text(text)
            numbered = "".join(f"{n:6d}\t{line}\n" for n, line in enumerate(text.splitlines(), 1))
            calls.append(("Read", {"file_path": str(path)}, numbered.rstrip("\n")))
        calls.append(("Bash", {"command": "make check"}, "all of it is well\n" * 200))
        calls.append(("Bash", {"command": "make check"}, "all of it is well\n" * 200))
        calls.append(("Bash", {"command": "git status"}, "nothing to commit, working tree clean\n" * 60))
        calls.append(("Grep", {"pattern": "value"}, "".join(f"part_1.py:{n}:value\n" for n in range(300))))
        calls += [("Screenshot", {"of": index}, content) for index, content in enumerate(contents)]
        rows: list[Row] = [{"type": "user", "message": {"role": "user", "content": "Mend the sums."}}]
        for index, (tool, given, content) in enumerate(calls):
            use = {"type": "tool_use", "id": f"t{index}", "name": tool, "input": given}
            result = {"type": "tool_result", "tool_use_id": f"t{index}", "content": content}
            rows.append({"type": "assistant", "message": {"role": "assistant", "id": f"m{index}", "content": [use]}})
            rows.append({"type": "user", "message": {"role": "user", "content": [result]}})
        for index in range(50):
            words = [{"type": "text", "text": f"step {index}"}]
            rows.append({"type": "assistant", "message": {"role": "assistant", "id": f"n{index}", "content": words}})
        parent = None
        for index, row in enumerate(rows):
            common = {"uuid": f"u{index}", "parentUuid": parent, "sessionId": SESSION_ID, "cwd": str(self.project)}
            row |= common
            parent = row["uuid"]
        return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)

    def settle(self) -> None:
        """Everything that is written in the background stands."""
        assert self.services.background.close(30)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return _in_place(Place(tmp_path), monkeypatch)


@pytest.fixture
def place_with_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return _in_place(Place(tmp_path, [[image()], [image(png(40, 30)), image(png(7, 7))]]), monkeypatch)


def _in_place(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The test's own process has the same home and stash."""
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    return place


# ---------------------------------------------------------------- the ways in: texts (None: not shown) and report


def by_compact(place: Place, options: dict[str, Any]) -> tuple[Texts, Report]:
    """The engine itself."""
    made = compact(read_transcript(place.session.read_bytes()), PassOptions(**options), Ports(stash_source="/nowhere"))
    assert made.content is not None
    return texts_of(made.content), json.loads(json.dumps(made.report))


def by_program(place: Place, options: dict[str, Any]) -> tuple[Texts, Report]:
    """`lcc compact`."""
    words: list[str] = []
    for name, value in options.items():
        row = table(PassOptions)[name]
        assert row.option.flag is not None
        words += [row.option.flag] if row.kind == "switch" else [row.option.flag, str(value)]
    out, report = place.root / "out.jsonl", place.root / "report.json"
    done = programs.run_text(
        "lcc", "compact", str(place.session), *words, "-o", str(out), "-r", str(report), env=place.env, cwd=place.root
    )
    assert done.returncode == 0, done.stderr
    return texts_of(out.read_bytes()), json.loads(report.read_text())


def by_mcp(place: Place, options: dict[str, Any]) -> tuple[Texts, Report]:
    """The tool compact_transcript, through the server's own check of its arguments."""
    pytest.importorskip("mcp", reason="the MCP server is an optional extra")
    from lcc.mcp.server import build_server

    out, report = place.root / "mcp.jsonl", place.root / "mcp.json"
    offered = {name: value for name, value in options.items() if table(PassOptions)[name].option.in_mcp}
    asked = {"path": str(place.session), "output": str(out), "report": str(report), **offered}
    anyio.run(build_server().call_tool, "compact_transcript", asked)
    return texts_of(out.read_bytes()), json.loads(report.read_text())


def by_hook(place: Place, options: dict[str, Any]) -> tuple[Texts, Report]:
    """A `session.compact` event, served by the daemon's command; the options come from the asking session."""
    messages = messages_to_payload(read_transcript(place.session.read_bytes()).messages)
    event = {
        "trigger": "manual",
        "instructions": "",
        "messages": messages,
        "session_id": SESSION_ID,
        "cwd": str(place.project),
        "transcript_path": str(place.session),
        "options": {},
    }
    request = Request("compact", variables(place, options), json.dumps(event).encode())
    plan = json.loads(live_command.answer(request, Call("compact"), place.services).body)
    assert plan["action"] == "replace", plan
    texts = texts_of(place.session.read_bytes()) | plan["results"]
    place.settle()
    (report,) = (place.root / "state" / "reports").iterdir()
    return texts, json.loads(report.read_text())


def by_guide(place: Place, options: dict[str, Any]) -> tuple[Texts, Report]:
    """A PreCompact hook, served by the daemon's command: what it keeps beside the guide."""
    hook = {"session_id": SESSION_ID, "transcript_path": str(place.session), "cwd": str(place.project)}
    request = Request("pre-compact", variables(place, options), json.dumps(hook).encode())
    assert guide_command.answer(request, Call("pre-compact"), place.services).text == ""
    place.settle()
    folder = place.root / "state" / "guides" / SESSION_ID
    return texts_of((folder / "compacted.jsonl").read_bytes()), json.loads((folder / "report.json").read_text())


def by_python(place: Place, options: dict[str, Any]) -> tuple[Texts, Report]:
    """The seed's `compact_transcript`, over the same messages as a payload."""
    transcript = read_transcript(place.session.read_bytes())
    root = str(place.project) if options.get("disk_check", True) and options["rules_mode"] != "lossless" else None
    request = TranscriptCompactionRequest(
        {"messages": messages_to_payload(transcript.messages)}, workspace_root=root, **options
    )
    made = compact_transcript(request)
    texts = {result.tool_use_id: result.text for message in made.messages for result in message.tool_results}
    report = json.loads(json.dumps(made.report))
    assert report["session_id"] is None  # a payload has none
    return texts, report | {"session_id": SESSION_ID}


def texts_of(content: bytes) -> Texts:
    messages = read_transcript(content).messages
    return {result.tool_use_id: result.text for message in messages for result in message.tool_results}


def variables(place: Place, options: dict[str, Any]) -> dict[str, str]:
    return place.env | {f"LCC_{name.upper()}": str(value) for name, value in options.items()}


Door = Callable[[Place, dict[str, Any]], tuple[Texts, Report]]
DOORS: dict[str, tuple[Door, set[str]]] = {
    "lcc compact": (by_program, set()),
    "MCP": (by_mcp, set()),
    "live": (by_hook, OF_A_PAYLOAD | OF_BYTES),
    "guide": (by_guide, set()),
    "Python": (by_python, OF_A_PAYLOAD | OF_BYTES),
}
"""Each way in, and the keys of the report in which it may differ from the engine."""


def shown(report: Report, excused: set[str]) -> Report:
    """What is compared of a report; a payload's calls do not say where they were made."""
    shown = {key: value for key, value in report.items() if key not in TIMES | excused}
    if excused >= OF_A_PAYLOAD:
        recovered = [record["recover"] for record in shown["decisions"] if record.get("recover")]
        for each in recovered:
            each.pop("cwd", None)
    return shown


@pytest.mark.parametrize("options", OPTION_SETS.values(), ids=OPTION_SETS)
@pytest.mark.parametrize("mode", LIVE_MODES)
@pytest.mark.parametrize(("door", "excused"), DOORS.values(), ids=DOORS)
def test_every_door_leads_to_the_same_pass(
    door: Door, excused: set[str], mode: str, options: dict[str, Any], place: Place
) -> None:
    """Texts, decisions and report, but for times and for what the door's input cannot say."""
    asked = {"provider": "rules", "rules_mode": mode, **options}
    if door is by_hook:
        asked["min_reduction"] = 0.0001  # below it there is no plan to compare
    seen = {
        name: value for name, value in asked.items() if door is not by_mcp or table(PassOptions)[name].option.in_mcp
    }
    expected_texts, expected = by_compact(place, seen)
    texts, report = door(place, asked)
    assert texts == expected_texts
    assert shown(report, excused) == shown(expected, excused)


@pytest.mark.parametrize("mode", WATCHED_MODES)
def test_what_could_go_is_what_would_go(mode: Any, place: Place) -> None:
    """Listing and watching reckon with the very pass that would be run; neither writes anything."""
    before = sorted(path for path in place.root.rglob("*"))
    options = PassOptions(provider="rules", rules_mode=mode)
    listed = look_at(place.session, options, 0.0)
    watched = Watched(place.session, options)
    watched.poll()
    measured = watched.measure()
    assert sorted(path for path in place.root.rglob("*")) == before
    _, report = by_compact(place, {"provider": "rules", "rules_mode": mode})
    assert listed.frees == measured.freeable[mode].tokens == report["tokens_before"] - report["tokens_after"] > 0


@pytest.mark.parametrize("door", [by_program, by_mcp, by_guide])
def test_old_images_go_into_the_stash_through_every_door_that_has_a_file(door: Door, place_with_images: Place) -> None:
    """The same bytes out, the images counted, and each had back from the stash."""
    place = place_with_images
    asked = {"provider": "rules", "rules_mode": "stashed"}
    made = compact(read_transcript(place.session.read_bytes()), PassOptions(**asked), Ports(dry_run=True))
    door(place, asked)
    (written,) = [path for path in place.root.rglob("*.jsonl") if path != place.session]
    assert written.read_bytes() == made.content
    assert made.report["images_stashed"] == 3
    assert b'"type":"image"' not in written.read_bytes()
    kept = {Stash(place.root / "stash").get(entry.sha256) for entry in Stash(place.root / "stash").entries()}
    assert {png(900, 750), png(40, 30), png(7, 7)} <= kept
    assert len(written.read_bytes()) < len(base64.b64encode(png(900, 750))) + place.session.stat().st_size


def test_a_dry_run_writes_nothing_and_answers_the_same(place_with_images: Place) -> None:
    """Bytes, report and images; the stash stays as it was, which is not there."""
    transcript = read_transcript(place_with_images.session.read_bytes())
    options = PassOptions(provider="rules", rules_mode="stashed")
    dry = compact(transcript, options, Ports(dry_run=True))
    assert not (place_with_images.root / "stash").exists()
    real = compact(transcript, options)
    assert (dry.content, dry.changed) == (real.content, real.changed)
    assert shown(dict(dry.report), set()) == shown(dict(real.report), set())


BROKEN = "enabled = maybe\n"


@pytest.fixture
def broken(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The configuration cannot be read, and nothing but it says where the stash is."""
    file = place.root / ".config" / "lcc" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(BROKEN)
    monkeypatch.delenv("LCC_STASH_DIR")
    del place.env["LCC_STASH_DIR"]
    return place


@pytest.mark.parametrize("door", [by_compact, by_program, by_mcp, by_python])
@pytest.mark.parametrize("mode", ["lossless", "recoverable"])
def test_a_pass_without_a_stash_does_not_ask_the_configuration(door: Door, mode: str, broken: Place) -> None:
    """A broken file stops only what it is needed for."""
    assert door(broken, {"provider": "rules", "rules_mode": mode})[1]["degraded"] is False


def test_a_stash_that_cannot_be_told_is_named_with_the_way_out(broken: Place) -> None:
    """By the program with exit 2, by the tool as its error: the file, and what to do."""
    pytest.importorskip("mcp", reason="the MCP server is an optional extra")
    from mcp.server.mcpserver.exceptions import ToolError

    from lcc.mcp.server import build_server

    done = programs.run_text(
        "lcc", "compact", str(broken.session), "--rules-mode", "stashed", env=broken.env, cwd=broken.root
    )
    assert done.returncode == 2
    assert "config.toml" in done.stderr
    with pytest.raises(ToolError, match=r"config\.toml"):
        anyio.run(
            build_server().call_tool, "compact_transcript", {"path": str(broken.session), "rules_mode": "stashed"}
        )


class ChangesAFile(TokenBook):
    """The figures of the line, while which are made a file of the project changes: once, or every time."""

    def __init__(self, files: list[Path]) -> None:
        super().__init__()
        self.left = files
        self.asked = 0

    def figures(self, *known: Any) -> Figures:
        self.asked += 1
        if self.left:
            self.left.pop(0).write_text("something else\n")
        return super().figures(*known)


@pytest.mark.parametrize("changes", [1, 3])
def test_one_compaction_keeps_one_report_whatever_changes_meanwhile(place: Place, changes: int) -> None:
    """The daemon's command: the report on disk is the one of the plan that went out."""
    files = [place.project / f"part_{number}.py" for number in range(changes)]
    book = ChangesAFile(list(files))
    place.services = dataclasses.replace(place.services, book=book)
    texts, report = by_hook(
        place, {"provider": "rules", "rules_mode": "stashed", "preserve_recent": 0, "min_reduction": 0.0001}
    )
    assert book.asked == changes + 1
    changed = {record["id"]: record for record in report["decisions"] if record["subject"] in map(str, files)}
    assert len(changed) == changes
    assert {record["reason"] for record in changed.values()} == {"keep_disk_changed_before_emit"}
    originals = texts_of(place.session.read_bytes())
    assert all(texts[call_id] == originals[call_id] for call_id in changed)


def test_what_is_staged_is_replaced_when_a_file_changes(place_with_images: Place) -> None:
    """`stage` is called again with the new answer, and the last answer is the one that is returned."""
    place, staged = place_with_images, list[Compacted]()

    def stage(compacted: Compacted) -> None:
        staged.append(compacted)
        if len(staged) == 1:
            (place.project / "part_2.py").unlink()

    options = PassOptions(provider="rules", rules_mode="stashed")
    made = compact(read_transcript(place.session.read_bytes()), options, stage=stage)
    assert len(staged) == 2
    assert made is staged[1]
    assert [compacted.report["images_stashed"] for compacted in staged] == [3, 3]
    assert staged[0].changed - staged[1].changed == {"t2"}
    assert {record["reason"] for record in made.report["decisions"] if record["id"] == "t2"} == {
        "keep_disk_changed_before_emit"
    }
    assert made.content is not None
    assert texts_of(made.content)["t2"] == texts_of(place.session.read_bytes())["t2"]


@pytest.mark.parametrize("row", config_rows().values(), ids=lambda row: row.name)
def test_every_option_of_the_configuration_reaches_the_live_pass(
    row: OptionRow, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the user set is what the engine is given, in both of the daemon's passes."""
    asked: list[PassOptions] = []
    value = right_value(row)

    def spy(transcript: Transcript, options: PassOptions, *ports: Any, **more: Any) -> Compacted:
        if not (ports and ports[0].dry_run):  # a hand-over looks what another mode would free
            asked.append(options)
        return compact(transcript, dataclasses.replace(options, provider="rules"), *ports, **more)

    monkeypatch.setattr("lcc_daemon.compaction.compact", spy)
    monkeypatch.setattr("lcc_daemon.commands.pre_compact.compact", spy)
    config = place.root / "config.toml"
    config.write_text(f"{row.name} = {json.dumps(list(value) if isinstance(value, tuple) else value)}\n")
    place.env["LCC_CONFIG"] = str(config)
    place.env.pop(f"LCC_{row.name.upper()}", None)
    with contextlib.suppress(AssertionError):  # a plan that is no replacement
        by_hook(place, {})
    hook = {"session_id": SESSION_ID, "transcript_path": str(place.session), "cwd": str(place.project)}
    guide_command.answer(
        Request("pre-compact", place.env, json.dumps(hook).encode()), Call("pre-compact"), place.services
    )
    if row.name == "enabled":
        assert asked == []
        return
    assert [getattr(options, row.name) for options in asked] == [
        value,
        "rules" if row.name == "provider" else value,  # the guide asks no judge
    ]
