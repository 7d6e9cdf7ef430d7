"""Counts what a policy takes away that is needed next: cuts of real sessions, loaded once, for any policy.

How it counts: a call needs a piece only where all results that hold it are gone and what stands in their place
does not hold it. Freed is net of what stands in their place. Of the calls behind every cut, a call that needed
something at two cuts is one, and a result that must be had back is recalled once in its session. Contexts under
15,000 tokens are left out: nobody compacts there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath

from needs import Need, common_words, needs, results_of_message
from replay import Cut, cuts, sessions

from lcc.relevance.need.inputs import SHORTEST, input_strings_by_path
from lcc.transcript import Json, Path
from lcc.transcript.edit import input_with

SHARES = (0.35, 0.5, 0.65, 0.8, 0.9)
HORIZON = 100
"""Calls after a cut that are looked at."""
SMALLEST = 45_000
"""Characters of results and texts that a cut must have before it."""

SHARED = FilePath(__file__).resolve().parents[2] / "shared" / "sessions"
"""Where the sessions lie that the figures in the documents were made of."""
PROJECTS = {"k": "klm", "l": "klm", "m": "klm", "r": "rqp", "q": "rqp", "p": "rqp"}
"""Sessions of one project, by the letter at the end of a file's name."""

Policy = Callable[[Cut], Mapping[str, str]]
"""The new text of every result that is not as it was, by call id ("" for one that is gone)."""


@dataclass(frozen=True)
class Point:
    """One cut with what was needed after it."""

    cut: Cut
    project: str
    texts: Mapping[str, str]
    needs: Sequence[Need]
    calls: Sequence[str]
    """Ids of the calls after the cut, within the horizon."""


@dataclass
class Tally:
    """The sums of one policy over some cuts of one session."""

    before: int = 0
    freed: int = 0
    removed: int = 0
    calls: int = 0
    needing: set[str] = field(default_factory=set)
    recalled: dict[str, int] = field(default_factory=dict)
    """Results that must be fetched, with their characters."""
    kinds: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """What a table shows of one policy."""

    freed: float
    """Share of the characters of all results, net."""
    need: float
    """Share of the calls that need what is gone."""
    low: float
    high: float
    """90 % interval of ``need``, by sessions drawn again."""
    wide: float
    """The same with the words of what calls write into files."""
    recalls: float
    """Results to fetch in 100 calls."""
    fetched: float
    """Characters to fetch in 100 calls."""


def load(
    folder: FilePath, work: FilePath, projects: Mapping[str, str], only: Iterable[str] | None = None
) -> list[Point]:
    """Every cut of the sessions in ``folder`` that is large enough. ``projects``: the project of a file's name."""
    chosen = set(only) if only is not None else None
    found: list[tuple[str, Cut]] = []
    for path in sessions(folder):
        if chosen is not None and path.name not in chosen:
            continue
        project = projects.get(path.name, path.name)
        found += [
            (project, cut)
            for number, share in enumerate(SHARES)
            for cut in cuts(path, (share,), work / path.stem / str(number))
            if _size(cut) >= SMALLEST
        ]
    by_project: dict[str, list[str]] = {}
    for project, cut in found:
        by_project.setdefault(project, []).extend(texts_of(cut).values())
    common = common_words(by_project)
    return [_point(project, cut, common) for project, cut in found]


def projects_of(folder: FilePath, listed: FilePath | None = None) -> dict[str, str]:
    """The project of each session, by file name: from ``listed``, else by the letter at the end of its name."""
    if listed is not None:
        pairs = (line.split(None, 1) for line in listed.read_text("utf-8").splitlines() if line.strip())
        return {name: project.strip() for name, project in pairs}
    found = {}
    for path in folder.glob("*.jsonl"):
        kind, letter = path.name.partition("-")[0], path.stem.rpartition("-")[2]
        found[path.name] = f"{kind}-{PROJECTS.get(letter, letter)}" if kind == "cc" else path.stem
    return found


def halves(points: Sequence[Point]) -> tuple[list[Point], list[Point]]:
    """The points of every second project, which are fitted on, and those of the others, which are held back."""
    fitted = set(sorted({point.project for point in points})[1::2])
    return [p for p in points if p.project in fitted], [p for p in points if p.project not in fitted]


