"""Pins: what is never touched (the seed's section 3)."""

from __future__ import annotations

from collections.abc import Sequence

from lcc.contract.reasons import PINNED_FIRST_MESSAGE, PINNED_RECENT, PINNED_RECENT_RESULT, Reason
from lcc.transcript import Pair


def pin_reasons(pairs: Sequence[Pair], message_count: int, preserve_recent: int) -> dict[str, Reason]:
    """Which calls are pinned, by id, and why.

    The first message and the newest ``preserve_recent`` messages are pinned. A pair is pinned when either
    of its halves stands in a pinned message, so that a pinned message is never changed by a verdict on a
    call whose other half lies elsewhere.
    """
    recent_from = message_count - preserve_recent
    reasons: dict[str, Reason] = {}
    for pair in pairs:
        if pair.use_message == 0 or pair.result_message == 0:
            reasons[pair.use.id] = PINNED_FIRST_MESSAGE
        elif pair.use_message >= recent_from:
            reasons[pair.use.id] = PINNED_RECENT
        elif pair.result_message >= recent_from:
            reasons[pair.use.id] = PINNED_RECENT_RESULT
    return reasons
