"""The OpenAI family as vendors speak it: one payload in, one canonical value out.

`OpenAIReader.read` takes the data of one frame and says what it is; `read_body` does the same for a plain JSON answer.
It narrows every field once and knows the family's spellings: content as a list of parts (Mistral), usage inside
`x_groq` or inside the choice (Moonshot), `message` where a `delta` should be (MiniMax, Perplexity), arguments as an
object, errors as strings. It never raises, keeps no state but a counter and what MiniMax would say again, and decides
nothing: what an error means is for the rules, whether an answer is complete for the pipeline. (contract W3, W4)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import orjson

from proxy.canon.chunk import (
    NOTHING,
    TEXT_FIELDS,
    Chunk,
    Delta,
    EndMark,
    ErrorSeen,
    Heartbeat,
    Malformed,
    Parsed,
    ToolFragment,
)
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import read_usage
from proxy.dialects.payload import (
    BROKEN,
    as_count,
    as_mapping,
    as_text,
    encode_json,
    is_empty,
    parse_leniently,
)
from proxy.dialects.pro import ProAnswer
from proxy.dialects.signs import bad_base_response, is_error, speaks_of_error

CHUNK = "chat.completion.chunk"
_ENVELOPE = frozenset(("id", "object", "created", "model", "choices", "usage", "error"))
_CHOICE = frozenset(("index", "delta", "message", "text", "finish_reason", "logprobs", "usage"))
_DELTA = frozenset(("role", "content", "tool_calls", "reasoning_content", "reasoning", "refusal"))
_PLAIN_DELTA = frozenset(("content",))
_PLAIN_CHOICE = frozenset(("index", "delta", "finish_reason", "logprobs"))
_FRAGMENT = frozenset(("index", "id", "type", "function"))
# A byte order mark may stand before every event of a relay that opens its output anew for each.
_PREFIXES = re.compile(rb"(?:\xef\xbb\xbf|data:|\s)+(?=[^\s])")
_MAX_PARTS_DEPTH = 8
_NO_FINISH = ("", "null")


class OpenAIReader:
    """Reads payloads of one answer. `replaced` counts U+FFFD put in for bytes that can never become UTF-8."""

    finish_is_last = True

    def __init__(self) -> None:
        self.replaced = 0
        self._increment, self._other = "delta", "message"
        self._pro = ProAnswer()
        self._streams = False  # has an increment said anything?

    def read(self, data: bytes, event: str | None, one_line: bool = True) -> Parsed:
        """What one frame says. `one_line` is False when the frame's data came in several lines, which must not pass."""
        if data == b"[DONE]":
            return EndMark() if event != "error" else ErrorSeen(None, data)
        try:
            value: object = orjson.loads(data)
        except orjson.JSONDecodeError:
            return self._odd(data, event)
        return self.read_value(value, data, event, one_line)

    def read_value(self, value: object, data: bytes, event: str | None, one_line: bool = True) -> Parsed:
        """The same for a payload that is parsed already; `data` is its JSON."""
        if type(value) is dict:
            return self._object(value, data, event, data if one_line else None)
        return self._scalar(value, data, event)

    def read_body(self, data: bytes) -> Parsed:
        """What a plain JSON answer says: a Chunk with whole messages as deltas, an error, or Malformed."""
        self._increment, self._other = "message", "delta"  # Perplexity sends an empty delta beside the message
        return self.read(data, None, one_line=False)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        return read_usage(vendor)

    def _odd(self, data: bytes, event: str | None) -> Parsed:
        """No strict JSON: the end mark, JSON with half surrogates or bad UTF-8, several objects, or plain words."""
        bare = data.strip()
        if bare.strip(b";.\0").upper() == b"[DONE]":  # in other letters, or with a crumb behind it
            return EndMark()
        if (prefixed := _PREFIXES.match(bare)) is not None:  # some relays prefix what already has a prefix
            return self.read(bare[prefixed.end() :], event, one_line=False)
        value, replaced = parse_leniently(data)
        self.replaced += replaced
        if value is BROKEN:
            return Malformed(data) if event != "ping" else Heartbeat()
        if isinstance(value, dict):
            return self._object(value, data, event, None)
        return self._scalar(value, data, event)

    def _scalar(self, value: object, data: bytes, event: str | None) -> Parsed:
        if value == "[DONE]":
            return EndMark()
        if isinstance(value, list) and value and isinstance(value[0], dict) and value[0].get("error"):
            return ErrorSeen(value, data)
        if event == "error" or (isinstance(value, str) and value.strip()):
            return ErrorSeen(value, data)
        return Heartbeat()

    def _object(self, value: dict[str, object], data: bytes, event: str | None, wire: bytes | None) -> Parsed:
        if "reply" in value and (told := self._pro.as_chat(value)) is not None:  # MiniMax's other grammar
            value, wire = told, None
        choices = value.get("choices")
        if type(choices) is list and any(type(choice) is dict and choice.get("error") for choice in choices):
            inner = next(choice["error"] for choice in choices if type(choice) is dict and choice.get("error"))
            value = {**value, "error": value.get("error") or inner}  # OpenRouter: of one choice
        if value.get("error") or event == "error" or ("base_resp" in value and bad_base_response(value)):
            return ErrorSeen(value, data, self._chunk(value, choices, None) if isinstance(choices, list) else None)
        # Spark says every error by a number, and may add an empty list.
        if choices == [] and not value.get("usage") and is_error(value):
            return ErrorSeen(value, data, self._chunk(value, choices, None))
        if isinstance(choices, list):
            return self._chunk(value, choices, wire)
        if isinstance(value.get("usage"), dict) and not is_empty(value["usage"]):
            return self._chunk(value, [], None)
        if speaks_of_error(value):
            return ErrorSeen(value, data, is_vague=not is_error(value))
        return Heartbeat({k: v for k, v in value.items() if k not in ("type", *_ENVELOPE) and not is_empty(v)})

    def _chunk(self, value: dict[str, object], choices: list[object], wire: bytes | None) -> Chunk:
        clean = wire is not None and len(choices) == 1 and value.get("object") == CHUNK and "error" not in value
        deltas: list[Delta] = []
        usage = _usage(value)
        for position, choice in enumerate(choices):
            if not isinstance(choice, dict):
                clean = False
                continue
            usage = usage or _dict_or_none(choice.get("usage"))
            delta, delta_clean = self._choice(choice, position)
            clean = clean and delta_clean
            deltas.append(delta)
        created = value.get("created")
        if type(created) is not int:
            created, clean = int(created) if type(created) is float and 0 < created < 1e12 else 0, False
        return Chunk(
            deltas,
            id=as_text(value.get("id")),
            created=created if created > 0 else 0,
            model=as_text(value.get("model")),
            usage=usage,
            extra=NOTHING if value.keys() <= _ENVELOPE else {k: v for k, v in value.items() if k not in _ENVELOPE},
            wire=wire if clean and usage is None and value.get("usage") is None else None,
        )

    def _choice(self, choice: dict[str, object], position: int) -> tuple[Delta, bool]:
        """The increment, and whether the choice may pass as it came."""
        body = choice.get(self._increment)
        clean = True
        if not isinstance(body, dict):
            body, clean = choice.get(self._other), False
            if isinstance(body, dict) and self._streams:  # MiniMax's last event: a whole message, said again
                body = {}
            if not isinstance(body, dict):
                body = {"content": choice["text"]} if isinstance(choice.get("text"), str) else {}  # older completions
        index = choice.get("index")
        if type(index) is not int or index < 0:
            index, clean = position, False
        finish = choice.get("finish_reason")
        if finish is not None or "finish_reason" not in choice:
            clean = clean and isinstance(finish, str) and finish not in _NO_FINISH
        keys = body.keys()
        if keys == _PLAIN_DELTA and type(body["content"]) is str:  # the common form, kept short
            content = body["content"]
            texts = {"content": content} if content else {}
            delta = Delta(index, texts)
        else:
            delta, body_clean = self._body(index, body)
            clean = clean and body_clean
        if not self._streams and (delta.texts or delta.tools) and self._increment in choice:
            self._streams = True
        delta.finish = _word(finish) if finish and finish not in _NO_FINISH else None
        if choice.get("logprobs") is not None:
            delta.logprobs = choice["logprobs"]
        if not choice.keys() <= _PLAIN_CHOICE:
            delta.choice_extra = {k: v for k, v in choice.items() if k not in _CHOICE}
            clean = clean and not ("message" in choice or "usage" in choice)
        return delta, clean

    def _body(self, index: int, body: dict[str, object]) -> tuple[Delta, bool]:
        """A delta (or a whole message) with anything but plain content in it."""
        texts, clean = _texts(body)
        role = body.get("role")
        clean = clean and role in (None, "assistant")
        calls = body.get("tool_calls")
        tools: list[ToolFragment] | None = None
        if isinstance(calls, dict) and calls:
            calls, clean = [calls], False
        if isinstance(calls, list) and calls:
            tools = [_fragment(c) for c in calls if isinstance(c, dict)]
            clean = clean and len(tools) == len(calls)
        elif calls is not None:
            clean = False
        extra = NOTHING if body.keys() <= _DELTA else {k: v for k, v in body.items() if k not in _DELTA}
        return Delta(index, texts, tools, as_text(role) or None, extra=extra), clean


