"""scripts/run_cases.py: what tells the outcome of a case, and that one without a sign is left to a person."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "run_cases.py"


def case(folder: Path, name: str, readme: str = "", **files: str) -> None:
    place = folder / name
    place.mkdir(parents=True)
    if readme:
        (place / "README.md").write_text(readme)
    for file, text in files.items():
        (place / file.replace("_", ".")).write_text(text)


def run(folder: Path, *names: str) -> tuple[int, dict[str, str]]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *names], capture_output=True, text=True, check=False, timeout=60
    )
    rows = [line.partition(":")[0].split() for line in done.stdout.splitlines()[:-1]]
    return done.returncode, {name: verdict for verdict, name in rows}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    decided = json.dumps({"decisions": [{"id": "c1", "decision": "keep"}, {"id": "c2", "decision": "replace"}]})
    makes_report = f"```sh\necho '{decided}' > report.json\n```\n"
    case(tmp_path, "daemon/ends", run_py="raise SystemExit(0)")
    case(tmp_path, "plain", "Right: it is listed.\n", run_sh="echo something")
    case(tmp_path, "pass/kept", f"{makes_report}Expected: c1 kept, named_in_goal\n")
    case(tmp_path, "live-one", run_sh="exit 0")
    case(tmp_path, "no-case", "Only words.\n")
    return tmp_path


def test_each_case_has_the_outcome_that_it_tells_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its exit code where it decides, by its report, or not at all; a live one without a client is skipped."""
    monkeypatch.delenv("CLAUDE", raising=False)
    assert run(folder) == (0, {"daemon/ends": "ok", "live-one": "skip", "pass/kept": "ok", "plain": "read"})


@pytest.mark.parametrize(
    ("readme", "files"),
    [
        ("", {"run_py": "raise SystemExit(3)"}),
        ("", {"run_sh": "echo FAIL the session is gone"}),
        ("", {"run_sh": "echo 'lcc: a fault in lcc itself, KeyError'"}),
        ('```sh\necho \'{"decisions": [{"id": "c1", "decision": "replace"}]}\' > r.json\n```\nExpected: c1 kept\n', {}),
    ],
)
def test_a_fault_fails(folder: Path, readme: str, files: dict[str, str]) -> None:
    case(folder, "broken", readme, **files)
    assert run(folder, "broken") == (1, {"broken": "FAIL"})


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("Expected: keep file_written_later. Got: replace, recoverable_file_read.", "ok"),
        ("Expected: keep named_in_goal", "FAIL"),
        ("Expected: replaced: it is proven", "ok"),
        ("Expected: keep_disk_mismatch: no", "FAIL"),
        ("Expected: something else altogether", "read"),
    ],
)
def test_a_ruling_with_its_reason_is_looked_for_in_the_report(folder: Path, words: str, verdict: str) -> None:
    """The decision that the README wants, and not the one that it had."""
    rows = [("c1", "keep", "file_written_later"), ("c2", "replace", "identical_output")]
    decided = json.dumps({"decisions": [{"id": call, "decision": what, "reason": why} for call, what, why in rows]})
    case(folder, "ruled", f"```sh\necho '{decided}' > report.json\n```\n{words}\n")
    assert run(folder, "ruled")[1] == {"ruled": verdict}


def test_a_case_whose_own_program_broke_fails(folder: Path) -> None:
    """Whether lcc is right then nobody knows, and what nobody knows is not passed over."""
    case(folder, "bent", run_py="[][0]")
    assert run(folder, "bent") == (1, {"bent": "FAIL"})


@pytest.mark.parametrize(("said", "verdict"), [("toolu_1 keep x", "ok"), ("toolu_1 replace x", "FAIL")])
def test_a_case_told_in_free_words_has_a_sign(folder: Path, said: str, verdict: str) -> None:
    """What must be there is in the script; where it is missing, the case fails."""
    case(folder, "relative-path-other-folder", "Expected: a note that leads there.\n", run_sh=f"echo {said}")
    assert run(folder, "relative")[1] == {"relative-path-other-folder": verdict}


def test_a_client_that_loses_something_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE", "/bin/true")
    case(folder, "live-two", run_sh="exit 1")
    assert run(folder, "live-") == (1, {"live-one": "ok", "live-two": "FAIL"})


def test_the_cases_are_left_as_they_are(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    run(folder)
    assert sorted(folder.rglob("*")) == before


def test_a_folder_that_is_none_is_bad_input(tmp_path: Path) -> None:
    assert run(tmp_path / "none")[0] == 2
