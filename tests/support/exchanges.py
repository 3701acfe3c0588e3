"""Recordings of chat completions, composed event by event, for what a probe must find in them.

In: what each event says. Out: a `Recording`, one read per event unless it is cut otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from proxy.stores.recordings import End, Read, Recording

DONE: Final = "[DONE]"


def delta(text: str = "", **more: object) -> dict[str, object]:
    """A chunk of choice 0 that says `text`; `finish_reason` and `usage` go where they belong, the rest into the
    delta."""
    told: dict[str, object] = {"id": "chatcmpl-p", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    finish, usage = more.pop("finish_reason", None), more.pop("usage", None)
    content = {"content": text} if text else {}
    told["choices"] = [{"index": 0, "delta": {**content, **more}, "finish_reason": finish}]
    return told | ({"usage": usage} if usage is not None else {})


def usage(prompt: int, completion: int, **more: object) -> dict[str, object]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}


def exchange(
    events: Sequence[Mapping[str, object] | str],
    *,
    name: str = "composed",
    prompt: str = "سلام",
    end: End = "close",
    **asked: object,
) -> Recording:
    """A stream. An event that is text stands as it is behind `data: `, or as lines of its own if it ends one."""
    written = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=True) for each in events)
    lines = [text if text.endswith("\n") else f"data: {text}\n\n" for text in written]
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], "stream": True, **asked}
    return Recording(
        path=Path(f"{name}.jsonl"),
        vendor="openai_compatible",
        name=name,
        obtained="composed",
        odd="",
        request={"method": "POST", "path": "/v1/chat/completions", "body": body},
        status=200,
        headers=(("content-type", "text/event-stream"),),
        end=end,
        reads=tuple(Read(round(0.1 * number, 3), line.encode()) for number, line in enumerate(lines, start=1)),
        end_at=10.0,
    )


def recut(recording: Recording, reads: Iterable[bytes]) -> Recording:
    """The same bytes in other reads, all at once."""
    t = recording.reads[-1].t if recording.reads else 0.0
    return replace(recording, reads=tuple(Read(t, data) for data in reads))
