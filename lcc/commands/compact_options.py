"""Which options `lcc compact` takes, which it refuses and why (the seed's section 6), and which have no effect.

An option that would be ignored in silence is refused: a person who gave it would believe that it worked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lcc.commands.files import InputError
from lcc.contract.modes import MODES
from lcc.contract.options import (
    REFUSED_FLAG_FAMILY,
    REFUSED_FLAGS,
    PassOptions,
    flags_that_need,
    table,
)

if TYPE_CHECKING:
    from lcc.commands.flags import Given

TAKES_VALUE = frozenset(
    {
        *("--mode", "--format", "-o", "--output", "-r", "--report"),
        *(
            flag
            for row in table(PassOptions).values()
            if row.kind != "switch"
            for flag in (row.option.flag, row.option.short)
            if flag
        ),
    }
)
"""The words of a command line behind which a value stands, however it is worded."""
CHOOSES = ("--provider", "--rules-mode", "--decisions-cache")
"""The flags by which a person says who decides."""


def refuse_options(words: Sequence[str]) -> None:
    """Raises ``InputError`` that names every refused option among the words of a command line."""
    found: dict[str, None] = {}
    takes_next = False
    for word in words:
        if takes_next:
            takes_next = False
            continue
        if word == "--":
            break
        name = word.partition("=")[0]
        if name in REFUSED_FLAGS or name.startswith(REFUSED_FLAG_FAMILY):
            found[name] = None
        takes_next = word in TAKES_VALUE
    if found:
        names = ", ".join(found)
        raise InputError(
            f"{names}: refused with --mode tool-calls, where {'they' if len(found) > 1 else 'it'} would be "
            "ignored in silence; see lcc compact --help for what is honoured"
        )


def provider_for(given: Given) -> object:
    """The provider: what was given; else ``rules`` when an option of the rules was; else the table's default."""
    if given.values["provider"] is not None:
        return given.values["provider"]
    of_rules = flags_that_need("rules", "proof")
    return "rules" if any(flag in of_rules for flag in given.flags) else table(PassOptions)["provider"].default


def chooses_nobody(flags: Iterable[str]) -> bool:
    """Whether none of the flags says who decides, so that a fork is made as a live session is compacted."""
    return not any(flag in CHOOSES for flag in flags)


def without_effect(options: PassOptions, flags: Iterable[str]) -> list[str]:
    """The flags on the command line that change nothing in a pass with these options, in the order given."""
    given = list(flags)
    idle: list[str] = []
    if options.provider == "rules":
        idle += [flag for flag in given if flag in flags_that_need("judge")]
    if not MODES[options.rules_mode].reads_files:
        idle += [flag for flag in given if flag in flags_that_need("proof")]
    return idle
