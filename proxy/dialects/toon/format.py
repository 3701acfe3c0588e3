"""What a TOON request is: its values, and how a body becomes them (docs/toon.md).

In: a body's bytes. Out: a `ToonRequest`, or the caller's mistake with a JSON pointer. What depends on a model (its
vocabulary, its context, its positions) is checked by `proxy.dialects.toon.fitting`. Never: an exception for what a body
holds, nor work that grows faster than the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.dialects.base import BadRequest

MEDIA_TYPE: Final = "application/toon+json"
MAX_IDS: Final = 8192
MAX_BYTES: Final = 1024 * 1024
#: Objects and arrays, and commas, that a body of any use stays below: what is over takes long to parse.
_MAX_OPEN: Final = 8192
_MAX_COMMAS: Final = 65536
_MAX_INT: Final = 2**63 - 1

MaskType = Literal["causal", "padding", "bidirectional", "custom"]
Scope = Literal["full", "partial", "dynamic"]
Fallback = Literal["pad", "none", "truncate"]
Base = Literal["rope", "alibi", "learned", "none"]
Source = Literal["user_input", "retrieval", "system_prompt", "cache", "model_output"]
SpecialTokens = Literal["strip", "keep", "refuse"]

_Version = Annotated[str, Meta(pattern=r"^[0-9]\.[0-9]\Z")]
_Id = Annotated[int, Meta(ge=0, le=_MAX_INT)]
_Natural = Annotated[int, Meta(ge=0, le=_MAX_INT)]
_Positive = Annotated[int, Meta(ge=1, le=_MAX_INT)]


class Tids(Struct, frozen=True):
    v: _Version
    ids: Annotated[list[_Id], Meta(min_length=1)]


class CustomDef(Struct, frozen=True):
    """A custom mask by its registered name, with what that one takes."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    citation_pattern: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    window: Annotated[int, Meta(ge=1, le=MAX_IDS)] | UnsetType = UNSET


class Mask(Struct, frozen=True):
    type: MaskType
    scope: Scope
    fallback: Fallback
    custom_def: CustomDef | UnsetType = UNSET


class Pos(Struct, frozen=True):
    base: Base
    offset: _Natural
    stride: _Positive


class MetaData(Struct, frozen=True):
    source: Source | UnsetType = UNSET
    trace_id: Annotated[str, Meta(min_length=8, max_length=128)] | UnsetType = UNSET
    origin_tokens: Annotated[list[str], Meta(max_length=1024)] | UnsetType = UNSET


class Segment(Struct, frozen=True):
    """So many ids, in the order of the request's, and where they come from."""

    length: Annotated[int, Meta(ge=1, le=MAX_IDS)]
    meta: MetaData = MetaData()


