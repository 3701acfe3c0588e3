"""Requests of other families as Messages bodies, valid by the SDK's published types (contract Q1)."""

from __future__ import annotations

import base64

import pytest

from proxy.canon.request import Audio, Document, Image, Message, Refusal, Request, Text, Thinking, ToolCall, ToolResult
from proxy.dialects.anthropic.send import send_anthropic
from proxy.dialects.base import Losses, Ways
from proxy.dialects.claude.models import model_of
from proxy.dialects.openai.parse import parse_chat
from tests.support.anthropic_sdk import checked_request

OLD, NEW, NEWER, NEWEST = "claude-sonnet-4-5-20250929", "claude-opus-4-6", "claude-opus-4-8", "claude-sonnet-5-5"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def send(request: Request, model: str = OLD, ways: Ways | None = None) -> tuple[dict[str, object], Losses]:
    losses = Losses()
    body = send_anthropic(request, model, losses, ways or {})
    checked_request(body)
    return body, losses


def chat(model: str = OLD, ways: Ways | None = None, /, **fields: object) -> tuple[dict[str, object], Losses]:
    """What a chat client's request becomes."""
    request = parse_chat({"model": "m", "messages": [{"role": "user", "content": "سلام"}], **fields})
    assert isinstance(request, Request)
    return send(request, model, ways)


def said(*messages: Message) -> tuple[object, Losses]:
    body, losses = send(Request(client="chat", model="m", messages=messages))
    return body["messages"], losses


def test_a_conversation_with_tools() -> None:
    """System in front; calls, their results in one user turn, results first; ids made acceptable and unique."""
    call = {"type": "function", "function": {"name": "f", "arguments": '{"x":"是"}'}}
    body, losses = chat(
        messages=[
            {"role": "system", "content": "Sei knapp."},
            {"role": "developer", "content": "Immer."},
            {"role": "user", "content": "چه خبر؟"},
            {
                "role": "assistant",
                "content": "ببینم",
                "tool_calls": [{**call, "id": "functions.f:0"}, {**call, "id": "functions.f-0"}],
            },
            {"role": "tool", "tool_call_id": "functions.f:0", "content": "گرم"},
            {"role": "tool", "tool_call_id": "functions.f-0", "content": ""},
            {"role": "user", "content": "و فردا؟"},
        ],
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
        stop=["۔", " "],
        user="u-1",
        max_tokens=77,
    )

    assert losses.all == ("stop",)
    assert body == {
        "model": OLD,
        "max_tokens": 77,
        "system": [{"type": "text", "text": "Sei knapp."}, {"type": "text", "text": "Immer."}],
        "messages": [
            {"role": "user", "content": "چه خبر؟"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "ببینم"},
                    {"type": "tool_use", "id": "functions_f_0", "name": "f", "input": {"x": "是"}},
                    {"type": "tool_use", "id": "functions_f-0", "name": "f", "input": {"x": "是"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "functions_f_0", "content": "گرم"},
                    {"type": "tool_result", "tool_use_id": "functions_f-0"},
                    {"type": "text", "text": "و فردا؟"},
                ],
            },
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "stop_sequences": ["۔"],
        "metadata": {"user_id": "u-1"},
    }


def test_ids_that_were_used_twice_are_told_apart() -> None:
    """Older APIs name a call by its function; each result belongs to the last call before it."""
    turns, _ = said(
        Message("user", (Text("?"),)),
        Message("assistant", (ToolCall("f", "f", "{}"),)),
        Message("tool", (ToolResult("f", (Text("1"),)),)),
        Message("assistant", (ToolCall("f", "f", "{}"),)),
        Message("tool", (ToolResult("f", (Text("2"),)),)),
    )

    assert isinstance(turns, list)
    assert [(turn["content"][0].get("id") or turn["content"][0]["tool_use_id"]) for turn in turns[1:]] == [
        "f",
        "f",
        "f_2",
        "f_2",
    ]


