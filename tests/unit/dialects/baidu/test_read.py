"""Payloads of Qianfan's first version in, canonical values out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Heartbeat, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.baidu.read import BaiduReader
from tests.support.any_json import payloads

NAMES = (
    *("id", "object", "created", "sentence_id", "is_end", "is_truncated", "result", "finish_reason", "usage"),
    *("function_call", "name", "arguments", "thoughts", "need_clear_history", "flag", "ban_round", "error_code"),
)


def payload(result: str | None, **more: object) -> bytes:
    return json.dumps({"id": "as-1", "created": 5, "sentence_id": 0, "result": result, **more}).encode()


def finish_of(*payloads: bytes) -> str | None:
    reader = BaiduReader()
    told = [reader.read(data, None) for data in payloads]
    assert isinstance(told[-1], Chunk)
    return told[-1].deltas[0].finish


@pytest.mark.clause("W4")
def test_the_text_stands_in_result() -> None:
    told = BaiduReader().read(payload("سلام", is_end=False, is_truncated=False, usage={"prompt_tokens": 5}), None)
    assert told == Chunk([Delta(0, {"content": "سلام"})], id="as-1", created=5, usage={"prompt_tokens": 5})


@pytest.mark.clause("W5")
@pytest.mark.parametrize(
    ("more", "finish"),
    [
        ({"is_end": False, "finish_reason": "normal"}, None),
        ({"is_end": True}, "normal"),
        ({"is_end": True, "finish_reason": "stop"}, "stop"),
        ({"is_end": True, "is_truncated": True}, "length"),
        ({"is_end": True, "is_truncated": True, "finish_reason": "normal"}, "length"),
        ({"finish_reason": "length"}, "length"),
        ({}, None),
    ],
)
def test_the_end_is_a_flag(more: dict[str, object], finish: str | None) -> None:
    assert finish_of(payload("a", **more)) == finish


def test_a_plain_answer_has_ended() -> None:
    told = BaiduReader().read_body(payload("a", is_truncated=False))
    assert isinstance(told, Chunk) and told.deltas[0].finish == "normal"


@pytest.mark.clause("W5", "E")
@pytest.mark.parametrize(
    "sign",
    [{"need_clear_history": True}, {"need_clear_history": True, "ban_round": -1}, {"flag": 2}, {"ban_round": 1}],
)
def test_moderation_looks_like_an_answer(sign: dict[str, object]) -> None:
    """On whichever event the sign stands."""
    assert finish_of(payload("换个话题", is_end=True, finish_reason="normal", **sign)) == "content_filter"
    assert finish_of(payload("换个", is_end=False, **sign), payload("话题", is_end=True)) == "content_filter"


@pytest.mark.parametrize("sign", [{"need_clear_history": False}, {"flag": 0}, {"flag": 1, "ban_round": -1}])
def test_talk_of_low_risk_goes_on(sign: dict[str, object]) -> None:
    assert finish_of(payload("a", is_end=True, **sign)) == "normal"


@pytest.mark.clause("W4")
def test_a_call_and_what_was_thought_about_it() -> None:
    call = {"name": "f", "thoughts": "想", "arguments": '{"city":"तेहरान"}'}
    told = BaiduReader().read(payload("", is_end=True, finish_reason="function_call", function_call=call), None)
    assert isinstance(told, Chunk)
    assert told.deltas == [
        Delta(
            0,
            {"reasoning_content": "想"},
            [ToolFragment(0, None, "f", '{"city":"तेहरान"}')],
            finish="function_call",
        )
    ]


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    ("vendor", "usage"),
    [
        ({"prompt_tokens": 5, "total_tokens": 12}, Usage(5, 7)),
        ({"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 12}, Usage(5, 6)),
        ({"prompt_tokens": 5, "total_tokens": 4}, Usage(5, None)),
        ({"total_tokens": 4}, Usage()),
    ],
)
def test_a_missing_completion_is_the_rest_of_the_total(vendor: dict[str, object], usage: Usage) -> None:
    assert BaiduReader().usage(vendor) == usage


@pytest.mark.clause("W6")
def test_errors_are_numbers() -> None:
    """Alone, or beside a text."""
    alone = BaiduReader().read_body(b'{"error_code":336100,"error_msg":"try again"}')
    assert isinstance(alone, ErrorSeen) and not alone.is_vague
    both = BaiduReader().read(payload("نیمه", error_code=336000, error_msg="Internal error"), None)
    assert isinstance(both, ErrorSeen) and both.chunk is not None
    assert both.chunk.deltas[0].texts == {"content": "نیمه"}


def test_what_is_no_piece_is_a_sign_of_life() -> None:
    assert isinstance(BaiduReader().read(b'{"id":"as-1"}', None), Heartbeat)


def test_unknown_fields_pass_and_signs_that_all_is_well_do_not() -> None:
    told = BaiduReader().read(payload("a", search_info={"n": 1}, need_clear_history=False, ban_round=0), None)
    assert isinstance(told, Chunk) and told.extra == {"search_info": {"n": 1}}


@given(st.lists(payloads(NAMES), max_size=3))
def test_nothing_raises(values: list[object]) -> None:
    reader = BaiduReader()
    for value in values:
        data = json.dumps(value).encode()
        for parsed in (reader.read(data, None), reader.read(data, "error"), reader.read_body(data)):
            if isinstance(parsed, Chunk) and parsed.usage is not None:
                reader.usage(parsed.usage)


@pytest.mark.clause("L2")
def test_usage_may_come_alone() -> None:
    parsed = BaiduReader().read(b'{"usage":{"prompt_tokens":3,"total_tokens":7}}', None)
    assert isinstance(parsed, Chunk) and parsed.usage == {"prompt_tokens": 3, "total_tokens": 7}
