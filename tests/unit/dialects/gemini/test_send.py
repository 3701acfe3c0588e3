"""A request of a client of another family, as the body that Gemini gets; each is held against the SDK's own types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.request import Document, Message, NativeTool, Request, Text, Thinking, Tool, ToolCall, ToolResult
from proxy.dialects.base import Losses
from proxy.dialects.gemini import VENDORS
from proxy.dialects.gemini.contents import UNSEALED
from proxy.dialects.gemini.send import send_gemini
from proxy.dialects.openai.parse import parse_chat
from proxy.dialects.payload import encode_json

Body = dict[str, Any]
SECOND, THIRD = "gemini-2.5-flash", "gemini-3-pro-preview"
PRO = "gemini-2.5-pro"


def sent(request: Request, model: str = SECOND, ways: Mapping[str, str | None] | None = None) -> tuple[Body, list[str]]:
    """The body, and everything that was lost, real losses first with an exclamation mark."""
    losses = Losses()
    body = send_gemini(request, model, losses, ways or {})
    check(body)
    return body, [f"!{name}" if name in losses.real else name for name in losses.all]


def check(body: Body) -> None:
    """Every field is one that the official SDK's types have; they refuse any other."""
    known = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
    assert set(body) <= known
    for content in body["contents"]:
        types.Content.model_validate(content)
        assert content["parts"] and content["role"] in ("user", "model")
    types.Content.model_validate(body.get("systemInstruction", {}))
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    types.ToolConfig.model_validate(body.get("toolConfig", {}))
    types.GenerationConfig.model_validate(body.get("generationConfig", {}))
    encode_json(body)


def chat(messages: object, **fields: object) -> Request:
    request = parse_chat({"model": "m", "messages": messages, **fields})
    assert isinstance(request, Request)
    return request


def asked(**fields: object) -> Request:
    return chat([{"role": "user", "content": "سلام"}], **fields)


def of(*messages: Message) -> Request:
    return Request(client="messages", model="m", messages=messages)


def call(name: str, identity: str, arguments: str = "{}", **more: object) -> dict[str, object]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


# ---- the conversation ------------------------------------------------------------------------------------------------


def test_instructions_stand_apart_and_turns_alternate() -> None:
    """The first system messages are the instruction, messages of one side are one turn, and nothing is lost."""
    body, lost = sent(
        chat(
            [
                {"role": "system", "content": "Be brief."},
                {"role": "developer", "content": "Reply in Persian."},
                {"role": "user", "content": "你好"},
                {"role": "user", "content": [{"type": "text", "text": "👩‍👧"}]},
                {"role": "assistant", "content": "नमस्ते"},
                {"role": "user", "content": "?"},
            ]
        )
    )
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Reply in Persian."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "你好"}, {"text": "👩‍👧"}]},
            {"role": "model", "parts": [{"text": "नमस्ते"}]},
            {"role": "user", "parts": [{"text": "?"}]},
        ],
    }
    assert lost == []


def test_an_instruction_in_the_midst_of_things_keeps_its_place() -> None:
    """The vendor has no such role; what stands there is the user's word, and the client is told."""
    body, lost = sent(
        chat(
            [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b"},
                {"role": "system", "content": "now in German"},
                {"role": "user", "content": "c"},
            ]
        )
    )
    assert body["contents"][2] == {"role": "user", "parts": [{"text": "now in German"}, {"text": "c"}]}
    assert lost == ["messages[2].role"]


def test_an_instruction_alone_is_asked() -> None:
    """The vendor wants something to answer to."""
    body, lost = sent(chat([{"role": "system", "content": "Tell a story."}]))
    assert body == {"contents": [{"role": "user", "parts": [{"text": "Tell a story."}]}]}
    assert lost == ["messages[0].role"]


