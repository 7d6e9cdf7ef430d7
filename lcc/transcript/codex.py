"""Codex rollouts: JSONL of ``{"timestamp", "type", "payload"}``."""

from __future__ import annotations

from lcc.transcript.model import Transcript, TranscriptError


def read(raw: bytes) -> Transcript:
    """A whole rollout. Raises TranscriptError."""
    raise TranscriptError("Codex rollouts cannot be read yet", "line 1")
