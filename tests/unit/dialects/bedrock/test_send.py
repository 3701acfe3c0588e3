"""What a client's request becomes at Bedrock, held to botocore: it must serialise to the very same bytes and path."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping

import pytest
from botocore.loaders import Loader  # type: ignore[import-untyped]  # it has no types
from botocore.model import ServiceModel  # type: ignore[import-untyped]  # it has no types
from botocore.serialize import create_serializer  # type: ignore[import-untyped]  # it has no types
from botocore.validate import validate_parameters  # type: ignore[import-untyped]  # it has no types

from proxy.canon.request import (
    Document,
    Image,
    Message,
    Native,
    NativeTool,
    Reasoning,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from proxy.dialects.base import BadRequest, Losses
from proxy.dialects.bedrock import VENDOR
from proxy.dialects.openai.parse import parse_chat
from proxy.dialects.payload import encode_json
from proxy.dialects.seals import ANTHROPIC, BEDROCK

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NEW_CLAUDE = "global.anthropic.claude-opus-4-7-v1:0"
NOVA = "eu.amazon.nova-2-lite-v1:0"
GPT = "openai.gpt-oss-120b-1:0"
PLAIN = "meta.llama3-3-70b-instruct-v1:0"
PNG = b64encode(b"\x89PNG").decode()
PDF = b64encode(b"%PDF-1.7").decode()
CLOCK = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}

ARN, ENCODED = (
    "arn:aws:bedrock:us-east-1:1:inference-profile/x~y",
    "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx~y",
)

_MODEL = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))


def sent(request: Request, model: str = CLAUDE) -> tuple[dict[str, object], Losses]:
    """The body, having made sure that AWS's own client takes it and would send the same."""
    losses = Losses()
    body = VENDOR.send(request, model, losses, {})
    written = json.loads(encode_json(body))
    for operation, stream in (("ConverseStream", True), ("Converse", False)):
        shape = _MODEL.operation_model(operation)
        params: dict[str, object] = {"modelId": model}
        params |= {name: _with_bytes(value) for name, value in written.items()}
        validate_parameters(params, shape.input_shape)
        request_dict = create_serializer("rest-json").serialize_to_request(params, shape)
        assert json.loads(request_dict["body"]) == written
        assert request_dict["url_path"] == VENDOR.path(model, stream, body)
    return written, losses


def _with_bytes(value: object) -> object:
    """As AWS's client is given it: bytes where the JSON has base64, which it writes itself."""
    if isinstance(value, dict):
        return {
            name: b64decode(inner)
            if name in ("bytes", "redactedContent") and isinstance(inner, str)
            else _with_bytes(inner)
            for name, inner in value.items()
        }
    return [_with_bytes(inner) for inner in value] if isinstance(value, list) else value


def chat(*messages: Mapping[str, object], **fields: object) -> Request:
    request = parse_chat({"model": "alias", "messages": list(messages) or [user("سلام")], **fields})
    assert not isinstance(request, BadRequest)
    return request


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def canonical(*messages: Message, **fields: object) -> Request:
    return Request(client="chat", model="alias", messages=messages, **fields)  # type: ignore[arg-type]  # a test's fields


def messages_of(request: Request, model: str = CLAUDE) -> tuple[object, tuple[str, ...]]:
    body, losses = sent(request, model)
    return body["messages"], losses.all


# ---- messages --------------------------------------------------------------------------------------------------------


def test_speakers_take_turns_and_the_system_stands_apart() -> None:
    """Neighbours of one speaker are one message; a later system message is the user's, and it is said."""
    body, losses = sent(
        chat(
            {"role": "system", "content": "Kurz."},
            {"role": "developer", "content": "Höflich."},
            user("你好"),
            user("再见"),
            {"role": "assistant", "content": "नमस्ते"},
            {"role": "system", "content": "Jetzt laut."},
            user("و؟"),
        )
    )
    assert body == {
        "system": [{"text": "Kurz.\nHöflich."}],
        "messages": [
            {"role": "user", "content": [{"text": "你好"}, {"text": "再见"}]},
            {"role": "assistant", "content": [{"text": "नमस्ते"}]},
            {"role": "user", "content": [{"text": "Jetzt laut."}, {"text": "و؟"}]},
        ],
    }
    assert (losses.real, losses.all) == ((), ("messages[5].role",))