def test_results_stand_in_one_turn_by_themselves() -> None:
    """All results of a turn's calls together, by name and id, and what the user says in a turn of its own."""
    body, lost = sent(
        chat(
            [
                {"role": "user", "content": "?"},
                {"role": "assistant", "content": "", "tool_calls": [call("a", "1", '{"x": "ü"}'), call("b", "2", "")]},
                {"role": "tool", "tool_call_id": "1", "content": '{"deg": 3.5, "at": "北京"}'},
                {"role": "tool", "tool_call_id": "2", "content": "سرد"},
                {"role": "user", "content": "so?"},
            ]
        )
    )
    assert body["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "1", "name": "a", "args": {"x": "ü"}}},
                {"functionCall": {"id": "2", "name": "b", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "1", "name": "a", "response": {"deg": 3.5, "at": "北京"}}},
                {"functionResponse": {"id": "2", "name": "b", "response": {"output": "سرد"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "so?"}]},
    ]
    assert lost == []


@pytest.mark.parametrize(
    ("text", "response"),
    [
        ("[1, 2]", {"output": "[1, 2]"}),
        ("", {"output": ""}),
        ('{"n": 12345678901234567890123}', {"output": '{"n": 12345678901234567890123}'}),
        ('{"n": 0.10000000000000000001}', {"output": '{"n": 0.10000000000000000001}'}),
        ("{}", {}),
    ],
)
def test_a_result_that_is_no_object_or_would_change_is_text(text: str, response: object) -> None:
    """No number of a result is ever rounded."""
    body, _ = sent(of(Message("tool", (ToolResult("1", (Text(text),), "f"),))))
    assert body["contents"][0]["parts"][0]["functionResponse"]["response"] == response


def test_a_failed_result_is_an_error() -> None:
    """And a result whose call nobody knows goes by its id."""
    body, lost = sent(of(Message("tool", (ToolResult("t1", (Text("no net"),), is_error=True),))))
    told = {"id": "t1", "name": "t1", "response": {"error": "no net"}}
    assert body["contents"][0]["parts"] == [{"functionResponse": told}]
    assert lost == []


SHOWN = ToolResult(
    "1",
    (Text("a plot"), Document(text="x,y", name="t.csv"), Document("application/pdf", "aQ==")),
    "plot",
)


def test_newer_models_are_shown_what_tools_give_in_the_result() -> None:
    """Text stays text, media go into the result's own parts."""
    body, lost = sent(of(Message("tool", (SHOWN,))), THIRD)
    response = body["contents"][0]["parts"][0]["functionResponse"]
    assert response["response"] == {"output": "a plot\nt.csv\nx,y"}
    assert response["parts"] == [{"inlineData": {"mimeType": "application/pdf", "data": "aQ=="}}]
    assert lost == []


def test_older_models_are_shown_it_behind_all_results() -> None:
    """Nothing may stand beside results there."""
    more = ToolResult("2", (Text("done"),), "g")
    user = Message("user", (Text("so?"),), at=2)
    body, _ = sent(of(Message("tool", (SHOWN,)), Message("tool", (more,), at=1), user))
    results, shown = body["contents"]
    assert [part["functionResponse"]["id"] for part in results["parts"]] == ["1", "2"]
    assert shown == {
        "role": "user",
        "parts": [
            {"text": "What the tool call 1 gave:"},
            {"inlineData": {"mimeType": "application/pdf", "data": "aQ=="}},
            {"text": "so?"},
        ],
    }


def part(**value: object) -> Request:
    return chat([{"role": "user", "content": [value]}])


