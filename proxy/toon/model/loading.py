"""A Hugging Face folder on this machine becomes a decoder.

In: a folder, and where and in which precision to run. Out: a decoder that is ready; the module that the weights came in
is let go. Never: the network, code out of the folder, or a model that would be run only nearly right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from proxy.toon.model.adapter import register
from proxy.toon.model.families import decoder_of, family_of, named_of
from proxy.toon.model.step import Decoder
from proxy.toon.model.weights import UnsupportedModel, Weights

_DTYPES: Final = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def load_model(folder: Path, *, device: str = "auto", dtype: str = "float32") -> Decoder:
    """`device`: `auto` (a GPU where there is one) or as torch names them; `dtype`: `auto` or a precision."""
    where = choose_device(device)
    precision = choose_dtype(dtype, where)
    register()
    disable_progress_bar()  # it would draw into the log
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        family_of(config)
        model, report = AutoModelForCausalLM.from_pretrained(
            folder, config=config, dtype=precision, local_files_only=True, output_loading_info=True
        )
    except (OSError, ValueError) as error:
        raise UnsupportedModel(f"{folder} does not load: {error}") from error
    _check(folder, report)
    named = named_of(model)
    del model
    return decoder_of(config, Weights(named, where, join=True))


def _check(folder: Path, report: dict[str, Any]) -> None:
    """transformers makes weights up where some are missing, and leaves out those that it does not know."""
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if names := sorted(str(name) for name in report[kind]):
            what = kind.removesuffix("_keys")
            raise UnsupportedModel(f"{folder}: {len(names)} weights are {what}, among them {', '.join(names[:3])}")


def choose_device(asked: str) -> torch.device:
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
    except RuntimeError as error:
        raise UnsupportedModel(f"there is no device `{asked}`") from error
    if device.type not in ("cpu", "cuda"):
        raise UnsupportedModel(f"the device `{asked}` is not supported: cpu and cuda are")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UnsupportedModel(f"the device `{asked}` is not there: torch sees no GPU")
    return device


def choose_dtype(asked: str, device: torch.device) -> torch.dtype:
    """On a CPU half precision is several times slower to read a prompt, so `auto` takes single precision there."""
    if asked == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if asked not in _DTYPES:
        raise UnsupportedModel(f"the precision `{asked}` is not supported: auto, {', '.join(_DTYPES)} are")
    return _DTYPES[asked]
