"""What a report says, grouped so that a person can follow it: what went, what stayed, and why. Offline and pure.

A report may come from anywhere, so nothing in it is trusted: `read_report` checks the type of every field
that is used here, and `one_line` makes any of its texts fit to be printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import orjson

from lcc.contract.reasons import family, in_words
from lcc.contract.report import SCHEMA_VERSION, Record, Report

if TYPE_CHECKING:
    from lcc.transcript import Json

EXPLANATION_VERSION = "transcript-explanation-1.0"
DECISIONS = ("replace", "dedupe", "trim", "drop", "keep")
LISTED = 10


class ReportError(ValueError):
    """A file that is not a report of a pass. ``place`` is the JSON path, or line and column; "" for the file."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place


class Group(NamedTuple):
    """The calls that share a decision and the family of its reason."""

    decision: str
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
    decision: str
    reason: str
    because: str
    chars_before: int
    chars_after: int
    back: str | None
    """How its bytes are had back; None where nothing was removed."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A report, grouped. ``facts`` are the report's own keys except for the decisions."""

    schema_version: str
    facts: dict[str, Json]
    removed: tuple[Group, ...]
    kept: tuple[Group, ...]
    by_tool: tuple[ToolTotal, ...]
    largest_removals: tuple[Listed, ...]
    largest_kept: tuple[Listed, ...]

    def as_json(self) -> dict[str, Json]:
        """The same as a JSON object (for ``lcc explain --json``)."""
        groups: dict[str, Json] = {
            name: [value._asdict() for value in cast("Sequence[Group]", getattr(self, name))]
            for name in ("removed", "kept", "by_tool", "largest_removals", "largest_kept")
        }
        return {"schema_version": self.schema_version, "report": self.facts, **groups}


def read_report(raw: bytes) -> Report:
    """The report that ``raw`` holds. Raises ``ReportError`` with the place for anything else."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ReportError(f"not JSON: {error.msg}", f"line {error.lineno}, column {error.colno}") from None
    if not isinstance(value, dict):
        raise ReportError(f"a report is a JSON object, and this is {_kind(value)}")
    version = value.get("schema_version")
    if version != SCHEMA_VERSION:
        found = one_line(str(version)) if version is not None else "nothing"
        raise ReportError(f"expected {SCHEMA_VERSION}, found {found}", "schema_version")
    for key, (fits, wanted) in _REPORT_FIELDS.items():
        if not fits(value.get(key)):
            raise ReportError(f"expected {wanted}, found {_kind(value.get(key))}", key)
    for index, record in enumerate(value["decisions"]):
        _check_record(record, f"decisions[{index}]")
    return cast("Report", value)


def explain(report: Report, listed: int = LISTED) -> Explanation:
    """Groups what ``read_report`` (or a pass) gave. ``listed``: how many calls each list shows at most."""
    records = cast("list[Record]", report["decisions"])
    removed = [record for record in records if record["decision"] != "keep"]
    kept = [record for record in records if record["decision"] == "keep"]
    return Explanation(
        schema_version=EXPLANATION_VERSION,
        facts={key: value for key, value in report.items() if key != "decisions"},
        removed=_groups(removed, by=_freed),
        kept=_groups(kept, by=_chars),
        by_tool=_by_tool(records),
        largest_removals=tuple(map(_listed, _top(removed, listed, _freed))),
        largest_kept=tuple(map(_listed, _top(kept, listed, _chars))),
    )


def way_back(record: Record) -> str | None:
    """How what one decision removed is had back, in plain words; None for a call that was kept."""
    decision = record["decision"]
    if decision == "keep":
        return None
    if decision == "dedupe":
        return f"the same output stands at {record.get('kept_at')}"
    if decision == "trim":
        return "its ends or its head stay; the rest is gone"
    if decision == "drop":
        return "gone, with its call"
    recover = record.get("recover")
    kind = recover.get("kind") if isinstance(recover, dict) else None
    if not isinstance(recover, dict) or kind not in ("file", "command", "stash"):
        return "its note does not say"
    if kind == "command":
        return f"run `{recover.get('command')}` again"
    if kind == "stash":
        return f"lcc recall {str(recover.get('sha256'))[:12]}"
    lines = recover.get("lines")
    span = f", lines {lines[0]}-{lines[1]}" if isinstance(lines, list) and len(lines) == 2 else ""
    return f"read {recover.get('path')}{span}"


def cache_words(cost: Json) -> str | None:
    """What the report's ``cache_cost`` says, in one sentence; None where there is none or nothing was freed."""
    if not isinstance(cost, dict):
        return None
    rewrite, kept, turns = cost.get("rewrite_tokens"), cost.get("kept_tokens"), cost.get("break_even_turns")
    if not isinstance(rewrite, int) or not isinstance(kept, int) or not isinstance(turns, int | float):
        return None
    if cost.get("cold") or turns == 0:
        return f"{kept:,} tokens stay cached; the compaction saves from the next request on"
    pays = f"paid back after {turns:,.{1 if turns < 10 else 0}f} more requests"
    wait = "; it is cheaper to wait until the cache is cold" if cost.get("advice") == "wait_for_cold_cache" else ""
    return f"{kept:,} tokens stay cached, {rewrite:,} are written again at the next request; {pays}{wait}"


