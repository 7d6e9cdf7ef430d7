"""What the request log says of a user's own sessions: the figures behind ``lcc log --summary``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median, quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lcc.transcript import Json


@dataclass(frozen=True, slots=True)
class ModeSummary:
    """The passes of one mode. Tokens and shares are of the whole session; times in milliseconds."""

    mode: str
    passes: int
    worth_it: int
    degraded: int
    tokens_freed: int
    median_freed: float
    """The share of a session's tokens that a pass freed, 0 to 1; half of the passes freed more."""
    median_ms: float
    slow_ms: float
    """Nineteen of twenty passes were faster."""


@dataclass(frozen=True, slots=True)
class Summary:
    """All passes of a log. ``reasons`` counts calls by the reason of their verdict, most frequent first."""

    passes: int
    first: str | None
    last: str | None
    estimated: int
    """How many passes had token figures that were estimated."""
    client_versions: tuple[str, ...]
    modes: tuple[ModeSummary, ...]
    reasons: tuple[tuple[str, int], ...]

    def as_json(self) -> dict[str, Json]:
        """The summary for programs."""
        return {
            "passes": self.passes,
            "first": self.first,
            "last": self.last,
            "estimated": self.estimated,
            "client_versions": list(self.client_versions),
            "modes": [{name: getattr(mode, name) for name in ModeSummary.__dataclass_fields__} for mode in self.modes],
            "reasons": dict(self.reasons),
        }


def summarize(entries: Iterable[Mapping[str, Json]]) -> Summary:
    """The figures of a log's entries."""
    by_mode: dict[str, list[Mapping[str, Json]]] = defaultdict(list)
    reasons: Counter[str] = Counter()
    times: list[str] = []
    versions: set[str] = set()
    estimated = 0
    for entry in entries:
        by_mode[str(entry.get("mode") or entry.get("provider") or "unknown")].append(entry)
        times.append(str(entry.get("time")))
        estimated += entry.get("token_count") == "estimated"
        if isinstance(version := entry.get("client_version"), str):
            versions.add(version)
        counted = entry.get("reasons")
        if isinstance(counted, dict):
            reasons.update({reason: int(number) for reason, number in counted.items() if isinstance(number, int)})
    return Summary(
        passes=len(times),
        first=min(times, default=None),
        last=max(times, default=None),
        estimated=estimated,
        client_versions=tuple(sorted(versions)),
        modes=tuple(_mode(name, by_mode[name]) for name in sorted(by_mode)),
        reasons=tuple(reasons.most_common()),
    )


def _mode(name: str, entries: list[Mapping[str, Json]]) -> ModeSummary:
    freed, shares, durations = 0, [], []
    for entry in entries:
        before, after = _figure(entry, "tokens_before"), _figure(entry, "tokens_after")
        freed += round(before - after)
        shares.append((before - after) / before if before else 0.0)
        durations.append(_figure(entry, "duration_ms"))
    return ModeSummary(
        mode=name,
        passes=len(entries),
        worth_it=sum(entry.get("worth_it") is True for entry in entries),
        degraded=sum(entry.get("degraded") is True for entry in entries),
        tokens_freed=freed,
        median_freed=round(median(shares), 4),
        median_ms=round(median(durations), 2),
        slow_ms=round(quantiles(durations, n=20)[18] if len(durations) > 1 else durations[0], 2),
    )


def _figure(entry: Mapping[str, Json], name: str) -> float:
    value = entry.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def markdown(summary: Summary) -> str:
    """The summary as Markdown to paste: figures and names of reasons alone."""
    lines = [
        f"{summary.passes} passes of lcc, {_day(summary.first)} to {_day(summary.last)}"
        + (f"; tokens estimated in {summary.estimated}" if summary.estimated else ""),
        "",
        "| mode | passes | worth it | degraded | tokens freed | median freed | median time | 95th percentile |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {mode.mode} | {mode.passes} | {mode.worth_it} | {mode.degraded} | {mode.tokens_freed:,} "
        f"| {mode.median_freed:.1%} | {mode.median_ms:.0f} ms | {mode.slow_ms:.0f} ms |"
        for mode in summary.modes
    ]
    if summary.reasons:
        lines += ["", "| reason | calls |", "| --- | ---: |"]
        lines += [f"| `{reason}` | {number:,} |" for reason, number in summary.reasons]
    if summary.client_versions:
        lines += ["", "Claude Code " + ", ".join(summary.client_versions)]
    return "\n".join(lines) + "\n"


def _day(time: str | None) -> str:
    return time[:10] if time else "-"
