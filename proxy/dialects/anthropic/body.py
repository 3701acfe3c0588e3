"""A whole message of the Messages API: the vendor's made right, or built from the pieces of a stream (contract D1).

Patching keeps every field that we do not know. Made right are: identity, the stop reason, a call's id and input, the
figures of usage, and the text where a fence is taken off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proxy.dialects.anthropic.stops import stop_word
from proxy.dialects.base import ContentOf
from proxy.dialects.parts import object_of_arguments, object_of_body, objects
from proxy.dialects.payload import as_mapping, as_text, encode_json
from proxy.dialects.sealing import Piece, Sealing
from proxy.dialects.seals import ANTHROPIC, GEMINI, mark_seal


def patch_message(
    body: bytes,
    identity: str,
    model: str,
    finish: str,
    usage: Mapping[str, object],
    content_of: ContentOf,
    seed: str,
) -> bytes:
    """The vendor's own body. `finish` is canonical; `content_of` repairs the text."""
    message = object_of_body(body)
    blocks = [_patch_block(block, f"{seed}{place}") for place, block in enumerate(objects(message.get("content")))]
    text = "".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")
    right = content_of(0, text)
    if right != text:
        blocks = list(_with_text(blocks, right))
    return encode_json(
        {
            **message,
            "id": identity,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": blocks,
            "stop_reason": stop_word(finish, as_text(message.get("stop_reason")) or None, is_own=True),
            "stop_sequence": message.get("stop_sequence"),
            "usage": usage,
        }
    )


def _patch_block(block: Mapping[str, object], seed: str) -> Mapping[str, object]:
    if block.get("type") != "tool_use":
        return block
    given = block.get("input")
    if not isinstance(given, dict):
        given = object_of_arguments(given if isinstance(given, str) else "")
    return {**block, "id": block.get("id") or f"toolu_{seed}", "input": given}


def _with_text(blocks: Sequence[Mapping[str, object]], text: str) -> Iterator[Mapping[str, object]]:
    """All text in the first of the text blocks: what was taken off may have stood in any of them."""
    is_said = False
    for block in blocks:
        if block.get("type") != "text":
            yield block
        elif not is_said:
            is_said = True
            yield {**block, "text": text}


def message_of(identity: str, model: str, choices: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """A message without its usage, from a choice of a chat.completion (see `base.Writer.body`)."""
    choice = choices[0] if choices else {}
    message = as_mapping(choice.get("message"))
    finish, word = as_text(choice.get("finish_reason")), as_text(choice.get("native_finish"))
    raws = list(objects(message.get("native")))
    ends = next((as_mapping(raw.get("delta")) for raw in raws if raw.get("type") == "message_delta"), {})
    refusal = as_text(message.get("refusal"))
    thoughts = [block for piece in Sealing().order(message, is_whole=True) for block in _thought(piece)]
    blocks = [*thoughts, *_natives(raws)]
    if text := as_text(message.get("content")) + refusal:
        blocks.append({"type": "text", "text": text})
    for call in objects(message.get("tool_calls")):
        blocks += _call(call)
    finish = "content_filter" if refusal and finish == "stop" else finish
    return {
        "id": identity,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        **ends,
        "stop_reason": stop_word(finish, as_text(ends.get("stop_reason")) or word or None, is_own=bool(ends)),
        "stop_sequence": ends.get("stop_sequence"),
    }


def _thought(piece: Piece) -> Iterator[dict[str, object]]:
    """Thinking as its seal has it; what none is over is a block without one."""
    detail = piece.detail or {}
    format, signature = as_text(detail.get("format")) or None, as_text(detail.get("signature"))
    data = "" if signature else as_text(detail.get("data"))
    sealed = mark_seal(signature or data, format, ANTHROPIC)
    is_redacted = bool(data) and (not piece.text or sealed == data)
    if piece.text or not is_redacted:
        yield {"type": "thinking", "thinking": piece.text, "signature": "" if is_redacted else sealed}
    if is_redacted:
        yield {"type": "redacted_thinking", "data": sealed}


def _natives(raws: Sequence[Mapping[str, object]]) -> Iterator[dict[str, object]]:
    """Blocks that only this family knows, from their events or whole."""
    open_block: dict[str, object] | None = None
    pieces: list[str] = []
    for raw in raws:
        match raw.get("type"):
            case "content_block_start":
                block = as_mapping(raw.get("content_block"))
                open_block, pieces = (None if block.get("type") in ("text", "tool_use") else dict(block)), []
            case "content_block_delta":
                pieces.append(as_text(as_mapping(raw.get("delta")).get("partial_json")))
            case "content_block_stop" if open_block is not None:
                if any(pieces):
                    open_block["input"] = object_of_arguments("".join(pieces))
                yield open_block
                open_block = None
            case "content_block_stop" | "message_delta":
                pass
            case _:
                yield dict(raw)


def _call(call: Mapping[str, object]) -> Iterator[dict[str, object]]:
    google = as_mapping(as_mapping(call.get("extra_content")).get("google"))
    if seal := as_text(google.get("thought_signature")):
        yield {"type": "redacted_thinking", "data": mark_seal(seal, GEMINI, ANTHROPIC)}
    function = as_mapping(call.get("function"))
    yield {
        "type": "tool_use",
        "id": call.get("id"),
        "name": as_text(function.get("name")),
        "input": object_of_arguments(as_text(function.get("arguments"))),
    }
