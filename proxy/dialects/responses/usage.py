"""Usage of the Responses API, read and written: input includes cached tokens, output includes reasoning.

`read_usage` takes a vendor's object into our vocabulary, `told_usage` makes what a client of this grammar gets. What a
vendor did not say is our count, and then `estimated` says so. (contract W4, L2)
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.usage import Count, Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.payload import as_count, as_mapping


def read_usage(vendor: Mapping[str, object]) -> Usage:
    given = as_mapping(vendor.get("input_tokens_details"))
    made = as_mapping(vendor.get("output_tokens_details"))
    return Usage(
        figure(vendor, "input_tokens"),
        figure(vendor, "output_tokens"),
        figure(given, "cached_tokens"),
        figure(given, "cache_write_tokens"),
        figure(made, "reasoning_tokens"),
        total=figure(vendor, "total_tokens"),
    )


def told_usage(usage: Usage, native: Mapping[str, object] | None, count: Count) -> dict[str, object]:
    """With every field that typed clients read, and those of a vendor of this family that we do not know."""
    own = native or {}
    given, made = usage.filled(count)
    total = as_count(own.get("total_tokens")) if usage.is_whole else None
    told: dict[str, object] = {
        **own,
        "input_tokens": given,
        "input_tokens_details": {
            "cache_write_tokens": usage.cache_write or 0,
            "cached_tokens": usage.cache_read or 0,
            **_said(own.get("input_tokens_details")),
        },
        "output_tokens": made,
        "output_tokens_details": {
            "reasoning_tokens": usage.reasoning or 0,
            **_said(own.get("output_tokens_details")),
        },
        "total_tokens": given + made if total is None else total,
    }
    return told if usage.is_whole else {**told, "estimated": True}


def _said(details: object) -> dict[str, object]:
    return {name: value for name, value in as_mapping(details).items() if value is not None}
