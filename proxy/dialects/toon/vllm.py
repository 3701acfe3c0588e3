"""The token route over vLLM: `/v1/completions` with token ids as the prompt, and token ids in the answer.

In: a TOON request. Out: vLLM's body, or what it cannot be told. vLLM has no field for a mask or for positions, so only
what it does anyway may be asked: a causal mask over everything, positions from 0 by 1 (or `base: none`, which only
numbers the answer). Anything else is refused, for a mask that is silently dropped changes the answer. Source: vLLM's
OpenAI compatible server, `return_token_ids`; read in its documentation and source, never captured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.base import BadRequest
from proxy.dialects.openai_usage import read_usage
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json, is_empty
from proxy.dialects.reading import JsonReader
from proxy.dialects.toon.incoming import ToonIncoming
from proxy.dialects.toon.outline import Outline
from proxy.dialects.toon.read import are_ids, ids_delta

_ENVELOPE = frozenset(("id", "object", "created", "model", "choices", "usage", "error"))


def ask_vllm(incoming: ToonIncoming, model: str) -> bytes | BadRequest:
    """The body for vLLM's completions."""
    asked = incoming.asked
    if (refused := _beyond(asked)) is not None:
        return refused
    body: dict[str, object] = {
        "model": model,
        "max_tokens": asked.max_tokens,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "return_token_ids": True,
        # Ids are complete as they are: a beginning-of-text id in front would shift every position.
        "add_special_tokens": False,
        "skip_special_tokens": False,
    }
    if asked.seed is not None:
        body["seed"] = asked.seed
    if asked.stop_ids:
        body["stop_token_ids"] = asked.stop_ids
    if asked.logprobs is not None:
        # With names of ids for tokens, or two tokens of one text could not be told apart.
        body |= {"logprobs": asked.logprobs, "return_tokens_as_token_ids": True}
    if asked.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    format = b"" if asked.response_format is None else b',"response_format":' + asked.response_format
    return encode_json(body)[:-1] + b',"prompt":' + asked.ids + format + b"}"


def _beyond(asked: Outline) -> BadRequest | None:
    """What vLLM would not do."""
    if asked.mask_type != "causal":
        return _refused("unsupported_mask", f"the mask type `{asked.mask_type}`; send `causal`", "/mask/type")
    if asked.scope != "full":
        return _refused("unsupported_mask", f"the scope `{asked.scope}`; send `full`", "/mask/scope")
    if asked.strips:
        return _refused("unsupported_parameter", "to strip special tokens; leave them out", "/x_special_tokens")
    if asked.base != "none" and (asked.offset or asked.stride != 1):
        wanted = "positions other than 0, 1, 2…; send offset 0 and stride 1, or base `none` to number the answer alone"
        return _refused("unsupported_positions", wanted, "/pos/offset" if asked.offset else "/pos/stride")
    return None


def _refused(code: str, what: str, pointer: str) -> BadRequest:
    return BadRequest(code, f"This model is served by vLLM, which cannot be told {what}.", pointer)


class VllmReader(JsonReader):
    """`token_ids` of a choice are the ids of this delta; without them an answer's text would be all there is, and that
    is an error: a vLLM older than `return_token_ids` ignores the wish. So is a prompt of more or fewer ids than were
    sent, for then none of the answer stands where it says."""

    has_done = True

    def __init__(self, sent: Mapping[str, object]) -> None:
        super().__init__()
        asked = sent.get("toon")
        self._prompt_ids = asked.count if isinstance(asked, Outline) else None

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        choices = value.get("choices")
        usage = value.get("usage")
        if value.get("error") or event == "error":
            return ErrorSeen(value, data)
        said = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
        if not said and (not isinstance(usage, dict) or is_empty(usage)):
            return self.foreign(value, data, event, _ENVELOPE)
        if not all(map(_tells_ids, said)):
            return ErrorSeen(_NO_IDS, data)
        prompt = next((one for choice in said if isinstance(one := choice.get("prompt_token_ids"), list)), None)
        if prompt is not None and self._prompt_ids not in (None, len(prompt)):
            return ErrorSeen(_OTHER_PROMPT, data)
        return Chunk(
            [_delta(choice) for choice in said],
            id=as_text(value.get("id")),
            created=as_count(value.get("created")) or 0,
            model=as_text(value.get("model")),
            usage=as_mapping(usage) or None,
            extra=NOTHING if prompt is None else {"x_prompt_ids": len(prompt)},
        )

    def read_whole(self, data: bytes) -> Parsed:
        return self.read(data, None, one_line=False)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        return read_usage(vendor)


def _tells_ids(choice: Mapping[str, Any]) -> bool:
    """A choice without text may do without ids; what is there must be ids."""
    ids = choice.get("token_ids")
    return not choice.get("text") if ids is None else are_ids(ids)


#: What stands for an answer without ids, in the words that rules/vllm.yaml knows.
_NO_IDS = {"error": {"message": "the answer has text and no token_ids", "type": "sluice", "code": "no_token_ids"}}
_OTHER_PROMPT = {
    "error": {"message": "the prompt is not as long as what was sent", "type": "sluice", "code": "prompt_changed"}
}


def _delta(choice: Mapping[str, Any]) -> Delta:
    """The id that stopped it is generated too, and is no part of the answer. `stop_reason` is that id where the request
    named it, and None where it is the model's own end: no words to stop at are ever sent, so nothing else can be."""
    ids, finish = choice.get("token_ids"), as_text(choice.get("finish_reason"))
    shown = _logprobs(as_mapping(choice.get("logprobs")))
    stop_id = choice.get("stop_reason")
    if finish == "stop" and isinstance(ids, list) and ids and stop_id in (None, ids[-1]):
        stop_id = ids[-1]
        ids, shown = ids[:-1], shown[: len(ids) - 1]
    return ids_delta(ids, shown, finish, stop_id, choice=as_count(choice.get("index")) or 0)


def _logprobs(told: Mapping[str, object]) -> list[dict[str, object]]:
    """`{"tokens": ["token_id:5"], "token_logprobs": [-0.1], "top_logprobs": [{…}]}` as TOON says it."""
    names, chances, tops = (told.get(name) for name in ("tokens", "token_logprobs", "top_logprobs"))
    if not isinstance(names, list) or not isinstance(chances, list):
        return []
    rows = tops if isinstance(tops, list) and len(tops) == len(names) else [None] * len(names)
    return [
        {"id": _id_of(name), "logprob": chance, "top": [[_id_of(n), p] for n, p in as_mapping(top).items()]}
        for name, chance, top in zip(names, chances, rows, strict=False)
    ]


def _id_of(name: object) -> int | None:
    """`token_id:5` is 5."""
    word, _, number = as_text(name).partition(":")
    return int(number) if word == "token_id" and number.isdecimal() else None
