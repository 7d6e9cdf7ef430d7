"""Every reason that a decision can have, in plain words. The names are the report-format page's.

A reason is declared here once, with its words, and is given by one rule. A decision takes nothing else for its
reason, so one that `lcc explain` has no words for does not pass the type checker.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Reason:
    """Why a call was decided so."""

    code: str
    """As a record has it: the name, with what it is about behind a colon where it is about something."""
    words: str
    """One clause that completes "because …"."""
    kind: ReasonAbout | None = None
    """What it was made from; None where its name is all of it."""

    def __str__(self) -> str:
        return self.code


@final
@dataclass(frozen=True, slots=True)
class ReasonAbout:
    """A reason that says what it is about: a call id, a question, an error."""

    code: str
    """Its name alone."""
    words: str

    def __call__(self, detail: str) -> Reason:
        """The reason with its detail, as ``superseded_by_later_call:toolu_7``."""
        return Reason(f"{self.code}:{detail}", self.words, self)


# pins
PINNED_FIRST_MESSAGE = Reason("pinned_first_message", "it belongs to the first message, which is never touched")
PINNED_RECENT = Reason("pinned_recent", "it belongs to the newest messages, which are never touched")

# results that stand in every mode
ALREADY_A_NOTE = Reason("already_a_note", "it is a note of an earlier pass already")
NAMED_BY_EARLIER_NOTE = Reason("named_by_earlier_note", "a note of an earlier pass points at it")
CLEARED_BY_CLIENT = Reason("cleared_by_client", "the client has already cleared it, so it is no longer sent")
NOT_A_SINGLE_TEXT = Reason("not_a_single_text", "it holds no single text that a note could stand in for")
ALREADY_A_POINTER = Reason("already_a_pointer", "the client has already put it in a file and left a pointer")
UNCHANGED_SINCE_LAST_READ_STUB = Reason(
    "unchanged_since_last_read_stub", "it only says that an earlier read still holds"
)
REFERRED_TO_BY_UNCHANGED_STUB = Reason(
    "referred_to_by_unchanged_stub", "a later read only says that this one still holds"
)

# lossless
NO_LOSSLESS_SUPERSEDER = Reason(
    "no_lossless_superseder", "no later result holds the same output, whole or as a run of lines"
)
IDENTICAL_OUTPUT_KEPT_LATER = Reason("identical_output_kept_later", "a later result that is kept is the same output")
OUTPUT_LINES_OF_LATER = Reason(
    "output_lines_of_later", "a later result that is kept holds exactly this output among its lines"
)
PROTECTED_TOOL = Reason("protected_tool", "its tool is one that you protect")
PROTECTED_PATH = Reason("protected_path", "it is about a path that you protect")
DUPLICATE_TOOL_USE_ID = Reason(
    "duplicate_tool_use_id", "its call id occurs more than once, so a pointer to it would be ambiguous"
)
LOSSLESS_VERIFICATION_FAILED = Reason(
    "lossless_verification_failed", "the pass checked its own note against both outputs and it did not hold"
)

# recoverable
REPLACE_DISK_VERIFIED = Reason(
    "replace_disk_verified", "the file on disk held exactly this output when the session was compacted"
)
RECOVERABLE_FILE_READ = Reason(
    "recoverable_file_read", "nothing later in the session can have written the file it was read from"
)
RECOVERABLE_READ_ONLY_COMMAND = Reason(
    "recoverable_read_only_command", "running the same read-only command again gives the output"
)
NOT_RECOVERABLE = Reason("not_recoverable", "no file and no command is known to give this output again")
LATEST_ERROR_RESULT = Reason("latest_error_result", "it is the latest error, which the agent still has to deal with")
CALL_BEFORE_LATEST_ERROR = Reason("call_before_latest_error", "it is the call before the latest error")
PINNED_RECENT_RESULT = Reason(
    "pinned_recent_result", "its result belongs to the newest messages, which are never touched"
)
FAILED_RESULT = Reason("failed_result", "the call failed, and what went wrong must not be forgotten")
NAMED_IN_GOAL_OR_RECENT_TURNS = Reason(
    "named_in_goal_or_recent_turns", "the goal or a recent message names what it is about"
)
KEEP_DISK_NOT_ASKED = Reason(
    "keep_disk_not_asked", "no workspace was named, so the file was not read; the stash takes the output if it may"
)
FILE_WRITTEN_LATER = Reason("file_written_later", "a later call wrote the file, or may have")
READ_RANGE_EMPTY = Reason("read_range_empty", "the read returned no lines")
READ_RANGE_UNKNOWN = Reason("read_range_unknown", "which lines of the file were read cannot be told for certain")
COMMAND_OUTPUT_CHANGED_LATER = Reason("command_output_changed_later", "the same command gave another output later")
COMMAND_POINTERS_DISABLED = Reason(
    "command_pointers_disabled", "only a command could give it again, and pointers to commands are off"
)
RECOVERABLE_VERIFICATION_FAILED = Reason(
    "recoverable_verification_failed", "the pass checked its own note and it did not hold"
)

# disk
KEEP_DISK_MISMATCH = Reason("keep_disk_mismatch", "the file on disk no longer holds exactly this output")
KEEP_DISK_MISSING = Reason("keep_disk_missing", "the file is no longer there")
KEEP_DISK_NOT_REGULAR = Reason("keep_disk_not_regular", "the path is not a regular file")
KEEP_DISK_OUTSIDE_ROOT = Reason("keep_disk_outside_root", "the path leads out of its own folder, by .. or by a link")
KEEP_DISK_TOO_LARGE = Reason("keep_disk_too_large", "the file is larger than the 4 MiB that are read for a proof")
KEEP_DISK_UNREADABLE = Reason("keep_disk_unreadable", "the file could not be read as UTF-8 text")
KEEP_DISK_CHANGED_BEFORE_EMIT = Reason(
    "keep_disk_changed_before_emit", "the file changed between its check and the end of the pass"
)

# stashed
STASHED = ReasonAbout("stashed", "its bytes are in the stash, read back and compared")
STASH_WRITE_FAILED = ReasonAbout("stash_write_failed", "it could not be written to the stash")
NOT_STASH_ELIGIBLE = Reason("not_stash_eligible", "results of this kind stay in the session, whatever their score")
SHORT_RESULT_KEPT_WHOLE = Reason("short_result_kept_whole", "it is so short that a note would save next to nothing")
LIKELY_NEEDED_AGAIN = Reason("likely_needed_again", "by its score it is likely to be needed again")
TARGET_REACHED = Reason("target_reached", "enough had gone before its turn came")
STASHED_VERIFICATION_FAILED = Reason(
    "stashed_verification_failed", "the pass checked its own note against the stash and it did not hold"
)

# lossy
SUPERSEDED_BY_LATER_CALL = ReasonAbout("superseded_by_later_call", "a later call gave the same again")
LATEST_GIT_STATE = Reason("latest_git_state", "it is the latest state of the repository")
LATEST_TASK_STATE = Reason("latest_task_state", "it is the latest plan or list of tasks")
LATEST_ARTIFACT_EDIT = Reason("latest_artifact_edit", "it is the latest edit")
LATEST_USER_QUESTION = Reason("latest_user_question", "it is the latest question to the user")
LATEST_TOOL_RESULT = Reason("latest_tool_result", "it is the latest result")
NAMED_IN_GOAL = Reason("named_in_goal", "the goal names what it is about")
NAMED_IN_RECENT_TURNS = Reason("named_in_recent_turns", "a recent message names what it is about")
KEPT_DEFAULT = Reason("kept_default", "no rule speaks for removing it")
STALE_READ_FAR_FROM_RECENT_WORK = Reason(
    "stale_read_far_from_recent_work", "it is an old read, far from the recent work"
)
LARGE_OLD_OUTPUT_TRIMMED = Reason("large_old_output_trimmed", "it is a large old output: its head and its tail stay")
_GUARDED = "it is long and old, and would have been trimmed, but a guard keeps it whole"
TRIM_GUARD_RECENT_MESSAGES = Reason("trim_guard_recent_messages", _GUARDED)
TRIM_GUARD_POLL = Reason("trim_guard_poll", _GUARDED)
TRIM_GUARD_ERROR = Reason("trim_guard_error", _GUARDED)
TRIM_GUARD_EDITED_LATER = Reason("trim_guard_edited_later", _GUARDED)
TRIM_GUARD_NAMED = Reason("trim_guard_named", _GUARDED)

# judge
RESULT_STILL_NEEDED = Reason("result_still_needed", "the judge says that its contents are still needed word for word")
CALL_KEPT_RESULT_TRIMMED = Reason(
    "call_kept_result_trimmed", "the judge says that the call still matters and its contents do not"
)
CALL_AND_RESULT_NOT_NEEDED = Reason(
    "call_and_result_not_needed", "the judge says that neither the call nor its contents are needed"
)
TRIM_NOT_SHORTER = Reason("trim_not_shorter", "the judge would trim it, and its head would be no shorter")
NOT_JUDGED_FAIL_SAFE = Reason("not_judged_fail_safe", "the judge's request failed, and what was not judged is kept")
JEV_UNAVAILABLE_FAIL_SAFE = Reason(
    "jev_unavailable_fail_safe", "no judge was available, and what was not judged is kept"
)
LAYA_UNAVAILABLE_FAIL_SAFE = Reason(
    "laya_unavailable_fail_safe", "no judge was available, and what was not judged is kept"
)
NO_CANDIDATES = Reason("no_candidates", "there was nothing to judge")
_UNANSWERED = "the judge left a question about it unanswered, so it is kept"
_OUT_OF_RANGE = "the judge's answer about it was no probability, so it is kept"
JEV_MISSING_ANSWER = ReasonAbout("jev_missing_answer", _UNANSWERED)
JEV_ANSWER_OUT_OF_RANGE = ReasonAbout("jev_answer_out_of_range", _OUT_OF_RANGE)
LAYA_MISSING_ANSWER = ReasonAbout("laya_missing_answer", _UNANSWERED)
LAYA_ANSWER_OUT_OF_RANGE = ReasonAbout("laya_answer_out_of_range", _OUT_OF_RANGE)

_ABOUT = MappingProxyType({found.code: found for found in tuple(globals().values()) if isinstance(found, ReasonAbout)})
REASONS = MappingProxyType(
    {found.code: found.words for found in tuple(globals().values()) if isinstance(found, Reason | ReasonAbout)}
)
"""The words of every reason, by its name: the part of a code before the colon."""


def family(code: str) -> str:
    """The code without its detail: ``superseded_by_later_call:toolu_7`` and others of its kind are one."""
    head, colon, _ = code.partition(":")
    return head if colon and head in _ABOUT else code


def detail(code: str) -> str | None:
    """What stands behind the colon of a reason that is about something (an id, a question, an error); else None."""
    head, colon, rest = code.partition(":")
    return rest if colon and head in _ABOUT else None


def in_words(code: str) -> str:
    """One clause in plain words. A code that this version does not know is given back as it is."""
    name = family(code)
    return REASONS.get(name, name)
