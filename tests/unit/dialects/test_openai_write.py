"""Canonical values to the client's grammar: events, the usage chunk, one body, the error body."""

from __future__ import annotations

import orjson
import pytest

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count
from proxy.canon.verdict import ErrorClass, Verdict
from proxy.dialects.openai_write import ChatWriter, client_usage, error_body, estimated_usage

FIRST = Chunk([], id="chatcmpl-v", created=5, model="glm-4.6", extra={"system_fingerprint": "fp"})


def writer(*seen: Chunk) -> ChatWriter:
    one = ChatWriter("chatcmpl-ours", 9, "asked")
    for chunk in seen:
        one.adopt(chunk)
    one.settle()
    return one


@pytest.mark.clause("W1", "W4")
def test_an_event_is_one_line_with_every_key() -> None:
    """Identity first, unknown fields of the payload and the choice in it, the finish reason always there."""
    assert writer(FIRST).event(FIRST, 1, {"content": "س\n\u2028"}, choice_extra={"seed": 4}).decode() == (
        'data: {"id":"chatcmpl-v","object":"chat.completion.chunk","created":5,"model":"glm-4.6",'
        '"system_fingerprint":"fp","choices":[{"index":1,"delta":{"content":"س\\n\u2028"},"seed":4,"finish_reason":null}]}\n\n'
    )


@pytest.mark.clause("W4")
def test_log_probabilities_stand_beside_the_finish() -> None:
    """Only where there are some."""
    told = orjson.loads(writer().event(None, 0, {}, finish="stop", logprobs={"content": []})[6:])
    assert told["choices"] == [{"index": 0, "delta": {}, "logprobs": {"content": []}, "finish_reason": "stop"}]


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("seen", "identity"),
    [
        ([FIRST], ("chatcmpl-v", 5, "glm-4.6")),
        ([], ("chatcmpl-ours", 9, "asked")),
        ([Chunk([]), FIRST], ("chatcmpl-v", 5, "glm-4.6")),
        ([Chunk([], id="a"), Chunk([], id="b", created=3)], ("a", 3, "asked")),
    ],
)
def test_identity_is_the_first_said_or_ours(seen: list[Chunk], identity: tuple[str, int, str]) -> None:
    """Part by part; constant once it is settled."""
    one = writer(*seen)
    assert (one.id, one.created, one.model) == identity
    assert one.is_mine(Chunk([], *identity))
    assert not one.is_mine(Chunk([], "other", *identity[1:]))


@pytest.mark.clause("W4")
def test_usage_stands_in_a_chunk_of_its_own() -> None:
    """With no choices and no unknown fields."""
    assert orjson.loads(writer(FIRST).usage_event({"prompt_tokens": 1})[6:]) == {
        "id": "chatcmpl-v",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "glm-4.6",
        "choices": [],
        "usage": {"prompt_tokens": 1},
    }


@pytest.mark.clause("W4", "L2")
@pytest.mark.parametrize(
    ("vendor", "told"),
    [
        ({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}, {}),
        ({"prompt_tokens": 1, "completion_tokens": 2}, {"total_tokens": 3}),
        (
            {
                "prompt_tokens": 12,
                "completion_tokens": 9,
                "total_tokens": 201,
                "completion_tokens_details": {"reasoning_tokens": 180},
            },
            {"completion_tokens": 189},
        ),
        (
            {
                "prompt_tokens": 12,
                "completion_tokens": 189,
                "total_tokens": 201,
                "completion_tokens_details": {"reasoning_tokens": 180},
            },
            {},
        ),
        ({"completion_tokens": 2}, {"prompt_tokens": 70, "total_tokens": 72, "estimated": True}),
        (
            {"prompt_tokens": "1", "completion_tokens": -2, "total_tokens": None},
            {"prompt_tokens": 1, "completion_tokens": 80, "total_tokens": 81, "estimated": True},
        ),
        (
            {"input_tokens": 5, "output_tokens": 3},
            {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
        ),
        (
            {"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": "x", "cost": 0.1},
            {"total_tokens": 3},
        ),
    ],
)
def test_usage_is_told_in_openais_terms(vendor: dict[str, object], told: dict[str, object]) -> None:
    """Reasoning inside completion, a total always, ours where the vendor gave no count; the rest as it said it."""
    before = dict(vendor)
    assert client_usage(vendor, Count(70, 80)) == {**vendor, **told}
    assert vendor == before, "the row keeps it verbatim"


@pytest.mark.clause("W4")
def test_our_count_says_that_it_is_one() -> None:
    """For a vendor without usage."""
    assert estimated_usage(Count(3, 4)) == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "estimated": True,
    }


@pytest.mark.clause("E")
@pytest.mark.parametrize(("wait", "told"), [(None, None), (20.0, 20), (0.2, 1), (0.0, 0)])
def test_the_error_body_has_every_field(wait: float | None, told: int | None) -> None:
    """Whole seconds to wait; an upstream whenever an attempt was made."""
    verdict = Verdict(ErrorClass.RATE_LIMITED, "rate_limited", "m", 429, True, wait, "r", 429, "1302", "慢一点")
    assert error_body(verdict, trace_id="t", upstream="main", param="model") == {
        "error": {
            "message": "m",
            "type": "rate_limited",
            "code": "rate_limited",
            "param": "model",
            "retryable": True,
            "retry_after": told,
            "upstream": {"name": "main", "status": 429, "code": "1302", "message": "慢一点"},
            "trace_id": "t",
        }
    }
    unasked = error_body(verdict, trace_id="t", upstream=None)["error"]
    assert isinstance(unasked, dict)
    assert unasked["upstream"] is None