def test_neighbours_are_joined_and_results_come_first() -> None:
    """Empty texts are left out, and so is a message of nothing else."""
    turns, losses = said(
        Message("user", (Text("a"), Text(" \n"))),
        Message("user", (Text("b"),)),
        Message("assistant", (Text(""),)),
        Message("user", (Text("c"),)),
        Message("assistant", (ToolCall("x", "f", "no json"),)),
        Message("user", (Text("d"),)),
        Message("tool", (ToolResult("x", (Text("e"), Image("image/png", "aa")), is_error=True),)),
    )

    assert losses.all == ("tools",)
    assert turns == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "text", "text": "c"}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "x", "name": "f", "input": {"arguments": "no json"}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "x",
                    "content": [
                        {"type": "text", "text": "e"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": "aa"},
                        },
                    ],
                    "is_error": True,
                },
                {"type": "text", "text": "d"},
            ],
        },
    ]


def test_pictures_and_documents() -> None:
    """What it takes, and what it does not: by name."""
    text = base64.b64encode("متن".encode()).decode()
    turns, losses = said(
        Message("user", (Image(url="https://x/y", detail="low"), Image("image/jpg", "aa"))),
        Message("user", (Document("text/csv", text, name="t"), Document("application/pdf", "bb"))),
        Message("user", (Document(url="https://x/z.pdf"), Document(text="wort"))),
        Message("user", (Image("image/tiff", "cc"), Document("video/mp4", "dd"), Audio("ee", "wav")), at=3),
        Message("user", (Document(file_id="file-openai"),), at=4),
    )

    assert losses.real == ("messages[3].image", "messages[3].document", "messages[3].audio", "messages[4].document")
    assert losses.all[-1] == "messages[0].image.detail"
    assert isinstance(turns, list)
    assert [block["source"] for block in turns[0]["content"]] == [
        {"type": "url", "url": "https://x/y"},
        {"type": "base64", "media_type": "image/jpeg", "data": "aa"},
        {"type": "text", "media_type": "text/plain", "data": "متن"},
        {"type": "base64", "media_type": "application/pdf", "data": "bb"},
        {"type": "url", "url": "https://x/z.pdf"},
        {"type": "text", "media_type": "text/plain", "data": "wort"},
    ]


