"""Temperature, top_p and top_k as a Claude model takes them.

In: what was asked, the model, whether it thinks. Out: the three under their own names, those that it takes. Temperature
goes up to 1. Beside thinking only a high top_p is taken; the newest models take no sampling at all, and those before
them one kind at a time. (Anthropic's documentation: thinking, "Configurations that each model rejects")
"""

from __future__ import annotations

from proxy.canon.request import Request
from proxy.dialects.base import Losses
from proxy.dialects.claude.models import Model

_LEAST_TOP_P = 0.95  # beside thinking


def sampling_of(request: Request, kind: Model, losses: Losses, *, thinks: bool) -> dict[str, float]:
    temperature, top_p, top_k = request.temperature, request.top_p, request.top_k
    told: dict[str, float] = {}
    if temperature is not None and (thinks or not kind.takes_sampling) and temperature != 1:
        losses.add("temperature")
    elif temperature is not None and kind.takes_sampling and not thinks:
        if temperature > 1:
            losses.add("temperature")
        told["temperature"] = min(temperature, 1)
    if top_p is not None and top_p < 1:  # 1 is what nobody having said anything means
        is_one_too_many = "temperature" in told and not kind.takes_both_samplings
        if not kind.takes_sampling or (thinks and top_p < _LEAST_TOP_P) or is_one_too_many:
            losses.add("top_p")
        else:
            told["top_p"] = top_p
    if top_k is not None:
        if thinks or not kind.takes_sampling:
            losses.add("top_k")
        else:
            told["top_k"] = top_k
    return told
