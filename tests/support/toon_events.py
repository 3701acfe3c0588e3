"""Answers of the token-native route as a right server writes them, event by event, for tests to spoil."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.support.scripts import SCRIPTS, byte_level
from tests.support.upstream import Play

TRACE: Final = "trace-0001"
Event = dict[str, Any]

#: A text in which most letters are several ids, and those ids in portions that end inside of letters.
TEXT: Final = " ".join((SCRIPTS["persian"], SCRIPTS["chinese"], SCRIPTS["emoji"], SCRIPTS["devanagari"]))
TEXT_IDS: Final[Sequence[int]] = byte_level().encode(TEXT).ids


def request(**changed: Any) -> dict[str, Any]:
    """Four ids at 100, 103, 106, 109: the answer begins at 112."""
    return {
        "tids": {"v": "2.1", "ids": [5, 6, 7, 8]},
        "mask": {"type": "causal", "scope": "full", "fallback": "none"},
        "pos": {"base": "none", "offset": 100, "stride": 3},
        "meta": {"trace_id": TRACE},
    } | changed


def event(asked: Mapping[str, Any], ids: Sequence[int], before: int, **more: Any) -> Event:
    """`before` ids of the answer came already. `prompt` is how many prompt ids have a place."""
    prompt = more.pop("prompt", len(asked["tids"]["ids"]))
    pos = asked["pos"]
    return {
        "id": "toon-1",
        "created": 1_790_000_000,
        "model": "small",
        "tids": {"v": asked["tids"]["v"], "ids": list(ids)},
        "mask": {"type": "causal", "scope": "full", "fallback": "none"},
        "pos": {**pos, "offset": pos["offset"] + pos["stride"] * (prompt + before)},
        "meta": {"source": "model_output", "trace_id": TRACE},
        **more,
    }


def events(asked: Mapping[str, Any], portions: Sequence[Sequence[int]], prompt: int | None = None) -> list[Event]:
    """A whole stream: ids in portions, the finish, the usage."""
    prompt = len(asked["tids"]["ids"]) if prompt is None else prompt
    out, before = [], 0
    for portion in portions:
        out.append(event(asked, portion, before, prompt=prompt))
        before += len(portion)
    out[0]["x_prompt_ids"] = prompt
    usage = {"prompt_ids": prompt, "completion_ids": before, "cached_ids": 0}
    finish = event(asked, [], before, prompt=prompt, finish_reason="stop", stop_id=2)
    return [*out, finish, event(asked, [], before, prompt=prompt, usage=usage)]


def text_portions(size: int = 3) -> list[list[int]]:
    return [list(TEXT_IDS[at : at + size]) for at in range(0, len(TEXT_IDS), size)]


def sse(told: Sequence[object], *, end: str = "\n", done: bool = True) -> bytes:
    lines = [json.dumps(one, ensure_ascii=False) for one in told] + (["[DONE]"] if done else [])
    return "".join(f"data: {line}{end}{end}" for line in lines).encode()


def played(stream: bytes, size: int = 0, **how: Any) -> Play:
    """As reads of that many bytes; 0: all in one."""
    reads = [stream[at : at + size] for at in range(0, len(stream), size)] if size else [stream]
    return Play([(0.0, read) for read in reads], **how)