def test_only_its_own_seals_are_sent_back() -> None:
    """A conversation that another vendor began does not fail here."""
    turns, losses = said(
        Message("user", (Text("a"),)),
        Message(
            "assistant",
            (
                Thinking("思", "sig", format="anthropic-claude-v1"),
                Thinking(encrypted="zip", format="anthropic-claude-v1"),
                Thinking("fremd", "x", format="google-gemini-v1"),
                Thinking("frei"),
                ToolCall("c", "f", "{}", signature="gem"),
            ),
            at=1,
        ),
    )

    assert losses.all == ("messages[1].thinking", "tools")
    assert losses.real == ()
    assert isinstance(turns, list)
    assert turns[1]["content"] == [
        {"type": "thinking", "thinking": "思", "signature": "sig"},
        {"type": "redacted_thinking", "data": "zip"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    ]


def test_system_messages_within_go_to_the_front() -> None:
    """And where nobody is spoken to, they are what the user says."""
    body, losses = chat(
        messages=[
            {"role": "user", "content": "a"},
            {"role": "system", "content": "s"},
            {"role": "user", "content": "b"},
        ]
    )
    assert (body["system"], losses.all) == ("s", ("messages[1].role",))

    body, losses = chat(messages=[{"role": "system", "content": "s"}])
    assert (body["messages"], "system" in body) == ([{"role": "user", "content": "s"}], False)


@pytest.mark.parametrize(
    ("name", "version", "thinking", "max_tokens"),
    [
        ("claude-3-haiku-20240307", (3, 0), "none", 4096),
        ("claude-3-5-sonnet-20241022", (3, 5), "none", 8192),
        ("claude-3-7-sonnet-20250219", (3, 7), "budget", 32000),
        ("claude-sonnet-4-20250514", (4, 0), "budget", 32000),
        ("claude-opus-4-1@20250805", (4, 1), "budget", 32000),
        ("anthropic.claude-opus-4-6-v1:0", (4, 6), "adaptive", 32000),
        ("claude-sonnet-5", (5, 0), "adaptive", 32000),
        ("Claude-Fable-5", (5, 0), "adaptive", 32000),
        ("claude-mythos-preview", None, "budget", 8192),
        ("kimi-k2-0905", None, "budget", 8192),
    ],
)
def test_a_models_name_tells_its_generation(
    name: str, version: tuple[int, int] | None, thinking: str, max_tokens: int
) -> None:
    """And that tells how it thinks, and what is asked for where the client sets no limit."""
    model = model_of(name)

    assert (model.version, model.thinking, model.max_tokens) == (version, thinking, max_tokens)


@pytest.mark.parametrize(
    ("model", "fields", "told", "lost"),
    [
        (OLD, {"reasoning_effort": "low"}, {"thinking": {"type": "enabled", "budget_tokens": 4096}}, ()),
        (OLD, {"reasoning_effort": "max"}, {"thinking": {"type": "enabled", "budget_tokens": 24000}}, ()),
        (
            OLD,
            {"reasoning_effort": "high", "max_tokens": 2000},
            {"thinking": {"type": "enabled", "budget_tokens": 1500}},
            (),
        ),
        (OLD, {"reasoning_effort": "low", "max_tokens": 1024}, {}, ("reasoning_effort",)),
        (OLD, {"reasoning_effort": "none"}, {}, ()),
        (
            OLD,
            {"thinking": {"type": "enabled", "budget_tokens": 500}},
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            ("reasoning_effort",),
        ),
        (OLD, {"enable_thinking": True}, {"thinking": {"type": "enabled", "budget_tokens": 16384}}, ()),
        (OLD, {"reasoning_effort": "low", "tools": [TOOL], "tool_choice": "required"}, {}, ("reasoning_effort",)),
        (
            NEW,
            {"reasoning_effort": "minimal"},
            {"output_config": {"effort": "low"}, "thinking": {"type": "adaptive", "display": "summarized"}},
            (),
        ),
        (
            NEW,
            {"reasoning_effort": "xhigh"},
            {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive", "display": "summarized"}},
            ("reasoning_effort",),
        ),
        (NEW, {"enable_thinking": True}, {"thinking": {"type": "adaptive", "display": "summarized"}}, ()),
        (
            NEWER,
            {"reasoning_effort": "xhigh"},
            {"output_config": {"effort": "xhigh"}, "thinking": {"type": "adaptive", "display": "summarized"}},
            (),
        ),
        ("claude-sonnet-5", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, ()),
        ("claude-sonnet-5", {"tools": [TOOL], "tool_choice": "required"}, {"thinking": {"type": "disabled"}}, ()),
        (NEWEST, {"reasoning_effort": "none"}, {"output_config": {"effort": "low"}}, ("reasoning_effort",)),
        (NEWEST, {"tools": [TOOL], "tool_choice": "required"}, {}, ("tool_choice",)),
        ("claude-3-5-haiku-20241022", {"reasoning_effort": "low"}, {}, ("reasoning_effort",)),
        ("kimi-k2", {"reasoning_effort": "low"}, {"thinking": {"type": "enabled", "budget_tokens": 4096}}, ()),
    ],
)
def test_how_much_to_think_is_told_in_the_models_way(
    model: str, fields: dict[str, object], told: dict[str, object], lost: tuple[str, ...]
) -> None:
    """A budget within its limits, or an effort; never beside what the model refuses with it."""
    body, losses = chat(model, **fields)

    assert {name: body[name] for name in ("thinking", "output_config") if name in body} == told
    assert losses.all == lost


def test_the_operator_may_say_how_a_model_is_told() -> None:
    """Where its name does not."""
    body, _ = chat("house-model", {"reasoning_effort": "output_config"}, reasoning_effort="low")
    assert body["output_config"] == {"effort": "low"}

    body, losses = chat("house-model", {"reasoning_effort": None, "top_k": None}, reasoning_effort="low", top_k=4)
    assert "thinking" not in body
    assert (losses.real, losses.all) == (("top_k",), ("top_k", "reasoning_effort"))


def test_an_older_model_does_not_think_on_where_another_began() -> None:
    """A turn of tools must begin with its own thinking; the conversation goes on without."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn: dict[str, object] = {"role": "assistant", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    asked = {"role": "user", "content": "a"}
    body, losses = chat(messages=[asked, turn, result], tools=[TOOL], reasoning_effort="low")
    assert ("thinking" in body, losses.real, losses.all) == (False, (), ("reasoning_effort",))

    detail = {"type": "reasoning.text", "text": "思", "signature": "s", "format": "anthropic-claude-v1"}
    own = {**turn, "reasoning_details": [detail]}
    body, losses = chat(messages=[asked, own, result], tools=[TOOL], reasoning_effort="low")
    assert ("thinking" in body, losses.all) == (True, ())


@pytest.mark.parametrize(
    ("model", "fields", "told", "lost"),
    [
        (OLD, {"temperature": 0.2, "top_k": 5}, {"temperature": 0.2, "top_k": 5}, ()),
        (OLD, {"temperature": 1.5}, {"temperature": 1}, ("temperature",)),
        (OLD, {"temperature": 0.2, "top_p": 1}, {"temperature": 0.2}, ()),
        (OLD, {"temperature": 0.2, "top_p": 0.5}, {"temperature": 0.2}, ("top_p",)),
        ("claude-3-haiku", {"temperature": 0.2, "top_p": 0.5}, {"temperature": 0.2, "top_p": 0.5}, ()),
        (OLD, {"temperature": 1, "top_p": 0.97, "reasoning_effort": "low"}, {"top_p": 0.97}, ()),
        (
            OLD,
            {"temperature": 0, "top_p": 0.5, "top_k": 4, "reasoning_effort": "low"},
            {},
            ("temperature", "top_p", "top_k"),
        ),
        (NEW, {"temperature": 0}, {"temperature": 0}, ()),
        (NEWER, {"temperature": 1, "top_p": 1}, {}, ()),
        (NEWER, {"temperature": 0, "top_p": 0.5, "top_k": 4}, {}, ("temperature", "top_p", "top_k")),
    ],
)
def test_sampling_as_far_as_the_model_takes_it(
    model: str, fields: dict[str, object], told: dict[str, object], lost: tuple[str, ...]
) -> None:
    """What is refused is reported; what says nothing is not sent."""
    body, losses = chat(model, **fields)

    assert {name: body[name] for name in ("temperature", "top_p", "top_k") if name in body} == told
    assert losses.real == lost


def test_json_by_a_schema() -> None:
    """The vendor's own form; any object at all has none."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}

    assert chat(response_format=wanted)[0]["output_config"] == {"format": {"type": "json_schema", "schema": schema}}
    assert chat("claude-3-haiku", response_format=wanted)[1].real == ("response_format",)
    assert chat(response_format={"type": "json_object"})[1].real == ("response_format",)
    assert chat(response_format={"type": "text"})[1].all == ()


def test_what_cannot_be_said_is_reported() -> None:
    """Under the names of chat completions; what means nothing is not."""
    _, losses = chat(
        n=2, seed=1, logprobs=True, logit_bias={"1": 2}, frequency_penalty=0.5, verbosity="low", store=True,
        tools=[{"type": "web_search"}], min_p=0.1,
    )  # fmt: skip
    assert set(losses.real) == {
        *("n", "seed", "logprobs", "logit_bias", "frequency_penalty", "tools.web_search", "min_p"),
    }
    assert set(losses.all) - set(losses.real) == {"store", "verbosity"}
    assert chat(n=1, presence_penalty=0, tool_choice="auto", stream=True)[1].all == ()


def test_a_tool_without_parameters_and_a_strict_one() -> None:
    """A schema is demanded, and it says that it is of an object."""
    bare = {"type": "function", "function": {"name": "g"}}
    strict = {"type": "function", "function": {"name": "h", "parameters": {"properties": {}}, "strict": True}}
    body, losses = chat(tools=[bare, strict], tool_choice="none")

    assert body["tools"] == [
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
        {
            "name": "h",
            "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
            "strict": True,
        },
    ]
    assert body["tool_choice"] == {"type": "none"}
    assert losses.all == ("tools.strict",)
    assert chat("claude-3-haiku", tools=[strict])[1].all == ("tools.strict",)


def test_a_name_and_a_refusal_and_a_document_that_is_no_text() -> None:
    """A hint, a text, a loss."""
    turns, losses = said(
        Message("user", (Document("text/plain", "no base64!"),), name="ali", at=0),
        Message("user", (Text("a"),), at=1),
        Message("assistant", (Refusal("Nein."),), at=2),
        Message("user", (Text("b"),), at=3),
    )

    assert (losses.real, losses.all) == (("messages[0].document",), ("messages[0].document", "messages[0].name"))
    assert isinstance(turns, list)
    assert turns[1] == {"role": "assistant", "content": "Nein."}


def test_a_prefix_of_the_answer_keeps_an_older_model_from_thinking() -> None:
    """It refuses both together."""
    body, losses = chat(
        messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "{"}], reasoning_effort="low"
    )

    assert ("thinking" in body, losses.all) == (False, ("reasoning_effort",))


