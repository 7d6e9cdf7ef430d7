"""A report as one self-contained page: no network, no other file, nothing from the report taken as markup.

The page's style and script stand in `lcc/explain/page/`; the report goes in as JSON with every `<` written as an
escape, so that no text in it can end the element that holds it. A policy in the page itself allows the two
inline elements by their hashes and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from lcc.contract.reasons import detail, family, in_words
from lcc.explain.grouped import Group, cache_words, check_words, explain, need_words, one_line, way_back
from lcc.explain.rounds import rounds_data

if TYPE_CHECKING:
    from lcc.contract.modes import Guarantee
    from lcc.contract.record import Record
    from lcc.contract.report import Report
    from lcc.tokens.savings import Savings
    from lcc.transcript import Json

FATES = {
    "disk": "pointer to a file",
    "dedupe": "pointer to a later result",
    "stash": "pointer to the stash",
    "command": "pointer to a command",
    "trim": "trimmed",
    "drop": "dropped",
    "kept": "kept",
    "pinned": "pinned",
}
"""What can become of a call, as the page names it; the keys are its colours' names."""

_BY_CHECK = {"stash": "stash", "read_only_allowlist": "command"}
_PROMISES: dict[Guarantee, str] = {
    "lossless": "Everything removed stands in the session still, in a later result that was kept.",
    "recoverable": "Everything removed can be had back: from a later result, or from the file it was read from.",
    "stashed": "Everything removed can be had back: from a later result, from its file, or from the stash.",
    "judged": "A judge decided what the session no longer needs. What it trimmed or dropped is gone.",
    "partial": "A judge decided about some calls; the others were kept. What it trimmed or dropped is gone.",
    "none": "Nothing vouches for what was removed.",
}
_SCRIPT_PARTS = ("data", "head", "timeline", "call", "filter", "list", "rounds", "keys", "start")
"""The page's script in its order, one scope: each part may use what stands before it."""
_UNPROVEN = "Pointers to later results are proven; pointers to files are what the session alone speaks for."
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src {script}; base-uri 'none'; form-action 'none'"
_NOTHING_REMOVED = "Nothing was removed."


def page(report: Report, savings: Savings | None = None) -> str:
    """The page for a report that `read_report` accepted or a pass made; with its session's ``savings``, its rounds."""
    assets = files("lcc.explain") / "page"
    template = Template((assets / "page.html").read_text("utf-8"))
    style = (assets / "page.css").read_text("utf-8")
    parts = "\n".join((assets / f"{part}.js").read_text("utf-8") for part in _SCRIPT_PARTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    rounds = None if savings is None else rounds_data(savings)
    data = json.dumps({**_data(report), "rounds": rounds}, ensure_ascii=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    removed = report["reduction_ratio"]
    return template.substitute(
        policy=_POLICY.format(script=_hash(script)),
        title=escape(f"lcc: {one_line(str(report['objective'] or 'a compacted session'), 80)}"),
        noscript=escape(f"{100 * removed:.1f} % of the session's characters were removed; lcc explain says the rest."),
        style=style,
        data=data,
        script=script,
    )


def fate_of(record: Record) -> str:
    """Which of `FATES` a decision is."""
    if record["decision"] == "keep":
        return "pinned" if record["source"] == "pin" else "kept"
    if record["decision"] == "replace":
        return _BY_CHECK.get(record["recoverability_check"], "disk")
    return record["decision"]


def _data(report: Report) -> dict[str, Json]:
    records = report["decisions"]
    explanation = explain(report, 0)
    names: dict[str, int] = {}
    calls: list[Json] = [_call(record, names) for record in records]
    fates = {family(record["reason"]): fate_of(record) for record in records}
    tools: list[Json] = [
        {"tool": total.tool, "before": total.chars_before, "after": total.chars_after} for total in explanation.by_tool
    ]
    reasons: list[Json] = [{"name": name, "because": in_words(name)} for name in names]
    return {
        "facts": {
            "objective": report["objective"],
            "chars_before": report["chars_before"],
            "chars_after": report["chars_after"],
            "tokens_before": report["tokens_before"],
            "tokens_after": report["tokens_after"],
            "token_count_method": report["token_count_method"],
        },
        "from": _where_from(report),
        "verdict": _verdict(report),
        "guarantee": report["semantic_guarantee"],
        "by": _by(report),
        "promise": _promise(report) if explanation.removed else _NOTHING_REMOVED,
        "cache": cache_words(report["cache_cost"]),
        "warnings": _warnings(report),
        "foot": "Made by lcc explain --html. Nothing on this page loads anything from anywhere.",
        "words": report["chars_before"] - sum(total.chars_before for total in explanation.by_tool),
        "calls": calls,
        "reasons": reasons,
        "fates": dict(FATES),
        "tools": tools,
        "went": _groups(explanation.removed, names, fates),
        "stayed": _groups(explanation.kept, names, fates),
    }


def _promise(report: Report) -> str:
    unread = check_words(report)
    if unread and report["semantic_guarantee"] == "recoverable":
        return f"{_UNPROVEN} {unread[:1].upper()}{unread[1:]}."
    return _PROMISES[report["semantic_guarantee"]]


def _call(record: Record, names: dict[str, int]) -> Json:
    return {
        "id": record["id"],
        "tool": record["tool"],
        "subject": record["subject"],
        "decision": record["decision"],
        "fate": fate_of(record),
        "reason": names.setdefault(family(record["reason"]), len(names)),
        "detail": detail(record["reason"]),
        "before": record["chars"],
        "after": record["chars_after"],
        "note": record["note"] if record["decision"] == "dedupe" or record["decision"] == "replace" else None,
        "back": way_back(record),
        "why": need_words(record),
        "kept_at": record["kept_at"] if record["decision"] == "dedupe" else None,
        "message": record["message_index"],
    }


def _groups(groups: Sequence[Group], names: dict[str, int], fates: dict[str, str]) -> list[Json]:
    return [
        {
            "reason": names[group.reason],
            "fate": fates[group.reason],
            "calls": group.calls,
            "before": group.chars_before,
            "after": group.chars_after,
        }
        for group in groups
    ]


def _where_from(report: Report) -> str:
    parts = [
        f"Session {report['session_id']}" if report["session_id"] else None,
        f"{report['messages_before']:,} messages",
        f"workspace {report['workspace_root']}" if report["workspace_root"] else None,
    ]
    return " · ".join(part for part in parts if part)


def _by(report: Report) -> str:
    parts = [report["provider_used"], report["rules_mode"], report["recoverability_check"]]
    return ", ".join(part.replace("_", " ") for part in parts if part)


def _verdict(report: Report) -> str:
    said = "worth it" if report["worth_it"] else "not worth it"
    return f"{said}: at least {100 * report['min_reduction']:.0f} % was asked for"


def _warnings(report: Report) -> list[Json]:
    degraded = [f"Degraded: {report['degradation_reason']}"] if report["degraded"] else []
    return [*degraded, *report["warnings"]]


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"
