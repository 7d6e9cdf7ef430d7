"""The few lines that `lcc compact` says on stderr: what was kept, what was removed, where it went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, cast

from rich.text import Text

from lcc.commands.text import cell, count, share, write
from lcc.explain.grouped import Explanation, cache_words, check_words, explain

if TYPE_CHECKING:
    from lcc.contract.report import Report

_GROUPS_SHOWN = 6
_HOW = {
    "replace": ("replaced by a pointer", "green"),
    "dedupe": ("pointed at the same output later", "cyan"),
    "trim": ("trimmed", "yellow"),
    "drop": ("dropped", "red"),
}

_WOULD = {"stashed": "its bytes would be put in the stash, read back and compared"}
"""What a dry run did not do, in the words of what a pass would do."""


def summarise(stream: IO[str], source: str, report: Report, written: list[str], *, dry_run: bool = False) -> None:
    """Prints the summary of ``report``. ``written`` are lines about where the answer went."""
    lines = [*_lines(source, explain(report, 0), dry_run), *(cell(line, "dim") for line in written)]
    write(stream, *lines)


def _lines(source: str, explanation: Explanation, dry_run: bool) -> Iterator[Text]:
    facts = explanation.facts
    before, after = cast("int", facts["chars_before"]), cast("int", facts["chars_after"])
    ratio = cast("float", facts["reduction_ratio"])
    yield Text.assemble(
        ("lcc: ", "dim"),
        cell(source, "bold"),
        cell(f" ({facts['format']}, {count(cast('int', facts['messages_before']))} messages)", "dim"),
    )
    yield Text.assemble(
        ("  would remove " if dry_run else "  removed ", "bold"),
        (share(ratio), "bold green" if ratio else "bold"),
        f"  {count(before)} → {count(after)} characters",
        _tokens(explanation),
    )
    for group in explanation.removed[:_GROUPS_SHOWN]:
        because = _WOULD.get(group.reason, group.because) if dry_run else group.because
        how, style = _HOW[group.decision]
        freed = count(group.chars_before - group.chars_after)
        line = Text.assemble(f"  {count(group.calls):>6}  ", (how, style), f"  -{freed}: ", cell(because, "dim"))
        line.no_wrap, line.overflow = True, "ellipsis"  # the reason is in the report too
        yield line
    kept = sum(group.calls for group in explanation.kept)
    if kept:
        chars = sum(group.chars_before for group in explanation.kept)
        yield Text.assemble(f"  {count(kept):>6}  ", "kept byte for byte", f"  {count(chars)}")
    if not explanation.removed and not kept:
        yield Text("  no call with a result: nothing to decide")
    yield from _remarks(explanation)


def _tokens(explanation: Explanation) -> str:
    before, after = explanation.facts.get("tokens_before"), explanation.facts.get("tokens_after")
    if not isinstance(before, int) or not isinstance(after, int):
        return ""
    return f", {count(before)} → {count(after)} tokens ({explanation.facts.get('token_count_method')})"


def _remarks(explanation: Explanation) -> Iterator[Text]:
    facts = explanation.facts
    if facts.get("workspace_root"):
        own = " (the session's own folder)" if facts.get("workspace_root_source") == "session" else ""
        yield cell(f"  workspace: {facts['workspace_root']}{own}", "dim")
    unread = check_words(facts)
    if unread:
        yield cell(f"  {unread}", "yellow")
    cache = cache_words(facts.get("cache_cost"))
    if cache and explanation.removed:
        yield cell(f"  prompt cache: {cache}", "dim")
    if facts.get("degraded"):
        yield cell(f"  degraded: {facts.get('degradation_reason')}; what was not judged is kept", "yellow")
        if str(facts.get("degradation_reason")).endswith("_unavailable_fail_safe"):
            asked = facts.get("rules_mode")
            mode = asked if asked in ("recoverable", "stashed") else "recoverable"
            yield cell(f"  without a judge: --provider rules --rules-mode {mode}", "yellow")
    for warning in cast("list[str]", facts.get("warnings") or []):
        yield cell(f"  warning: {warning}", "yellow")
    if facts.get("degradation_reason") == "stash_write_failed":
        where = facts.get("stash_dir") or "the stash"
        yield cell(f"  {where} could not be written to: see lcc doctor, or set LCC_STASH_DIR to another", "yellow")
    if facts.get("worth_it") is False and explanation.removed:
        least = facts.get("min_reduction")
        asked = f" {share(least)}" if isinstance(least, int | float) else ""
        yield cell(f"  below the least reduction that is worth it{asked}", "dim")
