"""Our own count of a recorded request and its answer, for comparison with the vendor's figures.

In: an exchange of any family. Out: tokens of the shared tokenizer. A family's own template adds tokens that no count of
ours can see: they are the offset of the line. Never: counts ids, pictures, or what was said again. (contract L2)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from proxy.dialects.payload import encode_json
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.learning.ways_exchange import Exchange
from proxy.metering.prompt import read_prompt
from proxy.metering.tokens import load_counter

#: Where the families keep what is asked; in lower case, without underscores.
_ASKED: Final = frozenset(
    ("messages", "contents", "input", "prompt", "system", "systeminstruction", "instructions", "botsetting")
)
_TEXTS: Final = frozenset((*_ASKED, "role", "text", "content", "parts", "arguments", "output"))
_MAX_DEPTH: Final = 8


def counted_prompt(exchange: Exchange) -> int:
    """Tokens of what was asked."""
    if VENDOR_DIALECTS[exchange.dialect].native == "chat":
        return load_counter().count(read_prompt(dict(exchange.asked)).text)
    pieces = [text for name, value in exchange.asked.items() if _plain(name) in _ASKED for text in _texts(value, name)]
    if tools := exchange.asked.get("tools"):
        pieces.append(encode_json(tools).decode())
    return load_counter().count("\n".join(pieces))


def counted_output(exchange: Exchange) -> int:
    """Tokens of all that was said: texts, reasoning, calls with their names."""
    texts = ["".join(text for _, text in pieces) for pieces in exchange.said.values()]
    names = {
        (delta.choice, call.index, call.id): call.name
        for _, chunk in exchange.chunks
        for delta in chunk.deltas
        for call in delta.tools or ()
        if call.name
    }
    return sum(map(load_counter().count, (*texts, *names.values())))


def _texts(value: object, name: str, depth: int = 0) -> Iterator[str]:
    """Texts for the model, by the names of the fields that hold them."""
    if isinstance(value, str):
        if value and _plain(name) in _TEXTS:
            yield value
    elif isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for inner, more in value.items():
            yield from _texts(more, str(inner), depth + 1)
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        for more in value:
            yield from _texts(more, name, depth + 1)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
