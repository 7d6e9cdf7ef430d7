"""Following a Claude Code session file while the client appends to it."""

from __future__ import annotations

from lcc.transcript.document import BOM
from lcc.transcript.formats.claude import CLAUDE_CODE
from lcc.transcript.formats.claude.reader import SessionState
from lcc.transcript.lines import split
from lcc.transcript.model import Transcript
from lcc.transcript.soundness import checked
from lcc.transcript.values import TranscriptError


class SessionReader:
    """Reads a session file as it grows: what has been fed once is not parsed again.

    The file must only have been appended to; when it was cut or replaced, start a new reader.
    """

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._tail: list[bytes] = []
        self._line = 1
        self._state = SessionState()

    def feed(self, appended: bytes) -> None:
        """Take in the bytes that follow those fed before. An unfinished last line is kept until it is whole.

        Raises TranscriptError where no line so far can be read: this is no session, and the reader is of no use.
        """
        cut = appended.rfind(b"\n") + 1
        if not cut:
            self._tail.append(appended)
            return
        whole = b"".join((*self._tail, appended[:cut]))
        self._tail = [appended[cut:]]
        self._take(whole)

    def transcript(self) -> Transcript:
        """The session as far as it has been fed, leaving out an unfinished last line."""
        tail = b"".join(self._tail)
        if tail:
            try:
                documents = list(split(tail, 0, self._line, strict=True))
            except TranscriptError:
                documents = []
            if documents:
                raw = b"".join((*self._chunks, tail))
                state = self._state.copy()
                state.take_all(documents, self._size)
                return checked(state.transcript(CLAUDE_CODE, raw))
        raw = b"".join(self._chunks)
        self._chunks = [raw]
        return checked(self._state.transcript(CLAUDE_CODE, raw))

    def _take(self, whole: bytes) -> None:
        start = len(BOM) if not self._size and whole.startswith(BOM) else 0
        self._state.take_all(split(whole, start, self._line), self._size)
        if self._state.is_unreadable:
            raise TranscriptError("no line can be read as one of a session", "line 1")
        self._chunks.append(whole)
        self._size += len(whole)
        self._line += whole.count(b"\n")
