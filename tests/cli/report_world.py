"""Reports of made-up sessions: small ones to look at, and large ones to lay out."""

from __future__ import annotations

import random
from typing import Any

from lcc.contract.decision import (
    CommandAgain,
    Decision,
    Drop,
    FileOnDisk,
    InStash,
    Keep,
    KeptLater,
    Pointer,
    Trim,
    Verdict,
)
from lcc.contract.reasons import (
    CALL_AND_RESULT_NOT_NEEDED,
    CALL_KEPT_RESULT_TRIMMED,
    IDENTICAL_OUTPUT_KEPT_LATER,
    KEEP_DISK_MISMATCH,
    LATEST_ERROR_RESULT,
    NO_LOSSLESS_SUPERSEDER,
    NOT_RECOVERABLE,
    PINNED_FIRST_MESSAGE,
    RECOVERABLE_READ_ONLY_COMMAND,
    REPLACE_DISK_VERIFIED,
    STASHED,
)
from lcc.contract.record import Record, Removed, decision_record, pointer_record
from lcc.contract.report import PassFacts, build_report
from lcc.contract.request import TranscriptCompactionRequest
from lcc.transcript import FORMATS, Message, Pair, ToolResult, ToolUse, Transcript

SHA = "0123456789ab" + "0" * 52


def pair(call_id: str, tool: str, given: dict[str, Any], text: str, message: int = 1) -> Pair:
    return Pair(
        ToolUse(call_id, tool, given, None, (message,)),
        ToolResult(call_id, text, None, (message + 1,), (message + 1, "text")),
        message,
        message + 1,
    )


def read_decision(path: str, lines: tuple[int, int] | None = None) -> Decision:
    span = f" (lines {lines[0]}-{lines[1]})" if lines else ""
    note = f"[removed: re-read {path}{span} to recover; content verified on disk at compaction time]"
    return Pointer(FileOnDisk(path, "/home/you/shop", lines, path, path, SHA), REPLACE_DISK_VERIFIED, note, note)


def stash_decision(tokens: int = 812) -> Decision:
    note = f"[removed: {tokens} tokens · lcc recall {SHA[:12]}]"
    return Pointer(InStash(SHA, tokens, tokens * 4), STASHED("not_recoverable"), note, note)


def command_decision(command: str) -> Decision:
    note = f"[removed: re-run `{command}` to recover]"
    return Pointer(CommandAgain(command, "/home/you/shop"), RECOVERABLE_READ_ONLY_COMMAND, note, note)


def dedupe_decision(kept_at: str) -> Decision:
    note = f"[identical output kept at {kept_at}]"
    return Pointer(KeptLater(kept_at), IDENTICAL_OUTPUT_KEPT_LATER, note, note)


PINNED = Keep(PINNED_FIRST_MESSAGE, "pin")
DROPPED = Drop(CALL_AND_RESULT_NOT_NEEDED, "jev", Verdict(0.1, 0.2))
TRIMMED = Trim(CALL_KEPT_RESULT_TRIMMED, "m", "m" * 300, "jev", Verdict(0.9, 0.1))

ONE_OF_EACH: list[tuple[Pair, Decision]] = [
    (pair("toolu_1", "Glob", {"pattern": "**/*.py"}, "x" * 400), PINNED),
    (pair("toolu_2", "Read", {"file_path": "src/cart.py"}, "y" * 9000, 3), read_decision("src/cart.py")),
    (pair("toolu_3", "Read", {"file_path": "src/mail.py"}, "z" * 5000, 5), dedupe_decision("toolu_8")),
    (pair("toolu_4", "Bash", {"command": "pytest -q"}, "f" * 3248, 7), stash_decision()),
    (pair("toolu_5", "Bash", {"command": "ls -la src"}, "l" * 700, 9), command_decision("ls -la src")),
    (pair("toolu_6", "WebFetch", {"url": "https://example.org/tax"}, "w" * 2000, 11), DROPPED),
    (pair("toolu_7", "mcp__tracker__get", {"id": 7}, "m" * 1500, 13), TRIMMED),
    (pair("toolu_8", "Read", {"file_path": "src/mail.py"}, "z" * 5000, 15), Keep(KEEP_DISK_MISMATCH)),
    (pair("toolu_9", "Bash", {"command": "make"}, "e" * 1200, 17), Keep(LATEST_ERROR_RESULT)),
]


def report_of(decided: list[tuple[Pair, Decision]], **more: Any) -> dict[str, Any]:
    """The report of a pass that decided so."""
    request = more.pop("request", None) or TranscriptCompactionRequest(
        {}, question="mend the voucher totals", provider="rules", rules_mode="stashed"
    )
    messages = [Message("user", "Totals in the cart are wrong. Find out why and mend it.", (), (), None)]
    for found, _ in decided:
        messages.append(Message("assistant", "Looking at it.", (found.use,), (), None))
        messages.append(Message("user", "", (), (found.result,), None))
    transcript = Transcript(FORMATS["claude-code"], tuple(messages), cwd="/home/you/shop", session_id="7d0c2a5e")
    records: list[Record] = []
    for found, decision in decided:
        if isinstance(decision, Pointer):
            records.append(pointer_record(found, decision, Removed(SHA, len(found.result.text))))
        else:
            records.append(decision_record(found, decision))
    facts: dict[str, Any] = {
        "rules_mode": "stashed",
        "recoverability_check": "disk",
        "tokens_before": 7000,
        "tokens_after": 3000,
        "token_count_method": "~characters-by-tool",
        "latency_ms": 4.25,
        "workspace_root": "/home/you/shop",
        "workspace_root_source": "session",
        **more,
    }
    return build_report(PassFacts(request, transcript, records, len(messages), "rules", "stashed", **facts))


def large_report(calls: int, seed: int = 4) -> dict[str, Any]:
    """A session of many calls with sizes as real ones have them: many small, few very large."""
    chance = random.Random(seed)
    files = [f"/home/you/shop/src/{place}/{name}.py" for place in ("cart", "mail", "web") for name in ("views", "api")]
    decided = []
    for number in range(calls):
        size = int(min(60_000, chance.lognormvariate(7.2, 1.3)))
        call_id, roll = f"toolu_{number:05d}", chance.random()
        if roll < 0.4:
            path = chance.choice(files)
            decision = read_decision(path, (1, 200)) if roll < 0.25 else Keep(KEEP_DISK_MISMATCH)
            decided.append((pair(call_id, "Read", {"file_path": path}, "r" * size, number), decision))
        elif roll < 0.8:
            decision = stash_decision(size // 4) if roll < 0.55 else Keep(NOT_RECOVERABLE)
            command = chance.choice(["pytest -q tests/cart", "git status", "npm run build", "rg -n total src"])
            decided.append((pair(call_id, "Bash", {"command": command}, "b" * size, number), decision))
        else:
            kept = Keep(NO_LOSSLESS_SUPERSEDER)
            decided.append((pair(call_id, "Grep", {"pattern": "class Cart"}, "g" * size, number), kept))
    return report_of(decided)
