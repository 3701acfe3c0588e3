"""What a TOON request is: its values, and how a body becomes them (docs/toon.md).

In: a body's bytes. Out: a `ToonRequest`, or the caller's mistake with a JSON pointer. What depends on a model (its
vocabulary, its context, its positions) is checked by `proxy.dialects.toon.fitting`. Never: an exception for what a body
holds, nor work that grows faster than the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.dialects.base import BadRequest
from proxy.dialects.payload import MAX_DEPTH
from proxy.dialects.toon.wording import bad_field, missing_field, no_json, unknown_field

MEDIA_TYPE: Final = "application/toon+json"
MAX_IDS: Final = 8192
MAX_BYTES: Final = 1024 * 1024
#: What is smaller (twice of it, where there are no objects) is read in a few milliseconds at the worst, whatever it
#: holds. In a larger body: the objects and arrays, and the commas, that one of any use stays below.
_QUICK_BYTES: Final = 32768
_MAX_OPEN: Final = 8192
_MAX_COMMAS: Final = 65536
_MAX_SEGMENTS: Final = 256
_MAX_INT: Final = 2**63 - 1

MaskType = Literal["causal", "padding", "bidirectional", "custom"]
Scope = Literal["full", "partial", "dynamic"]
Fallback = Literal["pad", "none", "truncate"]
Base = Literal["rope", "alibi", "learned", "none"]
Source = Literal["user_input", "retrieval", "system_prompt", "cache", "model_output"]
SpecialTokens = Literal["strip", "keep", "refuse"]
FormatType = Literal["text", "json_object", "json_schema"]

_Version = Annotated[str, Meta(pattern=r"^[0-9]\.[0-9]\Z")]
_Id = Annotated[int, Meta(ge=0, le=_MAX_INT)]
_Natural = Annotated[int, Meta(ge=0, le=_MAX_INT)]
_Positive = Annotated[int, Meta(ge=1, le=_MAX_INT)]


class Tids(Struct, frozen=True, forbid_unknown_fields=True):
    v: _Version
    ids: Annotated[list[_Id], Meta(min_length=1)]


class CustomDef(Struct, frozen=True, forbid_unknown_fields=True):
    """A custom mask by its registered name, with what that one takes."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    citation_pattern: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    window: Annotated[int, Meta(ge=1, le=MAX_IDS)] | UnsetType = UNSET


class Mask(Struct, frozen=True, forbid_unknown_fields=True):
    type: MaskType
    scope: Scope
    fallback: Fallback
    custom_def: CustomDef | UnsetType = UNSET


class Pos(Struct, frozen=True, forbid_unknown_fields=True):
    base: Base
    offset: _Natural
    stride: _Positive


class MetaData(Struct, frozen=True, forbid_unknown_fields=True):
    source: Source | UnsetType = UNSET
    trace_id: Annotated[str, Meta(min_length=8, max_length=128)] | UnsetType = UNSET
    origin_tokens: Annotated[list[str], Meta(max_length=1024)] | UnsetType = UNSET


