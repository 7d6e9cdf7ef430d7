"""Pins: what is never touched (the seed's section 3)."""

from __future__ import annotations

from collections.abc import Sequence

from lcc.transcript import Pair

PINNED_FIRST = "pinned_first_message"
PINNED_RECENT = "pinned_recent"
PINNED_RECENT_RESULT = "pinned_recent_result"


def pin_reasons(pairs: Sequence[Pair], message_count: int, preserve_recent: int) -> dict[str, str]:
    """Which calls are pinned, by id, and why.

    The first message and the newest ``preserve_recent`` messages are pinned. A pair is pinned when either
    of its halves stands in a pinned message, so that a pinned message is never changed by a verdict on a
    call whose other half lies elsewhere.
    """
    recent_from = message_count - preserve_recent
    reasons: dict[str, str] = {}
    for pair in pairs:
        if pair.use_message == 0 or pair.result_message == 0:
            reasons[pair.use.id] = PINNED_FIRST
        elif pair.use_message >= recent_from:
            reasons[pair.use.id] = PINNED_RECENT
        elif pair.result_message >= recent_from:
            reasons[pair.use.id] = PINNED_RECENT_RESULT
    return reasons