@pytest.mark.parametrize(
    ("request_", "made"),
    [
        (
            part(type="image_url", image_url={"url": "data:image/webp;base64,aQ=="}),
            {"inlineData": {"mimeType": "image/webp", "data": "aQ=="}},
        ),
        (
            part(type="image_url", image_url={"url": "https://example.org/گربه.JPG?sig=1.x", "detail": "auto"}),
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/گربه.JPG?sig=1.x"}},
        ),
        (
            part(type="image_url", image_url={"url": "https://example.org/200"}),
            {"fileData": {"fileUri": "https://example.org/200"}},
        ),
        (
            part(type="image_url", image_url={"url": "gs://bucket/a.png"}),
            {"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}},
        ),
        (
            part(type="file", file={"filename": "a.pdf", "file_data": "data:application/pdf;base64,aQ=="}),
            {"inlineData": {"mimeType": "application/pdf", "data": "aQ=="}},
        ),
        (
            part(type="input_audio", input_audio={"data": "aQ==", "format": "mp3"}),
            {"inlineData": {"mimeType": "audio/mp3", "data": "aQ=="}},
        ),
        (of(Message("user", (Document(text="long text", name="注.txt"),))), {"text": "注.txt\nlong text"}),
    ],
)
def test_media_go_as_data_or_as_an_address(request_: Request, made: object) -> None:
    """The vendor fetches https addresses itself; the media type is told where the address tells it."""
    body, lost = sent(request_)
    assert body["contents"] == [{"role": "user", "parts": [made]}]
    assert lost == []


@pytest.mark.parametrize(
    ("request_", "lost"),
    [
        (part(type="image_url", image_url={"url": "http://example.org/a.png"}), "!messages[0].image"),
        (part(type="image_url", image_url={"url": "file:///etc/passwd"}), "!messages[0].image"),
        (part(type="file", file={"file_id": "file-1"}), "!messages[0].document"),
        (part(type="video_url", video_url={}), "!messages[0].video_url"),
        (
            chat([{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "https://a/b.png"}}]}]),
            "!messages[0].image",
        ),
        (part(type="image_url", image_url={"url": "https://a/b.png", "detail": "high"}), "messages[0].image.detail"),
        (part(type="text", text="a", cache_control={"type": "ephemeral"}), "cache_control"),
        (chat([{"role": "user", "name": "Zoë", "content": "a"}]), "messages[0].name"),
    ],
)
def test_what_cannot_be_said_is_told(request_: Request, lost: str) -> None:
    """Addresses that are not fetched, other vendors' files, parts that nobody knows; hints are only hints."""
    assert sent(request_)[1] == [lost]


def test_cache_markers_are_hints_wherever_they_stand() -> None:
    """On calls, results and tools too; and what is no result among results is told."""
    cache = {"type": "ephemeral"}
    request = Request(
        client="messages",
        model="m",
        messages=(
            Message("system", (Text(""), Text("be brief"))),
            Message("user", (Text("?"),)),
            Message("assistant", (ToolCall("1", "f", "{}", cache=cache),)),
            Message("tool", (ToolResult("1", (), cache=cache), Text("odd")), at=2),
        ),
        tools=(Tool("f", cache=cache),),
    )
    body, lost = sent(request)
    assert body["systemInstruction"] == {"parts": [{"text": "be brief"}]}
    assert body["contents"][2]["parts"] == [{"functionResponse": {"id": "1", "name": "f", "response": {"output": ""}}}]
    assert lost == ["!messages[2].text", "cache_control"]


# ---- seals -----------------------------------------------------------------------------------------------------------

SEAL = "c2VhbA=="


