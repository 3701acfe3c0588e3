"""A canonical request as a Responses body, held against the official SDK's types."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from openai.types.responses import FunctionToolParam
from openai.types.responses.response_input_param import ResponseInputItemParam
from pydantic import TypeAdapter

from proxy.canon.request import (
    Audio,
    Document,
    Format,
    Image,
    Message,
    Native,
    NativeTool,
    Part,
    Reasoning,
    Refusal,
    Request,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.dialects.base import Losses, Ways
from proxy.dialects.openai.parse import parse_chat
from proxy.dialects.responses import VENDOR
from proxy.dialects.responses.parse import parse_responses
from proxy.dialects.responses.send import ENCRYPTED, send_responses
from proxy.dialects.seals import ANTHROPIC, RESPONSES
from tests.unit.dialects.responses.told import BODY

_ITEM: TypeAdapter[ResponseInputItemParam] = TypeAdapter(ResponseInputItemParam)
_FUNCTION = TypeAdapter(FunctionToolParam)


def request(*messages: Message, client: str = "chat", **fields: object) -> Request:
    return Request(client=client, model="fast", messages=messages or (said("user", Text("سلام")),), **fields)  # type: ignore[arg-type]  # a test names the fields that it means


def said(role: Role, *parts: Part, at: int = 0, name: str | None = None) -> Message:
    return Message(role, parts, name, at)


def sent(asked: Request, ways: Ways | None = None) -> tuple[dict[str, object], Losses]:
    """The body, held against the SDK's types, and what could not be said."""
    losses = Losses()
    body = send_responses(asked, "gpt-5", losses, ways or {})
    BODY.validate_python(body, extra="forbid")
    items = body["input"]
    assert isinstance(items, list)
    for item in items:
        _ITEM.validate_python(item, extra="forbid")
    tools = body.get("tools", [])
    assert isinstance(tools, list)
    for tool in tools:
        if tool["type"] == "function":
            _FUNCTION.validate_python(tool, extra="forbid")
    return body, losses


def items(*messages: Message) -> tuple[list[object], tuple[str, ...]]:
    body, losses = sent(request(*messages))
    found = body["input"]
    assert isinstance(found, list)
    return found, losses.all


def test_the_least_that_is_said() -> None:
    """Nothing is kept at the vendor, and nothing is asked for that was not."""
    body, losses = sent(request())

    assert body == {"model": "gpt-5", "input": [{"role": "user", "content": "سلام"}], "store": False}
    assert losses.all == ()
    assert VENDOR.path("gpt-5", True, body) == "/responses"


def test_the_systems_first_message_is_the_instructions() -> None:
    """What else the system or the developer says keeps its place among the items."""
    body, _ = sent(
        request(
            said("system", Text("کوتاه"), Text("و روشن")), said("system", Text("简短")), said("developer", Text("लघु"))
        )
    )

    assert body["instructions"] == "کوتاه\nو روشن"
    assert body["input"] == [{"role": "system", "content": "简短"}, {"role": "system", "content": "लघु"}]


def test_what_the_user_shows() -> None:
    made, losses = items(
        said(
            "user",
            Text("ببین", {"type": "ephemeral"}),
            Image("image/webp", "UklG", detail="low"),
            Image(url="https://example.org/a.png"),
            Document("application/pdf", "JVBE"),
            Document(url="https://example.org/a.pdf", name="a"),
            Document(text="متن", name="یادداشت"),
        )
    )

    assert made == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "ببین"},
                {"type": "input_image", "image_url": "data:image/webp;base64,UklG", "detail": "low"},
                {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
                {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBE"},
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
                {"type": "input_text", "text": "یادداشت\nمتن"},
            ],
        }
    ]
    assert losses == ("cache_control",)


