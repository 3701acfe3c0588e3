"""Answers of the token-native route as a client reads them: bytes in, chunks out, whatever way they were cut.

In: the reads of one response, or the body of a plain answer or refusal. Out: `ToonChunk`s and `ToonAnswer`s of what
stands in its place (`proxy.toon.placing`), with text on whole characters where there is a vocabulary. What goes wrong
is a `ToonError` as a value, for `proxy.toon.client` to raise once all before it was handed out. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from proxy.dialects.payload import as_mapping
from proxy.dialects.toon.format import ToonRequest
from proxy.errors import LimitExceeded, SluiceError
from proxy.toon.placing import Misplaced, Places
from proxy.toon.text import TextDecoder, Vocabulary
from proxy.wire.frame import Frame
from proxy.wire.sse import SseDecoder

#: Of a line and of an event. An event of 8192 ids with twenty alternatives each has about six.
_MAX_BYTES: Final = 8 * 1024 * 1024
_DONE: Final = b"[DONE]"
#: How much of a page that is no error of ours is quoted.
_MAX_QUOTED: Final = 200


class ToonError(SluiceError):
    """What a request or its answer failed with, as the contract's error says it. `status` is the HTTP status, None
    where there was none; `param` a JSON pointer into the request; `retry_after` in seconds."""

    def __init__(
        self,
        status: int | None,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        trace_id: str | None = None,
    ) -> None:
        self.status, self.code, self.message, self.param = status, code, message, param
        self.retryable, self.retry_after, self.trace_id = retryable, retry_after, trace_id
        where = f" at {param}" if param else ""
        super().__init__(f"{code}{where}: {message}")


@dataclass(frozen=True, slots=True)
class ToonChunk:
    """One event: `ids` from `offset` on (none in the last two, which bring the finish and the usage). `text` is what
    became whole with it, None without a tokenizer. `event` is all that was said."""

    ids: list[int]
    offset: int
    text: str | None
    finish_reason: str | None
    stop_id: int | None
    usage: Mapping[str, object] | None
    event: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToonAnswer:
    """A whole answer. Id number i stands at `offset + stride x i`. `body` is all that was said."""

    ids: list[int]
    offset: int
    stride: int
    text: str | None
    finish_reason: str | None
    stop_id: int | None
    usage: Mapping[str, object] | None
    body: Mapping[str, object]


class StreamReader:
    """Reads one stream. `over`: nothing more is to be read; `failure` says why, None where the answer is whole."""

    def __init__(
        self, request: ToonRequest, vocabulary: Vocabulary | None, tell: Callable[[Misplaced], object] | None = None
    ) -> None:
        self.misplaced: list[Misplaced] = []
        self.failure: ToonError | None = None
        self.over = False
        self._events = SseDecoder(_MAX_BYTES, _MAX_BYTES)
        self._places = Places(request)
        self._text = None if vocabulary is None else TextDecoder(vocabulary)
        self._tell = tell

    def feed(self, read: bytes) -> list[ToonChunk]:
        """What of the read is in place. Nothing is read behind the end."""
        return self._take(lambda: self._events.feed(read))

    def finish(self) -> list[ToonChunk]:
        """The response ended. Without `[DONE]` before it, it was cut."""
        chunks = self._take(lambda: [frame for frame in self._events.finish() if _is_whole(frame)])
        if not self.over:
            self._fail(cut("the connection closed before [DONE]"))
        return chunks

    def _take(self, read: Callable[[], list[Frame]]) -> list[ToonChunk]:
        chunks: list[ToonChunk] = []
        try:
            frames = read()
        except LimitExceeded as exceeded:
            self._fail(ToonError(200, "line_too_long", f"An {exceeded}."))
            return chunks
        for frame in frames:
            if self.over:
                break
            if (chunk := self._chunk(frame.data)) is not None:
                chunks.append(chunk)
        return chunks

    def _chunk(self, data: bytes) -> ToonChunk | None:
        if data == _DONE:
            self._end()
            return None
        event = _object(data)
        if event is None:
            self._fail(ToonError(200, "malformed_event", f"An event is no JSON object: {_quoted(data)}"))
            return None
        if "error" in event:
            self._fail(error_of(event, None, None))
            return None
        if (misplaced := self._places.check(event)) is not None:
            self._report(misplaced)
            return None
        return self._placed(event)

    def _placed(self, event: Mapping[str, object]) -> ToonChunk:
        ids, offset = _ids_of(event)
        finish = _text_of(event.get("finish_reason"))
        text = None if self._text is None else self._text.feed(ids) + (self._text.finish() if finish else "")
        return ToonChunk(ids, offset, text, finish, _count_of(event.get("stop_id")), _usage_of(event), event)

    def _report(self, misplaced: Misplaced) -> None:
        self.misplaced.append(misplaced)
        if self._tell is not None:
            self._tell(misplaced)

    def _end(self) -> None:
        self.over = True
        if not self._places.is_whole:
            self.failure = ToonError(200, "answer_incomplete", self._missing(), retryable=True)

    def _missing(self) -> str:
        if not self.misplaced:
            return "The stream ended with [DONE] and without a finish: its end is missing. Ask again."
        count, first = len(self.misplaced), self.misplaced[0]
        return (
            f"The answer is not whole: {count} events stood out of place and were dropped, the first as "
            f"`{first.reason}`, and nothing in place came from position {self._places.next} on. Ask again."
        )

    def _fail(self, failure: ToonError) -> None:
        self.over, self.failure = True, failure


def read_answer(body: bytes, request: ToonRequest, vocabulary: Vocabulary | None) -> ToonAnswer | ToonError:
    """A plain answer, if it stands in its place."""
    answer = _object(body)
    if answer is None:
        return ToonError(200, "malformed_answer", f"The answer is no JSON object: {_quoted(body)}")
    places = Places(request)
    if (misplaced := places.check(answer)) is not None:
        told = f"The answer is out of place (`{misplaced.reason}`); its ids cannot be told from others."
        return ToonError(200, "answer_misplaced", told, retryable=True)
    ids, offset = _ids_of(answer)
    text = None if vocabulary is None else vocabulary.text_of(ids)
    finish, stop_id = _text_of(answer.get("finish_reason")), _count_of(answer.get("stop_id"))
    return ToonAnswer(ids, offset, request.pos.stride, text, finish, stop_id, _usage_of(answer), answer)


def cut(how: str) -> ToonError:
    return ToonError(None, "stream_cut", f"The answer was cut: {how}. Ask again.", retryable=True)


def read_refusal(status: int, headers: Mapping[str, str], body: bytes) -> ToonError:
    """An answer that is none: the contract's error, or the page of whoever stands between."""
    told = _object(body)
    if told is not None and "error" in told:
        return error_of(told, status, headers.get("x-trace-id"))
    what = f"HTTP {status}, and no error of Sluice: {_quoted(body)}"
    return ToonError(status, "unexpected_answer", what, retryable=status >= 500, trace_id=headers.get("x-trace-id"))