def test_seals_go_back_where_they_came_from() -> None:
    """A thought's on the thought, a text's at the end of the text, a call's on the call."""
    body, lost = sent(
        chat(
            [
                {"role": "user", "content": "?"},
                {
                    "role": "assistant",
                    "content": "گفتم",
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "想", "signature": SEAL, "format": "google-gemini-v1"},
                        {"type": "reasoning.encrypted", "data": "dGV4dA==", "format": "google-gemini-v1"},
                    ],
                    "tool_calls": [
                        call("f", "1", extra_content={"google": {"thought_signature": "Y2FsbA=="}}),
                        call("g", "2"),
                    ],
                },
            ]
        ),
        THIRD,
    )
    assert body["contents"][1]["parts"] == [
        {"thought": True, "text": "想", "thoughtSignature": SEAL},
        {"text": "گفتم", "thoughtSignature": "dGV4dA=="},
        {"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "Y2FsbA=="},
        {"functionCall": {"id": "2", "name": "g", "args": {}}},
    ]
    assert lost == []


def test_a_seal_in_a_message_of_its_own_finds_its_text() -> None:
    """Some clients send reasoning and text as two messages of one turn."""
    seal = Message("assistant", (Thinking("想", encrypted=SEAL, format="google-gemini-v1"),))
    body, lost = sent(of(seal, Message("assistant", (Text("a"), Text("b")), at=1)))
    assert body["contents"][0]["parts"] == [
        {"thought": True, "text": "想"},
        {"text": "a"},
        {"text": "b", "thoughtSignature": SEAL},
    ]
    assert lost == []


@pytest.mark.parametrize(
    "thinking",
    [
        Thinking("unsealed"),
        Thinking("of another", "c2Vh", format="anthropic-claude-v1"),
        Thinking(encrypted="b3A=", format="openai-responses-v1"),
        Thinking("nobody's", "c2Vh"),
    ],
)
def test_reasoning_of_another_vendor_is_left_out(thinking: Thinking) -> None:
    """A changed vendor must not make a conversation fail."""
    body, lost = sent(of(Message("assistant", (thinking, Text("a")), at=4)))
    assert body["contents"] == [{"role": "model", "parts": [{"text": "a"}]}]
    assert lost == ["messages[4].thinking"]


def test_a_seal_without_its_text_is_left_out() -> None:
    """There is nothing that it could seal."""
    alone = Message("assistant", (Thinking(encrypted=SEAL, format="google-gemini-v1"),), at=1)
    body, lost = sent(of(Message("user", (Text("a"),)), alone))
    assert body["contents"] == [{"role": "user", "parts": [{"text": "a"}]}]
    assert lost == ["messages[1].thinking"]


@pytest.mark.parametrize(
    ("model", "seals"),
    [
        (THIRD, [UNSEALED, None]),
        ("gemini-4-argon", [UNSEALED, None]),
        ("gemini-flash-latest", [UNSEALED, None]),
        (SECOND, [None, None]),
        ("gemma-3-27b-it", [None, None]),
    ],
)
def test_calls_without_a_seal_do_not_fail_newer_models(model: str, seals: list[str | None]) -> None:
    """A conversation that another vendor began: the first call of each turn says that it has none."""
    calls = Message("assistant", (ToolCall("1", "f", "{}"), ToolCall("2", "g", "no json")))
    body, lost = sent(of(calls), model)
    assert (body["contents"][0], lost) == ({"role": "user", "parts": [{"text": "."}]}, ["messages[0].role"])
    parts = body["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == seals
    assert parts[1]["functionCall"]["args"] == {"arguments": "no json"}


# ---- what is asked of the answer -------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"ort": {"type": ["string", "null"], "$ref": "#/$defs/a"}},
    "additionalProperties": False,
    "$defs": {"a": {"const": 1}},
}


def test_settings_have_the_vendors_names() -> None:
    """Zero is a temperature, and no penalty."""
    body, lost = sent(
        asked(
            max_completion_tokens=100,
            temperature=0,
            top_p=0.5,
            top_k=40,
            stop=["\n\n", "پایان"],
            seed=0,
            presence_penalty=0.5,
            frequency_penalty=0,
            n=2,
            logprobs=True,
            top_logprobs=3,
            stream=True,
        )
    )
    assert body["generationConfig"] == {
        "maxOutputTokens": 100,
        "temperature": 0,
        "topP": 0.5,
        "topK": 40,
        "stopSequences": ["\n\n", "پایان"],
        "seed": 0,
        "presencePenalty": 0.5,
        "candidateCount": 2,
        "responseLogprobs": True,
        "logprobs": 3,
    }
    assert lost == []


def test_what_changes_nothing_is_not_said() -> None:
    """One answer, no log probabilities, no tools to choose from."""
    body, lost = sent(replace(asked(), n=1))
    assert (set(body), lost) == ({"contents"}, [])
    body, lost = sent(asked(n=1, logprobs=False, top_logprobs=0, tool_choice="auto", parallel_tool_calls=False))
    assert set(body) == {"contents"}
    assert lost == []


def test_a_vendor_may_name_fields_otherwise_or_not_take_them() -> None:
    """As its rule file says."""
    body, lost = sent(asked(seed=7, top_k=3), ways={"seed": None, "top_k": "topK"})
    assert body["generationConfig"] == {"topK": 3}
    assert lost == ["!seed"]


@pytest.mark.parametrize(
    ("format", "config"),
    [
        ({"type": "json_object"}, {"responseMimeType": "application/json"}),
        (
            {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}},
            {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
        ),
        ({"type": "text"}, None),
    ],
)
def test_schemas_go_as_they_are(format: object, config: object) -> None:
    """The field for JSON Schema takes them; the older one would change them."""
    body, lost = sent(asked(response_format=format))
    assert body.get("generationConfig") == config
    assert lost == []


TOOLS = [
    {"type": "function", "function": {"name": "wetter", "description": "Das Wetter", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "uhr"}},
]


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        (None, None),
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ({"type": "function", "function": {"name": "uhr"}}, {"mode": "ANY", "allowedFunctionNames": ["uhr"]}),
    ],
)
def test_tools_are_declared_with_their_own_schemas(choice: object, calling: object) -> None:
    """All in one tool, and the choice beside them."""
    body, lost = sent(asked(tools=TOOLS, tool_choice=choice, parallel_tool_calls=True))
    declared = [
        {"name": "wetter", "description": "Das Wetter", "parametersJsonSchema": SCHEMA},
        {"name": "uhr"},
    ]
    assert body["tools"] == [{"functionDeclarations": declared}]
    assert body.get("toolConfig") == (None if calling is None else {"functionCallingConfig": calling})
    assert lost == []


