"""A session's rounds in lines for a person: its context over time, what each compaction took, what that saved."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rich.text import Text

from lcc.commands.text import cell, count, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lcc.log.recalls import Recall
    from lcc.tokens.savings import Round, Savings

LABEL = 16
_LEVELS = "▁▂▃▄▅▆▇█"
_MARK = "│"
ROUNDS_SHOWN = 5
_WIDEST = 80


def rounds_lines(found: Savings, recalled: Sequence[Recall], width: int, most: int = ROUNDS_SHOWN) -> Iterator[Text]:
    """The lines, none longer than ``width`` where that is 80 or more, of the newest ``most`` rounds.

    ``recalled`` is what was had back since the last compaction.
    """
    if not found.requests:
        return
    yield from _over_time(found, min(width, _WIDEST + 40) - LABEL)
    skipped = max(0, len(found.rounds) - most)
    if skipped:
        yield _line("", f"{_number(skipped, 'earlier round')}: see --json", "dim")
    for at, each in enumerate(found.rounds[skipped:], skipped):
        yield from _round(at, each)
    if len(found.rounds) > 1:
        yield _line("had back", _recalled(found, recalled))
    if found.full_in is not None:
        yield _line("next", f"in ~{count(found.full_in)} requests, if it goes on growing as since then (estimated)")
    yield from _cost(found)


def _line(label: str, words: str, style: str = "") -> Text:
    return Text.assemble(cell(f"{label:<{LABEL}}"), cell(words, style))


def _over_time(found: Savings, room: int) -> Iterator[Text]:
    """A bar for so many requests each, as high as the highest context in it, and a mark at each compaction."""
    marks = sorted({sum(each.requests for each in found.rounds[:at]) for at in range(1, len(found.rounds))})
    inside = [at for at in marks if 0 < at < found.requests]
    bars = max(1, min(room - len(inside), found.requests))
    cuts = sorted({round(at * found.requests / bars) for at in range(bars + 1)} | set(inside))
    highest = max(found.contexts)
    shown = Text(f"{'over time':<{LABEL}}")
    for start, end in pairwise(cuts):
        if start in inside:
            shown.append(_MARK, "bold")
        most = max(found.contexts[start:end])
        shown.append(_LEVELS[min(len(_LEVELS) - 1, most * len(_LEVELS) // (highest + 1))], "cyan")
        if shown.cell_len >= room + LABEL:
            break
    yield shown
    each = "" if bars == found.requests else f" in {bars} bars"
    marked = f"; {_MARK} a compaction" if inside else ""
    yield _line("", f"{_number(found.requests, 'request')}{each}, at most {count(highest)} tokens{marked}", "dim")


def _round(at: int, each: Round) -> Iterator[Text]:
    grown = f"{count(each.first)} → {count(each.last)} tokens in {_number(each.requests, 'request')}"
    if not at:
        yield _line("start", grown)
    elif not each.requests:
        yield _line(_name(each), "nothing was sent since")
    else:
        part = share(each.freed / each.before) if each.before else "0 %"
        yield _line(_name(each), f"{count(each.freed)} of {count(each.before)} tokens went, {part}")
        yield _line("", f"since then {grown}")


def _name(each: Round) -> str:
    return "summary" if each.summary else "compaction"


def _recalled(found: Savings, recalled: Sequence[Recall]) -> str:
    seen = found.rounds[-1].recalls
    if not recalled and not seen:
        return "nothing since the last compaction"
    size = f", {count(sum(each.given_bytes for each in recalled))} bytes" if recalled else ""
    return f"{_number(max(len(recalled), seen), 'output')} since the last compaction{size}"


def _cost(found: Savings) -> Iterator[Text]:
    yield _line("input cost", f"{count(round(found.cost))} tokens at the plain input price (measured)")
    parts = [
        (found.new, "new at 1"),
        (found.read, "read at 0.1"),
        (found.written, "written at 1.25"),
        (found.written_hour, "written for an hour at 2"),
    ]
    words = [f"{count(tokens)} {name}" for tokens, name in parts if tokens]
    yield _line("", " + ".join(words[:2]), "dim")
    if words[2:]:
        yield _line("", "+ " + " + ".join(words[2:]), "dim")
    if found.aside:
        yield _line("sub-agents", f"{count(round(found.aside))} more (measured), in no other figure here")
    if found.compactions:
        yield _line("without lcc", f"~{count(round(found.without))} (estimated: the same requests, nothing removed)")
        said = "saved" if found.saved >= 0 else "cost so far"
        yield _line(said, f"~{count(abs(round(found.saved)))}, {share(abs(found.saved_share))} of that")


def _number(value: int, what: str) -> str:
    return f"{value:,} {what}{'' if value == 1 else 's'}"
