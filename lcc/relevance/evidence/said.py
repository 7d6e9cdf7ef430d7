"""What the session is about and what was said lately: the texts that the guards by name look into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

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


LONGEST_SAID = 4_000
"""Characters of a message that a person writes. Of a longer one, which holds something pasted, the two ends count."""
GOAL_TURNS = 2
"""What the user wrote in so many of their newest messages is the goal, where no question was asked."""


def goal_texts(question: str, messages: Sequence[Message]) -> list[str]:
    """What the session is about: the caller's question, else what the user wrote in their newest few messages.

    A name binds for that long alone: a first message that names a folder would otherwise keep half a session.
    """
    if question.strip():
        return [question]
    return list(islice(filter(is_the_users, _by_user(reversed(messages))), GOAL_TURNS))


def newest_user_text(messages: Sequence[Message]) -> str:
    """The newest message that the user wrote, wherever it stands; "" where a client wrote all of theirs."""
    return next(filter(is_the_users, _by_user(reversed(messages))), "")


def recent_user_texts(messages: Sequence[Message], preserve_recent: int) -> list[str]:
    """What the user wrote in the pinned recent messages, and the newest thing they wrote wherever it stands."""
    return [*_by_user(_recent(messages, preserve_recent)), newest_user_text(messages)]


def recent_texts(messages: Sequence[Message], preserve_recent: int) -> list[str]:
    """What anyone wrote in the pinned recent messages, and the newest thing that the user wrote."""
    written = (message.text for message in _recent(messages, preserve_recent) if message.text)
    return [*written, newest_user_text(messages)]


def said(text: str) -> str:
    """What of a message can name something: all of it, or the two ends of one that holds something pasted."""
    half = LONGEST_SAID // 2
    return text if len(text) <= LONGEST_SAID else f"{text[:half]}\n{text[-half:]}"


def _recent(messages: Sequence[Message], preserve_recent: int) -> Sequence[Message]:
    return messages[max(0, len(messages) - preserve_recent) :] if preserve_recent else ()


def _by_user(messages: Iterable[Message]) -> Iterator[str]:
    return (said(m.text) for m in messages if m.role == "user" and not m.by_client and m.text.strip())


def is_the_users(text: str) -> bool:
    """Whether something besides what a client wrote stands in a message of the user."""
    rest = text.strip()
    while rest.startswith("<"):
        end = _CLIENT_BLOCKS.get(rest[: rest.find(">") + 1])
        if end is None:
            return True
        rest = rest.partition(end)[2].lstrip()
    return bool(rest) and not rest.startswith(_CLIENT_TEXTS)