def _point(project: str, cut: Cut, common: set[str]) -> Point:
    after = first_calls(cut.after, HORIZON)
    calls = [str(use["tool_use_id"]) for message in after for use in _uses(message)]
    return Point(cut, project, texts_of(cut), needs(cut.before, after, common), calls)


def inputs_told_apart(point: Point, common: Collection[str]) -> Point:
    """The same cut, with each long string of a call's input as a text of its own, which a policy may take away too."""
    before = [part for message in point.cut.before for part in _with_inputs_behind(message)]
    texts = {name: text for message in before for name, text in results_of_message(message)}
    return replace(point, texts=texts, needs=needs(before, first_calls(point.cut.after, HORIZON), common))


def input_name(call: str, path: Sequence[str | int]) -> str:
    """What a string of a call's input is called among the texts."""
    return f"{call} {'.'.join(map(str, path))}"


def _with_inputs_behind(message: dict[str, Json]) -> Iterator[dict[str, Json]]:
    moved: list[Json] = []
    uses: list[Json] = []
    for use in _uses(message):
        taken: dict[Path, str] = {}
        for path, text in input_strings_by_path(use["input"]):
            if len(text) >= SHORTEST:
                taken[path] = ""
                moved.append({"tool_use_id": input_name(str(use["tool_use_id"]), path), "text": text})
        uses.append({**use, "input": input_with(use["input"], taken)})
    yield {**message, "toolUses": uses}
    if moved:
        yield {"role": "user", "text": "", "toolUses": [], "toolResults": moved}


def first_calls(messages: list[dict[str, object]], most: int) -> list[dict[str, object]]:
    """The messages up to the one with the ``most``-th call."""
    count = 0
    for index, message in enumerate(messages):
        count += len(list(_uses(message)))
        if count >= most:
            return messages[: index + 1]
    return messages


def _uses(message: Mapping[str, object]) -> list[dict[str, object]]:
    uses = message.get("toolUses")
    return [use for use in uses if isinstance(use, dict)] if isinstance(uses, list) else []


def texts_of(cut: Cut) -> dict[str, str]:
    """The text of every result before the cut, by call id."""
    return {name: text for message in cut.before for name, text in results_of_message(message)}


def _size(cut: Cut) -> int:
    return sum(map(len, texts_of(cut).values())) + sum(len(str(message.get("text") or "")) for message in cut.before)


def measure(points: Iterable[Point], policy: Policy) -> dict[str, Tally]:
    """What ``policy`` does to each session."""
    found: dict[str, Tally] = {}
    for point in points:
        changed = policy(point.cut)
        tally = found.setdefault(point.cut.session, Tally())
        tally.before += sum(map(len, point.texts.values()))
        tally.freed += sum(len(point.texts[name]) - len(text) for name, text in changed.items())
        tally.removed += len(changed)
        tally.calls += len(point.calls)
        for need in point.needs:
            if all(name in changed and need.piece not in changed[name] for name in need.sources):
                tally.kinds.setdefault(need.kind, set()).add(need.call)
                if need.kind == "written":
                    continue
                tally.needing.add(need.call)
                tally.recalled[need.sources[0]] = len(point.texts[need.sources[0]])
    return found


def figures(tallies: Mapping[str, Tally], draws: int = 400) -> Figures:
    """The pooled figures, with an interval from drawing sessions again."""
    all_ = list(tallies.values())
    chooser = random.Random(1)
    rates = sorted(_rate([chooser.choice(all_) for _ in all_]) for _ in range(draws)) if all_ else [0.0]
    calls = max(1, sum(tally.calls for tally in all_))
    return Figures(
        freed=sum(tally.freed for tally in all_) / max(1, sum(tally.before for tally in all_)),
        need=_rate(all_),
        low=rates[int(0.05 * len(rates))],
        high=rates[min(len(rates) - 1, int(0.95 * len(rates)))],
        wide=sum(len(set().union(*tally.kinds.values())) for tally in all_) / calls,
        recalls=100 * sum(len(tally.recalled) for tally in all_) / calls,
        fetched=100 * sum(sum(tally.recalled.values()) for tally in all_) / calls,
    )


def _rate(tallies: Sequence[Tally]) -> float:
    return sum(len(tally.needing) for tally in tallies) / max(1, sum(tally.calls for tally in tallies))
