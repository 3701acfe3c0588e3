"""There and back inside the family: a Messages body in canonical form gives the body again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.request import Request
from proxy.dialects.anthropic.parse import parse_messages
from proxy.dialects.anthropic.send import send_anthropic
from proxy.dialects.base import Losses
from tests.support.anthropic_sdk import checked_request

_WORDS = st.sampled_from(["سلام دنیا", "你好", "नमस्ते", "👩\u200d👩\u200d👧", "a\nb", "שלום"])
_CACHE = st.fixed_dictionaries({}, optional={"cache_control": st.just({"type": "ephemeral", "ttl": "1h"})})


def _with(base: st.SearchStrategy[dict[str, Any]], more: st.SearchStrategy[dict[str, Any]] = _CACHE) -> Any:
    return st.tuples(base, more).map(lambda pair: {**pair[0], **pair[1]})


_TEXT = _with(st.fixed_dictionaries({"type": st.just("text"), "text": _WORDS}))
_SOURCES = st.sampled_from(
    [
        {"type": "base64", "media_type": "image/webp", "data": "aGk="},
        {"type": "url", "url": "https://example.com/x.png"},
    ]
)
_IMAGE = _with(st.fixed_dictionaries({"type": st.just("image"), "source": _SOURCES}))
_DOCUMENTS = st.sampled_from(
    [
        {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
        {"type": "text", "media_type": "text/plain", "data": "متن"},
        {"type": "url", "url": "https://example.com/x.pdf"},
        {"type": "file", "file_id": "file_1"},
    ]
)
_DOCUMENT = _with(
    st.fixed_dictionaries({"type": st.just("document"), "source": _DOCUMENTS}, optional={"title": _WORDS})
)
_SHOWN = st.lists(_TEXT | _IMAGE | _DOCUMENT, min_size=1, max_size=3)
_THOUGHT = st.sampled_from(
    [
        {"type": "thinking", "thinking": "思考", "signature": "EqQB="},
        {"type": "redacted_thinking", "data": "EmwK="},
    ]
)
_SERVER = st.just({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}})
_INPUT = st.dictionaries(st.sampled_from(["ort", "n"]), _WORDS | st.integers() | st.none(), max_size=2)


@st.composite
def _turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """User and assistant by turns; each call has its result at the head of the next turn."""
    turns: list[dict[str, Any]] = [{"role": "user", "content": draw(_WORDS | _SHOWN)}]
    for number in range(draw(st.integers(0, 3))):
        blocks = draw(st.lists(_THOUGHT, max_size=1)) + draw(st.lists(_TEXT | _SERVER, max_size=2))
        calls = [f"toolu_{number}_{n}" for n in range(draw(st.integers(0, 2)))]
        for identity in calls:
            given = {"type": "tool_use", "id": identity, "name": "f", "input": draw(_INPUT)}
            blocks.append({**given, **draw(_CACHE)})
        turns.append({"role": "assistant", "content": blocks or draw(_WORDS)})
        results = [_result(identity, draw) for identity in calls]
        rest = draw(_SHOWN) if not results or draw(st.booleans()) else []
        turns.append({"role": "user", "content": [*results, *rest]})
    return turns


def _result(identity: str, draw: st.DrawFn) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "tool_result", "tool_use_id": identity}
    if draw(st.booleans()):
        made["content"] = draw(_WORDS | _SHOWN)
    if draw(st.booleans()):
        made["is_error"] = True
    return {**made, **draw(_CACHE)}


_TOOL = _with(
    st.fixed_dictionaries(
        {"name": st.sampled_from("fgh"), "input_schema": st.just({"type": "object", "properties": {}})},
        optional={"description": _WORDS, "strict": st.just(True)},
    )
)
_TOOLS = st.lists(_TOOL | st.just({"type": "web_search_20250305", "name": "web_search"}), min_size=1, max_size=3)
_MODELS = st.sampled_from(
    [
        ("claude-sonnet-4-5", {}),
        ("claude-sonnet-4-5", {"temperature": 0.5, "top_k": 7}),
        ("claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 2000}, "top_p": 0.97}),
        ("claude-sonnet-4-5", {"tool_choice": {"type": "tool", "name": "f"}}),
        ("claude-opus-4-6", {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}),
        (
            "claude-opus-4-6",
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "max"},
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            },
        ),
        ("claude-opus-4-8", {"output_config": {"effort": "low"}, "tool_choice": {"type": "none"}}),
        ("claude-sonnet-5", {"thinking": {"type": "disabled"}}),
    ]
)
_BODY = st.fixed_dictionaries(
    {"messages": _turns(), "max_tokens": st.integers(3000, 9000), "tools": _TOOLS},
    optional={
        "system": _WORDS | st.lists(_TEXT, min_size=1, max_size=2),
        "stop_sequences": st.lists(_WORDS, min_size=1, max_size=2),
        "metadata": st.just({"user_id": "u-1"}),
        "stream": st.just(True),
        "service_tier": st.just("auto"),
    },
)


@given(_BODY, _MODELS)
def test_there_and_back_it_is_the_same_body(body: dict[str, Any], model: tuple[str, dict[str, Any]]) -> None:
    """But for the one text that may be written as a string."""
    name, asked = model
    body = {**body, **asked, "model": name}
    if "thinking" in asked and asked["thinking"]["type"] == "enabled":
        body["messages"] = body["messages"][:1]  # where a turn of tools goes on, it may have to think no more
    request = parse_messages(body)
    assert isinstance(request, Request)
    losses = Losses()
    back = send_anthropic(request, name, losses, {})

    assert losses.all == ()
    assert _plain(back) == _plain(body)
    checked_request(back)


def _plain(value: Any) -> Any:
    """A string for a list of one bare text."""
    match value:
        case [{"type": "text", "text": str(text), **rest}] if not rest:
            return text
        case list():
            return [_plain(one) for one in value]
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case _:
            return value
