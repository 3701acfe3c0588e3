"""A request as every dialect can read it: who said what, with which tools, and how the answer is wanted.

A client's dialect parses its own body into this, an upstream's dialect writes its own body from it. What only one
family knows travels as `Native` (a part of a message) or in `extra` (a field): a dialect of the same family puts it
back, every other one reports it as lost. Values only; nothing here decides what a vendor can take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from proxy.canon.chunk import NOTHING

Role = Literal["system", "developer", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Text:
    """`cache` is the marker of a prompt cache (Anthropic's `cache_control`), a hint that changes no answer."""

    text: str
    cache: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """Either `data` (base64, with its `media_type`) or `url`. `detail` is OpenAI's low | high | auto."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    detail: str | None = None
    cache: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A file beside the text, a PDF mostly: `data` (base64), `url`, or plain `text`. `file_id` names one that lies at
    one vendor and nowhere else."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    text: str = ""
    file_id: str = ""
    name: str = ""
    cache: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Audio:
    """`data` is base64, `format` such as `wav` or `mp3`."""

    data: str
    format: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning of an earlier answer, sent back. `signature` is the vendor's seal over it, `encrypted` reasoning that
    only the vendor can read (then `text` is a summary, or empty). `id` is the item's own name at the vendor. `format`
    says whose the seal is: `anthropic-claude-v1`, `google-gemini-v1`, `openai-responses-v1` (`dialects.seals`); a
    vendor refuses another's."""

    text: str = ""
    signature: str | None = None
    encrypted: str | None = None
    id: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is JSON text as the model wrote it. `signature` is Gemini's seal, which it wants back."""

    id: str
    name: str
    arguments: str
    signature: str | None = None
    cache: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the call `call` gave. `name` is the tool's, where the client said it or the call before tells it."""

    call: str
    parts: tuple[Text | Image | Document, ...]
    name: str = ""
    is_error: bool = False
    cache: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Native:
    """A part that only `family` (a client dialect's name) knows; `kind` names it for people, `value` is its JSON."""

    family: str
    kind: str
    value: Mapping[str, object]


Part = Text | Image | Document | Audio | Thinking | Refusal | ToolCall | ToolResult | Native


@dataclass(frozen=True, slots=True)
class Message:
    """`at` is the place of the client's own message that this came from, for telling what was lost where. Results of
    tools stand in messages of the role `tool`, one or several in each."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None
    at: int = 0

    @property
    def text(self) -> str:
        """All plain text of it, joined by line feeds."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call. `parameters` is a JSON Schema, None if there are none."""

    name: str
    description: str | None = None
    parameters: Mapping[str, object] | None = None
    strict: bool | None = None
    cache: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class NativeTool:
    """A tool that the vendor itself runs (web search, code), of one family."""

    family: str
    kind: str
    value: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`one` is the tool `name`, and no other."""

    mode: Literal["auto", "none", "required", "one"]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """JSON as the answer: any object, or one that holds to `schema`."""

    schema: Mapping[str, object] | None = None
    name: str = "answer"
    strict: bool | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """How much to think. `effort` is none | minimal | low | medium | high | xhigh | max, `budget` in tokens, `enabled`
    where it was said with neither; `summary` asks for its text."""

    effort: str | None = None
    budget: int | None = None
    enabled: bool | None = None
    summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """None everywhere means: not said. `extra` holds the client's fields that have no place here, by its own names;
    `client` is its dialect's name."""

    client: str
    model: str
    messages: tuple[Message, ...]
    stream: bool = False
    tools: tuple[Tool | NativeTool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tools: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: Mapping[str, object] | None = None
    format: Format | None = None
    reasoning: Reasoning | None = None
    user: str | None = None
    extra: Mapping[str, object] = field(default_factory=lambda: NOTHING)


def split_system(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The system and developer messages that stand before everything else, and the rest."""
    for place, message in enumerate(messages):
        if message.role not in ("system", "developer"):
            return messages[:place], messages[place:]
    return messages, ()


def names_of_calls(messages: tuple[Message, ...]) -> dict[str, str]:
    """The tool's name of each call id that the conversation knows: vendors that answer by name need it."""
    return {part.id: part.name for message in messages for part in message.parts if isinstance(part, ToolCall)}
