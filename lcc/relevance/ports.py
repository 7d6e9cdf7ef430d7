"""What a pass touches beside its transcript and its options: the one place where it meets the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

    from lcc.stash import Stash
    from lcc.tokens import TokenEstimator


@dataclass(frozen=True, slots=True)
class Ports:
    """Who lends what to a pass. Without any of it a pass is this process's own, over the user's own stash."""

    environ: Mapping[str, str] | None = None
    """Whose keys, addresses and stash count; None: this process's."""
    dry_run: bool = False
    """Decide as every other run does, and write nothing: no stash, no file of decisions."""
    stash_folder: Path | None = None
    """Where `stashed` puts what it removes; None: the user's own stash."""
    stash_source: str | None = None
    """The file that will hold the notes, by its absolute path, for the stash's references."""
    stash_session: str | None = None
    """The session that will name what is put into the stash; None: the transcript's own."""
    tokens: TokenEstimator | None = None
    """Counts for the totals; None: estimates for the options' model."""
    judge_client: Callable[[], httpx.Client] | None = None
    """The HTTP client that a judge is asked with, fetched when one is; None: one of the pass's own."""
    deadline: float | None = None
    """`time.monotonic` value after which a judge is no longer waited for."""
    can_recall: bool = True
    """Whether who reads the notes has a way to follow those of the stash; without one `auto` writes none."""
    context_tokens: int | None = None
    """Tokens that the context holds, where the client says so; None: estimated."""
    window_tokens: int | None = None
    """Tokens that the session's window has; None: not known."""
    progress: Callable[[int, int], None] | None = None
    """Called with the judge's answered and total requests."""

    def open_stash(self, session_id: str | None) -> Stash:
        """The stash, for notes in the session ``session_id``. Raises ``StashFolderError`` where it cannot be told."""
        from lcc.stash import UNNAMED_SESSION, Stash, stash_folder

        folder = self.stash_folder or stash_folder(self.environ)
        return Stash(folder, self.stash_session or session_id or UNNAMED_SESSION, self.stash_source)