def test_a_turn_of_the_model_is_items() -> None:
    """Its reasoning with the vendor's own seal and name, what it said, and its calls."""
    made, losses = items(
        said(
            "assistant",
            Thinking("یک\n\nدو", encrypted="gAAA", id="rs_1", format=RESPONSES),
            Text("می‌پرسم"),
            ToolCall("c1", "weather", '{"شهر":"قم"}'),
            ToolCall("c2", "news", ""),
        ),
        said("tool", ToolResult("c1", (Text("۲۵°"),)), ToolResult("c2", (Text("没有"), Image("image/png", "iVBO")))),
        said("tool", ToolResult("c3", (Text("timeout"),), is_error=True), at=2),
    )

    summary = [{"type": "summary_text", "text": "یک"}, {"type": "summary_text", "text": "دو"}]
    shown = [
        {"type": "input_text", "text": "没有"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"},
    ]
    assert made == [
        {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA"},
        {"role": "assistant", "content": "می‌پرسم"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"شهر":"قم"}'},
        {"type": "function_call", "call_id": "c2", "name": "news", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "۲۵°"},
        {"type": "function_call_output", "call_id": "c2", "output": shown},
        {"type": "function_call_output", "call_id": "c3", "output": "Error: timeout"},
    ]
    assert losses == ("messages[2].is_error",)


@pytest.mark.parametrize(
    "thinking",
    [
        Thinking("فکر"),
        Thinking("فکر", "ErUB", format=ANTHROPIC),
        Thinking(encrypted="EqQB", format=ANTHROPIC),
        Thinking(encrypted="x", id="rs_1"),
    ],
)
def test_reasoning_without_the_vendors_own_seal_is_left_out(thinking: Thinking) -> None:
    """A vendor that was changed in the middle must not make a conversation fail."""
    made, losses = items(said("assistant", thinking, Text("پاسخ"), at=3))

    assert made == [{"role": "assistant", "content": "پاسخ"}]
    assert losses == ("messages[3].thinking",)


def test_sealed_reasoning_without_a_name_goes_without_one() -> None:
    """Not every grammar between has room for it; an empty one would be refused."""
    losses = Losses()
    asked = request(said("assistant", Thinking(encrypted="gAAA", format=RESPONSES)))

    assert send_responses(asked, "gpt-5", losses, {})["input"] == [
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    ]


def test_the_systems_message_with_more_than_text_is_an_item() -> None:
    body, losses = sent(request(said("system", Text("کوتاه", {"type": "ephemeral"})), said("user", Text("hi"))))

    assert "instructions" not in body
    assert losses.all == ("cache_control",)


def test_a_result_that_shows_an_error() -> None:
    made, _ = items(said("tool", ToolResult("c", (Image("image/png", "iVBO"), Text("x")), is_error=True)))

    output = made[0]
    assert isinstance(output, dict)
    assert output["output"][0] == {"type": "input_text", "text": "Error:"}


def test_a_refusal_is_sent_as_what_was_said() -> None:
    """The part of this kind asks for the name that its message had at the vendor."""
    made, losses = items(said("assistant", Refusal("نمی‌توانم"), at=1))

    assert made == [{"role": "assistant", "content": "نمی‌توانم"}]
    assert losses == ("messages[1].refusal",)


@pytest.mark.clause("Q1")
def test_what_has_no_place_here_is_told() -> None:
    made, losses = items(
        said("user", Audio("UklG", "wav"), Text("گوش کن"), name="علی", at=0),
        said("user", Document(file_id="file-1"), Native("messages", "container_upload", {}), at=1),
        said("assistant", ToolCall("c", "f", "{}", signature="CpMB"), at=2),
    )

    assert made[:2] == [
        {"role": "user", "content": [{"type": "input_text", "text": "گوش کن"}]},
        {"role": "user", "content": ""},
    ]
    assert losses == (
        *("messages[0].audio", "messages[1].document", "messages[1].container_upload"),
        *("messages[0].name", "messages[2].thought_signature"),
    )


def test_functions_are_not_strict_unless_they_are() -> None:
    """Left out, `strict` would be true in this grammar and make every argument required."""
    body, losses = sent(
        request(
            tools=(
                Tool("f", "کار", {"type": "object"}, True),
                Tool("g", cache={"type": "ephemeral"}),
                NativeTool("messages", "bash_20250124", {}),
            ),
            tool_choice=ToolChoice("one", "f"),
            parallel_tools=False,
        )
    )

    assert body["tools"] == [
        {"type": "function", "name": "f", "description": "کار", "parameters": {"type": "object"}, "strict": True},
        {"type": "function", "name": "g", "parameters": {"type": "object", "properties": {}}, "strict": False},
    ]
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert body["parallel_tool_calls"] is False
    assert losses.all == ("tools.bash_20250124", "cache_control")


@pytest.mark.parametrize(
    ("format", "wanted"),
    [
        (Format(), {"type": "json_object"}),
        (
            Format({"type": "object"}, "answer", True, "پاسخ"),
            {
                "type": "json_schema",
                "name": "answer",
                "schema": {"type": "object"},
                "strict": True,
                "description": "پاسخ",
            },
        ),
    ],
)
def test_json_is_a_format_of_the_text(format: Format, wanted: Mapping[str, object]) -> None:
    body, _ = sent(request(format=format, extra={"verbosity": "low"}))

    assert body["text"] == {"format": wanted, "verbosity": "low"}


@pytest.mark.parametrize(
    ("reasoning", "wanted", "is_sealed"),
    [
        (Reasoning("high", summary="auto"), {"effort": "high", "summary": "auto"}, True),
        (Reasoning(budget=10_000), {"effort": "medium"}, True),
        (Reasoning(enabled=True), None, True),
        (Reasoning(enabled=False), {"effort": "none"}, False),
        (None, None, False),
    ],
)
def test_sealed_reasoning_is_asked_for_with_reasoning(
    reasoning: Reasoning | None, wanted: object, is_sealed: bool
) -> None:
    """Models that do not reason refuse to be asked for it."""
    body, _ = sent(request(reasoning=reasoning))

    assert body.get("reasoning") == wanted
    assert body.get("include") == ([ENCRYPTED] if is_sealed else None)


def test_what_is_asked_of_the_answer() -> None:
    body, losses = sent(
        request(
            stream=True,
            max_tokens=100,
            temperature=0.5,
            top_p=0.9,
            logprobs=True,
            top_logprobs=3,
            user="u-1",
            extra={"metadata": {"k": "v"}, "service_tier": "flex", "store": False},
        )
    )

    assert {name: body[name] for name in body if name not in ("model", "input", "store")} == {
        "stream": True,
        "max_output_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_logprobs": 3,
        "user": "u-1",
        "include": ["message.output_text.logprobs"],
        "metadata": {"k": "v"},
        "service_tier": "flex",
    }
    assert losses.all == ()


@pytest.mark.clause("Q1")
def test_fields_that_this_grammar_lacks_are_told() -> None:
    _, losses = sent(
        request(
            stop=("\n",),
            seed=0,
            n=2,
            top_k=5,
            min_p=0.1,
            frequency_penalty=0.5,
            presence_penalty=0.5,
            logit_bias={"1": 2},
            extra={"audio": {"voice": "x"}, "store": True},
        )
    )

    assert set(losses.real) == {
        *("stop", "seed", "n", "top_k", "min_p", "frequency_penalty", "presence_penalty", "logit_bias", "audio")
    }
    assert set(losses.all) - set(losses.real) == {"store"}


def test_a_vendors_own_names() -> None:
    """By the names of this grammar: those of chat completions mean other fields, `reasoning` among them."""
    ways: Ways = {"temperature": None, "reasoning": None, "max_tokens": "max_completion_tokens", "user": None}
    asked = request(temperature=1.0, reasoning=Reasoning("low"), max_tokens=5, user="u")

    body, losses = sent(asked, ways)
    _, more = sent(asked, {"reasoning_effort": None, "include": None})

    assert body["reasoning"] == {"effort": "low"}
    assert body["max_output_tokens"] == 16  # the least that can be asked for
    assert losses.real == ("temperature",)
    assert set(losses.all) == {"temperature", "user", "max_tokens"}
    assert (more.real, more.all) == ((), ("reasoning_effort", "max_tokens"))


def test_a_chat_request_as_it_comes() -> None:
    """Through the chat parser: tools, a call, its result, and reasoning that this family sealed."""
    detail = {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "format": RESPONSES}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = parse_chat(
        {
            "model": "fast",
            "messages": [
                {"role": "system", "content": "کوتاه"},
                {"role": "user", "content": "هوا؟"},
                {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_details": [detail]},
                {"role": "tool", "tool_call_id": "c1", "content": "خوب"},
            ],
            "max_completion_tokens": 50,
        }
    )
    assert isinstance(asked, Request)

    body, losses = sent(asked)

    assert body == {
        "model": "gpt-5",
        "instructions": "کوتاه",
        "input": [
            {"role": "user", "content": "هوا؟"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "خوب"},
        ],
        "store": False,
        "max_output_tokens": 50,
        "include": [ENCRYPTED],
    }
    assert losses.all == ()


def test_there_and_back_says_the_same() -> None:
    """A request of this grammar, made canonical and written again, asks for what it asked for."""
    body: dict[str, object] = {
        "model": "gpt-5",
        "instructions": "کوتاه",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "ببین"},
                    {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "high"},
                    {"type": "input_file", "file_id": "file-1"},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "یک"}, {"type": "summary_text", "text": "दो"}],
                "encrypted_content": "gAAA",
            },
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "خزر"},
            },
            {"role": "assistant", "content": "می‌پرسم"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"城":"西安"}'},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "a"}]},
            {"type": "item_reference", "id": "msg_1"},
        ],
        "stream": True,
        "store": True,
        "max_output_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object"}},
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]},
        "parallel_tool_calls": False,
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}, "verbosity": "low"},
        "reasoning": {"effort": "high", "summary": "auto", "context": "all_turns"},
        "include": ["web_search_call.action.sources", ENCRYPTED],
        "previous_response_id": "resp_0",
        "metadata": {"k": "v"},
        "max_tool_calls": 3,
        "user": "u-1",
    }
    asked = parse_responses(body)
    assert isinstance(asked, Request)
    losses = Losses()

    made = send_responses(asked, "gpt-5", losses, {})

    single = {"type": "function_call_output", "call_id": "c1", "output": "a"}  # one text in a list is that text
    before = body["input"]
    assert isinstance(before, list)
    assert made == {**body, "input": [single if item.get("call_id") and "output" in item else item for item in before]}
    assert losses.all == ()


def test_a_short_limit_a_long_user_and_a_long_id_are_made_to_fit() -> None:
    """Each has a bound here that no other family has."""
    long = "toolu_" + "x" * 90
    asked = request(
        said("assistant", ToolCall(long, "f", "{}")),
        said("tool", ToolResult(long, (Text("1"),))),
        max_tokens=1,
        user="u" * 150,
    )
    body, losses = sent(asked)
    calls = body["input"]
    assert isinstance(calls, list) and isinstance(body["user"], str)
    assert (body["max_output_tokens"], len(body["user"]), len(calls[0]["call_id"])) == (16, 64, 64)
    assert calls[0]["call_id"] == calls[1]["call_id"]
    assert (losses.real, losses.all) == ((), ("max_tokens", "user"))
