"""Usage of the OpenAI family, read and written: prompt includes cached tokens, completion includes reasoning.

`read_usage` takes a vendor's object into our vocabulary; `client_usage` and `usage_of` make what a client of chat
completions gets (contract W4, L2). What a vendor did not say is our count, and then `estimated` says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.usage import Count, Usage
from proxy.dialects.payload import as_count, as_mapping


def read_usage(vendor: Mapping[str, object]) -> Usage:
    """What the vendor reported. Where it keeps reasoning outside of completion (xAI), its own total tells: prompt +
    completion + reasoning = total."""
    prompt = figure(vendor, "prompt_tokens", "input_tokens")
    completion = figure(vendor, "completion_tokens", "output_tokens")
    total = figure(vendor, "total_tokens")
    details = as_mapping(vendor.get("completion_tokens_details"))
    reasoning = figure(details, "reasoning_tokens") if details else None
    added = 0
    if prompt is not None and completion is not None and reasoning and total == prompt + completion + reasoning:
        added = reasoning
        completion += added
    cached = as_mapping(vendor.get("prompt_tokens_details"))
    cache_read = figure(cached, "cached_tokens") if cached else None
    if cache_read is None:
        cache_read = figure(vendor, "prompt_cache_hit_tokens", "cached_tokens")
    cache_write = figure(cached, "cache_write_tokens") if cached else None
    return Usage(prompt, completion, cache_read, cache_write, reasoning, reasoning_added=added, total=total)


def client_usage(usage: Usage, native: Mapping[str, object] | None, count: Count) -> dict[str, object]:
    """What a client gets: `native` where the vendor is of this family, else what `usage` says."""
    return own_usage(usage, native, count) if native is not None else usage_of(usage, count)


def own_usage(usage: Usage, vendor: Mapping[str, object], count: Count) -> dict[str, object]:
    """The vendor's own object, of which `usage` was read, with every field that we do not know, in OpenAI's terms."""
    prompt, completion = usage.filled(count)
    told = dict(vendor)
    total = figure(vendor, "total_tokens")
    if not usage.is_whole:
        told["estimated"] = True
        total = None
    if total is not None and usage.reasoning_added + usage.cache_added:
        total = max(total, prompt + completion)  # a total that leaves out what its figures do
    told["prompt_tokens"], told["completion_tokens"] = prompt, completion
    told["total_tokens"] = prompt + completion if total is None else total
    return told


def usage_of(usage: Usage, count: Count) -> dict[str, object]:
    """The figures of a vendor of another family, or our own count where it gave none."""
    prompt, completion = usage.filled(count)
    told: dict[str, object] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    cached = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    if details := {name: tokens for name, tokens in cached.items() if tokens is not None}:
        told["prompt_tokens_details"] = details
    if usage.reasoning is not None:
        told["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    if not usage.is_whole:
        told["estimated"] = True
    return told


def figure(vendor: Mapping[str, object], *names: str) -> int | None:
    """A number of tokens under the first of these names that has one, also where it is written as text or as 12.0."""
    for name in names:
        value = vendor.get(name)
        if type(value) is int and value >= 0:
            return value
        if (tokens := tokens_of(value)) is not None:
            return tokens
    return None


def tokens_of(value: object) -> int | None:
    """The value, if it is a number of tokens."""
    return as_count(_whole(value))


def _whole(value: object) -> object:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
