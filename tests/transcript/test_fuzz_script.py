"""`scripts/fuzz.py` in small: some hundred inputs of each kind end well, and a fault or a hang is told."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import fuzz as fuzzing

INPUTS = {"files": 600, "sessions": 30, "ladder": 40, "reports": 300, "frames": 600}


@pytest.mark.parametrize("kind", fuzzing.KINDS)
def test_every_input_ends_well(kind: str) -> None:
    """Refused with a cause, or done as promised; more than one outcome shows that the inputs reach further."""
    outcomes, faults = fuzzing.fuzz(kind, 7, range(INPUTS[kind]), time.monotonic() + 20)
    assert faults == []
    assert len(outcomes) > 1


def test_a_fault_and_a_hang_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of the input is named, and the rest goes on."""

    def bad(chosen: random.Random) -> str:
        if chosen.random() < 0.5:
            raise TypeError("unhashable type")
        while True:
            time.sleep(0.01)

    monkeypatch.setitem(fuzzing.KINDS, "bad", bad)
    monkeypatch.setattr(fuzzing, "LONGEST", 1)
    outcomes, faults = fuzzing.fuzz("bad", 1, range(4), time.monotonic() + 20)
    assert outcomes.keys() == {"FAULT", "HANG"}
    assert len(faults) == 4
    assert all(fault.startswith("bad ") for fault in faults)
