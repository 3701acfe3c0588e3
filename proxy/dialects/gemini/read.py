"""The Gemini family as vendors speak it (`streamGenerateContent`, `generateContent`): one payload in, one value out.

A payload holds candidates, each with parts: text, text that is a thought, a whole function call. Parts of one kind that
follow each other are one delta, every other kind is one of its own, so that held tails keep their place. A seal
(`thoughtSignature`) over a thought or a text goes out in `reasoning_details`, one over a call with the call.
`finishReason` proves nothing before the end: older models say STOP with every chunk. Never raises, decides nothing;
what an error means is for the rules.
(contract W3, W4, W5; facts of vendors, 4)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Heartbeat, Malformed, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.gemini.logprobs import read_logprobs
from proxy.dialects.gemini.usage import read_usage
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json, is_empty, parse_json
from proxy.dialects.reading import JsonReader
from proxy.dialects.seals import GEMINI

_ENVELOPE = frozenset(("candidates", "usageMetadata", "modelVersion", "responseId", "createTime", "error"))
_CANDIDATE = frozenset(("content", "finishReason", "index", "logprobsResult"))
_CALL = frozenset(("id", "name", "args"))
# The finish that a block of the prompt stands for, where it comes late.
_BLOCKED = "SAFETY"
_NO_FINISH = ("", "FINISH_REASON_UNSPECIFIED")


class _Said:
    """What must be remembered of one candidate: its calls and seals so far, and the thought that has no seal yet."""

    __slots__ = ("calls", "seals", "thought")

    def __init__(self) -> None:
        self.calls = self.seals = 0
        self.thought: list[str] = []


class GeminiReader(JsonReader):
    """Reads the payloads of one answer. `replaced` counts U+FFFD put in for bytes that can never become UTF-8."""

    finish_is_last = False

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[int, _Said] = {}

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        candidates = value.get("candidates")
        feedback = as_mapping(value.get("promptFeedback"))
        if value.get("error") or event == "error":
            return ErrorSeen(value, data, self._chunk(value) if candidates else None)
        if feedback.get("blockReason") and not candidates:
            chunk = self._chunk(value)
            if self._said:  # an answer that moderation ends after some text is complete (contract W5)
                chunk.deltas = [Delta(index, {}, finish=_BLOCKED) for index in sorted(self._said)]
                return chunk
            # The feedback is the error: rules find its `blockReason` and `blockReasonMessage` as code and message.
            return ErrorSeen(feedback, data, chunk)
        if isinstance(candidates, list | dict) or not is_empty(as_mapping(value.get("usageMetadata"))):
            return self._chunk(value)
        return self.foreign(value, data, event, _ENVELOPE)

    def read_whole(self, data: bytes) -> Parsed:
        """A plain answer has the form of a chunk; an error may be wrapped into an array."""
        value, replaced = parse_json(data)
        self.replaced += replaced
        if isinstance(value, dict):
            return self.read_object(value, data, None)
        parsed = self.read_other(value, data, None)
        return Malformed(data) if isinstance(parsed, Heartbeat) else parsed

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        return read_usage(vendor)

    def _chunk(self, value: Mapping[str, object]) -> Chunk:
        deltas: list[Delta] = []
        candidates = value.get("candidates")
        for position, candidate in enumerate(objects([candidates] if isinstance(candidates, dict) else candidates)):
            deltas += self._candidate(candidate, position)
        usage = value.get("usageMetadata")
        extra = {k: v for k, v in value.items() if k not in _ENVELOPE and not is_empty(v)}
        return Chunk(
            deltas,
            id=as_text(value.get("responseId")),
            model=as_text(value.get("modelVersion")),
            usage=usage if isinstance(usage, dict) and usage else None,
            extra=extra or NOTHING,
        )

    def _candidate(self, candidate: Mapping[str, object], position: int) -> list[Delta]:
        index = as_count(candidate.get("index"))
        index = position if index is None else index
        deltas = _Deltas(index)
        for part in _parts(candidate.get("content")):
            self._part(part, index, deltas)
        finish = as_text(candidate.get("finishReason"))
        unknown = {k: v for k, v in candidate.items() if k not in _CANDIDATE and not is_empty(v)}
        made = deltas.made()
        made[-1].finish = None if finish in _NO_FINISH else finish
        made[-1].logprobs = read_logprobs(candidate.get("logprobsResult"))
        made[-1].choice_extra = unknown or NOTHING
        return made

    def _part(self, part: Mapping[str, object], index: int, deltas: _Deltas) -> None:
        seal, text, call = as_text(part.get("thoughtSignature")), part.get("text"), part.get("functionCall")
        if isinstance(call, dict):
            said = self._of(index)
            said.thought.clear()
            deltas.at("tools").tools.append(_fragment(call, seal, said.calls))
            said.calls += 1
        elif isinstance(text, str) or (seal and part.keys() <= {"thought", "thoughtSignature"}):
            self._text(as_text(text), seal, index, deltas, is_thought=part.get("thought") is True)
        elif (image := _image(as_mapping(part.get("inlineData")))) is not None:
            deltas.at("images").extra.append(image)
        elif part:
            deltas.at("native").extra.append(part)

    def _text(self, text: str, seal: str, index: int, deltas: _Deltas, *, is_thought: bool) -> None:
        if not (text or seal):
            return
        said = self._of(index)
        if text:
            deltas.at("reasoning_content" if is_thought else "content").texts.append(text)
        if is_thought:
            said.thought.append(text)
        if seal:
            seen = (
                {"type": "reasoning.text", "text": "".join(said.thought), "signature": seal}
                if is_thought
                else {"type": "reasoning.encrypted", "data": seal}  # over the answer's own text
            )
            deltas.at("reasoning_details").extra.append({**seen, "format": GEMINI, "index": said.seals})
            said.seals += 1
        if seal or not is_thought:
            said.thought.clear()

    def _of(self, index: int) -> _Said:
        said = self._said.get(index)
        if said is None:
            said = self._said[index] = _Said()
        return said


class _Piece:
    """A delta in the making, of parts of one kind: a text field's name, `tools`, or a list that goes besides."""

    __slots__ = ("extra", "kind", "texts", "tools")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.texts: list[str] = []
        self.tools: list[ToolFragment] = []
        self.extra: list[Mapping[str, object]] = []

    def made(self, index: int) -> Delta:
        texts = {self.kind: "".join(self.texts)} if self.texts else {}
        return Delta(index, texts, self.tools or None, extra={self.kind: self.extra} if self.extra else NOTHING)