class ResponseFormat(Struct, frozen=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: dict[str, object] | UnsetType = UNSET


class ToonRequest(Struct, frozen=True):
    """A request that is whole in itself. `passed` (set by `parse_toon`) are the fields that are for others to read."""

    tids: Tids
    mask: Mask
    pos: Pos
    meta: MetaData = MetaData()
    x_segments: Annotated[list[Segment], Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    x_special_tokens: SpecialTokens = "keep"
    x_window: Annotated[int, Meta(ge=1, le=MAX_IDS)] | UnsetType = UNSET
    model: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    max_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] = 256
    temperature: Annotated[float, Meta(ge=0, le=2)] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    seed: _Natural | UnsetType = UNSET
    stop_ids: Annotated[list[_Id], Meta(max_length=16)] = []
    stream: bool = False
    logprobs: Annotated[int, Meta(ge=0, le=20)] | UnsetType = UNSET
    response_format: ResponseFormat | UnsetType = UNSET
    passed: dict[str, object] = {}


#: The fields that each object may have; what it holds besides must begin with `x_` or `x-`.
_FIELDS: Final[Mapping[type, frozenset[str]]] = {
    kind: frozenset(kind.__struct_fields__) - {"passed"}
    for kind in (Tids, Mask, Pos, MetaData, Segment, ToonRequest, CustomDef, ResponseFormat)
}
_INSIDE: Final = (("tids", Tids), ("mask", Mask), ("pos", Pos), ("meta", MetaData), ("response_format", ResponseFormat))
# The numbers of a list of ids, wherever it stands: looked at before anything is made of them.
_ID_LIST: Final = re.compile(rb'"ids"\s*:\s*\[([\s\d,.eE+-]*)')
_AT: Final = re.compile(r" - at `\$(.*)`$")
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")


def parse_toon(body: bytes) -> ToonRequest | BadRequest:
    """Checks all that can be known without a model. A body over its limits is refused before it is parsed."""
    if (large := _over(body)) is not None:
        return large
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return BadRequest("invalid_json", f"The request body is not valid JSON: {error}.", "")
    except RecursionError:
        return BadRequest("invalid_json", "The request body is nested too deeply.", "")
    if not isinstance(value, dict):
        return BadRequest("invalid_json", "The request body must be a JSON object.", "")
    if (unknown := next(_unknown(value), None)) is not None:
        pointer, names = unknown
        told = f"`{pointer.rpartition('/')[2]}` is no field here; known are {', '.join(names)}, and any `x_…`."
        return BadRequest("unknown_field", told, pointer)
    known = {name: field for name, field in value.items() if name in _FIELDS[ToonRequest]}
    passed = {name: field for name, field in value.items() if name not in known}
    try:
        request = msgspec.convert({**known, "passed": passed}, ToonRequest)
    except msgspec.ValidationError as error:
        return _bad_field(str(error), value)
    return _inconsistent(request) or request


def _over(body: bytes) -> BadRequest | None:
    if len(body) > MAX_BYTES:
        return too_large()
    if any(found[1].count(b",") >= MAX_IDS for found in _ID_LIST.finditer(body)):
        return _too_many()
    if body.count(b"[") + body.count(b"{") > _MAX_OPEN or body.count(b",") > _MAX_COMMAS:
        message = f"The request body holds more than {_MAX_OPEN} objects and arrays, or {_MAX_COMMAS} values."
        return BadRequest("request_too_large", message, "", 413)
    return None


def too_large() -> BadRequest:
    message = f"The request body is larger than the {MAX_BYTES} bytes allowed for TOON."
    return BadRequest("request_too_large", message, "", 413)


def _too_many() -> BadRequest:
    return BadRequest("too_many_ids", f"`tids.ids` holds more than {MAX_IDS} ids.", "/tids/ids", 413)


def _unknown(value: Mapping[str, object]) -> Iterator[tuple[str, list[str]]]:
    """Fields that no object here has, as JSON pointers, with the names that are known beside each."""
    yield from _unknown_in(value, ToonRequest, "")
    for name, kind in _INSIDE:
        yield from _unknown_in(value.get(name), kind, f"/{name}")
    mask = value.get("mask")
    yield from _unknown_in(mask.get("custom_def") if isinstance(mask, dict) else None, CustomDef, "/mask/custom_def")
    segments = value.get("x_segments")
    for at, segment in enumerate(segments if isinstance(segments, list) else ()):
        yield from _unknown_in(segment, Segment, f"/x_segments/{at}")
        yield from _unknown_in(
            segment.get("meta") if isinstance(segment, dict) else None, MetaData, f"/x_segments/{at}/meta"
        )


def _unknown_in(value: object, kind: type, pointer: str) -> Iterator[tuple[str, list[str]]]:
    for name in value if isinstance(value, dict) else ():
        if name not in _FIELDS[kind] and not name.startswith(("x_", "x-")):
            yield f"{pointer}/{escaped(name)}", sorted(_FIELDS[kind])


def escaped(name: str) -> str:
    """A name as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _bad_field(told: str, value: Mapping[str, object]) -> BadRequest:
    """msgspec's words as ours: what is wrong, and where as a pointer."""
    at = _AT.search(told)
    steps = _STEP.findall(at[1]) if at is not None else []
    pointer = "".join(f"/{escaped(name or place)}" for name, place in steps)
    what = told[: at.start()] if at is not None else told
    if (missing := re.fullmatch(r"Object missing required field `(\w+)`", what)) is not None:
        pointer = f"{pointer}/{missing[1]}"
        return BadRequest("missing_field", f"`{pointer}` is required.", pointer)
    code = "invalid_type" if re.match(r"Expected `[^`]*`, got ", what) else "invalid_value"
    return BadRequest(code, f"{what} at `{pointer}`.", pointer)


def _inconsistent(request: ToonRequest) -> BadRequest | None:
    """What each field alone does not tell."""
    mask, ids = request.mask, request.tids.ids
    if len(ids) > MAX_IDS:
        return _too_many()
    if mask.type == "custom" and mask.custom_def is UNSET:
        return BadRequest("missing_field", "`custom_def` is required where the type is `custom`.", "/mask/custom_def")
    if mask.type != "custom" and mask.custom_def is not UNSET:
        message = "`custom_def` goes with the type `custom` alone."
        return BadRequest("invalid_value", message, "/mask/custom_def")
    if mask.scope == "partial" and request.x_segments is UNSET:
        message = "The scope `partial` needs `x_segments`: it is by segment."
        return BadRequest("missing_field", message, "/x_segments")
    if request.x_segments is not UNSET and (covered := sum(s.length for s in request.x_segments)) != len(ids):
        message = f"The segments cover {covered} ids, and the request has {len(ids)}."
        return BadRequest("invalid_value", message, "/x_segments")
    format = request.response_format
    if format is not UNSET and format.type == "json_schema":
        schema = format.json_schema
        if schema is UNSET or not isinstance(schema.get("schema"), dict):
            message = "`json_schema.schema` must be a JSON Schema."
            return BadRequest("missing_field", message, "/response_format/json_schema/schema")
    return None
