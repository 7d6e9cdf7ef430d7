"""Building a transcript without the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Hold the cyclic collector off: a long session is millions of objects, none of them garbage, and looking
    through them again and again would take longer than reading. Reference counts free memory as ever."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
