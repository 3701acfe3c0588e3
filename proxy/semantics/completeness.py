"""Did it really end? The small judgements behind contract W5: finish words, inferred finishes, whole arguments.

Pure functions over canonical values; the pipeline asks them in the order that the contract gives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping


def finish_for(word: str, words: Mapping[str, str]) -> str:
    """The canonical finish for a vendor's word: `stop | length | tool_calls | content_filter`, or `error` for a finish
    that says the answer failed. A word that no rule file knows is a normal end: the answer did end."""
    return words.get(word) or words.get(word.lower()) or "stop"


def corrected(finish: str, has_tool_calls: bool) -> str:
    """Vendors end an answer of tool calls with `stop`, and one without any with `tool_calls`: clients run tools for
    `tool_calls`, and then need some."""
    if finish in ("stop", "tool_calls"):
        return "tool_calls" if has_tool_calls else "stop"
    return finish


def inferred(has_tool_calls: bool) -> str:
    """The finish that a trusted end mark stands for."""
    return "tool_calls" if has_tool_calls else "stop"


def is_whole_json(arguments: str) -> bool:
    """Do a tool call's arguments parse? None at all count as `{}`."""
    if not arguments.strip():
        return True
    try:
        json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return False
    return True
