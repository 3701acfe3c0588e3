"""Bodies that real clients send, at every vendor: taken there, and not refused here for what these clients always say.

The bodies are composed from the sources of Claude Code's and Codex' requests, LangChain, LlamaIndex, the `ai` SDK and
Open WebUI. (contract D1, D2, Q1)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.request import Request
from proxy.dialects.base import BadRequest, Losses
from proxy.dialects.registry import CHAT_DIALECTS, CLIENT_DIALECTS, VENDOR_DIALECTS
from tests.support.constraints import complaints_about
from tests.support.conversations import PNG

VENDORS: Final = sorted(name for name in CHAT_DIALECTS if name != "completions")
#: A model of each vendor's, where its name decides what it is told.
MODELS: Final = {
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-7", "claude-sonnet-5-5"),
    "bedrock": (
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "global.anthropic.claude-opus-4-7",
        "meta.llama3-3-70b",
    ),
    "gemini": ("gemini-2.5-flash", "gemini-3-pro-preview", "gemini-2.0-flash"),
}
_SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"command": {"type": "string"}, "timeout": {"type": "number", "maximum": 600000}},
    "required": ["command"],
    "additionalProperties": False,
}
_EPHEMERAL: Final = {"type": "ephemeral"}

CLAUDE_CODE: Final = {
    "model": "alias",
    "max_tokens": 32000,
    "stream": True,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1"},
        {"type": "text", "text": "You are Claude Code.", "cache_control": _EPHEMERAL},
        {"type": "text", "text": "# Tone\nبا کاربر مختصر باش.", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    ],
    "tools": [
        {"name": "Bash", "description": "Runs a command", "input_schema": _SCHEMA, "eager_input_streaming": True},
        {"name": "mcp__github__list", "description": "", "input_schema": {"type": "object", "properties": {}}},
        {"name": "Read", "description": "Reads", "input_schema": _SCHEMA, "cache_control": _EPHEMERAL},
    ],
    "metadata": {"user_id": json.dumps({"device_id": "d" * 64, "account_uuid": "", "session_id": "s" * 36})},
    "thinking": {"type": "enabled", "budget_tokens": 31999},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>\n# claudeMd\n</system-reminder>"},
                {"type": "text", "text": "看看这个目录 👩‍👩‍👧", "cache_control": _EPHEMERAL},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Let me look.", "signature": "EqQBCgIYAhIM"},
                {"type": "text", "text": "\n\n"},
                {"type": "tool_use", "id": "toolu_01A", "name": "Bash", "input": {"command": "ls"}},
                {"type": "tool_use", "id": "toolu_01B", "name": "Read", "input": {"command": "a.png"}},
                {"type": "tool_use", "id": "toolu_01C", "name": "Bash", "input": {"command": "false"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_01B", "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ]},
                {"type": "tool_result", "tool_use_id": "toolu_01A", "content": ""},
                {"type": "tool_result", "tool_use_id": "toolu_01C", "is_error": True, "content": "Exit code 1"},
                {"type": "text", "text": "<system-reminder>go on</system-reminder>"},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "(no content)"}]},
        {"role": "user", "content": "ok", "cache_control": None},
    ],
}  # fmt: skip
ADAPTIVE: Final = {
    **CLAUDE_CODE,
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "xhigh"},
    "speed": "fast",
}

_LONG_ID: Final = "call_" + "a" * 70
_SHOWN: Final = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "high"}
CODEX: Final = {
    "model": "alias",
    "instructions": "You are Codex, running in a terminal.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "چه فایل‌هایی هست؟"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "**Look**"}], "encrypted_content": "gAAA"},
        {"type": "function_call", "name": "shell_command", "arguments": '{"command":"ls"}', "call_id": _LONG_ID},
        {"type": "function_call", "name": "view_image", "arguments": '{"path":"a.png"}', "call_id": "call_b"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "wait"}]},
        {"type": "function_call_output", "call_id": "call_b", "output": [_SHOWN]},
        {"type": "function_call_output", "call_id": _LONG_ID, "output": "Exit code: 0\nOutput:\n"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ja."}], "phase": "x"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
    ],
    "tools": [
        {"type": "function", "name": "shell_command", "description": "Runs", "strict": False, "parameters": _SCHEMA},
        {"type": "function", "name": "view_image", "description": "Shows", "strict": False, "parameters": _SCHEMA},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199-uuid",
    "text": {"verbosity": "low"},
    "client_metadata": {"x-codex-installation-id": "u"},
}  # fmt: skip

_CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "Person", "arguments": '{"name":"علی"}'}}
_TOOL: Final = {"type": "function", "function": {"name": "Person", "description": "A person", "parameters": _SCHEMA}}
_PICTURE: Final = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
LANGCHAIN: Final = {
    "model": "alias",
    "messages": [
        {"content": "You are helpful.", "role": "system"},
        {"content": [{"type": "text", "text": "Who?"}, _PICTURE], "role": "user"},
        {"content": None, "role": "assistant", "tool_calls": [_CALL], "name": None},
        {"content": "{}", "role": "tool", "tool_call_id": "call_1"},
    ],
    "stream": False,
    "n": 1,
    "temperature": 0.7,
    "tools": [_TOOL],
    "tool_choice": "auto",
}  # fmt: skip
LLAMAINDEX: Final = {
    "model": "alias",
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "?"},
    ],
    "stream": True,
    "temperature": 0.1,
    "max_tokens": None,
    "tools": [{"type": "function", "function": {**_TOOL["function"], "strict": False}}],  # type: ignore[dict-item]  # it is one
    "tool_choice": "auto",
    "parallel_tool_calls": False,
}  # fmt: skip
AI_SDK: Final = {
    "model": "alias",
    "max_tokens": 500,
    "top_p": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "messages": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "", "tool_calls": [_CALL, {**_CALL, "id": "call_2"}]},
        {"role": "tool", "tool_call_id": "call_2", "content": '{"ok":true}'},
        {"role": "tool", "tool_call_id": "call_1", "content": "[1,2]"},
    ],
    "tools": [_TOOL],
    "stream": True,
    "stream_options": {"include_usage": True},
}  # fmt: skip
OPEN_WEBUI: Final = {
    "stream": True,
    "model": "alias",
    "messages": [
        {"role": "system", "content": "سلام"},
        {"role": "assistant", "content": "How can I help?"},
        {"role": "user", "content": "你好"},
    ],
    "stream_options": {"include_usage": True},
    "max_tokens": -1,
    "top_k": 0,
    "repetition_penalty": 1.0,
    "metadata": {"chat_id": "c"},
    "stop": [],
    "logit_bias": {},
}  # fmt: skip

BODIES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "Claude Code": ("messages", CLAUDE_CODE),
    "Claude Code, adaptive": ("messages", ADAPTIVE),
    "Codex": ("responses", CODEX),
    "LangChain": ("chat", LANGCHAIN),
    "LlamaIndex": ("chat", LLAMAINDEX),
    "ai": ("chat", AI_SDK),
    "Open WebUI": ("chat", OPEN_WEBUI),
}
#: Pictures are shown to those alone who can see; and what some do not take that is not always said.
_MISSED: Final = ("messages[0].image", "messages[1].image", "messages[2].image", "messages[7].image")


def may_be_lost(name: str, vendor: str, model: str) -> bool:
    if name == "temperature":
        return "claude" in model  # the newest take none
    return name in _MISSED or (name == "max_tokens" and vendor == "hunyuan")


def translated(client: str, body: Mapping[str, Any], vendor: str, model: str) -> tuple[Mapping[str, Any], Losses]:
    request = CLIENT_DIALECTS[client].parse(json.dumps(body).encode())
    assert not isinstance(request, BadRequest), request
    canonical, losses = request.canonical, Losses()
    assert isinstance(canonical, Request), canonical
    return VENDOR_DIALECTS[vendor].send(canonical, model, losses, {}), losses


@pytest.mark.clause("Q1", "D1", "D2")
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(
    ("vendor", "model"), [(vendor, model) for vendor in VENDORS for model in MODELS.get(vendor, ("m",))]
)
def test_what_real_clients_send_is_taken_by_every_vendor(name: str, vendor: str, model: str) -> None:
    """By its documented rules; and nothing that a client always says is a reason to refuse it."""
    client, body = BODIES[name]
    sent, losses = translated(client, body, vendor, model)

    assert complaints_about(vendor, sent) == []
    assert [one for one in losses.real if not may_be_lost(one, vendor, model)] == [], losses.all


# ---- conversations that nobody would plan ----------------------------------------------------------------------------

_TEXTS: Final = st.sampled_from(["سلام", "你好", "", " \n", "नमस्ते 👩‍👧", "x "])
_CONTENTS: Final = st.one_of(
    _TEXTS,
    st.none(),
    st.lists(
        st.one_of(
            _TEXTS.map(lambda text: {"type": "text", "text": text}),
            st.just(_PICTURE),
            st.just({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}}),
            st.just({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}),
            st.just({"type": "hologram"}),
        ),
        max_size=3,
    ),
)
_IDS: Final = st.sampled_from(["call_1", "functions.f:0", "f", "ид", "x" * 90, "x" * 90 + "y"])


@st.composite
def unplanned(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Any speakers in any order; results late, in any order, with words between. Each call has one in the end."""
    messages: list[dict[str, Any]] = []
    waiting: list[str] = []
    for _ in range(draw(st.integers(1, 7))):
        role = draw(st.sampled_from(["system", "developer", "user", "assistant", "calls", "tool"]))
        if role == "tool" and waiting:
            identity = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
            messages.append({"role": "tool", "tool_call_id": identity, "content": draw(_CONTENTS)})
        elif role == "calls":
            ids = [one for one in draw(st.lists(_IDS, min_size=1, max_size=3, unique=True)) if one not in waiting]
            calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
            waiting += ids
            messages.append({"role": "assistant", "content": draw(_TEXTS), **({"tool_calls": calls} if calls else {})})
        elif role != "tool":
            thought = {"reasoning_content": "想"} if role == "assistant" and draw(st.booleans()) else {}
            messages.append({"role": role, "content": draw(_TEXTS if role == "assistant" else _CONTENTS), **thought})
    late = [{"role": "tool", "tool_call_id": one, "content": draw(_CONTENTS)} for one in draw(st.permutations(waiting))]
    return [*messages, *late, {"role": "user", "content": "و؟"}]


@pytest.mark.clause("Q1", "D1")
@pytest.mark.parametrize(
    ("vendor", "model"), [(vendor, model) for vendor in VENDORS for model in MODELS.get(vendor, ("m",))]
)
@given(messages=unplanned(), tools=st.booleans(), effort=st.sampled_from([None, "low", "none"]), hot=st.booleans())
def test_any_order_of_messages_is_put_into_the_vendors(
    vendor: str, model: str, messages: list[dict[str, Any]], tools: bool, effort: str | None, hot: bool
) -> None:
    """Where calls and results belong together, and whoever speaks first."""
    body: dict[str, Any] = {"model": "alias", "messages": messages, "reasoning_effort": effort}
    if tools:
        body |= {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {}}}}]}
        body |= {"tool_choice": "required"}
    if hot:
        body |= {"temperature": 1.7, "max_tokens": 5, "stop": list("abcdefg"), "user": "u" * 99}
    sent, _ = translated("chat", body, vendor, model)

    assert complaints_about(vendor, sent) == []
