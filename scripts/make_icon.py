"""Draws the plugin's icon (.claude-plugin/icon.png): a session whose texts stay and whose outputs became notes.

Usage: python scripts/make_icon.py [OUTPUT.png]
"""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

SIZE = 512
INK, PAPER, NOTE = (24, 32, 51), (233, 237, 245), (242, 166, 60)


class Bar(NamedTuple):
    """A rectangle with round corners, in pixels."""

    left: float
    top: float
    right: float
    bottom: float
    radius: float
    colour: tuple[int, int, int]

    def cover(self, x: float, y: float) -> float:
        """The share of the pixel at (x, y) that lies inside, from the distance to the edge."""
        dx = max(self.left + self.radius - x, x - self.right + self.radius, 0.0)
        dy = max(self.top + self.radius - y, y - self.bottom + self.radius, 0.0)
        return min(1.0, max(0.0, self.radius - (dx * dx + dy * dy) ** 0.5 + 0.5))


TILE = Bar(0, 0, SIZE, SIZE, 112, INK)
BARS = (
    Bar(112, 112, 400, 156, 22, PAPER),
    Bar(112, 194, 188, 238, 22, NOTE),
    Bar(112, 276, 400, 320, 22, PAPER),
    Bar(112, 358, 188, 402, 22, NOTE),
    Bar(226, 358, 314, 402, 22, PAPER),
)


def pixel(x: float, y: float) -> bytes:
    """One RGBA pixel, its centre at (x, y)."""
    red, green, blue = TILE.colour
    for bar in BARS:
        share = bar.cover(x, y)
        red, green, blue = (
            round(old + (new - old) * share) for old, new in zip((red, green, blue), bar.colour, strict=True)
        )
    return bytes((red, green, blue, round(255 * TILE.cover(x, y))))


def chunk(kind: bytes, data: bytes) -> bytes:
    """One PNG chunk: length, kind, data, checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png() -> bytes:
    """The whole picture as a PNG file."""
    rows = b"".join(b"\0" + b"".join(pixel(x + 0.5, y + 0.5) for x in range(SIZE)) for y in range(SIZE))
    header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


if __name__ == "__main__":
    home = Path(__file__).resolve().parents[1]
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else home / ".claude-plugin" / "icon.png"
    target.write_bytes(png())
