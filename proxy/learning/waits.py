"""Where a vendor hides how long to wait, when no header, known field or wording tells it (contract E).

In: rate-limit answers. Out: the JSON path of a number or length of time whose name speaks of waiting, the same in all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from proxy.learning.replaying import WALL
from proxy.semantics.classifier import Seen, wait_told
from proxy.semantics.hints import parse_wait
from proxy.semantics.paths import parse_path

_NAME: Final = re.compile(r"wait|retry|reset|again|delay|cool|sleep|backoff|seconds|available_in|until", re.IGNORECASE)


def wait_path(answers: Sequence[Seen]) -> str | None:
    """None where there is none, or where the wait is known already."""
    if not answers or any(wait_told(seen, WALL) is not None for seen in answers):
        return None
    paths = _paths("", answers[0].said.payload)
    return next((path for path in paths if all(_is_wait(seen, path) for seen in answers)), None)


def _is_wait(seen: Seen, path: str) -> bool:
    return any(parse_wait(value, WALL) is not None for value in parse_path(path).select(seen.said.payload))


def _paths(path: str, value: object) -> list[str]:
    if isinstance(value, dict):
        return [
            found
            for name, inner in value.items()
            if re.fullmatch(r"[\w-]+", name)
            for found in _paths(f"{path}.{name}" if path else name, inner)
        ]
    is_scalar = isinstance(value, str | int | float) and not isinstance(value, bool)
    return [path] if is_scalar and _NAME.search(path.rsplit(".", 1)[-1]) else []
