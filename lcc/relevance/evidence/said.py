"""What the session is about and what was said lately: the texts that the guards by name look into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lcc.transcript import Message

# What a client puts into the conversation as the user's, up to the end of it; the user's own words may follow.
_CLIENT_BLOCKS = {
    f"<{tag}>": f"</{tag}>"
    for tag in (
        *("system-reminder", "task-notification", "local-command-caveat", "local-command-stdout"),
        *("local-command-stderr", "bash-stdout", "bash-stderr"),
    )
}
_CLIENT_TEXTS = ("[Request interrupted by user", "This session is being continued from a previous conversation")


def goal_text(question: str, messages: Sequence[Message]) -> str:
    """What the session is about: the caller's question, else the first thing that the user wrote."""
    if question.strip():
        return question
    return next((message.text for message in messages if message.role == "user" and message.text), "")


def newest_user_text(messages: Sequence[Message]) -> str:
    """The newest message that the user wrote, wherever it stands; what a client said for them only if that is all."""
    newest = _user_texts_backwards(messages)
    latest = next(newest, "")
    return latest if _is_the_users(latest) else next(filter(_is_the_users, newest), latest)


def recent_user_texts(messages: Sequence[Message], preserve_recent: int) -> list[str]:
    """What the user wrote in the pinned recent messages, and the newest thing they wrote wherever it stands."""
    recent = messages[len(messages) - preserve_recent :] if preserve_recent else ()
    texts = [message.text for message in recent if message.role == "user" and message.text]
    return [*texts, newest_user_text(messages)]


def recent_texts(messages: Sequence[Message], preserve_recent: int) -> list[str]:
    """What anyone wrote in the pinned recent messages, and the newest thing that the user wrote."""
    recent = messages[len(messages) - preserve_recent :] if preserve_recent else ()
    return [*(message.text for message in recent if message.text), newest_user_text(messages)]


def _user_texts_backwards(messages: Sequence[Message]) -> Iterator[str]:
    return (message.text for message in reversed(messages) if message.role == "user" and message.text.strip())


def _is_the_users(text: str) -> bool:
    """Whether something besides what a client wrote stands in a message of the user."""
    rest = text.strip()
    while rest.startswith("<"):
        end = _CLIENT_BLOCKS.get(rest[: rest.find(">") + 1])
        if end is None:
            return True
        rest = rest.partition(end)[2].lstrip()
    return bool(rest) and not rest.startswith(_CLIENT_TEXTS)