def test_blank_texts_are_left_out() -> None:
    """They say nothing, and one of them would make the vendor refuse the whole request."""
    told, losses = messages_of(
        chat(user(""), {"role": "assistant", "content": " \n"}, user([{"type": "text", "text": "a"}]))
    )
    assert told == [{"role": "user", "content": [{"text": "a"}]}]
    assert losses == ()


def test_results_of_parallel_calls_are_one_message_of_the_user() -> None:
    """And what the user says next goes on it."""
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "تهران"}'}},
        {"id": "call_2|fc_é", "type": "function", "function": {"name": "clock", "arguments": "not json"}},
    ]
    body, losses = sent(
        chat(
            user("ساعت؟"),
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1", "content": "12:00"},
            {"role": "tool", "tool_call_id": "call_2|fc_é", "content": ""},
            user("ممنون"),
            tools=[CLOCK],
        )
    )
    assert body["messages"] == [
        {"role": "user", "content": [{"text": "ساعت؟"}]},
        {
            "role": "assistant",
            "content": [
                {"toolUse": {"toolUseId": "call_1", "name": "clock", "input": {"zone": "تهران"}}},
                {"toolUse": {"toolUseId": "call_2_fc__", "name": "clock", "input": {"arguments": "not json"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "call_1", "content": [{"text": "12:00"}]}},
                {"toolResult": {"toolUseId": "call_2_fc__", "content": []}},
                {"text": "ممنون"},
            ],
        },
    ]
    assert losses.all == ()


def test_a_failed_call_says_so_and_is_never_empty() -> None:
    """The vendor refuses a failure without content."""
    call = ToolCall("c", "clock", "{}")
    for parts, content in ((), [{"text": "Error"}]), ((Text("kaputt"),), [{"text": "kaputt"}]):
        told, _ = messages_of(
            canonical(
                Message("user", (Text("?"),)),
                Message("assistant", (call,)),
                Message("tool", (ToolResult("c", parts, is_error=True),)),
            )
        )
        assert isinstance(told, list)
        assert told[2]["content"] == [{"toolResult": {"toolUseId": "c", "content": content, "status": "error"}}]


def test_results_may_show_pictures_and_files() -> None:
    """In the result itself; a file that is text is a file too."""
    parts = (Text("گزارش"), Image("image/png", PNG), Document(text="متن"))
    told, losses = messages_of(
        canonical(
            Message("user", (Text("?"),)),
            Message("assistant", (ToolCall("c", "clock", "{}"),)),
            Message("tool", (ToolResult("c", parts),)),
        )
    )
    assert isinstance(told, list)
    [block] = told[2]["content"]
    assert block["toolResult"]["content"] == [
        {"text": "گزارش"},
        {"image": {"format": "png", "source": {"bytes": PNG}}},
        {
            "document": {
                "format": "txt",
                "name": "document",
                "source": {"bytes": b64encode("متن".encode()).decode()},
            }
        },
    ]
    assert losses == ("tools",)


def test_ids_of_other_vendors_are_made_to_fit() -> None:
    """In letters and in length, each once, and each result has its call's."""
    given = ["tooluse_a.b:c-D", "x" * 80 + "1", "x" * 80 + "2", "f", "f", "ид"]
    calls = tuple(ToolCall(one, "clock", "{}") for one in given)
    results = tuple(ToolResult(one, (Text("1"),)) for one in given)
    body, _ = sent(canonical(Message("user", (Text("?"),)), Message("assistant", calls), Message("tool", results)))
    told = body["messages"]
    assert isinstance(told, list)
    ids = [block["toolUse"]["toolUseId"] for block in told[1]["content"]]

    assert (ids[0], len(ids[1]), len(set(ids))) == ("tooluse_a.b:c-D", 64, 6)
    assert [block["toolResult"]["toolUseId"] for block in told[2]["content"]] == ids


def test_pictures_and_files_are_bytes() -> None:
    """Base64 as JSON has it; names of files in the letters that are allowed, each another."""
    told, losses = messages_of(
        chat(
            user(
                [
                    {"type": "text", "text": "چیست؟"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": "s3://bucket/photo.jpeg"}},
                    {
                        "type": "file",
                        "file": {"filename": "Q3 report.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                    },
                    {
                        "type": "file",
                        "file": {"filename": "گزارش.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                    },
                    {"type": "file", "file": {"filename": "document.md", "file_data": f"data:text/x;base64,{PDF}"}},
                    {"type": "input_audio", "input_audio": {"data": PDF, "format": "mp3"}},
                ]
            )
        )
    )
    bytes_of = {"source": {"bytes": PDF}}
    assert told == [
        {
            "role": "user",
            "content": [
                {"text": "چیست؟"},
                {"image": {"format": "png", "source": {"bytes": PNG}}},
                {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/photo.jpeg"}}}},
                {"document": {"format": "pdf", "name": "Q3 report", **bytes_of}},
                {"document": {"format": "pdf", "name": "document", **bytes_of}},
                {"document": {"format": "md", "name": "document 2", **bytes_of}},
                {"audio": {"format": "mp3", **bytes_of}},
            ],
        }
    ]
    assert losses == ("messages[0].image.detail", "messages[0].document.name")


@pytest.mark.parametrize(
    ("part", "lost"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, "image"),
        ({"type": "image_url", "image_url": {"url": f"data:image/bmp;base64,{PNG}"}}, "image"),
        ({"type": "file", "file": {"file_id": "file-1"}}, "document"),
        ({"type": "file", "file": {"file_data": f"data:application/zip;base64,{PDF}"}}, "document"),
        ({"type": "input_audio", "input_audio": {"data": PDF, "format": "midi"}}, "audio"),
        ({"type": "video_url", "video_url": {"url": "x"}}, "video_url"),
    ],
)
def test_what_has_no_place_is_a_loss(part: Mapping[str, object], lost: str) -> None:
    """Addresses, formats and parts that Converse does not know."""
    body, losses = sent(chat(user([{"type": "text", "text": "?"}, part])))
    assert body["messages"] == [{"role": "user", "content": [{"text": "?"}]}]
    assert losses.real == (f"messages[0].{lost}",)


def test_reasoning_goes_back_with_this_clouds_seal_alone() -> None:
    """Text with its signature, and what only the vendor can read; another vendor's is left out, and it is said."""
    told, losses = messages_of(
        canonical(
            Message("user", (Text("?"),)),
            Message(
                "assistant",
                (
                    Thinking("想", "S", format=BEDROCK),
                    Thinking(encrypted="AQI=", format=BEDROCK),
                    Thinking("想", "S", format=ANTHROPIC),
                    Thinking("想"),
                    Text("好"),
                ),
                at=1,
            ),
        )
    )
    assert isinstance(told, list)
    assert told[1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "想", "signature": "S"}}},
        {"reasoningContent": {"redactedContent": "AQI="}},
        {"text": "好"},
    ]
    assert losses == ("messages[1].thinking",)


def test_what_the_reader_gave_a_client_comes_back_as_it_was() -> None:
    """A client of chat completions sends `reasoning_details` back."""
    details = [
        {"type": "reasoning.text", "text": "想", "signature": "S", "format": BEDROCK, "index": 0},
        {"type": "reasoning.encrypted", "data": "AQI=", "format": BEDROCK, "index": 1},
    ]
    told, _ = messages_of(
        chat(user("?"), {"role": "assistant", "content": "好", "reasoning_content": "想", "reasoning_details": details})
    )
    assert isinstance(told, list)
    assert told[1]["content"][:2] == [
        {"reasoningContent": {"reasoningText": {"text": "想", "signature": "S"}}},
        {"reasoningContent": {"redactedContent": "AQI="}},
    ]


def test_hints_are_told_and_change_nothing() -> None:
    """Cache markers, names, another vendor's seal on a call, a part of another family."""
    body, losses = sent(
        canonical(
            Message(
                "user", (Text("?", cache={"type": "ephemeral"}), Native("messages", "search_result", {})), name="Ada"
            ),
            Message("assistant", (ToolCall("c", "clock", "", signature="G"),), at=1),
            tools=(NativeTool("messages", "web_search", {}),),
            user="u-1",
        )
    )
    assert losses.real == ("messages[0].search_result", "tools.web_search")
    assert set(losses.all) - set(losses.real) == {
        *("cache_control", "messages[0].name", "messages[1].thought_signature", "user", "tools"),
    }
    assert body["toolConfig"] == {
        "tools": [{"toolSpec": {"name": "clock", "inputSchema": {"json": {"type": "object", "properties": {}}}}}]
    }


# ---- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (None, None),
        ("auto", None),
        ("required", {"any": {}}),
        ({"type": "function", "function": {"name": "clock"}}, {"tool": {"name": "clock"}}),
    ],
)
def test_tools_and_their_choice(choice: object, told: object) -> None:
    """`auto` is what Converse does anyway."""
    weather = {"type": "function", "function": {"name": "weather", "description": "آب و هوا", "strict": True}}
    body, losses = sent(chat(tools=[CLOCK, weather], tool_choice=choice, parallel_tool_calls=True))
    config = body["toolConfig"]
    assert isinstance(config, dict)
    assert config["tools"] == [
        {"toolSpec": {"name": "clock", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
        {
            "toolSpec": {
                "name": "weather",
                "description": "آب و هوا",
                "inputSchema": {"json": {"type": "object", "properties": {}}},
            }
        },
    ]
    assert config.get("toolChoice") == told
    assert losses.all == ("tools.strict",)


def test_no_tool_may_be_called() -> None:
    """Without tools none can be; but where the conversation has calls they must be there, and that is a loss."""
    for tools in ([CLOCK], []):
        body, losses = sent(chat(tools=tools, tool_choice="none"))
        assert "toolConfig" not in body
        assert losses.all == ()

    calls = [{"id": "c", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]
    body, losses = sent(
        chat(
            user("?"),
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c", "content": "12"},
            tools=[CLOCK],
            tool_choice="none",
        )
    )
    assert "toolConfig" in body
    assert losses.real == ("tool_choice",)


def test_one_call_at_a_time_cannot_be_asked_for() -> None:
    """It is told, and nothing without tools."""
    assert sent(chat(tools=[CLOCK], parallel_tool_calls=False))[1].all == ("parallel_tool_calls",)
    assert sent(chat(parallel_tool_calls=False))[1].all == ()


# ---- fields ----------------------------------------------------------------------------------------------------------


def test_the_fields_that_every_model_has() -> None:
    """Under Converse's names; what asks for nothing is no loss."""
    body, losses = sent(
        chat(max_tokens=9, temperature=0.5, top_p=0.9, stop=["\n"], n=1, presence_penalty=0, logprobs=False), PLAIN
    )
    assert body["inferenceConfig"] == {"maxTokens": 9, "temperature": 0.5, "topP": 0.9, "stopSequences": ["\n"]}
    assert losses.all == ()


def test_what_converse_cannot_be_asked_is_a_loss() -> None:
    """By the client's own names."""
    fields: dict[str, object] = {
        "top_k": 5,
        "min_p": 0.1,
        "seed": 1,
        "frequency_penalty": 0.5,
        "n": 2,
        "logprobs": True,
    }
    fields |= {"logit_bias": {"1": 1}, "response_format": {"type": "json_object"}, "reasoning_effort": "high"}
    _, losses = sent(chat(**fields, something="x", metadata={"a": "b"}), PLAIN)

    assert set(losses.real) == {*fields, "something"} - {"reasoning_effort"}
    assert set(losses.all) - set(losses.real) == {"metadata", "reasoning_effort"}


def test_a_schema_is_told_as_text() -> None:
    """Converse knows JSON by its schema alone."""
    schema = {"type": "object", "properties": {"città": {"type": "string"}}}
    body, losses = sent(
        chat(
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "town", "schema": schema, "description": "d"},
            }
        )
    )
    closed = '{"type":"object","properties":{"città":{"type":"string"}},"additionalProperties":false}'
    told = {"name": "town", "description": "d", "schema": closed}
    assert body["outputConfig"] == {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": told}}}
    assert losses.all == ("response_format.schema",)


@pytest.mark.parametrize(
    ("model", "fields", "told"),
    [
        (CLAUDE, {"top_k": 5}, {"top_k": 5}),
        (NOVA, {"top_k": 5}, {"inferenceConfig": {"topK": 5}}),
        (CLAUDE, {"reasoning_effort": "low"}, {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        (
            CLAUDE,
            {"reasoning_effort": "high", "max_tokens": 5000},
            {"thinking": {"type": "enabled", "budget_tokens": 3750}},
        ),
        (
            CLAUDE,
            {"reasoning": {"max_tokens": 7000}, "max_tokens": 9000},
            {"thinking": {"type": "enabled", "budget_tokens": 7000}},
        ),
        (CLAUDE, {"reasoning": {"enabled": True}}, {"thinking": {"type": "enabled", "budget_tokens": 16384}}),
        (
            NEW_CLAUDE,
            {"reasoning_effort": "high"},
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
        ),
        (CLAUDE, {"reasoning_effort": "none"}, None),
        (NOVA, {"reasoning_effort": "max"}, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        (NOVA, {"reasoning_effort": "none"}, None),
        (GPT, {"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}),
    ],
)
def test_what_depends_on_the_model(model: str, fields: Mapping[str, object], told: object) -> None:
    """By the maker's name in its id, in the maker's own fields."""
    body, losses = sent(chat(**fields), model)
    assert body.get("additionalModelRequestFields") == told
    assert losses.all == ()


def test_no_room_to_think_is_told() -> None:
    """Claude wants 1,024 tokens at least, within the limit; a model that always thinks cannot be told not to."""
    body, losses = sent(chat(reasoning_effort="low", max_tokens=1000))
    assert (body.get("additionalModelRequestFields"), losses.all) == (None, ("reasoning_effort",))
    assert sent(chat(reasoning_effort="none"), GPT)[1].all == ("reasoning_effort",)
    assert sent(chat(reasoning_effort="none"), GPT)[1].real == ()
    assert sent(canonical(Message("user", (Text("?"),)), reasoning=Reasoning(summary="auto")))[1].all == ()


def test_claude_does_not_think_on_where_another_model_made_the_calls() -> None:
    """It would refuse calls without its own reasoning before them: a changed vendor must not end the conversation."""
    calls = [{"id": "c", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]
    result = {"role": "tool", "tool_call_id": "c", "content": "12"}
    body, losses = sent(
        chat(user("?"), {"role": "assistant", "tool_calls": calls}, result, tools=[CLOCK], reasoning_effort="low")
    )
    assert "additionalModelRequestFields" not in body
    assert losses.all == ("reasoning_effort",)

    details = [{"type": "reasoning.text", "text": "想", "signature": "S", "format": BEDROCK}]
    own = {"role": "assistant", "tool_calls": calls, "reasoning_details": details}
    body, losses = sent(chat(user("?"), own, result, tools=[CLOCK], reasoning_effort="low"))
    assert "additionalModelRequestFields" in body
    assert losses.all == ()


def test_fields_called_as_converse_calls_them_pass() -> None:
    """A guardrail, a tier, a model's own fields beside those that we write."""
    guardrail = {"guardrailIdentifier": "gr1", "guardrailVersion": "1"}
    body, losses = sent(
        chat(
            guardrailConfig=guardrail,
            serviceTier={"type": "flex"},
            additionalModelRequestFields={"anthropic_beta": ["x"]},
            top_k=3,
        )
    )
    assert body["guardrailConfig"] == guardrail
    assert body["serviceTier"] == {"type": "flex"}
    assert body["additionalModelRequestFields"] == {"top_k": 3, "anthropic_beta": ["x"]}
    assert losses.all == ()


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("anthropic.claude-3-haiku-20240307-v1:0", "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse"),
        (ARN, f"/model/{ENCODED}/converse"),
    ],
)
def test_the_models_id_stands_in_the_path(model: str, path: str) -> None:
    """Encoded as AWS's own client does it, because the signature is made over it."""
    assert VENDOR.path(model, False, {}) == path
    assert VENDOR.path(model, True, {}) == f"{path}-stream"
    sent(chat(), model)


# ---- what Converse, or Claude behind it, refuses ---------------------------------------------------------------------


def test_the_user_speaks_first_and_last_where_the_model_wants_it() -> None:
    """A greeting, and a prefix of the answer."""
    hello = {"role": "assistant", "content": "Hej "}
    body, losses = sent(chat(hello, user("?"), hello))
    assert body["messages"] == [
        {"role": "user", "content": [{"text": "."}]},
        {"role": "assistant", "content": [{"text": "Hej "}]},
        {"role": "user", "content": [{"text": "?"}]},
        {"role": "assistant", "content": [{"text": "Hej"}]},
    ]
    assert (losses.real, losses.all) == ((), ("messages[0].role",))

    body, losses = sent(chat(user("?"), hello), NEW_CLAUDE)
    assert losses.real == ("messages[1].prefix",)
    told = body["messages"]
    assert isinstance(told, list) and told[-1] == {"role": "user", "content": [{"text": "."}]}


def test_a_document_has_a_text_beside_it() -> None:
    """Its name, where nothing was said."""
    told, _ = messages_of(canonical(Message("user", (Document("application/pdf", PDF, name="रिपोर्ट a.pdf"),))))
    assert isinstance(told, list)
    assert told[0]["content"][1:] == [{"text": "a"}]


def test_a_schema_is_always_an_objects() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {}}}}}
    body, _ = sent(chat(tools=[tool]))
    config = body["toolConfig"]
    assert isinstance(config, dict)
    assert config["tools"][0]["toolSpec"]["inputSchema"]["json"] == {"type": "object", "properties": {"x": {}}}


@pytest.mark.parametrize(
    ("model", "fields", "inference", "more", "real"),
    [
        (CLAUDE, {"temperature": 1.5}, {"temperature": 1}, None, ("temperature",)),
        (PLAIN, {"temperature": 1.5}, {"temperature": 1}, None, ("temperature",)),
        (CLAUDE, {"temperature": 0.5, "top_p": 0.5}, {"temperature": 0.5}, None, ("top_p",)),
        (NEW_CLAUDE, {"temperature": 0.5, "top_k": 3}, None, None, ("temperature", "top_k")),
        (
            CLAUDE,
            {"temperature": 0.5, "reasoning_effort": "low"},
            {"maxTokens": 32000},
            {"thinking": {"type": "enabled", "budget_tokens": 4096}},
            ("temperature",),
        ),
        (CLAUDE, {"reasoning_effort": "low", "tools": [CLOCK], "tool_choice": "required"}, None, None, ()),
    ],
)
def test_claude_takes_here_what_it_takes_everywhere(
    model: str, fields: Mapping[str, object], inference: object, more: object, real: tuple[str, ...]
) -> None:
    """Sampling by generation, none of it beside thinking, no thinking beside a forced call, a limit beside a budget."""
    body, losses = sent(chat(**fields), model)
    assert (body.get("inferenceConfig"), body.get("additionalModelRequestFields")) == (inference, more)
    assert losses.real == real


def test_a_schema_that_claude_cannot_be_held_to_is_lost() -> None:
    """Free keys; and older models know no schemas."""
    for schema, model in (
        ({"type": "object", "additionalProperties": {"type": "string"}}, CLAUDE),
        ({"type": "object", "properties": {}}, "anthropic.claude-3-haiku-20240307-v1:0"),
    ):
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        assert sent(chat(response_format=wanted), model)[1].real == ("response_format",)