def test_a_vendor_that_knows_no_users_and_no_formats() -> None:
    """As its rule file says."""
    inner = {"type": "object", "properties": {}, "additionalProperties": False}
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": inner, "description": "d"}}
    body, losses = chat(OLD, {"user": None, "response_format": None}, user="u", response_format=schema)
    assert (losses.real, losses.all) == (("response_format",), ("response_format", "user"))
    assert "metadata" not in body
    assert chat(response_format=schema)[1].all == ("response_format.description",)


def test_citations_are_asked_of_every_document_or_of_none() -> None:
    """The vendor's rule; asked by a client of this family."""
    request = Request(
        client="messages",
        model="m",
        messages=(Message("user", (Document(text="x"),)),),
        extra={"citations": True, "output_config.task_budget": {"type": "tokens", "total": 5}, "container": "c"},
    )
    body, _ = send(request)

    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                    "citations": {"enabled": True},
                }
            ],
        }
    ]
    assert (body["container"], body["output_config"]) == ("c", {"task_budget": {"type": "tokens", "total": 5}})


def test_the_user_speaks_first() -> None:
    """A chat that opens with a greeting of the assistant goes on here."""
    greeting, asked = {"role": "assistant", "content": "Bonjour"}, {"role": "user", "content": "?"}
    body, losses = chat(messages=[greeting, asked])

    assert body["messages"] == [{"role": "user", "content": "."}, greeting, asked]
    assert (losses.real, losses.all) == ((), ("messages[0].role",))