def check_words(facts: Mapping[str, Json]) -> str | None:
    """What a pass that read no file must say of its pointers to files, from the report's own keys; None for others."""
    if facts.get("recoverability_check") != "transcript_proxy":
        return None
    why, way_out = "--no-disk-check", "leave that out"
    if not facts.get("workspace_root"):
        why = "no workspace was named and the session's own folder is not there, or --no-disk-check"
        way_out = "name --workspace-root"
    stands = "no pointer to a file was made" if facts.get("rules_mode") == "stashed" else "no pointer to one is proven"
    return f"the files were not read ({why}), so {stands}: {way_out}"


def one_line(text: str, longest: int = 200) -> str:
    """``text`` fit for a terminal: one line, no control or direction characters, at most ``longest`` long."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def _groups(records: Iterable[Record], by: Callable[[Record], int]) -> tuple[Group, ...]:
    gathered: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        key = (cast("str", record["decision"]), family(cast("str", record["reason"])))
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
        total = totals.setdefault(cast("str", record["tool"]), [0, 0, 0])
        total[0] += 1
        total[1] += _chars(record)
        total[2] += _chars_after(record)
    found = (ToolTotal(tool, *numbers) for tool, numbers in totals.items())
    return tuple(sorted(found, key=lambda total: (-total.chars_before, total.tool)))


def _listed(record: Record) -> Listed:
    reason = cast("str", record["reason"])
    return Listed(
        id=cast("str", record["id"]),
        tool=cast("str", record["tool"]),
        subject=cast("str | None", record.get("subject")),
        decision=cast("str", record["decision"]),
        reason=reason,
        because=in_words(reason),
        chars_before=_chars(record),
        chars_after=_chars_after(record),
        back=way_back(record),
    )


def _top(records: Sequence[Record], count: int, by: Callable[[Record], int]) -> list[Record]:
    """The ``count`` records with the most, in order; the earlier one first where two have the same."""
    return sorted(records, key=lambda record: -by(record))[:count]


def _chars(record: Record) -> int:
    return cast("int", record["chars"])


def _chars_after(record: Record) -> int:
    return cast("int", record["chars_after"])


def _freed(record: Record) -> int:
    return _chars(record) - _chars_after(record)


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    names = {dict: "an object", list: "an array", str: "a string", bool: "a truth value"}
    return names.get(type(value), "a number")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _or_none(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or fits(value)


def _is(*kinds: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_Field = tuple[Callable[[object], bool], str]
_TEXT: _Field = (_is(str), "a string")
_COUNT: _Field = (_is_count, "a whole number")
_MAYBE_TEXT: _Field = (_or_none(_is(str)), "a string or null")
_MAYBE_COUNT: _Field = (_or_none(_is_count), "a whole number or null")

_TEXTS = (
    "objective",
    "provider_used",
    "rules_mode",
    "semantic_guarantee",
    "degradation_reason",
    "recoverability_check",
    "token_count_method",
    "workspace_root",
    "workspace_root_source",
    "session_id",
    "format",
    "stash_dir",
)

_REPORT_FIELDS: dict[str, _Field] = {
    "decisions": (_is(list), "an array"),
    "chars_before": _COUNT,
    "chars_after": _COUNT,
    "reduction_ratio": (_is_number, "a number"),
    "worth_it": (_or_none(_is(bool)), "true, false or null"),
    "min_reduction": (_or_none(_is_number), "a number or null"),
    "degraded": (_or_none(_is(bool)), "true, false or null"),
    "warnings": (_or_none(_is_texts), "an array of strings"),
    "cache_cost": (_or_none(_is(dict)), "an object or null"),
    **dict.fromkeys(
        ("tokens_before", "tokens_after", "messages_before", "messages_after", "tool_calls_unanswered"),
        _MAYBE_COUNT,
    ),
    **dict.fromkeys(_TEXTS, _MAYBE_TEXT),
}

_RECORD_FIELDS: dict[str, _Field] = {
    "id": _TEXT,
    "decision": (lambda value: value in DECISIONS, f"one of {', '.join(DECISIONS)}"),
    "reason": _TEXT,
    "tool": _TEXT,
    "source": _TEXT,
    "chars": _COUNT,
    "chars_after": _COUNT,
    "message_index": _MAYBE_COUNT,
    "subject": _MAYBE_TEXT,
    "kept_at": _MAYBE_TEXT,
    "note": _MAYBE_TEXT,
    "recover": (_or_none(_is(dict)), "an object or null"),
}


def _check_record(record: object, place: str) -> None:
    if not isinstance(record, dict):
        raise ReportError(f"expected an object, found {_kind(record)}", place)
    for key, (fits, wanted) in _RECORD_FIELDS.items():
        value = record.get(key)
        if not fits(value):
            raise ReportError(f"expected {wanted}, found {_kind(value)}", f"{place}.{key}")
