"""`request_fields: {name: false}` of a rule file, at every dialect (contract Q1)."""

from __future__ import annotations

import pytest

from proxy.canon.request import Format, Message, Reasoning, Request, Text, Tool, ToolChoice
from proxy.dialects.base import Losses, Ways
from proxy.dialects.registry import CHAT_DIALECTS
from tests.support.conversations import holds

VENDORS = sorted(CHAT_DIALECTS)
SCHEMA = {"type": "object", "properties": {"ζ": {"type": "string"}}, "required": ["ζ"], "additionalProperties": False}
FIELDS: dict[str, tuple[dict[str, object], object]] = {
    "max_tokens": ({"max_tokens": 4321}, 4321),
    "temperature": ({"temperature": 0.321}, 0.321),
    "top_p": ({"top_p": 0.965}, 0.965),
    "top_k": ({"top_k": 77}, 77),
    "stop": ({"stop": ("⟂",)}, "⟂"),
    "seed": ({"seed": 8765}, 8765),
    "n": ({"n": 3}, 3),
    "user": ({"user": "u-8765"}, "u-8765"),
    "response_format": ({"format": Format(SCHEMA, "schema_1", True)}, SCHEMA),
    "tools": ({"tools": (Tool("wetter_1", "d", SCHEMA),)}, "wetter_1"),
}


def request(**fields: object) -> Request:
    made: dict[str, object] = {"client": "probe", "model": "m", "messages": (Message("user", (Text("?"),)),)}
    return Request(**{**made, **fields})  # type: ignore[arg-type]  # a test's fields


def send(vendor: str, asked: Request, ways: Ways) -> tuple[dict[str, object], Losses]:
    losses = Losses()
    return CHAT_DIALECTS[vendor].send(asked, "m", losses, ways), losses


@pytest.mark.clause("Q1")
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("name", FIELDS)
def test_what_a_vendor_does_not_take_is_not_sent_and_told(vendor: str, name: str) -> None:
    """Whichever dialect it speaks."""
    fields, value = FIELDS[name]
    body, losses = send(vendor, request(**fields), {name: None})
    assert not holds(body, value)
    assert name in losses.all


@pytest.mark.clause("Q1")
@pytest.mark.parametrize("vendor", VENDORS)
def test_wishes_are_hints(vendor: str) -> None:
    """How much to think, one call at a time, whose it is, and what is meant anyway."""
    asked = request(
        tools=(Tool("f", "d", SCHEMA),),
        tool_choice=ToolChoice("auto"),
        parallel_tools=False,
        reasoning=Reasoning("high"),
        user="u",
    )
    names = ("reasoning_effort", "parallel_tool_calls", "user", "tool_choice")
    _, losses = send(vendor, asked, dict.fromkeys(names))
    assert set(names) <= set(losses.all)
    assert set(losses.real) <= {"tools"}  # base models know none


@pytest.mark.clause("Q1")
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_tool_that_must_be_called_and_is_not_there_is_told(vendor: str) -> None:
    _, losses = send(vendor, request(tool_choice=ToolChoice("one", "f")), {})
    assert losses.real == ("tool_choice",)


@pytest.mark.parametrize(
    ("name", "reasoning", "told", "hints"),
    [
        ("reasoning_effort", Reasoning("low"), {"reasoning_effort": "low"}, ()),
        ("reasoning_effort", Reasoning(enabled=True), {}, ("reasoning_effort",)),
        ("thinking", Reasoning("high"), {"thinking": {"type": "enabled"}}, ("reasoning_effort",)),
        ("thinking", Reasoning(enabled=True), {"thinking": {"type": "enabled"}}, ()),
        ("thinking", Reasoning("none"), {"thinking": {"type": "disabled"}}, ()),
        ("enable_thinking", Reasoning(budget=2048, enabled=True), {"enable_thinking": True}, ("reasoning_effort",)),
        ("enable_thinking", Reasoning(enabled=False), {"enable_thinking": False}, ()),
        ("reasoning", Reasoning("high"), {"reasoning": {"effort": "high"}}, ()),
    ],
)
def test_thinking_is_asked_for_in_the_vendors_form(
    name: str, reasoning: Reasoning, told: dict[str, object], hints: tuple[str, ...]
) -> None:
    """The form goes with the name."""
    body, losses = send("openai", request(reasoning=reasoning), {"reasoning_effort": name})
    fields = ("reasoning_effort", "thinking", "enable_thinking", "reasoning")
    assert {one: body[one] for one in fields if one in body} == told
    assert (losses.real, losses.all) == ((), hints)
