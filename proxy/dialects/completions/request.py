"""A text-completions request: as it goes to a vendor that has this API, and in canonical form (contract Q1).

In: the body's bytes. Out: a parsed request, or the caller's mistake. To any other family a prompt is one message of the
user; several prompts, and prompts of token ids, are only for vendors of this API.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.request import Message, Request, Text
from proxy.dialects.base import BadRequest
from proxy.dialects.incoming import Incoming, parse_body
from proxy.dialects.parts import Fields
from proxy.dialects.payload import as_mapping, as_text

CLIENT = "completions"


def parse_completions_request(data: bytes) -> Incoming | BadRequest:
    parsed = parse_body(data)
    if isinstance(parsed, BadRequest):
        return parsed
    body, text = parsed
    options = body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        return BadRequest("invalid_type", "`stream_options` must be an object.", "stream_options")
    return Incoming(
        CLIENT,
        body,
        len(data),
        text,
        parse_completions,
        usage=as_mapping(options).get("include_usage") is True,
        json=False,
        native=_usage_wanted if body.get("stream") is True else None,
    )


def _usage_wanted(body: Mapping[str, object]) -> Mapping[str, object]:
    """Usage is always asked for: the ledger wants it."""
    return {"stream_options": {**as_mapping(body.get("stream_options")), "include_usage": True}}


def parse_completions(body: Mapping[str, object]) -> Request | BadRequest:
    fields = Fields(body)
    fields.get("stream_options")
    prompt = fields.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str) or not prompt:
        wanted = "one text, for this model: several prompts and token ids go only to vendors that have this API"
        return BadRequest("unsupported_prompt", f"`prompt` must be {wanted}.", "prompt")
    shown = fields.whole("logprobs")
    request = Request(
        client=CLIENT,
        model=as_text(fields.get("model")),
        messages=(Message("user", (Text(prompt),)),),
        stream=fields.flag("stream") or False,
        max_tokens=fields.whole("max_tokens"),
        temperature=fields.number("temperature"),
        top_p=fields.number("top_p"),
        top_k=fields.whole("top_k"),
        min_p=fields.number("min_p"),
        stop=fields.words("stop"),
        seed=fields.whole("seed"),
        frequency_penalty=fields.number("frequency_penalty") or None,
        presence_penalty=fields.number("presence_penalty") or None,
        n=_said_unless(fields.whole("n"), 1),
        logprobs=True if shown is not None else None,
        top_logprobs=shown or None,
        logit_bias=fields.mapping("logit_bias") or None,
        user=fields.text("user"),
        extra={name: value for name, value in fields.extra().items() if value not in _MEANS_NOTHING.get(name, ())},
    )
    return fields.bad or request


#: Values of the API's own fields that ask for nothing.
_MEANS_NOTHING: Mapping[str, tuple[object, ...]] = {"echo": (False,), "best_of": (1,), "suffix": ("",)}


def _said_unless(value: int | None, usual: int) -> int | None:
    return None if value == usual else value