@pytest.mark.parametrize(
    ("model", "fields", "thinking", "lost"),
    [
        (SECOND, {"reasoning_effort": "none"}, {"thinkingBudget": 0}, []),
        (SECOND, {"reasoning_effort": "low"}, {"thinkingBudget": 4096, "includeThoughts": True}, []),
        (SECOND, {"reasoning_effort": "high"}, {"thinkingBudget": 24576, "includeThoughts": True}, []),
        (SECOND, {"reasoning_effort": "max"}, {"thinkingBudget": 24576, "includeThoughts": True}, ["reasoning_effort"]),
        (
            SECOND,
            {"reasoning": {"max_tokens": 30000}},
            {"thinkingBudget": 24576, "includeThoughts": True},
            ["reasoning_effort"],
        ),
        (PRO, {"reasoning": {"max_tokens": 30000}}, {"thinkingBudget": 30000, "includeThoughts": True}, []),
        (PRO, {"reasoning_effort": "none"}, {"thinkingBudget": 128}, ["reasoning_effort"]),
        ("gemini-2.5-flash-lite", {"reasoning_effort": "none"}, {"thinkingBudget": 0}, []),
        ("gemini-2.0-flash", {"reasoning_effort": "high"}, None, ["reasoning_effort"]),
        ("gemini-2.5-flash-image", {"reasoning_effort": "high"}, None, ["reasoning_effort"]),
        (SECOND, {"reasoning": {"enabled": True}}, {"thinkingBudget": -1, "includeThoughts": True}, []),
        (SECOND, {"reasoning": {"enabled": False}}, {"thinkingBudget": 0}, []),
        (THIRD, {"reasoning_effort": "low"}, {"thinkingLevel": "low", "includeThoughts": True}, []),
        (
            THIRD,
            {"reasoning_effort": "minimal"},
            {"thinkingLevel": "low", "includeThoughts": True},
            ["reasoning_effort"],
        ),
        (THIRD, {"reasoning_effort": "none"}, {"thinkingLevel": "low"}, ["reasoning_effort"]),
        (
            THIRD,
            {"reasoning_effort": "xhigh"},
            {"thinkingLevel": "high", "includeThoughts": True},
            ["reasoning_effort"],
        ),
        (THIRD, {"reasoning": {"max_tokens": 512}}, {"thinkingBudget": 512, "includeThoughts": True}, []),
        (THIRD, {"reasoning": {"enabled": True}}, {"includeThoughts": True}, []),
        ("gemini-3-flash", {"reasoning_effort": "minimal"}, {"thinkingLevel": "minimal", "includeThoughts": True}, []),
    ],
)
def test_thinking_is_a_budget_or_a_level(
    model: str, fields: dict[str, object], thinking: object, lost: list[str]
) -> None:
    """As the model's generation takes it, never both, and told where it had to be brought near."""
    body, told = sent(asked(**fields), model)
    assert body.get("generationConfig", {}).get("thinkingConfig") == thinking
    assert told == lost


