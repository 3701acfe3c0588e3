"""A canonical request as a text completion, for a vendor that serves base models.

In: a request of a client of another family. Out: the body, and what could not be said in it: a base model knows one
text, so roles, tools, images and formats are lost.
"""

from __future__ import annotations

from proxy.canon.request import Request, Text
from proxy.dialects.base import Losses, Ways
from proxy.dialects.plain import no_reasoning
from proxy.dialects.taken import taken

_PLAIN = (
    *("max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty", "n"),
    *("logit_bias", "user"),
)
# A newer name that chat completions alone have: the API of base models is not developed any further.
_OF_CHAT = ("max_completion_tokens",)


def send_completions(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    body: dict[str, object] = {"model": model, "prompt": _prompt(request, losses)}
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    named: dict[str, object] = {name: getattr(request, name) for name in _PLAIN}
    named["stop"] = list(request.stop) or None
    if request.logprobs:
        named["logprobs"] = request.top_logprobs or 0
    for name, value in named.items():
        told = ways.get(name) or name
        if value is not None:
            body[name if told in _OF_CHAT else told] = value
    losses.fields(request, "tools")
    if request.format is not None:
        losses.add("response_format")
    no_reasoning(request, losses)
    losses.extra(request)
    return body


def _prompt(request: Request, losses: Losses) -> str:
    for message in request.messages:
        if message.role != "user" or len(request.messages) > 1:
            losses.part(message.at, "role")
        for part in message.parts:
            if not isinstance(part, Text):
                losses.unknown_part(message.at, part)
    return "\n\n".join(message.text for message in request.messages if message.text)
