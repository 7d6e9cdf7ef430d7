"""What a compaction takes away that the agent needs next, over real sessions.

    python scripts/bench_retention.py [SESSIONS_FOLDER] [--other PYTHON] [--tune]

Each session is cut at four places. What stands before a cut is compacted in every mode, in the workspace that
the session itself recorded up to there; what the agent really did after it tells what it needed again
(scripts/needs.py). Every need is found in context, one pointer away (and the pointer is followed:
scripts/follow.py), or lost. For each mode the table gives the tokens freed, the share of the removed results
that was needed within 10 and within 50 calls, the share of all needs that was lost, and the net effect: tokens
freed less the tokens to fetch back each removed result that was needed, whole, plus 100 for the call. A result
that the agent did read again anyway is charged as well, so the net effect is on the low side.

Every other session is held back: `--tune` tries stash policies on the others alone, and the table has a row for
each half. `--other` names the Python of an environment with local-context-compiler, for its modes on the same cuts.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from bench_compare import OTHER, SHARED, Program
from follow import Followed, follow, results_of
from needs import Need, needs
from replay import Cut, cuts, sessions, write_files

from lcc.contract.modes import RulesMode
from lcc.relevance import TranscriptCompactionRequest, messages_to_payload, transcript_stashed
from lcc.relevance.ports import Ports
from lcc.relevance.stash_policy import DEFAULT_POLICY, StashPolicy
from lcc.relevance.transcript import run_pass
from lcc.stash import Stash, StashError
from lcc.tokens import counter
from lcc.transcript import parse_payload

SHARES = (0.35, 0.5, 0.65, 0.8)
NEAR, FAR = 10, 50
CALL_TOKENS = 100


@dataclass
class Tally:
    """The sums of one mode over some cuts."""

    before: int = 0
    freed: int = 0
    removed: int = 0
    near: int = 0
    far: int = 0
    needs: int = 0
    pointed: int = 0
    lost: int = 0
    spent: int = 0
    broken: int = 0

    def add(self, other: Tally) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(frozen=True)
class Mode:
    """One way to compact: what is made of the messages before a cut, and how its stash gives texts back."""

    name: str
    compact: Callable[[Cut], list[dict[str, Any]]]
    recall: Callable[[Iterable[str]], dict[str, str | None]] = lambda names: dict.fromkeys(names)


def our_mode(name: str, rules_mode: RulesMode, disk: bool, stash: Stash | None = None) -> Mode:
    """A mode of lcc. Without a stash, notes of `stashed` are not written anywhere (for tuning)."""

    def compact(cut: Cut) -> list[dict[str, Any]]:
        request = TranscriptCompactionRequest(
            payload=None,
            provider="rules",
            rules_mode=rules_mode,
            workspace_root=str(cut.root) if disk else None,
        )
        ports = Ports(stash_folder=stash.folder if stash else None, dry_run=stash is None)
        result = run_pass(parse_payload(cut.before), request, lambda result: result, ports)
        return messages_to_payload(result.messages)

    def recall(names: Iterable[str]) -> dict[str, str | None]:
        texts: dict[str, str | None] = {}
        for each in names:
            try:
                texts[each] = stash.get(each).decode("utf-8", "surrogatepass") if stash else None
            except StashError:
                texts[each] = None
        return texts

    return Mode(name, compact, recall)


def their_mode(name: str, rules_mode: RulesMode, program: Program) -> Mode:
    """A mode of the other program, run in its own environment."""

    def compact(cut: Cut) -> list[dict[str, Any]]:
        source = program.folder / "cut.json"
        source.write_text(json.dumps(cut.before), encoding="utf-8")
        figures = program.run_pass(source, rules_mode, str(cut.root), 1)
        if figures is None:
            raise TimeoutError(f"{cut.session} took longer than {program.limit:.0f} s")
        messages: list[dict[str, Any]] = figures["messages"]
        return messages

    return Mode(name, compact, lambda names: program.stashed(list(names)))


def measure(mode: Mode, cut: Cut, needed: list[Need]) -> Tally:
    """What ``mode`` does to one cut."""
    count = counter(cut.model).count
    after = mode.compact(cut)
    old, new = results_of(cut.before), results_of(after)
    marks = [found.target for found in follow(cut.before, after).values() if found.kind == "stash" and found.target]
    followed = follow(cut.before, after, mode.recall(marks).get)
    tally = Tally(before=sum(map(count, old.values())), removed=len(followed))
    for name, found in followed.items():
        tally.freed += count(old[name]) - count(new.get(name, ""))
        tally.broken += not found.works and found.kind not in ("trimmed", "dropped")
    near, far = (removed_and_needed(followed, needed, calls) for calls in (NEAR, FAR))
    tally.near, tally.far = len(near), len(far)
    tally.spent = sum(count(old[name]) + CALL_TOKENS for name in far)
    left = "\n".join([*new.values(), *(message.get("text", "") for message in after)])
    for need in needed:
        tally.needs += 1
        where = place(need, followed.get(need.source), new.get(need.source, ""), left)
        tally.pointed += where == "pointer"
        tally.lost += where == "lost"
    return tally


def removed_and_needed(followed: dict[str, Followed], needed: list[Need], calls: int) -> set[str]:
    """The removed results that were needed within so many calls and that no kept result stands in for."""
    in_context = {name for name, found in followed.items() if found.kind in ("identical", "lines") and found.works}
    wanted = {need.source for need in needed if need.calls <= calls}
    return (wanted & followed.keys()) - in_context


def place(need: Need, found: Followed | None, text: str, left: str) -> str:
    """Where something needed is after a compaction: "context", "pointer" or "lost"."""
    if found is None or (found.works and found.kind in ("identical", "lines")):
        return "context"
    if need.piece is not None and (need.piece in text or need.piece in left):
        return "context"
    return "pointer" if found.works else "lost"


def load(folder: Path, work: Path) -> dict[str, list[tuple[Cut, list[Need]]]]:
    """Every session's cuts with what was needed after each."""
    found: dict[str, list[tuple[Cut, list[Need]]]] = {}
    for path in sessions(folder):
        found[path.name] = []
        for number, share in enumerate(SHARES):
            for cut in cuts(path, (share,), work / path.stem / str(number)):
                found[path.name].append((cut, needs(cut.before, cut.after, FAR)))
    return found


