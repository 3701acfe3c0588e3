"""What a client may ask, and what goes on to the vendor (contract Q1)."""

from __future__ import annotations

import json

import orjson
import pytest

from proxy.dialects.base import BadRequest
from proxy.dialects.incoming import Incoming
from proxy.dialects.openai.request import parse_chat_request
from tests.support.strategies import encode


def parse(value: object) -> Incoming:
    request = parse_chat_request(encode(value))
    assert isinstance(request, Incoming)
    return request


@pytest.mark.clause("Q1")
def test_unknown_fields_go_on_unchanged() -> None:
    """Only the model is renamed, and usage asked for."""
    body = {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "سلام 👩\u200d👧"}],
        "stream": True,
        "top_k": 5,
        "stream_options": {"x": 1},
    }
    request = parse(body)

    assert (request.model, request.stream, request.usage, request.json) == ("gpt-4o", True, False, False)
    assert orjson.loads(request.for_upstream("gpt-4o-2024-11-20")) == {
        **body,
        "model": "gpt-4o-2024-11-20",
        "stream_options": {"x": 1, "include_usage": True},
    }


@pytest.mark.clause("Q1", "W4")
@pytest.mark.parametrize(
    ("fields", "stream", "usage", "json"),
    [
        ({}, False, False, False),
        ({"stream": None}, False, False, False),
        ({"stream": False, "stream_options": None}, False, False, False),
        ({"stream": True, "stream_options": {"include_usage": True}}, True, True, False),
        ({"stream": True, "stream_options": {"include_usage": 1}}, True, False, False),
        ({"response_format": {"type": "json_object"}}, False, False, True),
        ({"response_format": {"type": "json_schema"}}, False, False, True),
        ({"response_format": {"type": "text"}}, False, False, False),
        ({"response_format": {"type": ["json_object"]}}, False, False, False),
        ({"response_format": "json_object"}, False, False, False),
    ],
)
def test_what_the_client_asked_is_known(fields: dict[str, object], stream: bool, usage: bool, json: bool) -> None:
    """A stream, its usage chunk, JSON as text."""
    request = parse({"model": "m", **fields})
    assert (request.stream, request.usage, request.json) == (stream, usage, json)
    assert ("stream_options" in orjson.loads(request.for_upstream("m"))) is (stream or "stream_options" in fields)


@pytest.mark.clause("Q1", "E")
@pytest.mark.parametrize(
    ("data", "code", "param"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b"[]", "invalid_json", None),
        (b'"model"', "invalid_json", None),
        (b"[" * 2000, "invalid_json", None),
        (b"{}", "model_required", "model"),
        (b'{"model":""}', "model_required", "model"),
        (b'{"model":5}', "model_required", "model"),
        (b'{"model":"m","stream":"true"}', "invalid_type", "stream"),
        (b'{"model":"m","stream":1}', "invalid_type", "stream"),
        (b'{"model":"m","stream_options":[]}', "invalid_type", "stream_options"),
        (b'{"model":"m","api_base":"https://x"}', "upstream_not_allowed", "api_base"),
        (b'{"model":"m","Base_URL":null}', "upstream_not_allowed", "Base_URL"),
        (b'{"model":"m","extra_body":{"api_base":"x"}}', "upstream_not_allowed", "api_base"),
    ],
)
def test_the_callers_mistakes_are_values(data: bytes, code: str, param: str | None) -> None:
    """With a stable code and the field's name."""
    request = parse_chat_request(data)
    assert isinstance(request, BadRequest)
    assert (request.code, request.param, request.status) == (code, param, 400)


@pytest.mark.clause("Q1")
def test_half_a_surrogate_pair_in_a_request_is_sent_on_as_valid_json() -> None:
    """A JavaScript client cut an emoji in two: vendors would refuse the whole request."""
    sent = parse({"model": "m", "messages": [{"role": "user", "content": "\ud83d"}]}).for_upstream("m")
    assert orjson.loads(sent)["messages"][0]["content"] == "\ufffd"


NUMBERS = [
    "123456789012345678901234567890",
    "-9223372036854775809",
    "18446744073709551616",
    "0.1000000000000000055",
    "12345678.1234567891",
    "0.30000000000000001",
    "1e400",
    "-1E+400",
    "1e-400",
    "4.9406564584124654e-324",
    "1.5E-320",
    "NaN",
    "-Infinity",
    "100000000000000000000.00",
]


@pytest.mark.clause("Q1")
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("where", ['"n":%s', '"n": %s ', '"tools":[{"x":[1,%s]}]', '"stream_options":{"n":%s}'])
def test_a_number_goes_on_as_it_was_written(number: str, where: str) -> None:
    """What no double holds is the caller's and the vendor's business; only the model and the usage are ours."""
    text = '{"model":"a","seed":1, ' + where % number + ',"messages":[{"content":"سلام"}],"stream":true}'
    request = parse_chat_request(text.encode())
    assert isinstance(request, Incoming)

    sent = request.for_upstream("b").decode()
    mine = json.loads(sent, parse_float=str, parse_constant=str, parse_int=str)
    theirs = json.loads(text, parse_float=str, parse_constant=str, parse_int=str)
    options = {**theirs.get("stream_options", {}), "include_usage": True}
    assert mine == {**theirs, "model": "b", "stream_options": options}
    assert list(mine)[:-1] == list(theirs) or list(mine) == list(theirs)


@pytest.mark.clause("Q1")
def test_long_numbers_beside_what_is_no_valid_json() -> None:
    """Half a surrogate pair, a raw newline, a bad byte and a second `model` are mended; the number stays."""
    text = b'\xef\xbb\xbf{"model":"a","n":0.1000000000000000055,"m":"x\\ud83d\ny\xff","model":"c"}'
    request = parse_chat_request(text)
    assert isinstance(request, Incoming)
    assert request.model == "c"
    assert request.for_upstream("b") == '{"model":"b","n":0.1000000000000000055,"m":"x�\\ny�"}'.encode()


@pytest.mark.clause("Q1")
def test_what_is_nested_too_deep_for_exact_numbers_still_goes_on() -> None:
    """Beyond what the interpreter's stack holds, the fast parser's value is sent."""
    text = b'{"model":"a","n":0.1000000000000000055,"x":' + b"[" * 1020 + b"]" * 1020 + b"}"
    request = parse_chat_request(text)
    assert isinstance(request, Incoming)
    assert request.for_upstream("b").startswith(b'{"model":"b","n":0.1')


@pytest.mark.clause("Q1")
def test_a_byte_order_mark_before_the_body_is_not_part_of_it() -> None:
    request = parse_chat_request(b'\xef\xbb\xbf{"model":"a"}')
    assert isinstance(request, Incoming)
    assert request.for_upstream("b") == b'{"model":"b"}'