def _dict_or_none(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, dict) and value else None


def _usage(value: Mapping[str, object]) -> Mapping[str, object] | None:
    usage = value.get("usage")
    if type(usage) is dict and usage:
        return usage
    if "x_groq" in value:  # Groq's own place for it (the last one said wins)
        return _dict_or_none(as_mapping(value["x_groq"]).get("usage"))
    return None


def _texts(body: dict[str, object]) -> tuple[dict[str, str], bool]:
    """The non-empty texts of a delta, and whether each was a string or null."""
    texts: dict[str, str] = {}
    clean = True
    for name in TEXT_FIELDS:
        text = body.get(name)
        if type(text) is str:
            if text:
                texts[name] = text
        elif text is not None:
            clean = False
            if isinstance(text, int | float) and not isinstance(
                text, bool
            ):  # a relay that guesses types: the token "5" as the number 5
                texts[name] = encode_json(text).decode()
            elif name == "content":
                for field, piece in content_parts(text):
                    texts[field] = texts.get(field, "") + piece
    return texts, clean


def content_parts(content: object, depth: int = 0) -> list[tuple[str, str]]:
    """Content that is no string: a list of typed parts, as Mistral sends it (`text`, and `thinking` with parts
    inside)."""
    out: list[tuple[str, str]] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            out.append(("content", part))
        elif isinstance(part, dict):
            thinking = part.get("thinking")
            if isinstance(thinking, list):
                inner = (
                    "".join(piece for _, piece in content_parts(thinking, depth + 1))
                    if depth < _MAX_PARTS_DEPTH
                    else ""
                )
            else:
                inner = as_text(thinking)
            if inner:
                out.append(("reasoning_content", inner))
            if text := as_text(part.get("text")):
                out.append(("content", text))
    return [(field, piece) for field, piece in out if piece]


def _word(value: object) -> str:
    """An id or a finish reason that should be a string and may be a number, or worse."""
    if value is None or isinstance(value, str):
        return value or ""
    return encode_json(value).decode()


def _fragment(call: dict[str, object]) -> ToolFragment:
    function = as_mapping(call.get("function"))
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else encode_json(arguments).decode()
    identity = call.get("id")
    known = call.keys() <= _FRAGMENT
    kind = as_text(call.get("type")) if "function" not in call else ""
    return ToolFragment(
        as_count(call.get("index")),
        _word(identity) or None,
        as_text(function.get("name")) or None,
        arguments,
        NOTHING if known else cast("Mapping[str, object]", {k: v for k, v in call.items() if k not in _FRAGMENT}),
        type=kind or "function",
    )