def total(mode: Mode, chosen: Iterable[list[tuple[Cut, list[Need]]]]) -> Tally:
    tally = Tally()
    for session in chosen:
        for cut, needed in session:
            tally.add(measure(mode, cut, needed))
    return tally


def row(name: str, half: str, tally: Tally) -> str:
    removed = max(tally.removed, 1)
    return (
        f"| {name} | {half} | {tally.freed:,} ({tally.freed / max(tally.before, 1):.0%}) | {tally.removed} "
        f"| {tally.near / removed:.1%} | {tally.far / removed:.1%} | {tally.pointed} of {tally.needs} "
        f"| {tally.lost} ({tally.lost / max(tally.needs, 1):.1%}) | {tally.broken} | {tally.freed - tally.spent:,} |"
    )


def tune(chosen: list[list[tuple[Cut, list[Need]]]]) -> None:
    """Try stash policies on the sessions that are not held back, best net effect first."""
    mode = our_mode("stashed", "stashed", disk=True)
    plain = transcript_stashed.stash_kept
    tried: list[tuple[int, StashPolicy, Tally]] = []
    grid = product((12, 24, 40), (20, 40, 80), (1, 2, 3), (60, 120, 300))
    try:
        for recent, use, words, saved in grid:
            policy = replace(
                DEFAULT_POLICY, recent_messages=recent, use_messages=use, used_words=words, min_saved_tokens=saved
            )
            transcript_stashed.stash_kept = partial(plain, policy=policy)
            tally = total(mode, chosen)
            tried.append((tally.freed - tally.spent, policy, tally))
    finally:
        transcript_stashed.stash_kept = plain
    tried.sort(key=lambda item: -item[0])
    for net, policy, tally in [*tried[:12], *(item for item in tried if item[1] == DEFAULT_POLICY)]:
        removed = max(tally.removed, 1)
        mark = " (the default)" if policy == DEFAULT_POLICY else ""
        print(
            f"net {net:,}  freed {tally.freed:,}  needed within {NEAR}: {tally.near / removed:.1%}, within {FAR}: "
            f"{tally.far / removed:.1%}  recent {policy.recent_messages}, use {policy.use_messages}, "
            f"words {policy.used_words}, saved {policy.min_saved_tokens}{mark}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="What a compaction takes away that the agent needs next.")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--other", type=Path, metavar="PYTHON")
    parser.add_argument("--tune", action="store_true")
    options = parser.parse_args()
    if not options.folder.is_dir():
        parser.exit(2, f"{options.folder}: no such folder\n")
    place = Path.home() / ".cache"
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lcc-retention-", dir=place) as name:
        work = Path(name)
        loaded = load(options.folder, work / "workspaces")
        for session in loaded.values():
            for cut, _ in session:
                write_files(cut.files)
        names = sorted(loaded)
        halves = {"tuned on": names[::2], "held back": names[1::2]}
        if options.tune:
            tune([loaded[each] for each in halves["tuned on"]])
            return
        report(loaded, halves, modes(work, options.other))


def modes(work: Path, other: Path | None) -> list[Mode]:
    stash = Stash(work / "stash", "retention")
    found = [
        our_mode("lossless", "lossless", disk=False),
        our_mode("recoverable, transcript", "recoverable", disk=False),
        our_mode("recoverable, disk", "recoverable", disk=True),
        our_mode("stashed", "stashed", disk=True, stash=stash),
        our_mode("lossy", "lossy", disk=False),
    ]
    if other is not None:
        program = Program(OTHER, other.absolute(), work / "theirs", 300.0)
        for rules_mode in ("recoverable", "stashed", "lossy"):
            found.append(their_mode(f"{OTHER}: {rules_mode}", rules_mode, program))
    return found


def report(loaded: dict[str, list[tuple[Cut, list[Need]]]], halves: dict[str, list[str]], chosen: list[Mode]) -> None:
    """Print the tables."""
    kinds: dict[str, int] = defaultdict(int)
    for session in loaded.values():
        for _, needed in session:
            for need in needed:
                kinds[need.kind] += 1
    made = sum(map(len, loaded.values()))
    print(f"{len(loaded)} sessions, {made} cuts; needed within {FAR} calls: {dict(kinds)}\n")
    print(
        "| mode | sessions | tokens freed | removed | needed within 10 | within 50 "
        "| one pointer away | lost | broken notes | net effect |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for mode in chosen:
        both = Tally()
        for half, names in halves.items():
            tally = total(mode, (loaded[each] for each in names))
            both.add(tally)
            print(row(mode.name, half, tally), flush=True)
        print(row(mode.name, "all", both), flush=True)


if __name__ == "__main__":
    main()
