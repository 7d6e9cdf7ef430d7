"""The table of guards: which results stay, whatever a rule or a judge would say of them, and in which modes.

Each guard is a row: the reason that a record gives, what it keeps in words, the modes that it binds and how firmly,
and the calls that it finds. All are asked once in a pass, before any policy, and a policy only looks the answer up.
To add one: a reason in `lcc/contract/reasons.py`, a row here, and an option where it needs one. The README's list of
what is never touched is made from this table (`python scripts/write_tables.py`).

How firmly a guard binds:

- *whole*: not a byte of the call or its result changes.
- *kept*: the result may at most become a pointer to a later result that is kept and holds the same.
- *untrimmed*: it may be dropped with its call, and is not cut.

That the seed's section 5 lets `lossless` point at an identical result whatever names it, and that what the newest
message names stays, are both kept to: the goal and older messages bind no result of `lossless`, the newest message
binds its results whole, in every mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, get_args

from lcc.contract import reasons as why
from lcc.contract.modes import MODES
from lcc.contract.options import PassOptions
from lcc.contract.reasons import Reason
from lcc.relevance.evidence import lossy
from lcc.relevance.evidence.failures import LatestError, errors_among, latest_error, overcome, recent_failures
from lcc.relevance.evidence.names import Naming, named_calls, texts_by_place
from lcc.relevance.evidence.pins import pin_reasons
from lcc.relevance.evidence.protected import protected_paths, protected_tools
from lcc.relevance.evidence.said import goal_texts, newest_user_text, recent_texts, recent_user_texts
from lcc.relevance.evidence.standing import standing_reasons
from lcc.relevance.reading.calls import FileRead, kind_of
from lcc.transcript import Pair, Transcript

DecidingMode = Literal["lossless", "recoverable", "stashed", "lossy", "judge_beside_proofs", "judge"]
"""Who decides: a mode of the rules, a judge whose removals are proven or stashed, or a judge alone."""
Firmness = Literal["whole", "kept", "untrimmed"]

ALL: frozenset[DecidingMode] = frozenset(get_args(DecidingMode))
PROVING: frozenset[DecidingMode] = frozenset({"recoverable", "stashed", "judge_beside_proofs"})
LOSSY: frozenset[DecidingMode] = frozenset({"lossy"})

_ASKED, _TURNS, _RECENT_USER, _RECENT, _NEWEST = 1, 16, 2, 4, 8
_GOAL = _ASKED | _TURNS
_NOBODY = Naming(0, 0)


@dataclass(frozen=True)
class GuardFacts:
    """What the guards ask a session, each thing found out at most once."""

    transcript: Transcript
    options: PassOptions
    pairs: Sequence[Pair]
    reads: Mapping[str, FileRead]
    """The calls that read a single file, by id."""

    @cached_property
    def pins(self) -> Mapping[str, Reason]:
        """The pinned calls, by id."""
        return pin_reasons(self.pairs, len(self.transcript.messages), self.options.preserve_recent)

    @cached_property
    def standing(self) -> Mapping[str, Reason]:
        """The results that are no plain outputs, or that an older note needs, by call id."""
        return standing_reasons(self.transcript, self.pairs, self.reads, self.options.workspace_root)

    @cached_property
    def errors(self) -> frozenset[str]:
        """The calls that failed."""
        return errors_among(self.pairs, self.reads)

    @cached_property
    def latest_error(self) -> LatestError:
        """The latest of them, and the call before it."""
        return latest_error(self.pairs, self.errors)

    @cached_property
    def latest(self) -> Mapping[str, Reason]:
        """The calls that are the latest of a kind."""
        return lossy.latest_of_each_kind(self.pairs, self.written)

    @cached_property
    def written(self) -> Mapping[str, list[str]]:
        """The files that a call writes, by call id."""
        return lossy.written_by(self.pairs)

    @property
    def recent_from(self) -> int:
        """The first of the messages that are recent for `lossy`."""
        return len(self.transcript.messages) - lossy.RECENT_MESSAGES

    @cached_property
    def named(self) -> Mapping[str, Naming]:
        """The calls that the goal or a recent message names, as far as a guard of the mode asks for them."""
        messages, recent, asked = self.transcript.messages, self.options.preserve_recent, self.options.question
        goal = _ASKED if asked.strip() else _TURNS
        wanted = _places_looked_into(deciding_mode(self.options))
        groups: dict[int, Callable[[], Iterable[str]]] = {
            goal: lambda: goal_texts(asked, messages),
            _RECENT_USER: lambda: recent_user_texts(messages, recent),
            _RECENT: lambda: recent_texts(messages, recent),
            _NEWEST: lambda: [newest_user_text(messages)],
        }
        texts = texts_by_place([(place, written()) for place, written in groups.items() if place & wanted])
        # What a first message says at length are no places to keep all work in; a question that was asked is short.
        with_folders = _NEWEST | (_GOAL if asked.strip() else 0)
        return named_calls(self.pairs, self.reads, texts, with_folders)


@dataclass(frozen=True, slots=True)
class Guard:
    """One row of the table."""

    reason: Reason
    words: str
    """What it keeps, for the README. Rows that follow each other with the same words are one line there."""
    find: Callable[[GuardFacts], Iterable[str]]
    """The ids of the calls that it keeps."""
    modes: frozenset[DecidingMode]
    firmness: Firmness = "kept"
    of_text: bool = False
    """Whether it only says what the text of a result is, and so says nothing of an image beside it."""


def _pinned(reason: Reason) -> Callable[[GuardFacts], Iterable[str]]:
    return lambda facts: [call_id for call_id, found in facts.pins.items() if found is reason]


def _stands(reason: Reason) -> Callable[[GuardFacts], Iterable[str]]:
    return lambda facts: [call_id for call_id, found in facts.standing.items() if found is reason]


def _latest(reason: Reason) -> Callable[[GuardFacts], Iterable[str]]:
    return lambda facts: [call_id for call_id, found in facts.latest.items() if found is reason]


@dataclass(frozen=True, slots=True)
class _Named:
    """Finds the calls that the texts of some places name."""

    places: int
    only_about: bool
    """Whether a path in a call's input is not enough."""

    def __call__(self, facts: GuardFacts) -> Iterable[str]:
        if self.only_about:
            return [call_id for call_id, naming in facts.named.items() if naming.about & self.places]
        return [call_id for call_id, naming in facts.named.items() if naming.at_all & self.places]