class Segment(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """So many ids, in the order of the request's, and where they come from."""

    length: Annotated[int, Meta(ge=1, le=MAX_IDS)]
    meta: MetaData = MetaData()


class ResponseFormat(Struct, frozen=True, forbid_unknown_fields=True):
    type: FormatType
    json_schema: dict[str, object] | UnsetType = UNSET


class _Usual(Struct, frozen=True, forbid_unknown_fields=True):
    """A request of which each field is known: what most are, and read at one go."""

    tids: Tids
    mask: Mask
    pos: Pos
    meta: MetaData = MetaData()
    x_segments: Annotated[list[Segment], Meta(min_length=1, max_length=_MAX_SEGMENTS)] | UnsetType = UNSET
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


class ToonRequest(_Usual, frozen=True):
    """A request that is whole in itself. `passed` (set by `parse_toon`) are the fields that are for others to read."""

    passed: dict[str, object] = {}


#: The objects inside each object, and the fields that each may have; what it holds besides begins with `x_` or `x-`.
_INSIDE: Final[Mapping[type, Mapping[str, type]]] = {
    ToonRequest: {
        "tids": Tids,
        "mask": Mask,
        "pos": Pos,
        "meta": MetaData,
        "x_segments": list,
        "response_format": ResponseFormat,
    },
    Mask: {"custom_def": CustomDef},
    Segment: {"meta": MetaData},
}
_FIELDS: Final[Mapping[type, frozenset[str]]] = {
    kind: frozenset(kind.__struct_fields__) - {"passed"}
    for kind in (Tids, Mask, Pos, MetaData, Segment, ToonRequest, CustomDef, ResponseFormat)
}
_ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "/mask/type": get_args(MaskType),
    "/mask/scope": get_args(Scope),
    "/mask/fallback": get_args(Fallback),
    "/pos/base": get_args(Base),
    "/meta/source": get_args(Source),
    "/x_special_tokens": get_args(SpecialTokens),
    "/response_format/type": get_args(FormatType),
}
_READ_USUAL: Final = msgspec.json.Decoder(_Usual).decode
# The numbers of the request's ids: looked at before anything is made of them.
_ID_LIST: Final = re.compile(rb'"tids"\s*:\s*\{[^{}\[\]]*"ids"\s*:\s*\[([\s\d,.eE+-]*)')


