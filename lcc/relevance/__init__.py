"""Deciding what may go from a session, and proving it (the seed's sections 2 to 8).

The errors, all of them ``ValueError``::

    TranscriptError        the input is no transcript; the text says where
    RequestError           an option that cannot be honoured
    TranscriptFitError     the conversation does not fit into the judge's budget
    DecisionsCacheError    a decisions cache that cannot be used
"""

from lcc.contract.options import RequestError
from lcc.contract.request import TranscriptCompactionRequest
from lcc.judge.errors import DecisionsCacheError, TranscriptFitError
from lcc.relevance.transcript import TranscriptCompactionResult, compact_transcript, run_pass
from lcc.relevance.transcript_lossless import verify_lossless
from lcc.relevance.transcript_recoverable import verify_recoverable
from lcc.transcript import TranscriptError, messages_to_payload

__all__ = [
    "DecisionsCacheError",
    "RequestError",
    "TranscriptCompactionRequest",
    "TranscriptCompactionResult",
    "TranscriptError",
    "TranscriptFitError",
    "compact_transcript",
    "messages_to_payload",
    "run_pass",
    "verify_lossless",
    "verify_recoverable",
]
