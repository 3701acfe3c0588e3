"""What a vendor's rule file says that it does not take (`request_fields: {name: false}`), left out for every dialect.

In: a request, and the vendor's own names of fields. Out: the request without those that it takes by no name. Names that
it has for the others are each dialect's own business.
"""

from __future__ import annotations

from dataclasses import replace

from proxy.canon.request import Request, ToolChoice
from proxy.dialects.base import Losses, Ways

# Fields that are called otherwise here than in chat completions.
_NAMED = {
    "parallel_tool_calls": "parallel_tools",
    "response_format": "format",
    "reasoning_effort": "reasoning",
}
_FIELDS = frozenset(
    (
        *(
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "max_tokens",
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "stop",
        ),
        *("seed", "frequency_penalty", "presence_penalty", "n", "logprobs", "top_logprobs", "logit_bias"),
        *("response_format", "reasoning_effort", "user"),
    )
)
#: Wishes that make no answer wrong: whose it is, how long to think about it, whether calls come one by one.
_WISHES = frozenset(("user", "reasoning_effort", "parallel_tool_calls"))


def taken(request: Request, losses: Losses, ways: Ways) -> Request:
    """Also reports a tool that must be called where there is none."""
    refused = [name for name, own in ways.items() if own is None and name in _FIELDS]
    for name in refused:
        field = _NAMED.get(name, name)
        if getattr(request, field) in (None, ()):
            continue
        losses.hint(name) if name in _WISHES or _asks_nothing(request, name) else losses.add(name)
        request = replace(request, **{field: () if field in ("tools", "stop") else None})  # type: ignore[arg-type]  # by name
    if not request.tools and request.tool_choice is not None and request.tool_choice.mode in ("required", "one"):
        losses.add("tool_choice")
    return request


def _asks_nothing(request: Request, name: str) -> bool:
    return name == "tool_choice" and request.tool_choice == ToolChoice("auto")
