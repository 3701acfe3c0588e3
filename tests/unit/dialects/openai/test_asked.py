"""What chat clients ask of an answer, in all the ways in which they say it (contract Q1)."""

from __future__ import annotations

import pytest

from proxy.canon.request import Format, Image, Native, Reasoning, Request, Text, ToolChoice, ToolResult
from proxy.dialects.base import BadRequest, Losses
from proxy.dialects.openai.parse import parse_chat

ASKED = [{"role": "user", "content": "سلام"}]


def parse(**fields: object) -> Request:
    request = parse_chat({"model": "m", "messages": ASKED, **fields})
    assert isinstance(request, Request), request
    return request


@pytest.mark.parametrize(
    "fields",
    [
        {"repetition_penalty": 1.0, "top_a": 0, "typical_p": 1, "min_p": 0, "top_k": 0, "top_logprobs": 0},
        {"modalities": ["text"], "verbosity": "medium", "best_of": 1, "echo": False, "n": 1, "logprobs": False},
        {"max_tokens": -1, "top_k": -1, "stop": [], "logit_bias": {}, "functions": []},
        {"stop": "", "response_format": {"type": "text"}, "chat_template_kwargs": {}, "safe_prompt": False},
    ],
)
def test_what_is_so_anyway_is_nobodys_loss(fields: dict[str, object]) -> None:
    """Clients that fill in every field they know are not refused for it."""
    assert parse(**fields) == parse()


@pytest.mark.parametrize(
    ("choice", "canonical"),
    [
        ("any", ToolChoice("required")),
        ({"type": "any"}, ToolChoice("required")),
        ({"type": "auto"}, ToolChoice("auto")),
        ({"type": "tool", "name": "f"}, ToolChoice("one", "f")),
        ({"type": "function", "function": {"name": "f"}}, ToolChoice("one", "f")),
    ],
)
def test_a_choice_of_tools_by_any_name(choice: object, canonical: ToolChoice) -> None:
    """Mistral's word, and Anthropic's form."""
    assert parse(tool_choice=choice).tool_choice == canonical


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tool_choice", {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}),
        ("tool_choice", {"type": "custom", "custom": {"name": "c"}}),
        ("response_format", {"type": "grammar", "grammar": "root ::= x"}),
        ("chat_template_kwargs", {"add_vision_id": True}),
    ],
)
def test_what_has_no_canonical_form_is_a_loss_by_its_name(name: str, value: object) -> None:
    """And never silently nothing."""
    request = parse(**{name: value})
    losses = Losses()
    losses.extra(request)
    assert (request.extra, losses.real) == ({name: value}, (name,))


def test_a_choice_that_is_none_is_refused() -> None:
    bad = parse_chat({"model": "m", "messages": ASKED, "tool_choice": 5})
    assert isinstance(bad, BadRequest) and bad.param == "tool_choice"


def test_a_schema_beside_the_type() -> None:
    """As servers of open models want it."""
    schema = {"type": "object"}
    assert parse(response_format={"type": "json_object", "schema": schema}).format == Format(schema)
    assert parse(response_format={"type": "json_schema", "schema": schema}).format == Format(schema)
    assert parse(response_format={"type": "json_object"}).format == Format()


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"chat_template_kwargs": {"enable_thinking": False}}, Reasoning(enabled=False)),
        ({"chat_template_kwargs": {"thinking": True}}, Reasoning(enabled=True)),
        ({"enable_thinking": True, "thinking_budget": 900}, Reasoning(budget=900, enabled=True)),
        ({"enable_thinking": False, "thinking_budget": 900}, Reasoning(enabled=False)),
        ({"reasoning": {"effort": "high", "exclude": True}}, Reasoning("high")),
    ],
)
def test_thinking_is_switched_in_many_ways(fields: dict[str, object], reasoning: Reasoning) -> None:
    """Qwen's, the chat templates' of open models, OpenRouter's."""
    request = parse(**fields)
    losses = Losses()
    losses.extra(request)
    assert (request.reasoning, losses.real) == (reasoning, ())


def test_what_only_one_vendor_shows_in_a_result_stands_beside_it() -> None:
    """The call keeps its result, and the loss has a name."""
    part = {"type": "hologram", "x": 1}
    content = [{"type": "text", "text": "12"}, part]
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    request = parse(
        messages=[
            *ASKED,
            {"role": "assistant", "tool_calls": [call], "audio": {"id": "audio_1"}},
            {"role": "tool", "tool_call_id": "c", "content": content},
        ]
    )
    assert request.messages[2].parts == (ToolResult("c", (Text("12"),), "f"), Native("chat", "hologram", part))
    assert request.messages[1].parts[0] == Native("chat", "audio", {"id": "audio_1"})


def test_a_cache_marker_on_the_message_stands_on_its_last_part() -> None:
    marker = {"type": "ephemeral"}
    image = {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}
    request = parse(
        messages=[
            {"role": "system", "content": "ס", "cache_control": marker},
            {"role": "user", "content": ["x", image], "cache_control": marker},
            {"role": "user", "content": None, "cache_control": marker},
        ]
    )
    assert [message.parts for message in request.messages] == [
        (Text("ס", marker),),
        (Text("x"), Image(url="https://e.org/a.png", cache=marker)),
        (),
    ]
