"""Which options `lcc compact` takes, which it refuses and why (the seed's section 6), and which have no effect.

An option that would be ignored in silence is refused: a person who gave it would believe that it worked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lcc.commands.files import InputError

if TYPE_CHECKING:
    from lcc.contract.modes import Provider, RulesMode

REFUSED = frozenset(
    {
        "--trim-threshold",
        "--preserve-tail",
        "--min-block-chars",
        "--keep-regex",
        "--protect-prefix",
        "--prefix-marker",
        "--no-marker",
        "--marker-scores",
        "--append-to",
        "--require-exact-tokens",
        "--semantic-verify",
        "--no-sufficiency",
        "--max-restorations",
        "--confidence-threshold",
    }
)
REFUSED_FAMILY = "--laya-"

TAKES_VALUE = frozenset(
    {
        *("-q", "--question", "--mode", "--provider", "--rules-mode", "--format", "--workspace-root"),
        *("--threshold", "--trim-head-chars", "--preserve-recent", "--max-state-tokens", "--max-request-tokens"),
        *("--batch-size", "--max-workers", "--min-reduction", "--model", "--jev-model", "--decisions-cache"),
        *("-o", "--output", "-r", "--report"),
    }
)

JUDGE_ONLY = (
    *("--threshold", "--trim-head-chars", "--max-state-tokens", "--max-request-tokens"),
    *("--batch-size", "--max-workers", "--jev-model"),
)
RULES_ONLY = ("--rules-mode", "--workspace-root", "--no-disk-check", "--allow-command-pointers")
RECOVERABLE_ONLY = RULES_ONLY[1:]
CHOOSES = ("--provider", "--rules-mode", "--decisions-cache")
"""The options by which a person says who decides."""


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
        if name in REFUSED or name.startswith(REFUSED_FAMILY):
            found[name] = None
        takes_next = word in TAKES_VALUE
    if found:
        names = ", ".join(found)
        raise InputError(
            f"{names}: refused with --mode tool-calls, where {'they' if len(found) > 1 else 'it'} would be "
            "ignored in silence; see lcc compact --help for what is honoured"
        )


def provider_for(given: str | None, options: Iterable[str]) -> str:
    """The provider: what was given; else ``rules`` when an option of the rules was; else ``auto``."""
    if given is not None:
        return given
    return "rules" if any(name in RULES_ONLY for name in options) else "auto"


def chooses_nobody(options: Iterable[str]) -> bool:
    """Whether none of the given options says who decides, so that a fork is made by the recoverable rules."""
    return not any(name in CHOOSES for name in options)


def without_effect(provider: Provider, rules_mode: RulesMode, options: Iterable[str]) -> list[str]:
    """The given options that change nothing with this provider and these rules, in the order given."""
    from lcc.contract.modes import MODES

    given = list(options)
    idle: list[str] = []
    if provider == "rules":
        idle += [name for name in given if name in JUDGE_ONLY]
    if not MODES[rules_mode].reads_files:
        idle += [name for name in given if name in RECOVERABLE_ONLY]
    return idle


def flag_of(field: str) -> str:
    """The option that sets a field of the request."""
    return {"batch_calls": "--batch-size", "disk_check": "--no-disk-check"}.get(field, f"--{field.replace('_', '-')}")