def _about(places: int) -> _Named:
    return _Named(places, only_about=True)


def _names(places: int) -> _Named:
    return _Named(places, only_about=False)


def _given(call_id: str | None) -> Iterable[str]:
    return () if call_id is None else (call_id,)


_FIRST = "the first message"
_RECENT_MESSAGES = "the newest messages (six, or `preserve_recent`)"
_PROTECTED = "what you protect: the tools of `protect_tools`, the files and folders of `protect_paths`"
_OWN_ID = "a call whose id another call has too"
_NEWEST_NAMES = (
    "a result that your newest message names: by its file, its URL, its command, what was searched for, its id, or a "
    "path in its input"
)
_OLD_NOTES = "the notes of earlier passes, and what they point at"
_CLIENTS = 'what the client cleared or moved into a file, its "file unchanged" lines and the reads that they mean'
_MIXED = "a result without a text of its own (an image in it is asked about by itself)"
_LATEST_ERROR = "the latest error, and the call before it"
_NAMED = "what the goal or your recent messages name"
_LATEST_KINDS = "the latest `git status`, `diff` and `log`, plan, edit, question to you and result"
_UNTRIMMED = (
    "outputs of the newest 40 messages, of polls, with an error in them, of a file that was edited later, and of calls "
    "whose input has a path that the goal or a recent message names"
)

