"""What a report says, grouped so that a person can follow it: what went, what stayed, and why. Offline and pure.

A report may come from anywhere: `read_report` checked its shape, and `one_line` makes any of its texts fit to be
printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcc.contract.decision import Action
from lcc.contract.modes import MODES
from lcc.contract.reasons import family, in_words
from lcc.contract.record import Record
from lcc.contract.report import CacheCostRecord, Report

EXPLANATION_VERSION = "transcript-explanation-1.0"
DECISIONS: tuple[Action, ...] = ("replace", "dedupe", "trim", "drop", "keep")
LISTED = 10


class Group(NamedTuple):
    """The calls that share a decision and the family of its reason."""

    decision: Action
    reason: str
    because: str
    calls: int
    chars_before: int
    chars_after: int
    tools: tuple[str, ...]
    """The tools of these calls, the one with the most characters first."""


class ToolTotal(NamedTuple):
    tool: str
    calls: int
    chars_before: int
    chars_after: int


class Listed(NamedTuple):
    """One call, as it is shown in a list."""

    id: str
    tool: str
    subject: str | None
    decision: Action
    reason: str
    because: str
    chars_before: int
    chars_after: int
    back: str | None
    """How its bytes are had back; None where nothing was removed."""
    why: str | None
    """How likely it is needed again, in words, behind its points; None where that was not asked."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A report, grouped."""

    schema_version: str
    report: Report
    removed: tuple[Group, ...]
    kept: tuple[Group, ...]
    by_tool: tuple[ToolTotal, ...]
    largest_removals: tuple[Listed, ...]
    largest_kept: tuple[Listed, ...]

    def as_json(self) -> dict[str, object]:
        """The same as a JSON object (for ``lcc explain --json``): the report's own keys without the decisions."""
        return {
            "schema_version": self.schema_version,
            "report": {key: value for key, value in self.report.items() if key != "decisions"},
            "removed": [group._asdict() for group in self.removed],
            "kept": [group._asdict() for group in self.kept],
            "by_tool": [total._asdict() for total in self.by_tool],
            "largest_removals": [listed._asdict() for listed in self.largest_removals],
            "largest_kept": [listed._asdict() for listed in self.largest_kept],
        }


def explain(report: Report, listed: int = LISTED) -> Explanation:
    """Groups what ``read_report`` (or a pass) gave. ``listed``: how many calls each list shows at most."""
    records = report["decisions"]
    removed = [record for record in records if record["decision"] != "keep"]
    kept = [record for record in records if record["decision"] == "keep"]
    return Explanation(
        schema_version=EXPLANATION_VERSION,
        report=report,
        removed=_groups(removed, by=_freed),
        kept=_groups(kept, by=_chars),
        by_tool=_by_tool(records),
        largest_removals=tuple(map(_listed, _top(removed, listed, _freed))),
        largest_kept=tuple(map(_listed, _top(kept, listed, _chars))),
    )


def way_back(record: Record) -> str | None:
    """How what one decision removed is had back, in plain words; None for a call that was kept."""
    if record["decision"] == "keep":
        return None
    if record["decision"] == "dedupe":
        return f"the same output stands at {record['kept_at']}"
    if record["decision"] == "trim":
        return "its ends or its head stay; the rest is gone"
    if record["decision"] == "drop":
        return "gone, with its call"
    recover = record["recover"]
    if recover["kind"] == "command":
        return f"run `{recover['command']}` again"
    if recover["kind"] == "stash":
        return f"lcc recall {recover['sha256'][:12]}"
    lines = recover["lines"]
    span = f", lines {lines[0]}-{lines[-1]}" if lines else ""
    return f"read {recover['path']}{span}"


def need_words(record: Record) -> str | None:
    """What spoke for and against the result's being needed again: "-0.8 points: file read, read again later"."""
    points, why = record["points"], record["why"]
    if points is None:
        return None
    said = f"{points:+.2f} points"
    return f"{said}: {why}" if why else said


