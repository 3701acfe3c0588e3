"""The table of what survives on the way to each vendor, in docs/dialects.md: made from the dialects, not from memory.

`--update-golden` writes it anew; its diff is reviewed like code. (contract Q1, D1, D2)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from proxy.canon.request import (
    Audio,
    Document,
    Format,
    Image,
    Message,
    Part,
    Reasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.dialects.base import Losses
from proxy.dialects.registry import CHAT_DIALECTS
from proxy.dialects.seals import ANTHROPIC

PAGE: Final = Path(__file__).parents[2] / "docs" / "dialects.md"
BEGIN, END = "<!-- made by tests/contract/test_dialects_table.py -->", "<!-- end -->"
VENDORS: Final = list(CHAT_DIALECTS)
_TOOL: Final = Tool("f", "d", {"type": "object", "properties": {}})
_SCHEMA: Final = {"type": "object", "properties": {}, "additionalProperties": False}
_CACHE: Final = {"type": "ephemeral"}


def _request(*parts: Part, before: tuple[Message, ...] = (), **fields: object) -> Request:
    said = Message("user", parts or (Text("x"),))
    made: Mapping[str, object] = {"client": "probe", "model": "m", "messages": (*before, said), **fields}
    return Request(**made)  # type: ignore[arg-type]  # the table below names the fields that it means


def _turn(*parts: Part, results: tuple[ToolResult, ...] = ()) -> tuple[Message, ...]:
    asked = Message("user", (Text("q"),))
    answered = (asked, Message("assistant", parts))
    return (*answered, Message("tool", results)) if results else answered


_CALLS: Final = (ToolCall("1", "f", "{}"), ToolCall("2", "f", '{"a": 1}'))
_RESULTS: Final = (ToolResult("1", (Text("r"),), "f"), ToolResult("2", (Text("s"),), "f"))
_SHOWN: Final = (ToolResult("1", (Text("r"), Image("image/png", "AAAA")), "f"),)
_FAILED: Final = (ToolResult("1", (Text("r"),), "f", is_error=True),)

FEATURES: Final[Mapping[str, Request]] = {
    "system prompt": _request(before=(Message("system", (Text("s"),)),)),
    "system message later on": _request(before=(*_turn(Text("a")), Message("system", (Text("s"),)))),
    "image, as data": _request(Text("x"), Image("image/png", "AAAA")),
    "image, by URL": _request(Text("x"), Image(url="https://example.org/a.png")),
    "PDF, as data": _request(Text("x"), Document("application/pdf", "AAAA", name="a.pdf")),
    "document, by URL": _request(Text("x"), Document(url="https://example.org/a.pdf")),
    "audio": _request(Text("x"), Audio("AAAA", "wav")),
    "tools": _request(tools=(_TOOL,)),
    "parallel calls and results": _request(before=_turn(*_CALLS, results=_RESULTS), tools=(_TOOL,)),
    "an image in a result": _request(before=_turn(_CALLS[0], results=_SHOWN), tools=(_TOOL,)),
    "a result that failed": _request(before=_turn(_CALLS[0], results=_FAILED), tools=(_TOOL,)),
    "tool choice: required": _request(tools=(_TOOL,), tool_choice=ToolChoice("required")),
    "tool choice: one tool": _request(tools=(_TOOL,), tool_choice=ToolChoice("one", "f")),
    "tool choice: none": _request(tools=(_TOOL,), tool_choice=ToolChoice("none")),
    "no parallel calls": _request(tools=(_TOOL,), parallel_tools=False),
    "reasoning: effort": _request(reasoning=Reasoning("high")),
    "reasoning: budget": _request(reasoning=Reasoning(budget=2048)),
    "reasoning: off": _request(reasoning=Reasoning(enabled=False)),
    "reasoning sent back": _request(before=_turn(Thinking("t"), Text("a"))),
    "reasoning sealed by Anthropic": _request(before=_turn(Thinking("t", "s", format=ANTHROPIC), Text("a"))),
    "JSON object": _request(format=Format()),
    "JSON schema": _request(format=Format(_SCHEMA, "n")),
    "max_tokens": _request(max_tokens=99),
    "temperature": _request(temperature=0.5),
    "top_p": _request(top_p=0.5),
    "top_k": _request(top_k=9),
    "min_p": _request(min_p=0.5),
    "stop": _request(stop=("x",)),
    "seed": _request(seed=9),
    "frequency_penalty": _request(frequency_penalty=0.5),
    "presence_penalty": _request(presence_penalty=0.5),
    "n": _request(n=2),
    "logprobs": _request(logprobs=True, top_logprobs=2),
    "logit_bias": _request(logit_bias={"1": 2}),
    "user": _request(user="u"),
    "cache markers": _request(Text("x", _CACHE)),
}


def _told(vendor: str, request: Request) -> str:
    losses = Losses()
    CHAT_DIALECTS[vendor].send(request, "m", losses, {})
    return "lost" if losses.real else "hint" if losses.all else "yes"


def table() -> str:
    rows = [f"| | {' | '.join(f'`{vendor}`' for vendor in VENDORS)} |", f"|---|{'---|' * len(VENDORS)}"]
    rows += [
        f"| {feature} | {' | '.join(_told(vendor, request) for vendor in VENDORS)} |"
        for feature, request in FEATURES.items()
    ]
    return "\n".join(rows)


@pytest.mark.clause("Q1", "D1", "D2")
def test_the_page_says_what_survives(update_golden: bool) -> None:
    """One row per feature, one column per vendor dialect."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    made = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if update_golden:
        PAGE.write_text(made, encoding="utf-8")
    assert text.split("\n") == made.split("\n")
