"""What a compaction takes away that the agent needs next, over real sessions.

    python scripts/bench_retention.py [SESSIONS_FOLDER] [--projects FILE] [--other PYTHON] [--frontier]

Each session is cut at five places. What stands before a cut is compacted in every mode, in the workspace that the
session itself recorded up to there; what the agent really did after it tells what it needed again (`needs.py`; how
it is counted: `retention.py`). For each mode the table gives the share of the results' characters that went, net of
what stands in their place; the share of the next 100 calls that need something of what went, with a 90 % interval;
the same with the words of what calls write into files; the results to fetch in 100 calls; and the notes that could
not be followed (`follow.py`).

Every second project is what the points were fitted on (`fit_points.py`); the others are held back, and their row is
the one to read. `--frontier` lets more or less go. `--other` names the Python of an environment with
local-context-compiler, for its modes on the same cuts. PROJECTS has lines of a file's name and its project.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

from bench_compare import OTHER, SHARED, Program
from follow import follow, results_of
from needs import common_words
from passes import compacted_by, edits_of
from replay import Cut, write_files
from retention import (
    Point,
    Policy,
    figures,
    halves,
    input_name,
    inputs_told_apart,
    load,
    measure,
    projects_of,
)

from lcc.contract.modes import RulesMode
from lcc.relevance import choice
from lcc.relevance.need import LIMIT
from lcc.stash import Stash, StashError
from lcc.transcript import Edits, apply_edits, messages_to_payload, parse_payload

Recall = Callable[[str], str | None]
HEAD = (
    "| mode | projects | net freed | need | 90 % interval | with written words | recalls in 100 calls "
    "| broken notes |\n"
    "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: |"
)
FRONTIER = (-18.2, -17.7, -17.2, -16.6, -15.8, -14.0, -11.0)


class Mode:
    """One way to compact, and what its notes that cannot be followed came to."""

    def __init__(self, name: str, texts: Callable[[Cut], Mapping[str, str]], recall: Recall | None = None) -> None:
        self.name, self.texts, self.recall, self.broken = name, texts, recall, 0

    def __call__(self, cut: Cut) -> Mapping[str, str]:
        changed = self.texts(cut)
        if self.recall is not None:
            after = messages_to_payload(apply_edits(parse_payload(list(cut.before)), Edits(changed)))
            found = follow(cut.before, after, self.recall).values()
            self.broken += sum(not each.works for each in found if each.kind not in ("trimmed", "dropped"))
        return changed


def ours(name: str, mode: RulesMode, stash: Path | None, disk: bool = True) -> Mode:
    """A mode of lcc, its inputs left alone: results are what is counted here."""
    kept = Stash(stash, "retention") if stash is not None else None

    def texts(cut: Cut) -> Mapping[str, str]:
        edits = edits_of(cut.before, mode, cut.root if disk else None, stash)
        return {**edits.texts, **dict.fromkeys(edits.dropped, "")}

    def recall(name: str) -> str | None:
        try:
            return kept.get(name).decode("utf-8", "surrogatepass") if kept is not None else None
        except StashError:
            return None

    return Mode(name, texts, recall if mode != "lossy" and kept is not None else None)


def with_inputs(stash: Path) -> Mode:
    """The ladder's second rung besides, all the way: the inputs of old calls go too."""

    def texts(cut: Cut) -> Mapping[str, str]:
        edits = edits_of(cut.before, "auto", cut.root, stash, min_reduction=1.0)
        notes = {
            input_name(call, path): note for call, strings in edits.inputs.items() for path, note in strings.items()
        }
        return {**edits.texts, **notes}

    return Mode("`auto`, and the inputs of old calls", texts)


def theirs(name: str, mode: str, program: Program) -> Mode:
    """A mode of the other program."""
    run = compacted_by(program, mode)

    def texts(cut: Cut) -> Mapping[str, str]:
        old, new = results_of(cut.before), results_of(run(cut.before))
        return {call: new.get(call, "") for call, text in old.items() if new.get(call, "") != text}

    return Mode(name, texts)


def row(name: str, half: str, points: Sequence[Point], policy: Policy) -> str:
    found = figures(measure(points, policy))
    broken = policy.broken if isinstance(policy, Mode) and policy.recall is not None else ""
    return (
        f"| {name} | {half} | {found.freed:.1%} | {found.need:.2%} | {found.low:.2%} to {found.high:.2%} "
        f"| {found.wide:.2%} | {found.recalls:.2f} | {broken} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What a compaction takes away that the agent needs next.")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--projects", type=Path)
    parser.add_argument("--other", type=Path, metavar="PYTHON")
    parser.add_argument("--frontier", action="store_true")
    asked = parser.parse_args()
    if not asked.folder.is_dir():
        parser.exit(2, f"{asked.folder}: no such folder\n")
    place = Path.home() / ".cache"
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lcc-retention-", dir=place) as name:
        work = Path(name)
        points = load(asked.folder, work / "workspaces", projects_of(asked.folder, asked.projects))
        for point in points:
            write_files(point.cut.files)
        fitted, held = halves(points)
        print(f"{len({point.cut.session for point in points})} sessions, {len(points)} cuts\n")
        print(HEAD, flush=True)
        if asked.frontier:
            for limit in FRONTIER:
                with patch.object(choice, "LIMIT", limit):
                    mark = " (the default)" if limit == LIMIT else ""
                    print(row(f"`auto`, limit {limit}{mark}", "held back", held, ours("", "auto", None)), flush=True)
            return
        for mode in modes(work, asked.other):
            print(row(mode.name, "held back", held, mode), flush=True)
            print(row(mode.name, "fitted on", fitted, mode), flush=True)
        print(f"\nEach long string of a call's input counted as a text of its own\n\n{HEAD}", flush=True)
        by_project: dict[str, list[str]] = {}
        for point in points:
            by_project.setdefault(point.project, []).extend(point.texts.values())
        common = common_words(by_project)
        for half, chosen in (("held back", held), ("fitted on", fitted)):
            apart = [inputs_told_apart(point, common) for point in chosen]
            for mode in (ours("`auto`, inputs left alone", "auto", work / "stash"), with_inputs(work / "stash")):
                print(row(mode.name, half, apart, mode), flush=True)


def modes(work: Path, other: Path | None) -> list[Mode]:
    stash = work / "stash"
    found = [
        ours("`lossless`", "lossless", stash, disk=False),
        ours("`recoverable`, transcript", "recoverable", stash, disk=False),
        ours("`recoverable`, disk", "recoverable", stash),
        ours("`auto` (the default), `stashed`", "auto", stash),
        ours("`lossy`", "lossy", None, disk=False),
    ]
    if other is not None:
        program = Program(OTHER, other.absolute(), work / "theirs", 300.0)
        found += [theirs(f"{OTHER}: `{mode}`", mode, program) for mode in ("recoverable", "stashed", "lossy")]
    return found


if __name__ == "__main__":
    main()