def cache_words(cost: CacheCostRecord | None) -> str | None:
    """What the report's ``cache_cost`` says, in one sentence; None where there is none or nothing was freed."""
    if cost is None or cost["break_even_turns"] is None:
        return None
    rewrite, kept, turns = cost["rewrite_tokens"], cost["kept_tokens"], cost["break_even_turns"]
    if cost["cold"] or turns == 0:
        return f"{kept:,} tokens stay cached; the compaction saves from the next request on"
    pays = f"paid back after {turns:,.{1 if turns < 10 else 0}f} more requests"
    wait = "; it is cheaper to wait until the cache is cold" if cost["advice"] == "wait_for_cold_cache" else ""
    return f"{kept:,} tokens stay cached, {rewrite:,} are written again at the next request; {pays}{wait}"


def input_words(report: Report) -> str | None:
    """What became of calls' inputs (the ladder's second rung), as a clause; None where nothing did."""
    strings = next((rung["replaced"] for rung in report["rungs"] or () if rung["rung"] == "inputs"), 0)
    if not strings:
        return None
    return (
        f"{strings} long inputs of old calls became notes"
        if strings > 1
        else "a long input of an old call became a note"
    )


def context_words(report: Report) -> str | None:
    """How full a live session was before its compaction, and after it once that was measured; None elsewhere."""
    context = report["context"]
    if context is None:
        return None
    before, after = context["before"], context["after"]
    words = f"{before['tokens']:,} of {before['window']:,} tokens ({before['share']:.0%}) before"
    return words + (f", {after['tokens']:,} ({after['share']:.0%}) after" if after else "; not measured after it yet")


def check_words(report: Report) -> str | None:
    """What a pass that read no file must say of its pointers to files; None for others."""
    if report["recoverability_check"] != "transcript_proxy":
        return None
    why, way_out = "--no-disk-check", "leave that out"
    if not report["workspace_root"]:
        why = "no workspace was named and the session's own folder is not there, or --no-disk-check"
        way_out = "name --workspace-root"
    mode = report["rules_mode"]
    pointed = mode is None or not MODES[mode].stashes
    stands = "no pointer to one is proven" if pointed else "no pointer to a file was made"
    return f"the files were not read ({why}), so {stands}: {way_out}"


def one_line(text: str, longest: int = 200) -> str:
    """``text`` fit for a terminal: one line, no control or direction characters, at most ``longest`` long."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def _groups(records: Iterable[Record], by: Callable[[Record], int]) -> tuple[Group, ...]:
    gathered: dict[tuple[Action, str], list[Record]] = {}
    for record in records:
        key = (record["decision"], family(record["reason"]))
        gathered.setdefault(key, []).append(record)
    groups = [
        Group(
            decision=decision,
            reason=reason,
            because=in_words(reason),
            calls=len(members),
            chars_before=sum(map(_chars, members)),
            chars_after=sum(map(_chars_after, members)),
            tools=tuple(total.tool for total in _by_tool(members)),
        )
        for (decision, reason), members in gathered.items()
    ]
    weight = {(group.decision, group.reason): sum(map(by, gathered[group[:2]])) for group in groups}
    return tuple(sorted(groups, key=lambda group: (-weight[group[:2]], group[:2])))


def _by_tool(records: Iterable[Record]) -> tuple[ToolTotal, ...]:
    totals: dict[str, list[int]] = {}
    for record in records:
        total = totals.setdefault(record["tool"], [0, 0, 0])
        total[0] += 1
        total[1] += _chars(record)
        total[2] += _chars_after(record)
    found = (ToolTotal(tool, *numbers) for tool, numbers in totals.items())
    return tuple(sorted(found, key=lambda total: (-total.chars_before, total.tool)))


def _listed(record: Record) -> Listed:
    reason = record["reason"]
    return Listed(
        id=record["id"],
        tool=record["tool"],
        subject=record["subject"],
        decision=record["decision"],
        reason=reason,
        because=in_words(reason),
        chars_before=_chars(record),
        chars_after=_chars_after(record),
        back=way_back(record),
        why=need_words(record),
    )


def _top(records: Sequence[Record], count: int, by: Callable[[Record], int]) -> list[Record]:
    """The ``count`` records with the most, in order; the earlier one first where two have the same."""
    return sorted(records, key=lambda record: -by(record))[:count]


def _chars(record: Record) -> int:
    return record["chars"]


def _chars_after(record: Record) -> int:
    return record["chars_after"]


def _freed(record: Record) -> int:
    return _chars(record) - _chars_after(record)
