"""Canonical values to the client's grammar: events, the usage chunk, one body, the error body."""

from __future__ import annotations

import orjson
import pytest

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count, Usage
from proxy.dialects.openai.write import ChatWriter
from proxy.dialects.openai_usage import own_usage, read_usage, usage_of
from proxy.wire.encode import DONE

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
    """With no choices and no unknown fields, before the end mark; only where it was asked for."""
    seal = writer(FIRST).seal(Usage(1, 2), None, Count(), wanted=True)
    assert writer(FIRST).seal(Usage(1, 2), None, Count(), wanted=False) == DONE
    assert orjson.loads(seal.removesuffix(DONE)[6:]) == {
        "id": "chatcmpl-v",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "glm-4.6",
        "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
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
    assert own_usage(read_usage(vendor), vendor, Count(70, 80)) == {**vendor, **told}
    assert vendor == before, "the row keeps it verbatim"


@pytest.mark.clause("W4")
def test_our_count_says_that_it_is_one() -> None:
    """For a vendor without usage."""
    assert usage_of(Usage(), Count(3, 4)) == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "estimated": True,
    }


@pytest.mark.clause("W4", "L2")
def test_usage_of_another_family_is_told_in_openais_terms() -> None:
    """Cache and reasoning parts stand in the details; a figure that is missing is ours, and says so."""
    assert usage_of(Usage(10, 8, cache_read=4, cache_write=2, reasoning=5), Count(70, 80)) == {
        "prompt_tokens": 10,
        "completion_tokens": 8,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    assert usage_of(Usage(10), Count(70, 80)) == {
        "prompt_tokens": 10,
        "completion_tokens": 80,
        "total_tokens": 90,
        "estimated": True,
    }


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    ("vendor", "read"),
    [
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, cache_read=4)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 3}, Usage(9, 2, cache_read=3)),
        ({"prompt_tokens": True, "completion_tokens": 1.5, "completion_tokens_details": []}, Usage()),
    ],
)
def test_a_vendors_usage_is_read_in_our_vocabulary(vendor: dict[str, object], read: Usage) -> None:
    """By the names that the family has for it; what is no count is not said."""
    assert read_usage(vendor) == read
