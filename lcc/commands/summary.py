"""The few lines that `lcc compact` says on stderr: what was kept, what was removed, where it went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from rich.text import Text

from lcc.commands.text import cell, count, share, write
from lcc.contract.modes import MODES
from lcc.contract.reasons import JEV_UNAVAILABLE_FAIL_SAFE, LAYA_UNAVAILABLE_FAIL_SAFE, STASH_WRITE_FAILED
from lcc.explain.grouped import Explanation, cache_words, check_words, explain, input_words

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
    report = explanation.report
    ratio = report["reduction_ratio"]
    tokens = f"{count(report['tokens_before'])} → {count(report['tokens_after'])} tokens"
    yield Text.assemble(
        ("lcc: ", "dim"),
        cell(source, "bold"),
        cell(f" ({report['format']}, {count(report['messages_before'])} messages)", "dim"),
    )
    yield Text.assemble(
        ("  would remove " if dry_run else "  removed ", "bold"),
        (share(ratio), "bold green" if ratio else "bold"),
        f"  {count(report['chars_before'])} → {count(report['chars_after'])} characters",
        f", {tokens} ({report['token_count_method']})",
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


def _remarks(explanation: Explanation) -> Iterator[Text]:
    report = explanation.report
    if report["workspace_root"]:
        own = " (the session's own folder)" if report["workspace_root_source"] == "session" else ""
        yield cell(f"  workspace: {report['workspace_root']}{own}", "dim")
    inputs = input_words(report)
    if inputs:
        yield cell(f"  {inputs}", "dim")
    unread = check_words(report)
    if unread:
        yield cell(f"  {unread}", "yellow")
    cache = cache_words(report["cache_cost"])
    if cache and explanation.removed:
        yield cell(f"  prompt cache: {cache}", "dim")
    if report["degraded"]:
        yield cell(f"  degraded: {report['degradation_reason']}; what was not judged is kept", "yellow")
        if report["degradation_reason"] in (JEV_UNAVAILABLE_FAIL_SAFE.code, LAYA_UNAVAILABLE_FAIL_SAFE.code):
            asked = report["rules_mode"]
            mode = asked if asked is not None and MODES[asked].reads_files else "recoverable"
            yield cell(f"  without a judge: --provider rules --rules-mode {mode}", "yellow")
    for warning in report["warnings"]:
        yield cell(f"  warning: {warning}", "yellow")
    if report["degradation_reason"] == STASH_WRITE_FAILED.code:
        where = report["stash_dir"] or "the stash"
        yield cell(f"  {where} could not be written to: see lcc doctor, or set LCC_STASH_DIR to another", "yellow")
    if not report["worth_it"] and explanation.removed:
        yield cell(f"  below the least reduction that is worth it {share(report['min_reduction'])}", "dim")
