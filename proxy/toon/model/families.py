"""Which decoder runs which kind of model, by its configuration's `model_type`.

In: a configuration and weights by name. Out: a decoder, or `UnsupportedModel` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import Tensor

from proxy.toon.model.gpt2 import Gpt2Decoder
from proxy.toon.model.llama import LlamaDecoder
from proxy.toon.model.mpt import MptDecoder
from proxy.toon.model.step import Decoder
from proxy.toon.model.weights import UnsupportedModel, Weights

_FAMILIES: Final[Mapping[str, Callable[[Any, Weights], Decoder]]] = {
    "llama": LlamaDecoder,
    "gpt2": Gpt2Decoder,
    "mpt": MptDecoder,
}


def decoder_of(config: Any, weights: Weights) -> Decoder:
    return family_of(config)(config, weights)


def family_of(config: Any) -> Callable[[Any, Weights], Decoder]:
    """Our own classes (`toon_llama`) have the weights of the family they are of."""
    kind = str(config.model_type).removeprefix("toon_")
    if kind not in _FAMILIES:
        raise UnsupportedModel(f"models of the type `{kind}` are not supported: {', '.join(_FAMILIES)} are")
    if getattr(config, "quantization_config", None) is not None:
        raise UnsupportedModel("packed weights are not taken: save the model unpacked")
    return _FAMILIES[kind]


def named_of(module: torch.nn.Module) -> dict[str, Tensor]:
    """A model's weights by their names, tied ones by each of theirs."""
    return dict(module.named_parameters(remove_duplicate=False))
