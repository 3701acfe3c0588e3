"""Models of transformers that take token ids with their mask and positions: `model(tids=…, mask=…, pos=…)`.

In: what a request has under `tids`, `mask` and `pos` (and `x_segments`), as mappings or as the format's values. Out:
the usual output, with `logits` for every id. Whoever passes `input_ids` gets what the class below gives, untouched, and
so does `generate`. The weights are the model's own: what trains it is seen at once, and gradients go through.

    model = ToonLlamaForCausalLM.from_pretrained(folder)
    model(tids={"v": "2.1", "ids": [1, 2]}, mask={…}, pos={"base": "rope", "offset": 10, "stride": 2}).logits
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Final, TypeVar

import msgspec
import torch
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MptConfig,
    MptForCausalLM,
)
from transformers.modeling_outputs import CausalLMOutputWithPast

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import ToonRequest, parse_toon
from proxy.toon.card import Card
from proxy.toon.fitting import misfit
from proxy.toon.model.families import decoder_of, named_of
from proxy.toon.model.masks import Sight
from proxy.toon.model.plan import TextOf, view_of
from proxy.toon.model.step import Decoder, Step
from proxy.toon.model.weights import Weights

_NEW: Final = ("tids", "mask", "pos", "x_segments", "text_of")
_PLAIN_MASK: Final = {"type": "causal", "scope": "full", "fallback": "none"}
_PLAIN_POS: Final = {"base": "none", "offset": 0, "stride": 1}
_Model = TypeVar("_Model", bound=type)


def _takes_tids(model: _Model) -> _Model:
    """Gives the class a `forward` that tells by `tids` what is asked. `generate` looks at its signature."""
    standard = model.forward  # type: ignore[attr-defined] # every model of transformers has it

    @wraps(standard)
    def forward(self: Any, *args: Any, tids: object = None, **named: Any) -> Any:
        asked = {name: named.pop(name, None) for name in _NEW[1:]}
        if tids is None:
            if extra := [name for name, value in asked.items() if value is not None]:
                raise ValueError(f"`{extra[0]}` goes with `tids`")
            return standard(self, *args, **named)
        if args or any(value is not None for value in named.values()):
            raise ValueError(f"with `tids` go {', '.join(_NEW[1:])}, and nothing else")
        return CausalLMOutputWithPast(logits=_logits(self, tids, **asked))

    signature = inspect.signature(standard)
    known = list(signature.parameters.values())
    new = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in _NEW]
    rest = [known.pop()] if known[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    forward.__signature__ = signature.replace(parameters=[*known, *new, *rest])  # type: ignore[attr-defined] # PEP 362
    model.forward = forward  # type: ignore[attr-defined] # as above
    return model


class _KeepsNothing:
    """All ids are run at once."""

    def append(self, _layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k, v


def _logits(
    model: Any, tids: object, *, mask: object, pos: object, x_segments: object, text_of: TextOf | None
) -> Tensor:
    """[1, ids, vocab]."""
    decoder = decoder_of(model.config, Weights(named_of(model)))
    card = _card(model.config, decoder)
    body = {"tids": tids, "mask": mask or _PLAIN_MASK, "pos": pos or _PLAIN_POS}
    request = _request(body if x_segments is None else {**body, "x_segments": x_segments}, card)
    count = len(request.tids.ids)
    sight = _sight(request, card, text_of or _no_texts)
    offset, stride = (0, 1) if request.pos.base == "none" else (request.pos.offset, request.pos.stride)
    step = Step(
        ids=torch.tensor([request.tids.ids], device=decoder.device),
        positions=torch.tensor([list(range(offset, offset + stride * count, stride))], device=decoder.device),
        mask=sight.rows(0, count, count)[None, None].to(decoder.device) if sight.needs_mask else None,
    )
    return decoder.run(step, _KeepsNothing())


def _card(config: Any, decoder: Decoder) -> Card:
    shape = decoder.shape
    version, pad = config.tokenizer_version, getattr(config, "pad_token_id", None)
    return Card(version, shape.vocab, shape.context, shape.base, pad, frozenset(), shape.context, frozenset())


def _request(body: dict[str, object], card: Card) -> ToonRequest:
    """Checked like any other, but that nothing is generated. Raises `ValueError`."""
    parsed = parse_toon(msgspec.json.encode({**body, "max_tokens": 1}))
    if isinstance(parsed, BadRequest):
        raise _refused(parsed)
    if parsed.tids.v != card.version:
        message = f"This model's tokenizer has the version {card.version}, and the ids are of {parsed.tids.v}."
        raise _refused(BadRequest("unsupported_version", message, "/tids/v"))
    request = msgspec.structs.replace(parsed, max_tokens=0)
    if (bad := misfit(request, card)) is not None:
        raise _refused(bad)
    return request


def _sight(request: ToonRequest, card: Card, text_of: TextOf) -> Sight:
    ids = request.tids.ids
    view = view_of(request, card, range(len(ids)), text_of)
    if request.mask.type == "padding":
        view = replace(view, hidden=tuple(at for at, one in enumerate(ids) if one == card.pad))
    return Sight(view)


def _no_texts(_ids: Sequence[int]) -> list[str]:
    raise ValueError("`legal_citation` looks at the text of each id: pass `text_of`, from ids to their texts")


def _refused(bad: BadRequest) -> ValueError:
    return ValueError(f"{bad.code} at `{bad.param}`: {bad.message}")


class ToonLlamaConfig(LlamaConfig):  # type: ignore[misc] # transformers is not typed
    model_type = "toon_llama"
    tokenizer_version: str = "1.0"


class ToonGPT2Config(GPT2Config):  # type: ignore[misc] # transformers is not typed
    model_type = "toon_gpt2"
    tokenizer_version: str = "1.0"


class ToonMptConfig(MptConfig):  # type: ignore[misc] # transformers is not typed
    model_type = "toon_mpt"
    tokenizer_version: str = "1.0"


@_takes_tids
class ToonLlamaForCausalLM(LlamaForCausalLM):  # type: ignore[misc] # transformers is not typed
    config_class = ToonLlamaConfig


@_takes_tids
class ToonGPT2LMHeadModel(GPT2LMHeadModel):  # type: ignore[misc] # transformers is not typed
    config_class = ToonGPT2Config


@_takes_tids
class ToonMptForCausalLM(MptForCausalLM):  # type: ignore[misc] # transformers is not typed
    config_class = ToonMptConfig


def register() -> None:
    """`AutoConfig` and `AutoModelForCausalLM` know these classes from here on; once more changes nothing."""
    for config, model in _CLASSES:
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModelForCausalLM.register(config, model, exist_ok=True)


_CLASSES: Final[Sequence[tuple[Any, Callable[..., Any]]]] = (
    (ToonLlamaConfig, ToonLlamaForCausalLM),
    (ToonGPT2Config, ToonGPT2LMHeadModel),
    (ToonMptConfig, ToonMptForCausalLM),
)
register()