class _Deltas:
    """One candidate's increment, in order."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._pieces: list[_Piece] = []

    def at(self, kind: str) -> _Piece:
        """The delta for one more part of this kind."""
        if not self._pieces or self._pieces[-1].kind != kind:
            self._pieces.append(_Piece(kind))
        return self._pieces[-1]

    def made(self) -> list[Delta]:
        """At least one, which may have nothing but a finish."""
        return [piece.made(self._index) for piece in self._pieces] or [Delta(self._index, {})]


def _parts(content: object) -> Iterator[Mapping[str, object]]:
    """The parts of a content; relays write one part, or its text, where a list should be."""
    parts = content.get("parts") if isinstance(content, dict) else content
    if isinstance(parts, str):
        parts = {"text": parts}
    return objects([parts] if isinstance(parts, dict) else parts)


def _fragment(call: Mapping[str, object], seal: str, number: int) -> ToolFragment:
    args = call.get("args")
    extra: dict[str, object] = {k: v for k, v in call.items() if k not in _CALL and not is_empty(v)}
    if seal:
        extra["extra_content"] = {"google": {"thought_signature": seal}}
    return ToolFragment(
        number,
        as_text(call.get("id")) or None,
        as_text(call.get("name")) or None,
        args if isinstance(args, str) else "" if args is None else encode_json(args).decode(),
        extra or NOTHING,
    )


def _image(blob: Mapping[str, object]) -> dict[str, object] | None:
    """A picture that the model made, in the form in which relays give it to clients of chat completions."""
    media_type, data = as_text(blob.get("mimeType")), as_text(blob.get("data"))
    if not (media_type.startswith("image/") and data):
        return None
    return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}
