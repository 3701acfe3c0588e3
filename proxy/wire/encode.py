"""The other way round: one-line JSON to an SSE event, and bytes to text that is always valid (contracts W1, W3).

Never splits or checks: what goes in must be one line, as every JSON encoder writes it.
"""

from __future__ import annotations

DONE = b"data: [DONE]\n\n"

# One line end only: a blank line after a comment makes some published clients dispatch an empty event (W1).
KEEP_ALIVE = b": keep-alive\n"

_REPLACEMENT = "\ufffd"
_REPLACEMENT_BYTES = _REPLACEMENT.encode()


def event(data: bytes) -> bytes:
    """`data`, which must be one line, as an SSE event."""
    return b"data: " + data + b"\n\n"


def clean_utf8(data: bytes) -> tuple[str, int]:
    """`data` as text, and how many U+FFFD had to be put in where it was not UTF-8. Those that it held itself, rightly
    encoded, are not counted. Only for whole values: a character cut in two becomes two replacements."""
    try:
        return data.decode(), 0
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        return text, text.count(_REPLACEMENT) - data.count(_REPLACEMENT_BYTES)
