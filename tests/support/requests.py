"""Generated canonical requests whose values are all unlike each other, so that each can be looked for."""

from __future__ import annotations

import json
from itertools import count
from typing import Final

from hypothesis import strategies as st

from proxy.canon.request import (
    Audio,
    Document,
    Format,
    Image,
    Message,
    Part,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)

_SCRIPTS: Final = ("سلام", "你好", "नमस्ते", "👩‍👧", "héllo", "สวัสดี", 'quo"te\\', "line\nbreak")


class _Maker:
    """Hands out values, each once."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self._count = draw, count(1)

    def text(self) -> str:
        return f"{self.draw(st.sampled_from(_SCRIPTS))}-{next(self._count):03d}"

    def word(self) -> str:
        return f"word_{next(self._count):03d}"

    def data(self) -> str:
        return f"AAAA{next(self._count):04d}"

    def number(self) -> int:
        return 4000 + next(self._count)


def _user_part(make: _Maker) -> Part:
    match make.draw(st.integers(0, 7)):
        case 0:
            return Image("image/png", make.data())
        case 1:
            return Image(url=f"https://example.org/{make.word()}.png")
        case 2:
            return Document("application/pdf", make.data(), name=f"{make.word()}.pdf")
        case 3:
            return Document("text/plain", text=make.text())
        case 4:
            return Audio(make.data(), "wav")
        case _:
            return Text(make.text())


def _call(make: _Maker, tool: Tool) -> ToolCall:
    arguments = {make.word(): make.text(), "n": make.number()}
    return ToolCall(f"call_{make.word()}", tool.name, json.dumps(arguments, ensure_ascii=make.draw(st.booleans())))


def _turn(make: _Maker, tools: list[Tool], at: int) -> list[Message]:
    """A message of the user, and the answer to it; with tools perhaps calls and their results."""
    parts = [Text(make.text()), *(_user_part(make) for _ in range(make.draw(st.integers(0, 2))))]
    said: list[Message] = [Message("user", tuple(parts), at=at)]
    answer: list[Part] = []
    if make.draw(st.booleans()):
        answer.append(Thinking(make.text()))
    if make.draw(st.booleans()) or not tools:
        answer.append(Text(make.text()))
    calls = [
        _call(make, make.draw(st.sampled_from(tools))) for _ in range(make.draw(st.integers(0, 3)) if tools else 0)
    ]
    if not calls and not any(isinstance(part, Text) for part in answer):
        answer.append(Text(make.text()))
    said.append(Message("assistant", (*answer, *calls), at=at + 1))
    if calls:
        results = [ToolResult(call.id, (Text(make.text()),), call.name) for call in calls]
        if make.draw(st.booleans()):
            said.append(Message("tool", tuple(results), at=at + 2))
        else:
            said += [Message("tool", (result,), at=at + 2 + n) for n, result in enumerate(results)]
    return said


def _maybe(make: _Maker, value: float | int) -> float | int | None:
    return value if make.draw(st.booleans()) else None


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A conversation of one to three turns, ended by the user or by results."""
    make = _Maker(draw)
    tools = [
        Tool(
            make.word(),
            make.text() if draw(st.booleans()) else None,
            {"type": "object", "properties": {make.word(): {"type": "string", "description": make.text()}}},
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(Message("system", (Text(make.text()),), at=0))
    for _ in range(draw(st.integers(0, 2))):
        messages += _turn(make, tools, len(messages))
    messages.append(Message("user", (Text(make.text()), *([_user_part(make)] if draw(st.booleans()) else [])), at=99))
    schema = {"type": "object", "properties": {make.word(): {"type": "string"}}, "required": []}
    return Request(
        client="chat",
        model="alias",
        messages=tuple(messages),
        stream=draw(st.booleans()),
        tools=tuple(tools),
        max_tokens=make.number() if draw(st.booleans()) else None,
        temperature=_maybe(make, 0.371),
        top_p=_maybe(make, 0.873),
        top_k=make.number() if draw(st.booleans()) else None,
        seed=make.number() if draw(st.booleans()) else None,
        presence_penalty=_maybe(make, 0.191),
        frequency_penalty=_maybe(make, 0.317),
        stop=(make.word(),) if draw(st.booleans()) else (),
        format=Format(schema) if draw(st.booleans()) else None,
    )