def parse_toon(body: bytes) -> ToonRequest | BadRequest:
    """Checks all that can be known without a model. A body over its limits is refused before it is parsed.

    The usual body is read and checked in one pass; what that refuses is looked at with care, so that the refusal says
    what is wrong, and so that fields that are for others pass.
    """
    if (large := _over(body)) is not None:
        return large
    try:
        usual = _READ_USUAL(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _parse_with_care(body)
    request = ToonRequest(*(getattr(usual, name) for name in _Usual.__struct_fields__))
    return _inconsistent(request) or request


def _parse_with_care(body: bytes) -> ToonRequest | BadRequest:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return no_json(body, str(error))
    except RecursionError:
        return _too_deep()
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _is_deep(value):
        return _too_deep()
    if not isinstance(value, dict):
        return BadRequest("invalid_json", "The request body must be a JSON object.", "")
    if _has_too_many(value):
        return _too_many()
    if (unknown := next(_unknown(value, ToonRequest, ""), None)) is not None:
        return unknown
    # Segments come back with all that they have, and some of it may be for others.
    passed = {name: one for name, one in value.items() if name not in _FIELDS[ToonRequest] or name == "x_segments"}
    try:
        usual = msgspec.convert(_known(value, ToonRequest), ToonRequest)
    except msgspec.ValidationError as error:
        return bad_field(str(error), value, _ALLOWED)
    request = msgspec.structs.replace(usual, passed=passed)
    return _inconsistent(request) or request


def _over(body: bytes) -> BadRequest | None:
    if len(body) > MAX_BYTES:
        return too_large()
    if len(body) <= _QUICK_BYTES:
        return None
    commas = body.count(b",") if len(body) > 2 * _QUICK_BYTES else 0
    if commas > 2 * MAX_IDS and any(found[1].count(b",") >= MAX_IDS for found in _ID_LIST.finditer(body)):
        return _too_many()
    if commas > _MAX_COMMAS or body.count(b"[") + body.count(b"{") > _MAX_OPEN:
        message = f"The request body holds more than {_MAX_OPEN} objects and arrays, or {_MAX_COMMAS} values."
        return BadRequest("request_too_large", message, "", 413)
    return None


def too_large() -> BadRequest:
    message = f"The request body is larger than the {MAX_BYTES} bytes allowed for TOON."
    return BadRequest("request_too_large", message, "", 413)


def _too_deep() -> BadRequest:
    return BadRequest("invalid_json", f"The request body is nested deeper than {MAX_DEPTH} levels.", "")


def _is_deep(value: object) -> bool:
    """Deeper than can be written again, wherever it is: what an encoder manages hangs on who calls it."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [one for part in inner for one in part if isinstance(one, dict | list)]
        if not level:
            return False
    return True


def _too_many() -> BadRequest:
    return BadRequest("too_many_ids", f"`/tids/ids` holds more than {MAX_IDS} ids; send fewer.", "/tids/ids", 413)


def _has_too_many(value: Mapping[str, object]) -> bool:
    tids = value.get("tids")
    ids = tids.get("ids") if isinstance(tids, dict) else None
    return isinstance(ids, list) and len(ids) > MAX_IDS


def _unknown(value: object, kind: type, pointer: str) -> Iterator[BadRequest]:
    """The fields that no object here has, in the order of the objects."""
    if kind is list:
        for at, segment in enumerate(value[: _MAX_SEGMENTS + 1] if isinstance(value, list) else ()):
            yield from _unknown(segment, Segment, f"{pointer}/{at}")
    elif isinstance(value, dict):
        names = (name for name in value if name not in _FIELDS[kind] and not _is_for_others(name))
        yield from (unknown_field(pointer, name, sorted(_FIELDS[kind])) for name in names)
        for name, inner in _INSIDE.get(kind, {}).items():
            yield from _unknown(value.get(name), inner, f"{pointer}/{name}")


def _known(value: object, kind: type) -> object:
    """The same without the fields that are for others."""
    if kind is list and isinstance(value, list):
        return [_known(segment, Segment) for segment in value[: _MAX_SEGMENTS + 1]]
    if kind is list or not isinstance(value, dict):
        return value
    inside = _INSIDE.get(kind, {})
    kept = {name: field for name, field in value.items() if name in _FIELDS[kind]}
    return {name: _known(field, inside[name]) if name in inside else field for name, field in kept.items()}


def _is_for_others(name: str) -> bool:
    return name.startswith(("x_", "x-"))


def _inconsistent(request: ToonRequest) -> BadRequest | None:
    """What each field alone does not tell."""
    mask, ids = request.mask, request.tids.ids
    if len(ids) > MAX_IDS:
        return _too_many()
    if mask.type == "custom" and mask.custom_def is UNSET:
        message = "`/mask/custom_def` is required where the mask's type is `custom`."
        return BadRequest("missing_field", message, "/mask/custom_def")
    if mask.type != "custom" and mask.custom_def is not UNSET:
        message = f"`/mask/custom_def` goes with the type `custom` alone; the type is `{mask.type}`."
        return BadRequest("invalid_value", message, "/mask/custom_def")
    if mask.scope == "partial" and request.x_segments is UNSET:
        message = "The scope `partial` needs `/x_segments`: what an id sees goes by its segment."
        return BadRequest("missing_field", message, "/x_segments")
    if request.x_segments is not UNSET and (covered := sum(s.length for s in request.x_segments)) != len(ids):
        message = f"The segments cover {covered} ids, and the request has {len(ids)}: they must cover all, in order."
        return BadRequest("invalid_value", message, "/x_segments")
    return _beyond_integers(request) or _without_schema(request.response_format)


def _beyond_integers(request: ToonRequest) -> BadRequest | None:
    """Each id of the answer must have a position that JSON's readers take for an integer of 64 bits."""
    pos = request.pos
    last = pos.offset + pos.stride * (len(request.tids.ids) + request.max_tokens)
    if last <= _MAX_INT:
        return None
    message = f"With the longest answer the last position would be {last}, and positions end at 2^63 - 1."
    return BadRequest("unsupported_positions", message, "/pos/offset" if pos.offset > last // 2 else "/pos/stride")


def _without_schema(format: ResponseFormat | UnsetType) -> BadRequest | None:
    if format is UNSET or format.type != "json_schema":
        return None
    pointer, schema = "/response_format/json_schema", format.json_schema
    if schema is UNSET or "schema" not in schema:
        return missing_field(pointer if schema is UNSET else f"{pointer}/schema")
    if not isinstance(schema["schema"], dict):
        return BadRequest("invalid_type", f"`{pointer}/schema` must be an object, a JSON Schema.", f"{pointer}/schema")
    return _too_deep() if _is_deep(schema) else None
