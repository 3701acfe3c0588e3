"""A chat as ids: the conversation through the model's own template, and its sampling as a TOON request (docs/toon.md).

In: a chat-completions body. Out: a `Chat`, or the caller's mistake. What a small local model cannot do (tools, several
choices, pictures) is refused by name rather than left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from proxy.canon.request import Message, Request, Text
from proxy.dialects.base import BadRequest
from proxy.dialects.incoming import Incoming
from proxy.dialects.openai import CLIENT as CHAT
from proxy.dialects.toon.format import MAX_IDS, Mask, Pos, ResponseFormat, Tids, ToonRequest
from proxy.toon.service.models import ServedModel
from proxy.toon.tokenizers import TemplateError

_MASK = Mask("causal", "full", "none")
_POS = Pos("none", 0, 1)
_BEYOND = ("tools", "frequency_penalty", "presence_penalty", "logit_bias", "top_k", "min_p")
_MOST_LOGPROBS = 20
_MOST_SEED = 2**63 - 1
#: A `top_p` of 0 leaves the likeliest id alone.
_LEAST_TOP_P = 1e-9
#: Between which values a field may be; beyond them the engine's arithmetic would fail, for all that run with it.
_RANGES = {"max_tokens": (1, math.inf), "temperature": (0, 2), "top_p": (0, 1), "top_logprobs": (0, _MOST_LOGPROBS)}


@dataclass(frozen=True, slots=True)
class Chat:
    """`toon` is what the engine is asked; `stop` are words that end the answer, and are no part of it."""

    toon: ToonRequest
    stop: tuple[str, ...]
    stream: bool
    usage: bool


def parse_chat(body: bytes) -> Incoming | BadRequest:
    parsed = CHAT.parse(body)
    assert isinstance(parsed, Incoming | BadRequest), "as the chat dialect parses"
    return parsed


def as_ids(incoming: Incoming, model: ServedModel) -> Chat | BadRequest:
    """Work that grows with the conversation: call it in a thread."""
    request = incoming.canonical
    if isinstance(request, BadRequest):
        return request
    if (beyond := _beyond(request)) is not None:
        return beyond
    try:
        ids = model.tokenizer.chat_ids([_told(message) for message in request.messages])
    except TemplateError as error:
        return BadRequest("invalid_value", f"The model's chat template refuses the conversation: {error}.", "messages")
    room = min(model.card.context, MAX_IDS) - len(ids)
    if room < 1 or (request.max_tokens or 1) > room:
        message = f"The conversation has {len(ids)} ids, which leaves room for {max(room, 0)} of the model's context."
        return BadRequest("context_length_exceeded", message, "messages")
    toon = ToonRequest(
        Tids(model.card.version, ids),
        _MASK,
        _POS,
        max_tokens=request.max_tokens or room,
        temperature=1.0 if request.temperature is None else request.temperature,
        top_p=1.0 if request.top_p is None else max(request.top_p, _LEAST_TOP_P),
        seed=UNSET if request.seed is None else request.seed & _MOST_SEED,
        logprobs=(request.top_logprobs or 0) if request.logprobs else UNSET,
        response_format=_format(request),
    )
    return Chat(toon, request.stop, request.stream, incoming.usage)


def _beyond(request: Request) -> BadRequest | None:
    said = [name for name in _BEYOND if getattr(request, name)]
    if request.n not in (None, 1):
        said.append("n")
    if said:
        return BadRequest("unsupported_parameter", f"This model cannot be told `{said[0]}`; leave it out.", said[0])
    for name, (least, most) in _RANGES.items():
        value = getattr(request, name)
        if value is not None and not least <= value <= most:
            wanted = f"{least} or more" if value < least else f"at most {most}"
            return BadRequest("invalid_value", f"`{name}` must be {wanted}; it is {value}.", name)
    for message in request.messages:
        if not all(isinstance(part, Text) for part in message.parts):
            where = f"messages[{message.at}]"
            return BadRequest("unsupported_parameter", f"This model reads text alone; see {where}.", where)
    return None


def _told(message: Message) -> dict[str, str]:
    role = "system" if message.role == "developer" else message.role
    return {"role": role, "content": message.text}


def _format(request: Request) -> ResponseFormat | UnsetType:
    if request.format is None:
        return UNSET
    if request.format.schema is None:
        return ResponseFormat("json_object")
    return ResponseFormat("json_schema", {"name": request.format.name, "schema": dict(request.format.schema)})
