"""Fits the points of lcc/relevance/need/points.py over real sessions.

    python scripts/fit_points.py SESSIONS_FOLDER [--projects FILE] [--strength N]

Every second project is fitted on; the others are held back, and scripts/bench_retention.py reports on them. Prints
the table to put into points.py, each value beside the one that stands there. A result counts as needed when a call
after the cut needed something that it was the newest to hold. The fit is a logistic regression that is drawn
towards the points in force, as strongly as ``--strength`` says: needs are few (a few hundred).
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from passes import scores_of
from retention import Point, halves, load, projects_of

from lcc.relevance.need import POINTS, Feature

STEPS = 400
RATE = 0.02
DRAWN = 20.0
"""How strongly the points in force draw: as many results seen at each of them."""

Rows = Counter[tuple[tuple[Feature, ...], bool]]


def rows_of(points: Iterable[Point]) -> Rows:
    """How often each set of features was seen, needed and not."""
    rows: Rows = Counter()
    for point in points:
        wanted = {need.sources[0] for need in point.needs if need.kind != "written"}
        for name, need in scores_of(point.cut.before).items():
            rows[(need.features, name in wanted)] += 1
    return rows


def fit(rows: Rows, drawn: float) -> dict[Feature, float]:
    """Points by feature."""
    points = {feature: POINTS[feature].points for feature in POINTS}
    base = -5.0
    pace = RATE / math.sqrt(max(1, sum(rows.values())))
    for _ in range(STEPS):
        slope: dict[Feature, float] = {
            feature: drawn * (points[feature] - POINTS[feature].points) for feature in POINTS
        }
        slope_base = 0.0
        for (features, needed), times in rows.items():
            likely = 1 / (1 + math.exp(-base - sum(points[feature] for feature in features)))
            error = times * (likely - needed)
            slope_base += error
            for feature in features:
                slope[feature] += error
        base -= pace * slope_base
        points = {feature: value - pace * slope[feature] for feature, value in points.items()}
    return points


def show(points: Mapping[Feature, float], rows: Rows) -> None:
    print("| feature | in force | fitted | seen | needed |\n| --- | ---: | ---: | ---: | ---: |")
    for feature, value in points.items():
        seen = sum(times for (features, _), times in rows.items() if feature in features)
        needed = sum(times for (features, wanted), times in rows.items() if wanted and feature in features)
        rounded = round(value * 20) / 20
        print(f"| {feature} | {POINTS[feature].points:+.2f} | {rounded:+.2f} | {seen} | {needed} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="Fits the points by which results are chosen.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--projects", type=Path, help="lines of: FILE NAME, a blank, PROJECT")
    parser.add_argument("--strength", type=float, default=DRAWN)
    asked = parser.parse_args()
    if not asked.folder.is_dir():
        parser.exit(2, f"{asked.folder}: no such folder\n")
    with tempfile.TemporaryDirectory(prefix="lcc-fit-") as work:
        points = load(asked.folder, Path(work), projects_of(asked.folder, asked.projects))
        fitted_on, _ = halves(points)
        rows = rows_of(fitted_on)
        show(fit(rows, asked.strength), rows)


if __name__ == "__main__":
    main()
