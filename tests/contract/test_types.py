"""The type checker holds what the contract says: a line marked `wrong` below does not pass, and every other does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]

SOURCE = """
from typing import Literal, assert_never

from lcc.contract import reasons
from lcc.contract.decision import Decision, Drop, FileOnDisk, InStash, Keep, KeptLater, Pointer, Trim
from lcc.contract.modes import MODES, RulesMode
from lcc.contract.options import LiveOptions, PassOptions
from lcc.contract.reasons import Reason, ReasonAbout
from lcc.contract.record import (
    DedupeRecord,
    DiskReplaceRecord,
    Record,
    Removed,
    decision_record,
    pointer_record,
)
from lcc.contract.report import Report
from lcc.contract.report_reader import read_report
from lcc.transcript import Pair

# A reason has its words, and a decision has a reason.
Reason("too_blue", "it is too blue to be missed")
Reason("too_blue")  # wrong
ReasonAbout("too_blue_for")  # wrong
Keep(reasons.KEPT_DEFAULT)
Keep("kept_default")  # wrong
Keep(reasons.KEPT_BY_DEFAULT)  # wrong
Drop(reasons.SUPERSEDED_BY_LATER_CALL("toolu_7"))
Drop(reasons.SUPERSEDED_BY_LATER_CALL)  # wrong
Drop(reasons.SUPERSEDED_BY_LATER_CALL())  # wrong
Keep(reasons.KEPT_DEFAULT, "nobody")  # wrong
Keep()  # wrong

# A pointer has its proof, and the proof has what its record needs.
on_disk = FileOnDisk("a.py", "/w", None, "/w/a.py", "/w/a.py", "0" * 64)
pointer = Pointer(on_disk, reasons.REPLACE_DISK_VERIFIED, "note", "note")
Pointer(reason=reasons.REPLACE_DISK_VERIFIED, note="note", text="note")  # wrong
Pointer(None, reasons.REPLACE_DISK_VERIFIED, "note", "note")  # wrong
FileOnDisk("a.py", "/w", None)  # wrong
InStash("0" * 64)  # wrong
KeptLater()  # wrong
Trim(reasons.LARGE_OLD_OUTPUT_TRIMMED, "note")  # wrong

# A record is made with its proof, and with what went.
def records(pair: Pair, removed: Removed) -> None:
    decision_record(pair, Keep(reasons.KEPT_DEFAULT))
    decision_record(pair, pointer)  # wrong
    pointer_record(pair, pointer, removed)
    pointer_record(pair, pointer)  # wrong
    pointer_record(pair, Keep(reasons.KEPT_DEFAULT), removed)  # wrong


def changed(record: Record, disk: DiskReplaceRecord, dedupe: DedupeRecord) -> None:
    if record["decision"] == "dedupe":
        print(record["kept_at"])
    print(record["kept_at"])  # wrong
    if record["decision"] == "replace" and record["recoverability_check"] == "stash":
        print(record["stash"]["tokens"])
        print(record["disk"])  # wrong
    print(disk["disk"]["sha256"])
    made: DedupeRecord = {"decision": "dedupe", "id": "toolu_1", "note": "note"}  # wrong
    dedupe["note"] = 5  # wrong


# Whoever asks for a decision's kind asks for all of them.
def kind(decision: Decision) -> str:
    if isinstance(decision, Keep):
        return "kept"
    if isinstance(decision, Pointer | Trim):
        return decision.text
    if isinstance(decision, Drop):
        return decision.text  # wrong
    assert_never(decision)


def kind_without_drop(decision: Decision) -> str:
    if isinstance(decision, Keep | Pointer | Trim):
        return "there"
    assert_never(decision)  # wrong


# A mode is one of those that there are, and each has its row.
PassOptions(rules_mode="lossless", provider="rules")
PassOptions(rules_mode="lossles")  # wrong
PassOptions(provider="mechanical")  # wrong
LiveOptions(rules_mode="best")  # wrong
MODES["lossless"]
MODES["best"]  # wrong


def row(mode: RulesMode, more: Literal["lossless", "best"]) -> None:
    print(MODES[mode].promise)
    print(MODES[more].promise)  # wrong
    print(mode == "best")  # wrong


# A report is read through the one check, and has the keys that it has.
def report(raw: bytes, made: Report) -> None:
    tokens: int = read_report(raw)["tokens_before"]
    print(tokens, made["rules_mode"])
    print(made["tokens_befor"])  # wrong
    made["semantic_guarantee"] = "absolute"  # wrong
    words: str = made["worth_it"]  # wrong
"""


def test_what_the_contract_forbids_does_not_pass_the_type_checker() -> None:
    """One run over one program: the lines with an error are exactly the lines that are wrong."""
    # The settings of pyproject.toml, whose packages no program can stand beside; so the project's cache serves.
    settings = ("--config-file=", "--strict", "--warn-unreachable", "--python-version=3.11")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, "--no-error-summary", "-c", SOURCE],
        capture_output=True,
        text=True,
        check=False,
        cwd=CHECKOUT,
    )

    found = {}
    for line in ran.stdout.splitlines():
        place, _, problem = line.partition(": error: ")
        if problem:
            assert place.startswith("<string>:"), line
            found[int(place.removeprefix("<string>:"))] = problem
    lines = SOURCE.splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert found, ran.stdout + ran.stderr
    assert {number: lines[number - 1] for number in wrong - set(found)} == {}, "the type checker let these through"
    assert {number: found[number] for number in set(found) - wrong} == {}, "these are right"
