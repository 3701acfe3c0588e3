"""Payloads of Hunyuan in, canonical values out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Heartbeat, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.hunyuan.read import HunyuanReader
from tests.support.any_json import payloads

NAMES = (
    *("Response", "Error", "ErrorMsg", "Msg", "Code", "Message", "Choices", "Usage", "Id", "Created", "Note"),
    *("Delta", "FinishReason", "Index", "Role", "Content", "ReasoningContent", "ToolCalls", "Function", "Name"),
)
USAGE = {"PromptTokens": 5, "CompletionTokens": 1, "TotalTokens": 6}


def event(delta: object, finish: str = "", **more: object) -> dict[str, object]:
    choice = {"Delta": delta, "FinishReason": finish, "Index": 0}
    return {"Note": "注", "Choices": [choice], "Created": 7, "Id": "hy", "Usage": USAGE, **more}


def read(value: object, name: str | None = None) -> object:
    return HunyuanReader().read(json.dumps(value).encode(), name)


@pytest.mark.clause("W4")
def test_an_event_stands_bare() -> None:
    """An empty finish reason is none; the note of the vendor goes along."""
    told = read(event({"Role": "assistant", "Content": "سلام", "ReasoningContent": "想"}))
    assert told == Chunk(
        [Delta(0, {"reasoning_content": "想", "content": "سلام"}, role="assistant")],
        id="hy",
        created=7,
        usage=USAGE,
        extra={"Note": "注"},
    )


@pytest.mark.clause("W5")
@pytest.mark.parametrize("word", ["stop", "sensitive", "tool_calls"])
def test_the_finish_is_the_vendors_word(word: str) -> None:
    told = read(event({"Content": ""}, word))
    assert isinstance(told, Chunk) and told.deltas[0].finish == word


@pytest.mark.clause("W4")
def test_a_plain_answer_stands_in_response() -> None:
    choice = {"Message": {"Role": "assistant", "Content": "خوب"}, "FinishReason": "stop"}
    inner = {"RequestId": "r", "Id": "hy", "Created": 7, "Usage": USAGE, "Choices": [choice], "ErrorMsg": None}
    told = HunyuanReader().read_body(json.dumps({"Response": inner}).encode())
    assert told == Chunk(
        [Delta(0, {"content": "خوب"}, role="assistant", finish="stop")], id="hy", created=7, usage=USAGE
    )


def test_pieces_of_calls() -> None:
    calls = [
        {"Id": "c1", "Type": "function", "Function": {"Name": "f", "Arguments": '{"a":'}, "Index": 0},
        {"Id": "c2", "Type": "function", "Function": {"Name": "g", "Arguments": {"b": 1}}},
    ]
    told = read(event({"ToolCalls": calls}))
    assert isinstance(told, Chunk)
    assert told.deltas[0].tools == [ToolFragment(0, "c1", "f", '{"a":'), ToolFragment(None, "c2", "g", '{"b":1}')]


@pytest.mark.clause("W6")
def test_an_error_stands_in_response() -> None:
    told = read({"Response": {"Error": {"Code": "AuthFailure", "Message": "m"}, "RequestId": "r"}})
    assert isinstance(told, ErrorSeen) and told.chunk is None and not told.is_vague


@pytest.mark.clause("W6")
def test_an_error_in_mid_stream_keeps_what_came_with_it() -> None:
    told = read(event({"Content": "نیمه"}, ErrorMsg={"Msg": "m", "Code": 4001}))
    assert isinstance(told, ErrorSeen) and told.chunk is not None
    assert told.chunk.deltas[0].texts == {"content": "نیمه"}


@pytest.mark.parametrize("message", [None, {}, {"Msg": "", "Code": 0}])
def test_an_empty_error_is_none(message: object) -> None:
    assert isinstance(read(event({"Content": "a"}, ErrorMsg=message)), Chunk)


@pytest.mark.parametrize("value", [{}, None, {"Response": {"RequestId": "r"}}])
def test_what_says_nothing_is_a_sign_of_life(value: object) -> None:
    assert isinstance(read(value), Heartbeat)


@pytest.mark.clause("L2")
def test_usage_in_our_terms() -> None:
    """What came from a cache is told as text."""
    assert HunyuanReader().usage(USAGE) == Usage(5, 1)
    cached = {**USAGE, "PromptTokensDetails": {"CachedTokens": "4"}}
    assert HunyuanReader().usage(cached) == Usage(5, 1, 4)


@given(st.lists(payloads(NAMES), max_size=3))
def test_nothing_raises(values: list[object]) -> None:
    reader = HunyuanReader()
    for value in values:
        data = json.dumps(value).encode()
        for parsed in (reader.read(data, None), reader.read(data, "error"), reader.read_body(data)):
            if isinstance(parsed, Chunk) and parsed.usage is not None:
                reader.usage(parsed.usage)


@pytest.mark.parametrize("nothing", [None, {}, {"Msg": "", "Code": 0}, {"Msg": "", "Code": "0"}, {"Msg": None}])
def test_an_error_that_says_nothing_is_none(nothing: object) -> None:
    assert isinstance(read({"Choices": [{"Delta": {"Content": "好"}}], "ErrorMsg": nothing}), Chunk)