def error_of(told: Mapping[str, object], status: int | None, trace_id: str | None) -> ToonError:
    error = as_mapping(told.get("error"))
    wait = error.get("retry_after")
    return ToonError(
        status,
        _text_of(error.get("code")) or "unknown",
        _text_of(error.get("message")) or "No reason was given.",
        param=_text_of(error.get("param")),
        retryable=error.get("retryable") is True,
        retry_after=float(wait) if isinstance(wait, int | float) else None,
        trace_id=_text_of(error.get("trace_id")) or trace_id,
    )


def _is_whole(frame: Frame) -> bool:
    """The last event of a response may lack its blank line, but not its own end."""
    return frame.terminated or frame.data == _DONE or _object(frame.data) is not None


def _object(data: bytes) -> dict[str, object] | None:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _quoted(data: bytes) -> str:
    return repr(data[:_MAX_QUOTED].decode("utf-8", "replace"))


def _ids_of(event: Mapping[str, object]) -> tuple[list[int], int]:
    """Of an event that `Places` let through."""
    ids, offset = as_mapping(event["tids"])["ids"], as_mapping(event["pos"])["offset"]
    assert isinstance(ids, list) and isinstance(offset, int), "as `Places` has it"
    return ids, offset


def _text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count_of(value: object) -> int | None:
    return value if type(value) is int else None


def _usage_of(event: Mapping[str, object]) -> Mapping[str, object] | None:
    usage = event.get("usage")
    return usage if isinstance(usage, dict) else None
