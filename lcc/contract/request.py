"""What a program asks of a pass over a payload (the seed's section 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lcc.contract.options import PassOptions

if TYPE_CHECKING:
    import httpx

    from lcc.transcript import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptCompactionRequest(PassOptions):
    """One pass over one transcript: the options of a pass, and what it is over.

    ``payload`` is the seed's payload (a messages array or ``{"messages": [...]}``); ``client`` the HTTP client that a
    judge is asked with, one of the pass's own where none is given. Raises ``RequestError`` for an option that cannot be
    honoured.
    """

    payload: Json = field(kw_only=False)
    client: httpx.Client | None = None
