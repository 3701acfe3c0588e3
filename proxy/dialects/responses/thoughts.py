"""Reasoning items, to and from the other forms that reasoning has here: a part of a request, a detail of an answer.

A reasoning item holds a summary (or the reasoning itself, as `content`) and `encrypted_content`, which is the seal. A
seal of another family stands there marked with its format; one that is a signature over text (Anthropic's, Gemini's)
with `signature:` before it, to tell it from reasoning that is encrypted. Knows no events.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.request import Thinking
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_text
from proxy.dialects.seals import RESPONSES, mark_seal, read_seal

_SIGNATURE = "signature:"
#: Between two parts of a summary, where a grammar has room for one text only.
BREAK = "\n\n"


def text_of_item(item: Mapping[str, object]) -> str:
    """The summary, or the reasoning itself where there is none."""
    for name in ("summary", "content"):
        if texts := [text for part in objects(item.get(name)) if (text := as_text(part.get("text")))]:
            return BREAK.join(texts)
    return ""


def detail_of_item(item: Mapping[str, object], index: int) -> dict[str, object] | None:
    """A sealed item as one of `reasoning_details`; None if it has no seal."""
    thought = thinking_of_item(item)
    made: dict[str, object]
    if thought.signature is not None:
        made = {"type": "reasoning.text", "text": thought.text, "signature": thought.signature}
    elif thought.encrypted is not None:
        made = {"type": "reasoning.encrypted", "data": thought.encrypted}
        if thought.text:
            made["summary"] = thought.text
    else:
        return None
    if thought.id is not None:
        made["id"] = thought.id
    if thought.format is not None:
        made["format"] = thought.format
    return {**made, "index": index}


def seal_of_detail(detail: Mapping[str, object]) -> str:
    """What stands as `encrypted_content`; '' if the detail has no seal."""
    format = as_text(detail.get("format")) or None
    if signature := as_text(detail.get("signature")):
        return mark_seal(_SIGNATURE + signature, format, RESPONSES)
    data = as_text(detail.get("data"))
    return mark_seal(data, format, RESPONSES) if data else ""


def thinking_of_item(item: Mapping[str, object]) -> Thinking:
    """An item that a vendor gave, or that a client sends back."""
    text, identity = text_of_item(item), as_text(item.get("id")) or None
    sealed = as_text(item.get("encrypted_content"))
    if not sealed:
        return Thinking(text, id=identity)
    seal, format = read_seal(sealed, RESPONSES)
    if seal.startswith(_SIGNATURE):
        told = None if format == RESPONSES else format
        return Thinking(text, seal.removeprefix(_SIGNATURE), id=identity, format=told)
    return Thinking(text, encrypted=seal, id=identity, format=format)


def item_of_thinking(thought: Thinking) -> dict[str, object] | None:
    """The item for a vendor of this family; None where the seal is not its own, or there is none: the vendor looks an
    item without one up by its id, and has not kept it."""
    if thought.encrypted is None or thought.format != RESPONSES:
        return None
    made: dict[str, object] = {"type": "reasoning"}
    if thought.id:  # an empty one is refused, none at all is not
        made["id"] = thought.id
    summary = [{"type": "summary_text", "text": text} for text in thought.text.split(BREAK)] if thought.text else []
    return {**made, "summary": summary, "encrypted_content": thought.encrypted}
