"""A response without its output: what the real API says back of the request, so that typed clients find every field.

In: the client's body. Out: the fields of a response object that do not depend on the answer. Never checks them: what
was wrong has been refused, here or by the vendor.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.dialects.payload import as_mapping

#: By default. `store` is what holds here: nothing is kept, unless a vendor of this family says that it did.
_USUAL: Mapping[str, object] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "service_tier": None,
    "store": False,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
    "metadata": {},
}
_NOT_STORED = ("store", "service_tier")


def said_back(asked: Mapping[str, object]) -> dict[str, object]:
    given = {name: asked[name] for name in _USUAL if name not in _NOT_STORED and asked.get(name) is not None}
    tools = asked.get("tools")
    return {
        **_USUAL,
        **given,
        "reasoning": {"effort": None, "summary": None, **as_mapping(asked.get("reasoning"))},
        "text": {"format": {"type": "text"}, **as_mapping(asked.get("text"))},
        "tools": [_tool(tool) for tool in tools] if isinstance(tools, list) else [],
    }


def _tool(tool: object) -> object:
    """A function with all that typed clients read."""
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": None, **tool}
