"""An explanation as text: the figures, the groups with their reasons, and the largest calls of both kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from lcc.commands.text import Align, cell, count, share, table
from lcc.explain.grouped import (
    DECISIONS,
    Explanation,
    Group,
    Listed,
    ToolTotal,
    cache_words,
    check_words,
    context_words,
    input_words,
    one_line,
)

if TYPE_CHECKING:
    from lcc.contract.report import Report

_STYLES = {"replace": "green", "dedupe": "cyan", "trim": "yellow", "drop": "red", "keep": ""}
_DONE = {"replace": "replaced", "dedupe": "deduped", "trim": "trimmed", "drop": "dropped", "keep": "kept"}
_TOOLS_NAMED = 3
_SUBJECT_CHARS = 60

Part = Table | Text | str


def layout(explanation: Explanation) -> list[Part]:
    """The parts to print, one below the other."""
    parts: list[Part] = [*_head(explanation)]
    if explanation.removed:
        parts += ["", _title("Removed, and why"), _groups(explanation.removed, freed=True)]
    if explanation.largest_removals:
        parts += ["", _title("Largest removals"), _removals(explanation.largest_removals)]
    if explanation.kept:
        parts += ["", _title("Kept, and why it could not be freed"), _groups(explanation.kept, freed=False)]
    if explanation.largest_kept:
        parts += ["", _title("Largest that stay"), _kept(explanation.largest_kept)]
    if explanation.by_tool:
        parts += ["", _title("By tool"), _tools(explanation.by_tool)]
    warnings = explanation.report["warnings"]
    if warnings:
        parts += ["", _title("Warnings"), *(Text("  ").append_text(cell(line, "yellow")) for line in warnings)]
    return parts


def _title(words: str) -> Text:
    return Text(words, style="bold")


def _head(explanation: Explanation) -> Iterable[Part]:
    report = explanation.report
    yield Text.assemble(
        ("Removed ", "bold"),
        (share(report["reduction_ratio"]), "bold green"),
        f" of {count(report['chars_before'])} characters; {count(report['chars_after'])} stay.",
    )
    before, after = count(report["tokens_before"]), count(report["tokens_after"])
    yield cell(f"Tokens: {before} before, {after} after ({report['token_count_method']}).")
    measured = context_words(report)
    if measured:
        yield cell(f"Context, by the client's own figures: {measured}.")
    yield cell(_calls(explanation))
    yield cell(_means(report))
    if report["objective"]:
        yield cell(f"Goal: {report['objective']}")
    if report["workspace_root"]:
        named = " (the session's own folder)" if report["workspace_root_source"] == "session" else ""
        yield cell(f"Workspace: {report['workspace_root']}{named}")
    inputs = input_words(report)
    if inputs:
        yield cell(f"Inputs: {inputs}.")
    unread = check_words(report)
    if unread:
        yield cell(f"Not proven: {unread}.", "yellow")
    yield from _verdict(report)


def _calls(explanation: Explanation) -> str:
    numbers = dict.fromkeys(DECISIONS, 0)
    for group in (*explanation.removed, *explanation.kept):
        numbers[group.decision] += group.calls
    said = ", ".join(f"{count(number)} {_DONE[name]}" for name, number in numbers.items() if number)
    total = sum(numbers.values())
    unanswered = explanation.report["tool_calls_unanswered"]
    open_calls = f"; {unanswered} more without a result, left alone" if unanswered else ""
    return f"Calls: {count(total)}" + (f" ({said})" if said else "") + open_calls + "."


def _means(report: Report) -> str:
    rules = f", rules {report['rules_mode']}" if report["rules_mode"] else ""
    check = f", checked by {report['recoverability_check']}" if report["recoverability_check"] else ""
    return f"By: {report['provider_used']}{rules}{check}; guarantee: {report['semantic_guarantee']}."


def _verdict(report: Report) -> Iterable[Text]:
    if report["degraded"]:
        yield cell(f"Degraded: {report['degradation_reason']}", "yellow")
    worth_it = "yes" if report["worth_it"] else "no"
    yield cell(f"Worth it: {worth_it} (at least {share(report['min_reduction'])} was asked for).")
    cache = cache_words(report["cache_cost"])
    if cache:
        yield cell(f"Prompt cache: {cache}.")


def _groups(groups: Sequence[Group], *, freed: bool) -> Table:
    rows: list[tuple[Text | str, ...]] = []
    for group in groups:
        tools = ", ".join(group.tools[:_TOOLS_NAMED]) + (", …" if len(group.tools) > _TOOLS_NAMED else "")
        why = Text.assemble(cell(group.because), cell(f"  [{group.reason}] {tools}", "dim"))
        if freed:
            gone = count(group.chars_before - group.chars_after)
            rows.append((count(group.calls), gone, cell(group.decision, _STYLES[group.decision]), why))
        else:
            rows.append((count(group.calls), count(group.chars_before), why))
    heads: list[tuple[str, Align]] = [("calls", "right"), ("freed" if freed else "chars", "right")]
    if freed:
        heads.append(("decision", "left"))
    return table([*heads, ("why", "left")], rows, spare=("decision",) if freed else ())


def _removals(calls: Sequence[Listed]) -> Table:
    rows = (
        (
            count(call.chars_before - call.chars_after),
            cell(call.decision, _STYLES[call.decision]),
            call.tool,
            call.id,
            _what_and_back(call),
        )
        for call in calls
    )
    heads: tuple[tuple[str, Align], ...] = (
        ("freed", "right"),
        ("decision", "left"),
        ("tool", "left"),
        ("call", "left"),
        ("what, and how it is had back", "left"),
    )
    return table(heads, rows, spare=("call", "decision", "tool"))


def _what_and_back(call: Listed) -> str:
    back, what = call.back or "", call.subject
    said = back if not what or what in back else f"{one_line(what, _SUBJECT_CHARS)}: {back}"
    return said + _need(call)


def _need(call: Listed) -> str:
    return f" ({call.why})" if call.why else ""


def _kept(calls: Sequence[Listed]) -> Table:
    rows = (
        (
            count(call.chars_before),
            call.tool,
            call.id,
            (f"{call.subject}: {call.because}" if call.subject else call.because) + _need(call),
        )
        for call in calls
    )
    heads: tuple[tuple[str, Align], ...] = (
        ("chars", "right"),
        ("tool", "left"),
        ("call", "left"),
        ("what, and why it stays", "left"),
    )
    return table(heads, rows, spare=("call", "tool"))


def _tools(totals: Sequence[ToolTotal]) -> Table:
    rows = ((count(total.calls), count(total.chars_before), count(total.chars_after), total.tool) for total in totals)
    return table((("calls", "right"), ("before", "right"), ("after", "right"), ("tool", "left")), rows)
