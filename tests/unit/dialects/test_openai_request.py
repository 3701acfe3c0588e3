"""What a client may ask, and what goes on to the vendor (contract Q1)."""

from __future__ import annotations

import orjson
import pytest

from proxy.dialects.openai_request import BadRequest, ChatRequest, parse_chat_request
from tests.support.strategies import encode


def parse(value: object) -> ChatRequest:
    request = parse_chat_request(encode(value))
    assert isinstance(request, ChatRequest)
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