def test_every_field_that_is_lost_is_named() -> None:
    """What changes the answer is a loss, what does not is a hint."""
    body, lost = sent(
        asked(
            min_p=0.1,
            logit_bias={"1": 5},
            user="u",
            metadata={"a": "b"},
            web_search_options={},
            tools=[*TOOLS, {"type": "web_search"}, {"type": "function", "function": {"name": "s", "strict": True}}],
            parallel_tool_calls=False,
            response_format={"type": "json_schema", "json_schema": {"name": "a", "description": "d"}},
        )
    )
    assert sorted(lost) == [
        "!logit_bias",
        "!min_p",
        "!tools.web_search",
        "!web_search_options",
        "metadata",
        "parallel_tool_calls",
        "response_format.description",
        "tools.strict",
        "user",
    ]
    assert [tool["name"] for tool in body["tools"][0]["functionDeclarations"]] == ["wetter", "uhr", "s"]


def test_tools_of_a_vendor_alone_declare_nothing() -> None:
    """And then there is no choice to tell."""
    request = Request(client="chat", model="m", messages=(), tools=(NativeTool("chat", "web_search", {}),))
    body, lost = sent(request)
    assert body == {"contents": []}
    assert lost == ["!tools.web_search"]


_part = st.sampled_from(
    [
        {"type": "text", "text": "نَ"},
        {"type": "text", "text": ""},
        {"type": "image_url", "image_url": {"url": "https://a/b"}},
        {"type": "image_url", "image_url": {}},
        {"type": "file", "file": {}},
        {"type": "x"},
        "\ud83d",
    ]
)
_message = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": st.lists(_part, max_size=3)},
    optional={
        "tool_calls": st.just([call("f", "1", "[1]"), call("", "")]),
        "tool_call_id": st.sampled_from(["1", ""]),
        "reasoning_content": st.just("r"),
        "reasoning_details": st.just([{"type": "reasoning.encrypted", "data": SEAL, "format": "google-gemini-v1"}]),
    },
)


@given(st.lists(_message, min_size=1, max_size=5), st.sampled_from([SECOND, THIRD]))
def test_any_conversation_is_one_that_the_vendor_can_read(messages: list[object], model: str) -> None:
    """No empty turn, no two turns of one kind in a row, results by themselves."""
    losses = Losses()
    body: Body = send_gemini(chat(messages), model, losses, {})
    kinds = []
    for content in body["contents"]:
        results = ["functionResponse" in part for part in content["parts"]]
        assert results and all(results) is any(results)
        kinds.append("results" if results[0] else content["role"])
    assert all(a != b for a, b in pairwise(kinds))
    encode_json(body)


# ---- the address -----------------------------------------------------------------------------------------------------


def test_the_model_and_the_way_of_answering_stand_in_the_path() -> None:
    """Both vendors have the same path; only the key goes elsewhere."""
    for vendor in VENDORS:
        assert vendor.path("gemini-2.5-flash", True, {}) == "/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
        assert vendor.path("models/gemini-2.5-flash", False, {}) == "/models/gemini-2.5-flash:generateContent"
        assert vendor.path("../x?y#z", False, {}) == "/models/..%2Fx%3Fy%23z:generateContent"
    assert [(vendor.name, vendor.key_header) for vendor in VENDORS] == [("gemini", "x-goog-api-key"), ("vertex", None)]


def test_what_is_beyond_the_vendors_numbers_is_told() -> None:
    """Five stop sequences, and seeds of 32 bits."""
    body, lost = sent(asked(stop=list("abcdefg"), seed=2**40), SECOND)
    assert body["generationConfig"] == {"stopSequences": list("abcde")}
    assert sorted(lost) == ["!seed", "!stop"]
    assert sent(asked(seed=-(2**31)), SECOND)[0]["generationConfig"] == {"seed": -(2**31)}