def test_a_prefix_of_the_answer_ends_in_no_blank_and_newer_models_take_none() -> None:
    """What they would refuse is said beforehand, by the message's number."""
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "Es war \n"}]
    body, losses = chat(messages=messages)
    assert (body["messages"], losses.all) == ([messages[0], {"role": "assistant", "content": "Es war"}], ())

    body, losses = chat(NEW, messages=messages)
    assert losses.real == ("messages[1].prefix",)
    assert body["messages"] == [*messages, {"role": "user", "content": "."}]


def test_calls_without_tools_bring_their_tools() -> None:
    """Such a conversation would be refused; and none is called, as none was offered."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [call]}
    asked = {"role": "user", "content": "?"}
    body, losses = chat(messages=[asked, turn, {"role": "tool", "tool_call_id": "c", "content": "1"}])

    assert body["tools"] == [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]
    assert (body["tool_choice"], losses.real, losses.all) == ({"type": "none"}, (), ("tools",))


def test_a_model_that_thinks_takes_no_temperature() -> None:
    """Whether by a budget or as it likes."""
    body, losses = chat(NEW, temperature=0.2, reasoning_effort="low")
    assert ("temperature" in body, losses.real) == (False, ("temperature",))


def test_pictures_are_fetched_from_https_alone_and_long_users_get_another_name() -> None:
    _, losses = said(Message("user", (Image(url="http://e.org/a.png"), Text("?"))))
    assert losses.real == ("messages[0].image",)
    body, losses = chat(user="u" * 300)
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    assert (len(metadata["user_id"]), losses.all) == (64, ("user",))


def test_a_schema_is_closed_or_lost() -> None:
    """As the vendor's SDK does it; free keys have no such form."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body, losses = chat(response_format=wanted)
    told = {"n": {"type": "integer", "description": "{minimum: 1}"}}
    closed = {"type": "object", "properties": told, "additionalProperties": False}
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": closed}}
    assert (losses.real, losses.all) == ((), ("response_format.schema",))

    free = {"type": "object", "additionalProperties": True}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": free}}
    assert chat(response_format=wanted)[1].real == ("response_format",)
    body, losses = chat(tools=[{"type": "function", "function": {"name": "f", "parameters": free, "strict": True}}])
    assert body["tools"] == [{"name": "f", "input_schema": free}]
    assert losses.all == ("tools.strict",)