GUARDS: tuple[Guard, ...] = (
    Guard(why.PINNED_FIRST_MESSAGE, _FIRST, _pinned(why.PINNED_FIRST_MESSAGE), ALL, "whole"),
    Guard(why.PINNED_RECENT, _RECENT_MESSAGES, _pinned(why.PINNED_RECENT), ALL, "whole"),
    Guard(why.PINNED_RECENT_RESULT, _RECENT_MESSAGES, _pinned(why.PINNED_RECENT_RESULT), ALL, "whole"),
    Guard(why.DUPLICATE_TOOL_USE_ID, _OWN_ID, lambda facts: facts.transcript.duplicates, ALL, "whole"),
    Guard(
        why.PROTECTED_TOOL,
        _PROTECTED,
        lambda facts: protected_tools(facts.pairs, facts.options.protect_tools),
        ALL,
        "whole",
    ),
    Guard(
        why.PROTECTED_PATH,
        _PROTECTED,
        lambda facts: protected_paths(facts.pairs, facts.options.protect_paths, facts.transcript.cwd),
        ALL,
        "whole",
    ),
    Guard(why.ALREADY_A_NOTE, _OLD_NOTES, _stands(why.ALREADY_A_NOTE), ALL, "whole"),
    Guard(why.NAMED_BY_EARLIER_NOTE, _OLD_NOTES, _stands(why.NAMED_BY_EARLIER_NOTE), ALL, "whole"),
    Guard(why.CLEARED_BY_CLIENT, _CLIENTS, _stands(why.CLEARED_BY_CLIENT), ALL, "whole"),
    Guard(why.ALREADY_A_POINTER, _CLIENTS, _stands(why.ALREADY_A_POINTER), ALL, "whole", of_text=True),
    Guard(why.UNCHANGED_SINCE_LAST_READ_STUB, _CLIENTS, _stands(why.UNCHANGED_SINCE_LAST_READ_STUB), ALL, "whole"),
    Guard(why.REFERRED_TO_BY_UNCHANGED_STUB, _CLIENTS, _stands(why.REFERRED_TO_BY_UNCHANGED_STUB), ALL, "whole"),
    Guard(why.NOT_A_SINGLE_TEXT, _MIXED, _stands(why.NOT_A_SINGLE_TEXT), ALL, "whole", of_text=True),
    Guard(why.NAMED_IN_GOAL, _NAMED, _about(_GOAL), LOSSY),
    Guard(why.NAMED_IN_GOAL_OR_RECENT_TURNS, _NEWEST_NAMES, _names(_NEWEST), ALL - LOSSY, "whole"),
    Guard(why.NAMED_IN_RECENT_TURNS, _NEWEST_NAMES, _names(_NEWEST), LOSSY, "whole"),
    Guard(why.LATEST_ERROR_RESULT, _LATEST_ERROR, lambda facts: _given(facts.latest_error.error), PROVING | LOSSY),
    Guard(
        why.CALL_BEFORE_LATEST_ERROR, _LATEST_ERROR, lambda facts: _given(facts.latest_error.before), PROVING | LOSSY
    ),
    Guard(
        why.FAILED_RESULT,
        "every other failed result",
        lambda facts: facts.errors,
        PROVING - {"stashed"},
    ),
    Guard(
        why.FAILED_RESULT,
        "a failed result for 60 calls, or until the same tool succeeded with the same command or file",
        lambda facts: recent_failures(facts.pairs, facts.errors) - overcome(facts.pairs, facts.errors),
        frozenset({"stashed"}),
    ),
    Guard(why.NAMED_IN_GOAL_OR_RECENT_TURNS, _NAMED, _names(_GOAL | _RECENT_USER), PROVING - {"stashed"}),
    Guard(
        why.NAMED_IN_GOAL_OR_RECENT_TURNS,
        "what the question that you asked names",
        _names(_ASKED),
        frozenset({"stashed"}),
    ),
    Guard(
        why.NAMED_IN_GOAL_OR_RECENT_TURNS,
        "what your recent messages name by its file, URL, command or id",
        _about(_TURNS | _RECENT_USER),
        frozenset({"stashed"}),
    ),
    Guard(why.LATEST_GIT_STATE, _LATEST_KINDS, _latest(why.LATEST_GIT_STATE), LOSSY),
    Guard(why.LATEST_TASK_STATE, _LATEST_KINDS, _latest(why.LATEST_TASK_STATE), LOSSY),
    Guard(why.LATEST_ARTIFACT_EDIT, _LATEST_KINDS, _latest(why.LATEST_ARTIFACT_EDIT), LOSSY),
    Guard(why.LATEST_USER_QUESTION, _LATEST_KINDS, _latest(why.LATEST_USER_QUESTION), LOSSY),
    Guard(why.LATEST_TOOL_RESULT, _LATEST_KINDS, _latest(why.LATEST_TOOL_RESULT), LOSSY),
    Guard(why.NAMED_IN_RECENT_TURNS, "what a recent message of the assistant names", _about(_RECENT), LOSSY),
    Guard(
        why.TRIM_GUARD_RECENT_MESSAGES,
        _UNTRIMMED,
        lambda facts: (pair.use.id for pair in facts.pairs if pair.result_message >= facts.recent_from),
        LOSSY,
        "untrimmed",
    ),
    Guard(
        why.TRIM_GUARD_POLL,
        _UNTRIMMED,
        lambda facts: (pair.use.id for pair in facts.pairs if kind_of(pair.use.tool) == "poll"),
        LOSSY,
        "untrimmed",
    ),
    Guard(
        why.TRIM_GUARD_ERROR,
        _UNTRIMMED,
        lambda facts: lossy.bears_error(facts.pairs, facts.errors, facts.recent_from),
        LOSSY,
        "untrimmed",
    ),
    Guard(
        why.TRIM_GUARD_EDITED_LATER,
        _UNTRIMMED,
        lambda facts: lossy.edited_later(facts.pairs, facts.reads, facts.written, facts.transcript.cwd),
        LOSSY,
        "untrimmed",
    ),
    Guard(why.TRIM_GUARD_NAMED, _UNTRIMMED, _names(_GOAL | _RECENT), LOSSY, "untrimmed"),
)
"""The guards, in the order of precedence: where several keep a call, the first one's reason is given."""


