"""What sessions cost with compactions, in tokens at the plain input price: client alone, `auto`, `cold`, `early`.

    python scripts/bench_cost.py [SESSIONS_FOLDER] [--projects FILE] [--sessions] [--early SHARE]

Each session's own requests are replayed (`spending.py` says how): what each read from the prompt cache and wrote to
it, at 0.1 and at 1.25 (five minutes) or 2 (an hour) for a token at 1, with real passes where a policy compacts, and
with what is needed again recalled. `auto` compacts at a full window alone. `cold` also between two turns once the
prompt cache has run out, where `lcc.compaction.worth` says so, as the plugin does; `early` also while the cache is
warm, where that soon pays itself back, or with `early_share` from SHARE of the window on. "Notes at the wall" lets the
ladder take the place of the client's summaries; with "summary at the wall" they stay where they were, and what is shown
is the effect before it.

Every second project is what the rule's thresholds were chosen on; the others are held back. `--sessions` has a row for
each session. PROJECTS has lines of a file's name and its project.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from needs import common_words, results_of_message
from retention import SHARED, projects_of
from spending import Outcome, Policy, Session, State, client_alone, run

from lcc.compaction.worth import LEAST_CONTEXT, is_cold, worth_when_cold, worth_when_warm
from lcc.contract.options import LiveOptions

DRAWS = 400
RESTED_S = 10.0
"""A prompt that comes sooner than this after a turn leaves no time for a compaction."""
BEGINS_LATE = 100_000
"""A first request of more tokens than this: the session's beginning is in no file, and cannot be compacted here."""
HEAD = (
    "| policy | at the wall | projects | cost | 90 % interval | dearest session | compactions | recalls | summaries |\n"
    "| --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: |"
)

Outcomes = Mapping[Path, Outcome]
Row = tuple[Policy, Outcomes]


def wants(state: State) -> bool:
    """Whether a pass is tried at all."""
    return state.context >= LEAST_CONTEXT and state.gap.idle >= RESTED_S


def cold(state: State, freed: float) -> bool:
    """The plugin's rule."""
    return is_cold(state.gap.idle, state.prices) and worth_when_cold(state.context, freed) == "cache_cold"


def pays_back(state: State, freed: float) -> bool:
    """The plugin's rule of `early` without a share: `cold`, and what soon pays itself back while the cache is warm."""
    if is_cold(state.gap.idle, state.prices):
        return cold(state, freed)
    return worth_when_warm(state.context, freed, state.first, state.requests, state.prices) == "pays_back"


def policies(share: float) -> list[Policy]:
    """The rows of the table."""

    def from_share(state: State, freed: float) -> bool:
        return state.context >= share * state.window and freed >= LiveOptions().min_reduction * state.context

    return [
        Policy("`auto` only"),
        Policy("`cold`", wants, cold),
        Policy("`early`", wants, pays_back),
        Policy(f"`early`, {share:.0%}", wants, from_share),
    ]


def ratio(sessions: Sequence[Session], alone: Outcomes, found: Outcomes) -> float:
    """The pooled cost against the client's alone, less 1."""
    before = sum(alone[session.path].cost for session in sessions)
    return sum(found[session.path].cost for session in sessions) / before - 1 if before else 0.0


def interval(sessions: Sequence[Session], alone: Outcomes, found: Outcomes) -> tuple[float, float]:
    """90 % of the pooled cost, by projects drawn again."""
    chooser = random.Random(1)
    by_project: dict[str, list[Session]] = {}
    for session in sessions:
        by_project.setdefault(session.project, []).append(session)
    names = sorted(by_project)
    drawn = sorted(
        ratio([s for name in chooser.choices(names, k=len(names)) for s in by_project[name]], alone, found)
        for _ in range(DRAWS)
    )
    return drawn[int(0.05 * DRAWS)], drawn[int(0.95 * DRAWS)]


