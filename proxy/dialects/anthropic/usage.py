"""Usage of the Messages family, read and written: input stands beside what a cache gave and took, not around it.

A stream spreads it over two events, so a reader hands it on as `{event name: object}`, verbatim; a plain answer has one
object. Later figures replace earlier ones, which are running totals. (facts of vendors, 3; contract L2, D1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from proxy.canon.usage import Count, Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.payload import as_count, as_mapping

START, DELTA = "message_start", "message_delta"


def is_spread(vendor: Mapping[str, object]) -> bool:
    """Is it the usage of a stream, by event names?"""
    return START in vendor or DELTA in vendor


def read_usage(vendor: Mapping[str, object]) -> Usage:
    """In our vocabulary. The output that `message_start` names is only what was there when it was sent."""
    if not is_spread(vendor):
        return _read(vendor, vendor)
    start, last = as_mapping(vendor.get(START)), as_mapping(vendor.get(DELTA))
    said = {name: value for name, value in last.items() if value is not None}
    return replace(_read({**start, **said}, last), is_final=DELTA in vendor)


def _read(inputs: Mapping[str, object], outputs: Mapping[str, object]) -> Usage:
    uncached = figure(inputs, "input_tokens")
    cache_read = figure(inputs, "cache_read_input_tokens")
    cache_write = figure(inputs, "cache_creation_input_tokens")
    beside = (cache_read or 0) + (cache_write or 0)
    return Usage(
        None if uncached is None else uncached + beside,
        figure(outputs, "output_tokens"),
        cache_read,
        cache_write,
        figure(as_mapping(outputs.get("output_tokens_details")), "thinking_tokens"),
        cache_added=beside,
    )


def start_usage(vendor: Mapping[str, object] | None) -> dict[str, object]:
    """What `message_start` says: the vendor's own where it is of this family, else that nothing is known yet."""
    start = dict(as_mapping((vendor or {}).get(START)))
    return {**start, **{name: as_count(start.get(name)) or 0 for name in ("input_tokens", "output_tokens")}}


def last_usage(usage: Usage, native: Mapping[str, object] | None, count: Count) -> dict[str, object]:
    """What `message_delta` says, or a plain answer: the vendor's own object, made whole where it is not."""
    told: dict[str, object] = {}
    if native is not None:
        told = dict(as_mapping(native.get(DELTA)) if is_spread(native) else native)
    if usage.is_whole and native is not None:
        return told if as_count(told.get("output_tokens")) is not None else {**told, **_wire(usage, count)}
    return {**told, **_wire(usage, count)}


def whole_usage(usage: Usage, native: Mapping[str, object] | None, count: Count) -> dict[str, object]:
    """The same as the one object of a plain answer, where the vendor may have spread it over a stream."""
    if native is not None and is_spread(native):
        last = as_mapping(native.get(DELTA))
        native = {**as_mapping(native.get(START)), **{k: v for k, v in last.items() if v is not None}}
    return last_usage(usage, native, count)


def _wire(usage: Usage, count: Count) -> dict[str, object]:
    """Our vocabulary in this family's terms; what nobody said is our own count, and then it says so."""
    total, output = usage.filled(count)
    told: dict[str, object] = {
        "input_tokens": max(0, total - (usage.cache_read or 0) - (usage.cache_write or 0)),
        "output_tokens": output,
    }
    if usage.cache_write is not None:
        told["cache_creation_input_tokens"] = usage.cache_write
    if usage.cache_read is not None:
        told["cache_read_input_tokens"] = usage.cache_read
    if usage.reasoning is not None:
        told["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    if not usage.is_whole:
        told["estimated"] = True
    return told
