"""Every reason that a decision can have, in plain words. The names are the report-format page's."""

from __future__ import annotations

from types import MappingProxyType

_EXACT = {
    # pins
    "pinned_first_message": "it belongs to the first message, which is never touched",
    "pinned_recent": "it belongs to the newest messages, which are never touched",
    # results that stand in every mode
    "already_a_note": "it is a note of an earlier pass already",
    "named_by_earlier_note": "a note of an earlier pass points at it",
    "cleared_by_client": "the client has already cleared it, so it is no longer sent",
    "not_a_single_text": "it is not one piece of text, so no note can stand in for it",
    "already_a_pointer": "the client has already put it in a file and left a pointer",
    "unchanged_since_last_read_stub": "it only says that an earlier read still holds",
    "referred_to_by_unchanged_stub": "a later read only says that this one still holds",
    # lossless
    "no_lossless_superseder": "no later result holds the same output, whole or as a run of lines",
    "identical_output_kept_later": "a later result that is kept is the same output",
    "output_lines_of_later": "a later result that is kept holds exactly this output among its lines",
    "duplicate_tool_use_id": "its call id occurs more than once, so a pointer to it would be ambiguous",
    "lossless_verification_failed": "the pass checked its own note against both outputs and it did not hold",
    # recoverable
    "replace_disk_verified": "the file on disk held exactly this output when the session was compacted",
    "recoverable_file_read": "nothing later in the session can have written the file it was read from",
    "recoverable_read_only_command": "running the same read-only command again gives the output",
    "not_recoverable": "no file and no command is known to give this output again",
    "latest_error_result": "it is the latest error, which the agent still has to deal with",
    "call_before_latest_error": "it is the call before the latest error",
    "pinned_recent_result": "its result belongs to the newest messages, which are never touched",
    "failed_result": "the call failed, and what went wrong must not be forgotten",
    "named_in_goal_or_recent_turns": "the goal or a recent message names what it is about",
    "keep_disk_not_asked": "no workspace was named, so the file was not read; the stash takes the output if it may",
    "file_written_later": "a later call wrote the file, or may have",
    "read_range_empty": "the read returned no lines",
    "read_range_unknown": "which lines of the file were read cannot be told for certain",
    "command_output_changed_later": "the same command gave another output later",
    "command_pointers_disabled": "only a command could give it again, and pointers to commands are off",
    "recoverable_verification_failed": "the pass checked its own note and it did not hold",
    # disk
    "keep_disk_mismatch": "the file on disk no longer holds exactly this output",
    "keep_disk_missing": "the file is no longer there",
    "keep_disk_not_regular": "the path is not a regular file",
    "keep_disk_outside_root": "the path leads out of its own folder, by .. or by a link",
    "keep_disk_too_large": "the file is larger than the 4 MiB that are read for a proof",
    "keep_disk_unreadable": "the file could not be read as UTF-8 text",
    "keep_disk_changed_before_emit": "the file changed between its check and the end of the pass",
    # stashed
    "not_stash_eligible": "the stash policy keeps results of this kind in the session",
    "short_result_kept_whole": "it is so short that a note would save next to nothing",
    "stashed_verification_failed": "the pass checked its own note against the stash and it did not hold",
    # lossy
    "latest_git_state": "it is the latest state of the repository",
    "latest_task_state": "it is the latest plan or list of tasks",
    "latest_artifact_edit": "it is the latest edit",
    "latest_user_question": "it is the latest question to the user",
    "latest_tool_result": "it is the latest result",
    "named_in_goal": "the goal names what it is about",
    "named_in_recent_turns": "a recent message names what it is about",
    "kept_default": "no rule speaks for removing it",
    "stale_read_far_from_recent_work": "it is an old read, far from the recent work",
    "large_old_output_trimmed": "it is a large old output: its head and its tail stay",
    # judge
    "result_still_needed": "the judge says that its contents are still needed word for word",
    "call_kept_result_trimmed": "the judge says that the call still matters and its contents do not",
    "call_and_result_not_needed": "the judge says that neither the call nor its contents are needed",
    "not_judged_fail_safe": "the judge's request failed, and what was not judged is kept",
    "jev_unavailable_fail_safe": "no judge was available, and what was not judged is kept",
    "no_candidates": "there was nothing to judge",
}

_WITH_DETAIL = {
    "stashed": "its bytes are in the stash, read back and compared",
    "stash_write_failed": "it could not be written to the stash",
    "superseded_by_later_call": "a later call gave the same again",
    "jev_missing_answer": "the judge left a question about it unanswered, so it is kept",
    "jev_answer_out_of_range": "the judge's answer about it was no probability, so it is kept",
}

_PREFIXES = {"trim_guard_": "it is long and old, and would have been trimmed, but a guard keeps it whole"}

REASONS = MappingProxyType({**_EXACT, **_WITH_DETAIL, **_PREFIXES})
"""Reason, or the part of it before the colon or the detail, to one clause that completes "because …"."""


def family(reason: str) -> str:
    """The reason without its detail: ``superseded_by_later_call:toolu_7`` and others of its kind are one."""
    head, colon, _ = reason.partition(":")
    return head if colon and head in _WITH_DETAIL else reason


def detail(reason: str) -> str | None:
    """What stands behind the colon of a reason that has a detail (an id, a question, an error); else None."""
    head, colon, rest = reason.partition(":")
    return rest if colon and head in _WITH_DETAIL else None


def in_words(reason: str) -> str:
    """One clause in plain words. A reason that this version does not know is given back as it is."""
    name = family(reason)
    known = REASONS.get(name)
    if known is None:
        known = next((words for prefix, words in _PREFIXES.items() if name.startswith(prefix)), name)
    return known
