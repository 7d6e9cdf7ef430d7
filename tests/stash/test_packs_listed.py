"""The packs of a stash are listed once for many looks, and a pack of another process is seen all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lcc.stash import Stash, UnknownObjectError

PUT = "import sys; from pathlib import Path; from lcc.stash import Stash; Stash(Path(sys.argv[1])).put(b'theirs')"


@pytest.mark.parametrize("age_s", [0, 3600])
def test_a_pack_of_another_process_is_found_after_a_look(tmp_path: Path, age_s: int) -> None:
    """Whether the folder was modified a moment ago, when its time tells little, or long before."""
    stash = Stash(tmp_path / "stash")
    ours = stash.put(b"ours").sha256
    folder = tmp_path / "stash" / "packs"
    long_ago = folder.stat().st_mtime_ns - age_s * 10**9
    os.utime(folder, ns=(long_ago, long_ago))
    assert stash.get(ours) == b"ours"
    theirs = "5ee5d5b5b9ca"
    with pytest.raises(UnknownObjectError):
        stash.get(theirs)
    subprocess.run([sys.executable, "-c", PUT, tmp_path / "stash"], check=True)
    assert stash.get(next(entry.sha256 for entry in stash.entries() if entry.sha256 != ours)) == b"theirs"
