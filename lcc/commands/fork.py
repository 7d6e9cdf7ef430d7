"""`lcc compact SESSION.jsonl --fork`: the compacted session as a new session that `claude --resume` opens."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lcc.commands.files import STREAM, InputError, WriteError

if TYPE_CHECKING:
    from collections.abc import Collection

    from lcc.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork to be made: the session's bytes as they were read, and the new file's name, which is its id."""

    source: Path
    path: Path
    session_id: str
    raw: bytes = field(repr=False)

    def content(self, rendered: bytes, changed: Collection[str]) -> bytes:
        """The fork's bytes: of the ``rendered`` session, in which the results of the calls ``changed`` were edited.

        Raises ``InputError`` for a session that cannot be forked.
        """
        from lcc.sessions.fork import ForkError, fork_bytes

        try:
            return fork_bytes(rendered, changed, self.session_id)
        except ForkError as error:
            raise InputError(f"--fork: {error}") from None

    def take_over_notes(self, transcript: Transcript) -> None:
        """Tell the stash that the fork names what earlier notes in the session name."""
        from lcc.sessions.fork import note_ids
        from lcc.stash import Stash, StashError, stash_folder

        # What cannot be recorded is found by gc all the same: it reads the notes in the client's sessions.
        with contextlib.suppress(OSError):
            stash = Stash(stash_folder(), self.session_id, str(self.path))
            for note_id in note_ids(transcript.messages):
                with contextlib.suppress(StashError):
                    stash.reference([stash.resolve(note_id)])

    def take_over_agents(self) -> None:
        """Give the fork the files of the session's sub-agents. Raises ``WriteError``: it is not whole without them."""
        from lcc.sessions.fork import copy_agents

        try:
            copy_agents(self.source, self.path)
        except OSError as error:
            raise WriteError(f"--fork: {error.filename}: {error.strerror}: a sub-agent's file was not copied") from None

    def said(self) -> list[str]:
        """What to tell a person: how to go on in the fork."""
        return [f"  forked to {self.path}", f"  go on in it with: claude --resume {self.session_id}"]


def open_fork(source: str, snapshot: bool) -> Fork:
    """Read the session for a fork. Raises ``InputError`` when it is in use, no session file, or cannot be read."""
    from lcc.sessions.fork import ForkError, new_session_id, read_session

    if source == STREAM:
        raise InputError("--fork: name the session's file; a fork is written beside it")
    path = Path(source)
    if path.suffix != ".jsonl":
        raise InputError(f"--fork {source}: not a session file of Claude Code (<id>.jsonl)")
    try:
        if not path.is_file():
            raise InputError(f"{source}: there is no such file")
        raw = read_session(path, snapshot=snapshot)
    except ForkError as error:
        raise InputError(str(error)) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{source}: {error}") from None
    session_id = new_session_id()
    return Fork(path.resolve(), path.resolve().parent / f"{session_id}.jsonl", session_id, raw)
