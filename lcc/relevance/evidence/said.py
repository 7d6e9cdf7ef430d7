"""What the session is about and what was said lately: the texts that the guards by name look into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lcc.transcript import Message

# What a client puts into the conversation as the user's, up to the end of it; the user's own words may follow.
_CLIENT_BLOCKS = {
    f"<{tag}>": f"</{tag}>"
    for tag in (
        *("system-reminder", "task-notification", "local-command-caveat", "local-command-stdout"),
        *("local-command-stderr", "bash-stdout", "bash-stderr", "environment_context", "user_instructions"),
    )
}
_CLIENT_TEXTS = (
    "[Request interrupted by user",
    "This session is being continued from a previous conversation",
    "# AGENTS.md instructions for ",
)


def goal_text(question: str, messages: Sequence[Message]) -> str:
    """What the session is about: the caller's question, else the first thing that the user wrote, and no client."""
    if question.strip():
        return question
    first = next(_by_user(messages), "")
    return next(filter(_has_own_words, _by_user(messages)), first)


def newest_user_text(messages: Sequence[Message]) -> str:
    """The newest message that the user wrote, wherever it stands; what a client said for them only if that is all."""
    latest = next(_by_user(reversed(messages)), "")
    return next(filter(_has_own_words, _by_user(reversed(messages))), latest)


def recent_user_texts(messages: Sequence[Message], preserve_recent: int) -> list[str]:
    """What the user wrote in the pinned recent messages, and the newest thing they wrote wherever it stands."""
    return [*_by_user(_recent(messages, preserve_recent)), newest_user_text(messages)]


def recent_texts(messages: Sequence[Message], preserve_recent: int) -> list[str]:
    """What anyone wrote in the pinned recent messages, and the newest thing that the user wrote."""
    written = (message.text for message in _recent(messages, preserve_recent) if message.text)
    return [*written, newest_user_text(messages)]


def _recent(messages: Sequence[Message], preserve_recent: int) -> Sequence[Message]:
    return messages[max(0, len(messages) - preserve_recent) :] if preserve_recent else ()


def _by_user(messages: Iterable[Message]) -> Iterator[str]:
    return (m.text for m in messages if m.role == "user" and not m.by_client and m.text.strip())


def _has_own_words(text: str) -> bool:
    """Whether something besides what a client wrote stands in a message of the user."""
    rest = text.strip()
    while rest.startswith("<"):
        end = _CLIENT_BLOCKS.get(rest[: rest.find(">") + 1])
        if end is None:
            return True
        rest = rest.partition(end)[2].lstrip()
    return bool(rest) and not rest.startswith(_CLIENT_TEXTS)
