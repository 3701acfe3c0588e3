"""Two versions of a tokenizer side by side, for a person or a program (`sluice toon compat`).

In: a `Comparison`. Out: lines, of which the first says it all; or plain values that say everything. Never: decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from proxy.toon.compat import Comparison, MovedId, MovedText

_SHOWN: Final = 8  # ids of one pair that are named one by one; of the texts, one for each script


def pair_as_json(pair: Comparison) -> dict[str, object]:
    return {**asdict(pair), "is_equal": pair.is_equal, "is_broken": pair.is_broken}


def pair_in_words(pair: Comparison) -> Iterator[str]:
    between = f"{pair.old} -> {pair.new}:"
    if pair.is_equal:
        yield f"{between} nothing moved in {pair.texts} texts, {pair.added} ids added{_promise(pair)}"
        return
    moved = f"{len(pair.moved_texts)} of {pair.texts} texts moved, {len(pair.moved_ids)} ids mean something else"
    yield f"{between} {moved}, {pair.added} ids added{_promise(pair)}"
    first = {text.script: text for text in reversed(pair.moved_texts)}
    yield from map(_text_line, reversed(first.values()))
    yield from _more(len(pair.moved_texts) - len(first), "texts")
    yield from map(_id_line, pair.moved_ids[:_SHOWN])
    yield from _more(len(pair.moved_ids) - _SHOWN, "ids")
    if pair.chat_moved:
        yield "  a conversation has other ids"


def _promise(pair: Comparison) -> str:
    if not pair.promised:
        return ""
    return ": equality was promised, AND IS BROKEN" if pair.is_broken else ": equality was promised, and kept"


def _text_line(moved: MovedText) -> str:
    ids = f"{len(moved.old)} ids became {len(moved.new)}, from id number {moved.at} on"
    return f"  {moved.script}, text {moved.line}: {ids}: {moved.text}"


def _id_line(moved: MovedId) -> str:
    return f"  id {moved.id}: {moved.old!r} became {'nothing' if moved.new is None else repr(moved.new)}"


def _more(count: int, what: str) -> Iterator[str]:
    if count > 0:
        yield f"  and {count} more {what} (--json names each)"
