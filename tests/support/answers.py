"""What an OpenAI-like vendor sends: payloads of events, whole bodies, errors, and plays of them (`ReplayUpstream`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from proxy.stores.recordings import End
from tests.support.upstream import JSON, Play, play_events

VENDOR_MODEL: Final = "gpt-4o-2024-11-20"
#: One text per script that cleaning must not harm, in the pieces in which a vendor might send it.
SCRIPTS: Final[Mapping[str, tuple[str, ...]]] = {
    "persian": ("سلام، ", "حالِ شما ", "چطور", " است؟ می\u200c", "خواهم."),
    "chinese": ("你好，", "世界", "！今天", "天气很好。"),
    "hindi": ("नमस्", "ते, आप ", "कैसे ", "हैं?"),
    "korean": ("안녕", "하세요", ", 반갑", "습니다."),
    "emoji": ("family 👩\u200d", "👩\u200d👧", ", flag 🇮", "🇷, wave 👋", "🏽."),
}
USAGE: Final = {
    "prompt_tokens": 12,
    "completion_tokens": 34,
    "total_tokens": 46,
    "prompt_tokens_details": {"cached_tokens": 4},
}


def encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def chunk(delta: Mapping[str, object] | None = None, finish: str | None = None, **more: object) -> bytes:
    """A chat.completion.chunk; without a delta and a finish it has no choices."""
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    head = {"id": "chatcmpl-v1", "object": "chat.completion.chunk", "created": 1_772_000_000, "model": VENDOR_MODEL}
    return encode({**head, "choices": choices, **more})


def say(text: str) -> bytes:
    return chunk({"content": text})


ROLE: Final = chunk({"role": "assistant", "content": ""})
STOP: Final = chunk({}, "stop")
VENDOR_USAGE: Final = chunk(usage=USAGE)


def answer(*texts: str, delay: float = 0.0, end: End = "close") -> Play:
    """A clean stream of these pieces, one event per read, with its usage."""
    return play_events(ROLE, *map(say, texts), STOP, VENDOR_USAGE, delay=delay, end=end)


def events(payloads: Iterable[bytes]) -> bytes:
    return b"".join(b"data: %b\n\n" % payload for payload in payloads)


def broken_off(*texts: str, end: End = "abort", delay: float = 0.0) -> Play:
    """A stream that ends without its finish: "close" ends the body properly, "abort" and "reset" do not."""
    return play_events(ROLE, *map(say, texts), delay=delay, end=end, done=False)


def completion(content: str, **message: object) -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
    head = {"id": "chatcmpl-v1", "object": "chat.completion", "created": 1_772_000_000, "model": VENDOR_MODEL}
    return {**head, "choices": [choice], "usage": USAGE}


def plain(value: object, status: int = 200, headers: Iterable[tuple[str, str]] = (), end: End = "close") -> Play:
    """A JSON body in one read; `value` may be bytes of anything else."""
    body = value if isinstance(value, bytes) else encode(value)
    return Play([(0.0, body)], status=status, headers=[*JSON, *headers], end=end)


def vendor_error(status: int, code: str | None, message: str, *, headers: Iterable[tuple[str, str]] = ()) -> Play:
    """An error as OpenAI writes it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return plain({"error": error}, status, headers)
