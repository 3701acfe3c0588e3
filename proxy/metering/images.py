"""An image's size from its first bytes, and what an image counts (contract L2, docs/counting.md).

In: the address of an image in a request, and the detail that was asked for. Out: a number of tokens. Only headers are
read, of a bounded part of the data; nothing is decoded, and what cannot be seen counts as a fixed size. Never raises.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

#: An image whose pixels cannot be seen (one at an address, or in a form not known here) counts as one of this size.
ASSUMED: Final = (1024, 1024)
LOW_TOKENS: Final = 85
_BASE_TOKENS, _TILE_TOKENS, _TILE = 85, 170, 512
_LONGEST, _SHORTEST = 2048, 768
# JPEG may hold a thumbnail and a camera's notes before its size.
_LOOKED_AT: Final = 128 * 1024
# Cameras write some ten segments before the frame, colour profiles up to 255; a hostile file could have 30,000.
_MOST_SEGMENTS: Final = 512
# Any number of 0xFF may fill up before a marker.
_MARKER: Final = re.compile(rb"\xff+([^\xff])", re.DOTALL)
_MOST_PIXELS: Final = 1 << 20  # a side; more is no image


def image_tokens(url: str, detail: object = None) -> int:
    """Scaled to fit 2048 by 2048, then its shorter side to 768, in tiles of 512: 85 and 170 for each tile; 85 for the
    detail `low`."""
    if detail == "low":
        return LOW_TOKENS
    width, height = size_of(url) or ASSUMED
    fitted = min(1.0, _LONGEST / max(width, height))
    scale = fitted * min(1.0, _SHORTEST / (min(width, height) * fitted))
    across, down = _tiles(width * scale), _tiles(height * scale)
    return _BASE_TOKENS + _TILE_TOKENS * across * down


def _tiles(side: float) -> int:
    return max(1, -(-round(side) // _TILE))


def size_of(url: str) -> tuple[int, int] | None:
    """Width and height of an image in a `data:` URL, None where they cannot be told."""
    if not url.startswith("data:"):
        return None
    head = url[:100].partition(",")[0]
    if not head.endswith(";base64"):
        return None
    start = len(head) + 1
    piece = url[start : start + _LOOKED_AT * 4 // 3]
    piece = piece[: len(piece) // 4 * 4]
    try:
        raw = base64.b64decode(piece, validate=False)
    except (binascii.Error, ValueError):
        return None
    found = _png(raw) or _gif(raw) or _webp(raw) or _jpeg(raw)
    return found if found is not None and all(0 < side < _MOST_PIXELS for side in found) else None


def _png(raw: bytes) -> tuple[int, int] | None:
    if raw[:8] != b"\x89PNG\r\n\x1a\n" or len(raw) < 24:
        return None
    return int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")


def _gif(raw: bytes) -> tuple[int, int] | None:
    if raw[:6] not in (b"GIF87a", b"GIF89a") or len(raw) < 10:
        return None
    return int.from_bytes(raw[6:8], "little"), int.from_bytes(raw[8:10], "little")


def _webp(raw: bytes) -> tuple[int, int] | None:
    if raw[:4] != b"RIFF" or raw[8:12] != b"WEBP" or len(raw) < 30:
        return None
    match raw[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(raw[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            return int.from_bytes(raw[26:28], "little") & 0x3FFF, int.from_bytes(raw[28:30], "little") & 0x3FFF
        case _:
            return None


def _jpeg(raw: bytes) -> tuple[int, int] | None:
    """From segment to segment, to the one that begins the frame."""
    if raw[:2] != b"\xff\xd8":
        return None
    at = 2
    for _ in range(_MOST_SEGMENTS):
        if (begun := _MARKER.match(raw, at)) is None:
            return None
        at, marker = begun.end(), begun[1][0]
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:  # stands alone
            continue
        if len(raw) < at + 7:
            return None
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(raw[at + 5 : at + 7], "big"), int.from_bytes(raw[at + 3 : at + 5], "big")
        at += max(2, int.from_bytes(raw[at : at + 2], "big"))
    return None
