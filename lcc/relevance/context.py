"""What a process that runs many passes lends to each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lcc.tokens import TokenEstimator

if TYPE_CHECKING:
    from lcc.contract.report import RootSource
    from lcc.stash import Stash


@dataclass(frozen=True, slots=True)
class PassContext:
    """Counters, the stash and deadlines. A dry run decides as every other run does, and writes nothing."""

    tokens: TokenEstimator = field(default_factory=TokenEstimator)
    stash: Stash | None = None
    """Where `stashed` puts what it removes; None: the user's own stash."""
    dry_run: bool = False
    workspace_root_source: RootSource | None = None
    """Who named the request's ``workspace_root``, for the report."""
    progress: Callable[[int, int], None] | None = None
    """Called with the judge's answered and total requests."""
    deadline: float | None = None
    """`time.monotonic` value after which a judge is no longer waited for."""
    environ: Mapping[str, str] | None = None
    """Whose keys and addresses a judge is asked with; None: this process's."""
