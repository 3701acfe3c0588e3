"""A chat-completions request in canonical form, for vendors of other families (contract Q1).

In: the body of a client. Out: a `Request`, or the caller's mistake. Reads the family's later habits too: reasoning sent
back as `reasoning_content`, `reasoning`, `reasoning_details` (OpenRouter) or `thinking_blocks` (LiteLLM), Gemini's seal
in `extra_content`, the one `function_call` of older APIs, cache markers on parts and messages, the switches for
thinking of many vendors. Fields that say what is so anyway are nobody's loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from proxy.canon.request import (
    Audio,
    Document,
    Image,
    Message,
    Native,
    Part,
    Refusal,
    Request,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    names_of_calls,
)
from proxy.dialects.base import BadRequest
from proxy.dialects.calls import results_beside_calls
from proxy.dialects.openai.asked import CLIENT, Bad, choice_of, format_of, functions_of, reasoning_of, tools_of
from proxy.dialects.parts import Fields, data_of_url, image_of_url, objects
from proxy.dialects.payload import as_mapping, as_text, encode_json
from proxy.dialects.seals import ANTHROPIC

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
#: What some clients say always, and what is meant by those who say nothing.
_USUAL: Mapping[str, object] = {
    **{"repetition_penalty": 1, "repeat_penalty": 1, "length_penalty": 1, "typical_p": 1, "best_of": 1},
    **{"top_a": 0, "min_tokens": 0, "echo": False, "use_beam_search": False, "ignore_eos": False, "raw": False},
    **{"safe_prompt": False, "enable_search": False, "return_images": False, "return_related_questions": False},
    **{"modalities": ["text"], "verbosity": "medium", "transforms": [], "plugins": [], "chat_template_kwargs": {}},
}


def parse_chat(body: Mapping[str, object]) -> Request | BadRequest:
    try:
        return _request(body)
    except Bad as bad:
        return bad.request


def _request(body: Mapping[str, object]) -> Request | BadRequest:
    fields = Fields(body)
    fields.get("stream_options")
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        return BadRequest("invalid_type", "`messages` must be a list of messages, at least one.", "messages")
    parsed = _named(results_beside_calls(tuple(_message(message, at) for at, message in enumerate(messages))))
    extra: dict[str, object] = {}
    limit = fields.whole("max_completion_tokens")
    older = fields.whole("max_tokens")
    request = Request(
        client=CLIENT,
        model=as_text(fields.get("model")),
        messages=parsed,
        stream=fields.flag("stream") or False,
        tools=(*tools_of(fields.get("tools")), *functions_of(fields.get("functions"))),
        tool_choice=choice_of(fields, extra),
        parallel_tools=fields.flag("parallel_tool_calls"),
        max_tokens=_unless_endless(older if limit is None else limit),
        temperature=fields.number("temperature"),
        top_p=fields.number("top_p"),
        top_k=_unless_endless(fields.whole("top_k")) or None,
        min_p=fields.number("min_p") or None,
        stop=tuple(word for word in fields.words("stop") if word),
        seed=fields.whole("seed"),
        frequency_penalty=fields.number("frequency_penalty") or None,
        presence_penalty=fields.number("presence_penalty") or None,
        n=_more_than_one(fields.whole("n")),
        logprobs=fields.flag("logprobs") or None,
        top_logprobs=fields.whole("top_logprobs") or None,
        logit_bias=fields.mapping("logit_bias") or None,
        format=format_of(fields, extra),
        reasoning=reasoning_of(fields, extra),
        user=fields.text("user"),
        extra=extra,
    )
    extra |= {name: value for name, value in fields.extra().items() if _USUAL.get(name, ...) != value}
    return fields.bad or request


def _unless_endless(number: int | None) -> int | None:
    """-1 is how clients of local servers say: without a limit."""
    return None if number == -1 else number


def _more_than_one(n: int | None) -> int | None:
    return None if n == 1 else n


# ---- messages ----------------------------------------------------------------------------------------------------


def _message(message: object, at: int) -> Message:
    if not isinstance(message, dict):
        raise Bad(f"messages[{at}]", "an object")
    role = _ROLES.get(as_text(message.get("role")))
    if role is None:
        raise Bad(f"messages[{at}].role", f"one of {', '.join(_ROLES)}")
    parts = _marked(tuple(_content(message.get("content"), at)), message.get("cache_control"))
    name = as_text(message.get("name")) or None
    if role == "tool":
        result = tuple(part for part in parts if isinstance(part, Text | Image | Document))
        rest = tuple(part for part in parts if not isinstance(part, Text | Image | Document))
        call = as_text(message.get("tool_call_id")) or (name or "")
        return Message("tool", (ToolResult(call, result, name or ""), *rest), at=at)
    if role == "assistant":
        refusal = as_text(message.get("refusal"))
        parts = (
            *_thinking(message),
            *parts,
            *((Refusal(refusal),) if refusal else ()),
            *_spoken(message.get("audio")),
            *_calls(message),
        )
    return Message(role, parts, name, at)


def _spoken(audio: object) -> Iterator[Native]:
    """An answer that was spoken is known by its id, at the vendor that spoke it."""
    if isinstance(audio, dict):
        yield Native(CLIENT, "audio", audio)


def _marked(parts: tuple[Part, ...], cache: object) -> tuple[Part, ...]:
    """A cache marker on the message stands for one on its last part."""
    if not isinstance(cache, dict) or not parts or not isinstance(parts[-1], Text | Image | Document):
        return parts
    return (*parts[:-1], replace(parts[-1], cache=cache))


def _named(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Results with the names of their tools, as the calls before them say."""
    names = names_of_calls(messages)

    def named(part: Part) -> Part:
        if isinstance(part, ToolResult) and not part.name and part.call in names:
            return ToolResult(part.call, part.parts, names[part.call], part.is_error, part.cache)
        return part

    return tuple(Message(m.role, tuple(map(named, m.parts)), m.name, m.at) if m.role == "tool" else m for m in messages)


