"""From a parsed request to a vendor's body and address: what passes, what is translated, what is refused or dropped."""

from __future__ import annotations

import orjson
import pytest
from yarl import URL

from proxy.dialects.base import BadRequest, ClientRequest
from proxy.dialects.registry import CLIENT_DIALECTS, VENDOR_DIALECTS
from proxy.upstream.attempts import address
from proxy.upstream.prepare import DROPPED_HEADER, Prepared, prepare
from tests.support.strategies import encode

COMPLETIONS = VENDOR_DIALECTS["completions"]


def chat(**fields: object) -> ClientRequest:
    body = {"model": "alias", "messages": [{"role": "user", "content": "سلام"}], **fields}
    request = CLIENT_DIALECTS["chat"].parse(encode(body))
    assert not isinstance(request, BadRequest)
    return request


@pytest.mark.clause("Q1")
def test_a_vendor_of_the_clients_family_gets_the_body_as_it_came() -> None:
    """Even where it could not be understood: only the vendor refuses what we do not know."""
    request = chat(messages="not a list", unknown={"x": [1]})
    made = prepare(request, VENDOR_DIALECTS["openai"], "there", {}, drops=False)
    assert isinstance(made, Prepared)
    assert orjson.loads(made.body) == {"model": "there", "messages": "not a list", "unknown": {"x": [1]}}
    assert made.headers == {}


@pytest.mark.clause("Q1")
def test_what_cannot_be_told_is_refused_by_name() -> None:
    """The first loss is the `param`, and the message says what the operator may do."""
    refused = prepare(chat(tools=[{"type": "function", "function": {"name": "f"}}]), COMPLETIONS, "m", {}, drops=False)
    assert isinstance(refused, BadRequest)
    assert (refused.code, refused.param, refused.status) == ("unsupported_parameter", "tools", 400)
    assert "unsupported: drop" in refused.message


@pytest.mark.clause("Q1")
def test_what_is_dropped_stands_in_a_header() -> None:
    """Real losses and hints; names that a header cannot carry are made safe, and the list is bounded."""
    wild = {f"поле-{number}, x": 1 for number in range(200)}
    made = prepare(chat(metadata={"a": "b"}, seed=7, **wild), COMPLETIONS, "m", {}, drops=True)
    assert isinstance(made, Prepared)
    assert orjson.loads(made.body) == {"model": "m", "prompt": "سلام", "seed": 7}
    told = made.headers[DROPPED_HEADER]
    assert told.isascii() and "\n" not in told and len(told) < 1100
    assert told.startswith("????-0? x, ????-1? x") and told.endswith(" more")

    hinted = prepare(chat(metadata={"a": "b"}), COMPLETIONS, "m", {}, drops=False)
    assert isinstance(hinted, Prepared) and hinted.headers == {DROPPED_HEADER: "metadata"}


@pytest.mark.clause("Q1", "E")
def test_a_request_that_cannot_be_understood_is_the_callers_mistake() -> None:
    """Where it must be translated."""
    refused = prepare(chat(messages="x"), COMPLETIONS, "m", {}, drops=True)
    assert isinstance(refused, BadRequest) and refused.param == "messages"


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://a.test/v1", "/chat/completions", "https://a.test/v1/chat/completions"),
        ("https://a.test/v1/", "/x?alt=sse", "https://a.test/v1/x?alt=sse"),
        ("https://a.test/v1?k=a%2Bb", "/x?alt=sse", "https://a.test/v1/x?k=a%2Bb&alt=sse"),
        ("https://a.test", "/model/a%3Ab%2Fc/converse", "https://a.test/model/a%3Ab%2Fc/converse"),
        ("https://a.test/%E4%BD%A0", "/", "https://a.test/%E4%BD%A0/"),
        ("https://a.test", "/", "https://a.test/"),
    ],
)
def test_a_dialects_path_stands_behind_the_configured_address(base: str, path: str, url: str) -> None:
    """Encoded once, by whoever knows what is in it; both queries stay."""
    assert str(address(URL(base), path)) == url