def row(policy: Policy, projects: str, sessions: Sequence[Session], alone: Outcomes, found: Outcomes) -> str:
    low, high = interval(sessions, alone, found)
    dearest = max((found[s.path].cost / alone[s.path].cost - 1 for s in sessions), default=0.0)
    counts = [sum(getattr(found[s.path], name) for s in sessions) for name in ("compactions", "recalls", "summaries")]
    return (
        f"| {policy.name} | {'notes' if policy.ladder else 'summary'} | {projects} "
        f"| {ratio(sessions, alone, found):+.1%} | {low:+.1%} to {high:+.1%} | {dearest:+.1%} "
        f"| {counts[0]} | {counts[1]} | {counts[2]} |"
    )


def read(folder: Path, work: Path, projects: Mapping[str, str]) -> list[Session]:
    """The sessions of ``folder`` that say what their requests cost."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        session = Session(path, projects.get(path.name, path.name), work / path.stem / "root")
        if session.requests:
            found.append(session)
    return found


def words_of_many(sessions: Sequence[Session]) -> set[str]:
    """The words that are no evidence of a need: results of many projects hold them."""
    texts: dict[str, list[str]] = {}
    for session in sessions:
        texts.setdefault(session.project, []).extend(
            text for message in session.messages for _, text in results_of_message(message)
        )
    return common_words(texts)


def show(title: str, sessions: Sequence[Session], held: set[str], rows: Sequence[Row], alone: Outcomes) -> None:
    """One table: all projects, and those that are held back."""
    total = sum(alone[session.path].cost for session in sessions)
    print(f"\n{title}: {len(sessions)} sessions; client alone: {total:,.0f}\n\n{HEAD}")
    for policy, found in rows:
        print(row(policy, "all", sessions, alone, found))
        print(row(policy, "held back", [session for session in sessions if session.project in held], alone, found))
    sys.stdout.flush()


def show_sessions(sessions: Sequence[Session], rows: Sequence[Row], alone: Outcomes) -> None:
    """A row for each session."""
    heads = [f"{policy.name}, {'notes' if policy.ladder else 'summary'}" for policy, _ in rows]
    print(f"\n| session | requests | cold restarts | client alone | {' | '.join(heads)} |")
    print(f"| --- | ---: | ---: | ---: |{' ---: |' * len(heads)}")
    for session in sessions:
        cold = sum(gap.prompt and is_cold(gap.idle, session.prices) for gap in session.gaps)
        before = alone[session.path].cost
        figures = " | ".join(f"{found[session.path].cost / before - 1:+.1%}" for _, found in rows)
        print(f"| {session.path.stem} | {len(session.requests)} | {cold} | {before:,.0f} | {figures} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="What sessions cost with compactions.")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--projects", type=Path)
    parser.add_argument("--sessions", action="store_true", help="a row for each session too")
    parser.add_argument("--early", type=float, default=0.6, metavar="SHARE")
    asked = parser.parse_args()
    if not asked.folder.is_dir():
        parser.exit(2, f"{asked.folder}: no such folder\n")
    with tempfile.TemporaryDirectory(prefix="lcc-cost-") as work:
        sessions = read(asked.folder, Path(work), projects_of(asked.folder, asked.projects))
        if not sessions:
            parser.exit(2, f"{asked.folder}: no session of Claude Code with usage in it\n")
        common = words_of_many(sessions)
        alone = {session.path: client_alone(session) for session in sessions}
        rows = [
            (policy, {session.path: run(session, policy, common) for session in sessions})
            for plain in policies(asked.early)
            for policy in (replace(plain, ladder=False), plain)
        ]
        names = sorted({session.project for session in sessions})
        held = set(names) - set(names[1::2])
        show("All sessions", sessions, held, rows, alone)
        whole = [session for session in sessions if session.requests[0].context < BEGINS_LATE]
        if len(whole) < len(sessions):
            show("Sessions whose beginning is in the file", whole, held, rows, alone)
        if asked.sessions:
            show_sessions(sessions, rows, alone)


if __name__ == "__main__":
    main()