@dataclass(frozen=True)
class Guards:
    """The answers of all guards for one pass."""

    mode: DecidingMode
    facts: GuardFacts
    whole: Mapping[str, Reason]
    """The calls of which not a byte may change, by id, and why."""
    kept: Mapping[str, Reason]
    """The calls whose results may at most become a pointer to an identical one; those of ``whole`` among them."""
    untrimmed: Mapping[str, Reason]
    """The calls whose results are not cut."""
    images: frozenset[str]
    """The calls whose images stay where they are."""


def guards_of(facts: GuardFacts) -> Guards:
    """Ask every guard that binds the mode of the options."""
    mode = deciding_mode(facts.options)
    whole: dict[str, Reason] = {}
    kept: dict[str, Reason] = {}
    untrimmed: dict[str, Reason] = {}
    images: set[str] = set()
    for guard in GUARDS:
        if mode not in guard.modes:
            continue
        for call_id in guard.find(facts):
            if guard.firmness == "untrimmed":
                untrimmed.setdefault(call_id, guard.reason)
                continue
            kept.setdefault(call_id, guard.reason)
            if guard.firmness == "whole":
                whole.setdefault(call_id, guard.reason)
            if not guard.of_text:
                images.add(call_id)
    return Guards(mode, facts, whole, kept, untrimmed, frozenset(images))


@cache
def _places_looked_into(mode: DecidingMode) -> int:
    """Where the guards that bind ``mode`` look for names, a bit for each place."""
    places = 0
    for guard in GUARDS:
        if mode in guard.modes and isinstance(guard.find, _Named):
            places |= guard.find.places
    return places


def deciding_mode(options: PassOptions) -> DecidingMode:
    """Who decides in a pass that is asked for so."""
    if options.provider == "rules":
        return "stashed" if options.rules_mode == "auto" else options.rules_mode
    return "judge_beside_proofs" if MODES[options.rules_mode].reads_files else "judge"
