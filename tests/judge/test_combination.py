"""A judge combined with proof: what it would trim or drop is first replaced by a verified pointer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge.judge_world import jev_at
from judge.system_one_server import SystemOneServer, always, system_one
from making import MadeSession, numbered

from lcc.relevance import TranscriptCompactionRequest, compact_transcript
from lcc.relevance.verification import Violation
from lcc.transcript import Json, messages_to_payload

CONTENT = "".join(f"def function_{n}(): return {n}\n" for n in range(60))


SHOWN = numbered(CONTENT, form="{}\t{}")


@pytest.fixture
def jev(monkeypatch: pytest.MonkeyPatch) -> Iterator[SystemOneServer]:
    """A Jev that needs nothing, except that the build must be known to have happened."""

    def value(name: str) -> float:
        return 0.9 if name == "keep_call_build" else 0.1

    with system_one(always(value)) as server:
        for key, setting in jev_at(server.url).items():
            monkeypatch.setenv(key, setting)
        yield server


def payload(folder: Path) -> Json:
    """A read of a file that is as it was, a build, a listing of the web, and six recent messages."""
    (folder / "a.py").write_text(CONTENT)
    calls: list[tuple[str, str, dict[str, Json], str]] = [
        ("read", "Read", {"file_path": str(folder / "a.py")}, SHOWN),
        ("build", "Bash", {"command": "make all"}, "compiling a part\n" * 100),
        ("web", "WebFetch", {"url": "https://docs.example"}, "a paragraph of the manual\n" * 100),
    ]
    session = MadeSession("Make it build.")
    for call_id, tool, given, result in calls:
        session.call(tool, given, result, id=call_id)
    for n in range(6):
        session.say(f"Recent word {n}.", ("user", "assistant")[n % 2])
    return session.payload


def run(folder: Path, **options: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
    result = compact_transcript(
        TranscriptCompactionRequest(
            payload=payload(folder), provider="jev", workspace_root=str(folder), question="Ship it.", **options
        )
    )
    report: Any = result.report
    return report, {record["id"]: record for record in report["decisions"]}, messages_to_payload(result.messages)


def result_texts(compacted: Any) -> dict[str, str]:
    messages = compacted["messages"] if isinstance(compacted, dict) else compacted
    return {r["tool_use_id"]: r["text"] for message in messages for r in message.get("toolResults", ())}


def test_the_seeds_behaviour_is_the_default(jev: SystemOneServer, tmp_path: Path) -> None:
    """Without a rules mode the verdicts stand as they are, and no pointer is written."""
    report, decisions, compacted = run(tmp_path)

    assert {i: d["decision"] for i, d in decisions.items()} == {"read": "drop", "build": "trim", "web": "drop"}
    assert set(result_texts(compacted)) == {"build"}
    assert report["tool_calls_replaced"] == 0
    assert (report["tool_calls_dropped"], report["tool_calls_trimmed"]) == (2, 1)


def test_recoverable_comes_before_a_drop(jev: SystemOneServer, tmp_path: Path) -> None:
    """What the disk proves becomes a pointer and keeps the judge's scores; the rest is as the judge said."""
    report, decisions, compacted = run(tmp_path, rules_mode="recoverable")

    assert {i: d["decision"] for i, d in decisions.items()} == {"read": "replace", "build": "trim", "web": "drop"}
    assert decisions["read"]["recoverability_check"] == "disk"
    assert decisions["read"]["keep_call"] == 0.1
    assert "content verified on disk" in result_texts(compacted)["read"]
    assert report["tool_calls_replaced"] == 1


def test_a_file_that_changed_is_no_pointer(jev: SystemOneServer, tmp_path: Path) -> None:
    """Where the proof fails the verdict stands: combination adds proof, and claims none that is not there."""
    given = payload(tmp_path)
    (tmp_path / "a.py").write_text("something else\n")
    result = compact_transcript(
        TranscriptCompactionRequest(
            payload=given, provider="jev", workspace_root=str(tmp_path), rules_mode="recoverable"
        )
    )

    report: Any = result.report
    assert {record["id"]: record["decision"] for record in report["decisions"]}["read"] == "drop"


def test_what_the_judge_keeps_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept result is not replaced, though the disk could prove it."""
    with system_one(always(0.9)) as server:
        for key, setting in jev_at(server.url).items():
            monkeypatch.setenv(key, setting)
        _, decisions, compacted = run(tmp_path, rules_mode="recoverable")

    assert {d["decision"] for d in decisions.values()} == {"keep"}
    assert result_texts(compacted)["read"] == SHOWN


class TestWhatIsVerified:
    """``lossless_violations`` is an empty list where the notes were verified, and null where nothing was."""

    def test_notes_beside_a_judge_are_verified(self, jev: SystemOneServer, tmp_path: Path) -> None:
        """The judge's own removals promise nothing, and do not count as broken promises."""
        report, decisions, _ = run(tmp_path, rules_mode="recoverable")

        assert report["lossless_violations"] == []
        assert {decisions[name]["decision"] for name in ("read", "build", "web")} == {"replace", "trim", "drop"}
        assert not report["degraded"]

    def test_a_note_that_does_not_hold_is_taken_back(
        self, jev: SystemOneServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the verification objects to is kept whole, and the report says so."""
        monkeypatch.setattr(
            "lcc.relevance.policies.recoverable_violations", lambda *_, **__: [Violation("read", "the note lies")]
        )
        report, decisions, compacted = run(tmp_path, rules_mode="recoverable")

        assert decisions["read"]["decision"] == "keep"
        assert decisions["read"]["reason"] == "recoverable_verification_failed"
        assert SHOWN in [result["text"] for message in compacted for result in message.get("toolResults", ())]
        assert decisions["web"]["decision"] == "drop"
        assert (report["degraded"], report["degradation_reason"]) == (True, "recoverable_verification_failed")
        assert len(report["lossless_violations"]) == 1

    @pytest.mark.parametrize("options", [{}, {"provider": "rules", "rules_mode": "lossy"}])
    def test_nothing_verified_is_null(self, jev: SystemOneServer, tmp_path: Path, options: dict[str, Any]) -> None:
        """A judge alone and ``lossy`` promise nothing that could be verified."""
        given: dict[str, Any] = {"provider": "jev", **options}
        result = compact_transcript(TranscriptCompactionRequest(payload=payload(tmp_path), **given))
        assert result.report["lossless_violations"] is None
