"""Which kept results go to the stash, and why: the policy of `stashed`, in one place, without I/O.

What stays in any case: the newest messages, errors that were not overcome, plans and questions, results
that the session still works with, what a sub-agent needs to be resumed, and whatever a note would not make
shorter by a worthwhile amount.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from lcc.contract.reasons import NOT_STASH_ELIGIBLE, SHORT_RESULT_KEPT_WHOLE, Reason
from lcc.relevance.reading.calls import Kind, input_strings, kind_of
from lcc.transcript import Message, Pair, Transcript

StashedReason = Literal[
    "old_file_read",
    "old_search",
    "old_command_output",
    "old_edit_output",
    "old_web_page",
    "old_agent_report",
    "old_tool_output",
    "error_overcome",
    "judged_not_needed",
]
"""What completes ``stashed:`` in the record of a result that went to the stash."""


@dataclass(frozen=True, slots=True)
class StashPolicy:
    """Every threshold of the policy. Tuned by the retention benchmark."""

    recent_messages: int = 12
    """Results in this many of the newest messages stay."""
    use_messages: int = 20
    """A result whose words the calls or texts of this many of the newest messages repeat stays."""
    used_words: int = 2
    """How many distinctive words must be repeated."""
    min_word_chars: int = 8
    min_saved_tokens: int = 120
    """How many tokens the note must save."""
    min_chars: int = 400
    """Shorter results are not even counted."""


DEFAULT_POLICY = StashPolicy()


class ForStash(NamedTuple):
    """A result goes to the stash: why, and what its text counts in tokens."""

    reason: StashedReason
    tokens: int


StashChoice: TypeAlias = ForStash | Reason
"""That a result goes to the stash, or the reason why it stays."""

_NOTE_TOKENS = 25
_WHOLE_KINDS: frozenset[Kind] = frozenset({"plan", "question"})
_WHOLE_TOOLS = frozenset({"skill"})
_REASONS: dict[Kind, StashedReason] = {
    "read": "old_file_read",
    "search": "old_search",
    "command": "old_command_output",
    "poll": "old_command_output",
    "edit": "old_edit_output",
    "write": "old_edit_output",
    "web": "old_web_page",
    "agent": "old_agent_report",
    "report": "old_agent_report",
}
_AGENT_TRAILER = "agentId: "
_TRAILER_CHARS = 600
_KEPT_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-") | frozenset(
    range(128, 256)
)
_TO_WORDS = bytes(byte if byte in _KEPT_BYTES else 32 for byte in range(256))


def choose_for_stash(
    transcript: Transcript,
    candidates: Sequence[Pair],
    failed: Collection[str],
    count_tokens: Callable[[str], int],
    policy: StashPolicy = DEFAULT_POLICY,
) -> dict[str, StashChoice]:
    """The choice for each of ``candidates``, by text id: texts that no other rule replaces, pins or guards; those
    of ``failed`` were overcome.

    Time is linear in the session's text.
    """
    pairs = list(transcript.pairs())
    used = _still_used(transcript.messages, pairs, policy)
    recent_from = len(transcript.messages) - policy.recent_messages
    choices: dict[str, StashChoice] = {}
    for pair in candidates:
        text_id, call_id, text = pair.text_id, pair.use.id, pair.result.text
        if len(text) < policy.min_chars:
            choices[text_id] = SHORT_RESULT_KEPT_WHOLE
        elif pair.result_message >= recent_from or call_id in used or _must_stay_whole(pair):
            choices[text_id] = NOT_STASH_ELIGIBLE
        else:
            choices[text_id] = _by_size(pair, count_tokens(text), call_id in failed, policy)
    return choices


def _by_size(pair: Pair, tokens: int, failed: bool, policy: StashPolicy) -> StashChoice:
    if tokens - _NOTE_TOKENS < policy.min_saved_tokens:
        return SHORT_RESULT_KEPT_WHOLE
    if failed:
        return ForStash("error_overcome", tokens)
    return ForStash(_REASONS.get(kind_of(pair.use.tool), "old_tool_output"), tokens)


def _must_stay_whole(pair: Pair) -> bool:
    tool, text = pair.use.tool, pair.result.text
    return (
        kind_of(tool) in _WHOLE_KINDS
        or tool.lower() in _WHOLE_TOOLS
        or text.find(_AGENT_TRAILER, max(0, len(text) - _TRAILER_CHARS)) >= 0
    )


def _still_used(messages: Sequence[Message], pairs: Sequence[Pair], policy: StashPolicy) -> set[str]:
    """The calls whose results hold words that the newest messages repeat, and no later result holds."""
    last_use = _words_in_use(messages, policy)
    if not last_use:
        return set()
    used: set[str] = set()
    claimed: set[bytes] = set()
    for pair in sorted(pairs, key=lambda pair: pair.result_message, reverse=True):
        words = last_use.keys() & _words(pair.result.text)
        own = {word for word in words if word not in claimed and last_use[word] > pair.result_message}
        claimed |= words
        if len(own) >= policy.used_words:
            used.add(pair.use.id)
    return used


def _words_in_use(messages: Sequence[Message], policy: StashPolicy) -> dict[bytes, int]:
    """Every distinctive word of the newest messages' texts and inputs, with the last message that has it."""
    last_use: dict[bytes, int] = {}
    for index in range(max(0, len(messages) - policy.use_messages), len(messages)):
        message = messages[index]
        texts = [message.text] if message.role == "assistant" else []
        for use in message.tool_uses:
            texts += input_strings(use.input)
        for text in texts:
            for word in _words(text):
                stripped = word.strip(b"./-")
                if len(stripped) >= policy.min_word_chars and _is_distinctive(stripped):
                    last_use[stripped] = last_use[word] = index
    return last_use


def _words(text: str) -> set[bytes]:
    return set(text.encode("utf-8", "surrogatepass").translate(_TO_WORDS).split())


def _is_distinctive(word: bytes) -> bool:
    """Whether a word is a path, an identifier or a value, and not a word of the language."""
    if any(byte in b"_/.0123456789" for byte in word):
        return True
    return not word[1:].islower() and not word.isupper() and b"-" not in word
