"""Bodies of TOON requests: the least, the fullest, and what can be wrong with one, each with its verdict."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Final

MOST: Final = 8192
BIG: Final = 2**63

LEAST: Final[Mapping[str, Any]] = {
    "tids": {"v": "2.1", "ids": [123, 456]},
    "mask": {"type": "causal", "scope": "full", "fallback": "none"},
    "pos": {"base": "rope", "offset": 0, "stride": 1},
}
FULLEST: Final[Mapping[str, Any]] = {
    "tids": {"v": "2.1", "ids": [0, 1, 2, BIG - 1], "x_t": 1},
    "mask": {
        "type": "custom",
        "scope": "partial",
        "fallback": "truncate",
        "custom_def": {"name": "legal_citation", "citation_pattern": "§ ?[0-9]+", "x_c": None},
        "x-m": [],
    },
    "pos": {"base": "none", "offset": 7, "stride": 3, "x_p": {}},
    "meta": {"source": "retrieval", "trace_id": "رد-یابی-۱", "origin_tokens": ["س", "لام", "👋🏽", ""], "x_n": "中"},
    "x_segments": [
        {"length": 1, "meta": {"source": "system_prompt", "x_y": [1]}},
        {"length": 3, "x_z": {"a": None}},
    ],
    "x_special_tokens": "strip",
    "x_window": 8192,
    "model": "small",
    "max_tokens": 1_000_000,
    "temperature": 2,
    "top_p": 1,
    "seed": BIG - 1,
    "stop_ids": list(range(16)),
    "stream": True,
    "logprobs": 20,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object", "anything": [1.5, None]}},
        "x_r": 1,
    },
    "x_mine": {"نام": [1, 2.5, None, {"deep": "你好"}]},
    "x-other": True,
}


def changed(body: Mapping[str, Any], pointer: str, value: object) -> dict[str, Any]:
    """A copy with one value put in, or (`...`) taken out."""
    whole: dict[str, Any] = copy.deepcopy(dict(body))
    inner: Any = whole
    *outer, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    for part in outer:
        inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
    if value is ...:
        del inner[last]
    elif isinstance(inner, list):
        inner[int(last)] = value
    else:
        inner[last] = value
    return whole


def with_ids(*texts: str) -> bytes:
    """Ids as they are written here, for what Python would not write."""
    body = json.dumps(LEAST)
    return body.replace("[123, 456]", f"[{', '.join(texts)}]").encode()


_NO_INTEGERS: Final[tuple[object, ...]] = (True, False, 0.0, 1.0, 1.5, 1e3, "0", "1", None, [1], {})
_OBJECTS: Final = ("tids", "mask", "pos", "meta", "response_format")
Bad = tuple[str, object, str, str]
_CUSTOM: Final = {"type": "custom", "scope": "full", "fallback": "none"}
_ONE: Final = [{"length": 2}]

#: A pointer, the value there instead (`...`: nothing), the code, and the pointer that the refusal names. Status 400.
BAD_FIELDS: Final[tuple[Bad, ...]] = (
    *((f"/{name}", ..., "missing_field", f"/{name}") for name in ("tids", "mask", "pos")),
    *((f"/tids/{name}", ..., "missing_field", f"/tids/{name}") for name in ("v", "ids")),
    *((f"/mask/{name}", ..., "missing_field", f"/mask/{name}") for name in ("type", "scope", "fallback")),
    *((f"/pos/{name}", ..., "missing_field", f"/pos/{name}") for name in ("base", "offset", "stride")),
    # objects that are none
    *((f"/{name}", [], "invalid_type", f"/{name}") for name in _OBJECTS),
    *((f"/{name}", None, "invalid_type", f"/{name}") for name in _OBJECTS),
    ("/tids", "2.1", "invalid_type", "/tids"),
    ("/mask", "causal", "invalid_type", "/mask"),
    ("/pos", 0, "invalid_type", "/pos"),
    # versions
    ("/tids/v", "٢.١", "invalid_value", "/tids/v"),
    ("/tids/v", "２.１", "invalid_value", "/tids/v"),
    ("/tids/v", "2.1\n", "invalid_value", "/tids/v"),
    ("/tids/v", " 2.1", "invalid_value", "/tids/v"),
    ("/tids/v", "2", "invalid_value", "/tids/v"),
    ("/tids/v", "2.10", "invalid_value", "/tids/v"),
    ("/tids/v", "2,1", "invalid_value", "/tids/v"),
    ("/tids/v", "", "invalid_value", "/tids/v"),
    ("/tids/v", 2.1, "invalid_type", "/tids/v"),
    ("/tids/v", None, "invalid_type", "/tids/v"),
    # ids
    ("/tids/ids", [], "invalid_value", "/tids/ids"),
    ("/tids/ids", "1,2", "invalid_type", "/tids/ids"),
    ("/tids/ids", {"0": 1}, "invalid_type", "/tids/ids"),
    ("/tids/ids", None, "invalid_type", "/tids/ids"),
    ("/tids/ids", 5, "invalid_type", "/tids/ids"),
    *(("/tids/ids", [7, one], "invalid_type", "/tids/ids/1") for one in _NO_INTEGERS),
    ("/tids/ids", [True], "invalid_type", "/tids/ids/0"),
    ("/tids/ids", [7, -1], "invalid_value", "/tids/ids/1"),
    ("/tids/ids", [7, BIG], "invalid_value", "/tids/ids/1"),
    ("/tids/ids", [7, 2**64], "invalid_value", "/tids/ids/1"),
    ("/tids/ids", [7, -BIG - 1], "invalid_value", "/tids/ids/1"),
    ("/tids/ids", [*range(17), "x"], "invalid_type", "/tids/ids/17"),
    # masks
    ("/mask/type", "CAUSAL", "invalid_value", "/mask/type"),
    ("/mask/type", "", "invalid_value", "/mask/type"),
    ("/mask/type", "causal ", "invalid_value", "/mask/type"),
    ("/mask/type", 1, "invalid_type", "/mask/type"),
    ("/mask/type", None, "invalid_type", "/mask/type"),
    ("/mask/type", ["causal"], "invalid_type", "/mask/type"),
    ("/mask/scope", "all", "invalid_value", "/mask/scope"),
    ("/mask/scope", True, "invalid_type", "/mask/scope"),
    ("/mask/fallback", "drop", "invalid_value", "/mask/fallback"),
    ("/mask/fallback", None, "invalid_type", "/mask/fallback"),
    ("/mask/type", "custom", "missing_field", "/mask/custom_def"),
    ("/mask/custom_def", {"name": "sliding_window"}, "invalid_value", "/mask/custom_def"),
    ("/mask/scope", "partial", "missing_field", "/x_segments"),
    ("/mask", {**_CUSTOM, "custom_def": {}}, "missing_field", "/mask/custom_def/name"),
    ("/mask", {**_CUSTOM, "custom_def": None}, "invalid_type", "/mask/custom_def"),
    ("/mask", {**_CUSTOM, "custom_def": "legal_citation"}, "invalid_type", "/mask/custom_def"),
    ("/mask", {**_CUSTOM, "custom_def": {"name": ""}}, "invalid_value", "/mask/custom_def/name"),
    ("/mask", {**_CUSTOM, "custom_def": {"name": "n" * 65}}, "invalid_value", "/mask/custom_def/name"),
    ("/mask", {**_CUSTOM, "custom_def": {"name": 1}}, "invalid_type", "/mask/custom_def/name"),
    ("/mask", {**_CUSTOM, "custom_def": {"name": "n", "window": 0}}, "invalid_value", "/mask/custom_def/window"),
    ("/mask", {**_CUSTOM, "custom_def": {"name": "n", "window": 8193}}, "invalid_value", "/mask/custom_def/window"),
    ("/mask", {**_CUSTOM, "custom_def": {"name": "n", "window": 1.0}}, "invalid_type", "/mask/custom_def/window"),
    (
        "/mask",
        {**_CUSTOM, "custom_def": {"name": "n", "citation_pattern": "§" * 257}},
        "invalid_value",
        "/mask/custom_def/citation_pattern",
    ),
    # positions
    ("/pos/base", "Rope", "invalid_value", "/pos/base"),
    ("/pos/base", None, "invalid_type", "/pos/base"),
    *(("/pos/offset", one, "invalid_type", "/pos/offset") for one in _NO_INTEGERS),
    ("/pos/offset", -1, "invalid_value", "/pos/offset"),
    ("/pos/offset", BIG, "invalid_value", "/pos/offset"),
    ("/pos/offset", BIG - 1, "unsupported_positions", "/pos/offset"),
    ("/pos/offset", BIG - 258, "unsupported_positions", "/pos/offset"),
    *(("/pos/stride", one, "invalid_type", "/pos/stride") for one in _NO_INTEGERS),
    ("/pos/stride", 0, "invalid_value", "/pos/stride"),
    ("/pos/stride", -1, "invalid_value", "/pos/stride"),
    ("/pos/stride", BIG - 1, "unsupported_positions", "/pos/stride"),
    # metadata
    ("/meta", {"source": "User_input"}, "invalid_value", "/meta/source"),
    ("/meta", {"source": 1}, "invalid_type", "/meta/source"),
    ("/meta", {"source": None}, "invalid_type", "/meta/source"),
    ("/meta", {"trace_id": "seven__"}, "invalid_value", "/meta/trace_id"),
    ("/meta", {"trace_id": "x" * 129}, "invalid_value", "/meta/trace_id"),
    ("/meta", {"trace_id": 12345678}, "invalid_type", "/meta/trace_id"),
    ("/meta", {"origin_tokens": "س"}, "invalid_type", "/meta/origin_tokens"),
    ("/meta", {"origin_tokens": ["س", 1]}, "invalid_type", "/meta/origin_tokens/1"),
    ("/meta", {"origin_tokens": [None]}, "invalid_type", "/meta/origin_tokens/0"),
    ("/meta", {"origin_tokens": [""] * 1025}, "invalid_value", "/meta/origin_tokens"),
    # segments
    ("/x_segments", [], "invalid_value", "/x_segments"),
    ("/x_segments", {}, "invalid_type", "/x_segments"),
    ("/x_segments", None, "invalid_type", "/x_segments"),
    ("/x_segments", [{"length": 1}] * 257, "invalid_value", "/x_segments"),
    ("/x_segments", [3], "invalid_type", "/x_segments/0"),
    ("/x_segments", [{}], "missing_field", "/x_segments/0/length"),
    ("/x_segments", [{"length": 2}, {"length": 0}], "invalid_value", "/x_segments/1/length"),
    ("/x_segments", [{"length": 8193}], "invalid_value", "/x_segments/0/length"),
    ("/x_segments", [{"length": 2.0}], "invalid_type", "/x_segments/0/length"),
    ("/x_segments", [{"length": True}], "invalid_type", "/x_segments/0/length"),
    ("/x_segments", [{"length": 2, "meta": []}], "invalid_type", "/x_segments/0/meta"),
    ("/x_segments", [{"length": 2, "meta": {"source": "me"}}], "invalid_value", "/x_segments/0/meta/source"),
    ("/x_segments", [{"length": 1}], "invalid_value", "/x_segments"),
    ("/x_segments", [{"length": 1}, {"length": 2}], "invalid_value", "/x_segments"),
    # the rest
    ("/x_special_tokens", "drop", "invalid_value", "/x_special_tokens"),
    ("/x_special_tokens", None, "invalid_type", "/x_special_tokens"),
    ("/x_window", 0, "invalid_value", "/x_window"),
    ("/x_window", 8193, "invalid_value", "/x_window"),
    ("/x_window", "512", "invalid_type", "/x_window"),
    ("/model", "", "invalid_value", "/model"),
    ("/model", "m" * 257, "invalid_value", "/model"),
    ("/model", None, "invalid_type", "/model"),
    ("/model", ["m"], "invalid_type", "/model"),
    ("/max_tokens", 0, "invalid_value", "/max_tokens"),
    ("/max_tokens", 1_000_001, "invalid_value", "/max_tokens"),
    ("/max_tokens", 1.0, "invalid_type", "/max_tokens"),
    ("/max_tokens", None, "invalid_type", "/max_tokens"),
    ("/temperature", -0.1, "invalid_value", "/temperature"),
    ("/temperature", 2.1, "invalid_value", "/temperature"),
    ("/temperature", True, "invalid_type", "/temperature"),
    ("/temperature", "0", "invalid_type", "/temperature"),
    ("/temperature", None, "invalid_type", "/temperature"),
    ("/top_p", 0, "invalid_value", "/top_p"),
    ("/top_p", 1.01, "invalid_value", "/top_p"),
    ("/top_p", False, "invalid_type", "/top_p"),
    ("/seed", -1, "invalid_value", "/seed"),
    ("/seed", BIG, "invalid_value", "/seed"),
    ("/seed", 1.0, "invalid_type", "/seed"),
    ("/stop_ids", [1] * 17, "invalid_value", "/stop_ids"),
    ("/stop_ids", [0, -1], "invalid_value", "/stop_ids/1"),
    ("/stop_ids", [True], "invalid_type", "/stop_ids/0"),
    ("/stop_ids", 2, "invalid_type", "/stop_ids"),
    ("/stream", 1, "invalid_type", "/stream"),
    ("/stream", "true", "invalid_type", "/stream"),
    ("/stream", None, "invalid_type", "/stream"),
    ("/logprobs", -1, "invalid_value", "/logprobs"),
    ("/logprobs", 21, "invalid_value", "/logprobs"),
    ("/logprobs", True, "invalid_type", "/logprobs"),
    ("/response_format", {}, "missing_field", "/response_format/type"),
    ("/response_format", {"type": "xml"}, "invalid_value", "/response_format/type"),
    ("/response_format", {"type": "json_schema"}, "missing_field", "/response_format/json_schema"),
    (
        "/response_format",
        {"type": "json_schema", "json_schema": {"name": "n"}},
        "missing_field",
        "/response_format/json_schema/schema",
    ),
    (
        "/response_format",
        {"type": "json_schema", "json_schema": {"schema": True}},
        "invalid_type",
        "/response_format/json_schema/schema",
    ),
    ("/response_format", {"type": "text", "json_schema": []}, "invalid_type", "/response_format/json_schema"),
    # names that nobody knows, at every level
    ("/prompt", "hi", "unknown_field", "/prompt"),
    ("/passed", {}, "unknown_field", "/passed"),
    ("/X_big", 1, "unknown_field", "/X_big"),
    ("/x", 1, "unknown_field", "/x"),
    ("/", 1, "unknown_field", "/"),
    ("/a~0~1b", 1, "unknown_field", "/a~0~1b"),
    ("/نام", 1, "unknown_field", "/نام"),
    ("/tids/version", "2.1", "unknown_field", "/tids/version"),
    ("/mask/window", 4, "unknown_field", "/mask/window"),
    ("/pos/base ", "rope", "unknown_field", "/pos/base "),
    ("/meta", {"user": "u"}, "unknown_field", "/meta/user"),
    ("/mask", {**_CUSTOM, "custom_def": {"name": "n", "size": 1}}, "unknown_field", "/mask/custom_def/size"),
    ("/x_segments", [{"length": 1}, {"length": 1, "from": 0}], "unknown_field", "/x_segments/1/from"),
    ("/x_segments", [{"length": 2, "meta": {"id": 1}}], "unknown_field", "/x_segments/0/meta/id"),
    ("/response_format", {"type": "text", "strict": True}, "unknown_field", "/response_format/strict"),
)

_BODY: Final = json.dumps(LEAST).encode()
_MANY: Final = [str(one) for one in range(MOST + 1)]

#: Whole bodies: what it is, the bytes, status, code, pointer.
BAD_BODIES: Final[tuple[tuple[str, bytes, int, str, str], ...]] = (
    ("nothing", b"", 400, "invalid_json", ""),
    ("spaces", b" \n\t ", 400, "invalid_json", ""),
    ("NUL", b"\x00", 400, "invalid_json", ""),
    ("half", _BODY[:-1], 400, "invalid_json", ""),
    ("twice", _BODY * 2, 400, "invalid_json", ""),
    ("words behind", _BODY + b" x", 400, "invalid_json", ""),
    ("a byte order mark", b"\xef\xbb\xbf" + _BODY, 400, "invalid_json", ""),
    ("UTF-16", json.dumps(LEAST).encode("utf-16"), 400, "invalid_json", ""),
    ("an array", b"[%b]" % _BODY, 400, "invalid_json", ""),
    ("a string", b'"tids"', 400, "invalid_json", ""),
    ("a number", b"5", 400, "invalid_json", ""),
    ("null", b"null", 400, "invalid_json", ""),
    ("true", b"true", 400, "invalid_json", ""),
    ("an empty object", b"{}", 400, "missing_field", "/tids"),
    ("single quotes", b"{'tids': 1}", 400, "invalid_json", ""),
    ("a comment", b"{/* ids */}", 400, "invalid_json", ""),
    ("a comma too many", _BODY[:-1] + b",}", 400, "invalid_json", ""),
    ("NaN", with_ids("NaN"), 400, "invalid_json", ""),
    ("Infinity", with_ids("Infinity"), 400, "invalid_json", ""),
    ("a leading zero", with_ids("01"), 400, "invalid_json", ""),
    ("hexadecimal", with_ids("0x10"), 400, "invalid_json", ""),
    ("a plus", with_ids("+1"), 400, "invalid_json", ""),
    ("an exponent", with_ids("1e2"), 400, "invalid_type", "/tids/ids/0"),
    ("a fraction of nothing", with_ids("5", "2.0"), 400, "invalid_type", "/tids/ids/1"),
    ("forty digits", with_ids("1" * 40), 400, "invalid_value", "/tids/ids/0"),
    ("Arabic digits", with_ids("١"), 400, "invalid_json", ""),
    ("a number beyond all", _BODY[:-1] + b', "temperature": 1e999}', 400, "invalid_json", ""),
    ("invalid UTF-8", _BODY[:-1] + b', "model": "\xff"}', 400, "invalid_json", ""),
    ("invalid UTF-8 in a name", _BODY[:-1] + b', "x_\xc3": 1}', 400, "invalid_json", ""),
    ("half a pair", _BODY[:-1] + b', "model": "\\ud83d"}', 400, "invalid_json", ""),
    ("half a pair, encoded", _BODY[:-1] + b', "x_a": "\xed\xa0\xbd"}', 400, "invalid_json", ""),
    ("a bare line end in a string", _BODY[:-1] + b', "model": "a\nb"}', 400, "invalid_json", ""),
    ("deep arrays", _BODY[:-1] + b', "x_a": ' + b"[" * 4000, 400, "invalid_json", ""),
    ("deep objects", b'{"x_a":' * 4000 + b"1" + b"}" * 4000, 400, "invalid_json", ""),
    ("a twin, the last counts", _BODY[:-1] + b', "pos": 1}', 400, "invalid_type", "/pos"),
    ("a twin inside", _BODY.replace(b'"offset": 0', b'"offset": 0, "offset": -1'), 400, "invalid_value", "/pos/offset"),
    ("too many ids", with_ids(*_MANY), 413, "too_many_ids", "/tids/ids"),
    ("too many by another name", with_ids(*_MANY).replace(b'"ids"', b'"\\u0069ds"'), 413, "too_many_ids", "/tids/ids"),
    ("too many, and wrong besides", with_ids(*_MANY[:-1], "true", "-1"), 413, "too_many_ids", "/tids/ids"),
    ("too many, no mask", b'{"tids": {"ids": [%b]}}' % ",".join(_MANY).encode(), 413, "too_many_ids", "/tids/ids"),
    ("far too many ids", with_ids(*["1"] * 100_000), 413, "too_many_ids", "/tids/ids"),
    ("a megabyte and a byte", _BODY + b" " * (1024 * 1024), 413, "request_too_large", ""),
    ("many objects", _BODY[:-1] + b', "x_a": [%b{}]}' % (b"{ }    , " * 8192), 413, "request_too_large", ""),
    ("many values", _BODY[:-1] + b', "x_a": [%b0]}' % (b"0," * 65536), 413, "request_too_large", ""),
)

#: Whole bodies that are right, though they look odd.
GOOD_BODIES: Final[tuple[tuple[str, bytes], ...]] = (
    ("the least", _BODY),
    ("the fullest", json.dumps(FULLEST).encode()),
    ("letters as they are", json.dumps(FULLEST, ensure_ascii=False).encode()),
    ("spaces around", b" \r\n\t" + json.dumps(LEAST, indent=4).encode() + b"\n"),
    ("names as escapes", _BODY.replace(b"ids", b"\\u0069ds")),
    ("a minus before zero", with_ids("-0")),
    ("the most ids", with_ids(*_MANY[:-1])),
    ("a megabyte", _BODY + b" " * (1024 * 1024 - len(_BODY))),
    ("a twin, the last counts", _BODY[:-1] + b', "pos": {"base": "rope", "offset": 5, "stride": 1}, "model": "m"}'),
    ("the last position there is", json.dumps(changed(LEAST, "/pos/offset", BIG - 1 - 258)).encode()),
    ("whole numbers where others may be", json.dumps(dict(LEAST) | {"temperature": 0, "top_p": 1}).encode()),
    ("a pair of halves", _BODY[:-1] + b', "model": "\\ud83d\\udc4b"}'),
    ("empty fields for others", json.dumps(dict(LEAST) | {"x_": 0, "x-": None}).encode()),
)