def _content(content: object, at: int) -> Iterator[Part]:
    if content is None:
        return
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    if not isinstance(content, list):
        raise Bad(f"messages[{at}].content", "a string or a list of parts")
    for place, part in enumerate(content):
        if isinstance(part, str):
            yield Text(part)
            continue
        if not isinstance(part, dict):
            raise Bad(f"messages[{at}].content[{place}]", "an object")
        if (made := _part(part)) is not None:
            yield made


def _part(part: Mapping[str, object]) -> Part | None:
    cache = part.get("cache_control")
    marker = cache if isinstance(cache, dict) else None
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            return Text(as_text(part.get("text")), marker) if part.get("text") else None
        case "image_url":
            image = part.get("image_url")
            url = as_text(image) if isinstance(image, str) else as_text(as_mapping(image).get("url"))
            return image_of_url(url, as_text(as_mapping(image).get("detail")) or None, marker)
        case "input_audio":
            audio = as_mapping(part.get("input_audio"))
            return Audio(as_text(audio.get("data")), as_text(audio.get("format")))
        case "file":
            return _file(as_mapping(part.get("file")), marker)
        case "refusal":
            return Refusal(as_text(part.get("refusal")))
        case "thinking":
            return _mistral_thinking(part)
        case kind:
            return Native(CLIENT, as_text(kind) or "part", part)


def _file(file: Mapping[str, object], cache: Mapping[str, object] | None) -> Document:
    name = as_text(file.get("filename"))
    data = as_text(file.get("file_data"))
    found = data_of_url(data)
    if found is None and data.startswith(("http://", "https://")):
        return Document(url=data, name=name, cache=cache)
    media_type, data = found or ("application/pdf", data)
    return Document(media_type if data else "", data, file_id=as_text(file.get("file_id")), name=name, cache=cache)


def _mistral_thinking(part: Mapping[str, object]) -> Thinking:
    inner = part.get("thinking")
    if isinstance(inner, list):
        return Thinking("".join(as_text(piece.get("text")) for piece in objects(inner)))
    return Thinking(as_text(inner), as_text(part.get("signature")) or None)


def _thinking(message: Mapping[str, object]) -> Iterator[Thinking]:
    text = as_text(message.get("reasoning_content")) or as_text(message.get("reasoning"))
    details = list(objects(message.get("reasoning_details")))
    blocks = list(objects(message.get("thinking_blocks")))
    if details:
        yield from _details(details, text)
    elif blocks:
        for block in blocks:
            if block.get("type") == "redacted_thinking":
                yield Thinking(encrypted=as_text(block.get("data")), format=ANTHROPIC)
            else:
                yield Thinking(
                    as_text(block.get("thinking")), as_text(block.get("signature")) or None, format=ANTHROPIC
                )
    elif text:
        yield Thinking(text)


def _details(details: list[dict[str, object]], text: str) -> Iterator[Thinking]:
    said = any(detail.get("text") or detail.get("summary") for detail in details)
    for number, detail in enumerate(details):
        format, identity = as_text(detail.get("format")) or None, as_text(detail.get("id")) or None
        own = as_text(detail.get("text")) or as_text(detail.get("summary"))
        if not said and not number:
            own = text  # the text came beside the details, which hold the seal alone
        signature = as_text(detail.get("signature")) or None
        encrypted = as_text(detail.get("data")) or None
        if own or signature or encrypted:
            yield Thinking(own, signature, encrypted, identity, format)


def _calls(message: Mapping[str, object]) -> Iterator[Part]:
    calls = message.get("tool_calls")
    for call in objects(calls):
        if call.get("type") not in (None, "function"):
            yield Native(CLIENT, as_text(call.get("type")), call)
            continue
        function = as_mapping(call.get("function"))
        google = as_mapping(as_mapping(call.get("extra_content")).get("google"))
        yield ToolCall(
            as_text(call.get("id")),
            as_text(function.get("name")),
            _arguments(function.get("arguments")),
            as_text(google.get("thought_signature")) or None,
        )
    legacy = message.get("function_call")
    if isinstance(legacy, dict) and not calls:
        name = as_text(legacy.get("name"))
        yield ToolCall(name, name, _arguments(legacy.get("arguments")))


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else encode_json(value).decode()
