"""An explanation as text: the figures, the groups with their reasons, and the largest calls of both kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from rich.table import Table
from rich.text import Text

from lcc.commands.text import Align, cell, count, share, table
from lcc.explain.grouped import DECISIONS, Explanation, Group, Listed, ToolTotal, cache_words, check_words, one_line

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
    warnings = cast("list[str]", explanation.facts.get("warnings") or [])
    if warnings:
        parts += ["", _title("Warnings"), *(Text("  ").append_text(cell(line, "yellow")) for line in warnings)]
    return parts


def _title(words: str) -> Text:
    return Text(words, style="bold")


def _head(explanation: Explanation) -> Iterable[Part]:
    facts = explanation.facts
    before, after = cast("int", facts["chars_before"]), cast("int", facts["chars_after"])
    yield Text.assemble(
        ("Removed ", "bold"),
        (share(cast("float", facts["reduction_ratio"])), "bold green"),
        f" of {count(before)} characters; {count(after)} stay.",
    )
    tokens = facts.get("tokens_before"), facts.get("tokens_after")
    if isinstance(tokens[0], int) and isinstance(tokens[1], int):
        method = facts.get("token_count_method")
        how = f" ({method})" if method else ""
        yield cell(f"Tokens: {count(tokens[0])} before, {count(tokens[1])} after{how}.")
    yield cell(_calls(explanation))
    yield cell(_means(explanation))
    objective = facts.get("objective")
    if objective:
        yield cell(f"Goal: {objective}")
    if facts.get("workspace_root"):
        source = facts.get("workspace_root_source")
        named = " (the session's own folder)" if source == "session" else ""
        yield cell(f"Workspace: {facts['workspace_root']}{named}")
    unread = check_words(facts)
    if unread:
        yield cell(f"Not proven: {unread}.", "yellow")
    yield from _verdict(explanation)


def _calls(explanation: Explanation) -> str:
    numbers = dict.fromkeys(DECISIONS, 0)
    for group in (*explanation.removed, *explanation.kept):
        numbers[group.decision] += group.calls
    said = ", ".join(f"{count(number)} {_DONE[name]}" for name, number in numbers.items() if number)
    total = sum(numbers.values())
    unanswered = explanation.facts.get("tool_calls_unanswered")
    open_calls = f"; {unanswered} more without a result, left alone" if unanswered else ""
    return f"Calls: {count(total)}" + (f" ({said})" if said else "") + open_calls + "."


def _means(explanation: Explanation) -> str:
    facts = explanation.facts
    rules = f", rules {facts['rules_mode']}" if facts.get("rules_mode") else ""
    check = f", checked by {facts['recoverability_check']}" if facts.get("recoverability_check") else ""
    guarantee = facts.get("semantic_guarantee")
    return f"By: {facts.get('provider_used')}{rules}{check}; guarantee: {guarantee}."


def _verdict(explanation: Explanation) -> Iterable[Text]:
    facts = explanation.facts
    if facts.get("degraded"):
        yield cell(f"Degraded: {facts.get('degradation_reason')}", "yellow")
    least = facts.get("min_reduction")
    asked = f" (at least {share(least)} was asked for)" if isinstance(least, int | float) else ""
    if facts.get("worth_it") is not None:
        yield cell(f"Worth it: {'yes' if facts['worth_it'] else 'no'}{asked}.")
    cache = cache_words(facts.get("cache_cost"))
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
    return back if not what or what in back else f"{one_line(what, _SUBJECT_CHARS)}: {back}"


def _kept(calls: Sequence[Listed]) -> Table:
    rows = (
        (
            count(call.chars_before),
            call.tool,
            call.id,
            f"{call.subject}: {call.because}" if call.subject else call.because,
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
