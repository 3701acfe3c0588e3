"""Paths into a JSON payload, as rules write them: `error.code`, `detail[0].msg`, `errors[*].reason`, `$message`.

In goes the text of a path, once, when a rule file is read; then payloads, and out come the values found there. A path
that leads nowhere finds nothing; it never raises. `$message`, `$code` and `$status` are not places but what the
vendor said wherever its envelope keeps it (see `envelope`); `$` is the whole payload, for bodies that are a bare
string. Contract clause R1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

SAID = ("$message", "$code", "$status")
# A payload is hostile: `[*]` over a long list must not cost more than this many values.
MAX_VALUES = 200

_STEP = re.compile(r"(?:^|\.)([^.\[\]]+)|\[(\d+|\*)\]")


@dataclass(frozen=True, slots=True)
class JsonPath:
    """`steps`: a name, an index, or None for every element of a list."""

    text: str
    steps: tuple[str | int | None, ...]

    def select(self, payload: object) -> list[object]:
        """Every value at this path, in order; a one-element list around the whole body is looked through."""
        found = [payload]
        for depth, step in enumerate(self.steps):
            if depth == 0 and isinstance(step, str) and isinstance(payload, list):
                found = payload[:MAX_VALUES]
            found = [value for holder in found for value in _children(holder, step)][:MAX_VALUES]
        return found


def _children(holder: object, step: str | int | None) -> list[object]:
    if isinstance(holder, dict):
        return [holder[step]] if isinstance(step, str) and step in holder else []
    if isinstance(holder, list):
        if step is None:
            return holder[:MAX_VALUES]
        return [holder[step]] if isinstance(step, int) and step < len(holder) else []
    return []


def parse_path(text: str) -> JsonPath:
    """The path that `text` writes. Raises ValueError with a reason for a person."""
    if text in SAID or text == "$":
        return JsonPath(text, ())
    if text.startswith("$"):
        near = get_close_matches(text, SAID, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"unknown name {text!r}; known are {', '.join(SAID)} and ${hint}")
    steps: list[str | int | None] = []
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            break
        name, index = step.groups()
        steps.append(name if name is not None else None if index == "*" else int(index))
        position = step.end()
    if not steps or position < len(text):
        raise ValueError(f"{text!r} is not a path such as error.code, detail[0].msg or errors[*].reason")
    return JsonPath(text, tuple(steps))
