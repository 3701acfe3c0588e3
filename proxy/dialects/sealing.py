"""Reasoning and its seals in the order in which they stand: which text each seal is over.

In: the reasoning of a delta, or of a whole answer, beside its `reasoning_details` (`Delta.extra`). Out: pieces of the
text, each with the seal that ends it. A seal over other text than the vendor's own is refused with the next turn, so
text is cut where a sealed piece begins and ends, and a seal says how long its text is: of that, the end may still be
held back (contract W3). Some vendors give a detail whole, some its text bit by bit under one index. Loses no text,
says none twice, decides nothing about formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO

from proxy.dialects.parts import objects
from proxy.dialects.payload import as_text, whole_text

_NAMES = ("reasoning_content", "reasoning")
# Letters of details without a seal that are kept for it: no model reasons longer, and a vendor may never send a seal.
_MOST = 4 * 1024 * 1024
_STATE = 64  # what an index takes


@dataclass(frozen=True, slots=True)
class Piece:
    """`text` comes first, then the seal of `detail`, if there is one. `over` is how many letters of text the seal is
    over, `text` included; None if that was not said. `is_fresh`: the text is all that the seal is over."""

    text: str
    detail: Mapping[str, object] | None = None
    over: int | None = None
    is_fresh: bool = False


class Sealing:
    """Of one answer."""

    def __init__(self) -> None:
        self._name = ""  # where the text stands: some vendors say it under both names
        self._told: dict[str, StringIO] = {}  # texts of details that have no seal yet, by index, if any
        self._kept = 0

    def order(self, delta: Mapping[str, object], *, is_whole: bool = False) -> Iterator[Piece]:
        """The pieces of a delta; or of a message that `is_whole`, whose details may have a text that stands nowhere
        else."""
        self._name = self._name or next((name for name in _NAMES if delta.get(name)), "")
        details = list(objects(delta.get("reasoning_details")))
        text = as_text(delta.get(self._name)) or (_spoken(details) if is_whole else "")
        sealed = [(self._text_of(detail), detail) for detail in details]
        sealed = [(told, detail) for told, detail in sealed if _is_sealed(detail)]
        is_named = any(told for told, _ in sealed)
        for told, detail in sealed:
            at = text.find(told) if told else -1
            if at > 0:
                yield Piece(text[:at])
            if at >= 0:
                yield Piece(told, detail, len(told), is_fresh=True)
                text = text[at + len(told) :]
            elif told or detail.get("signature") or not is_named:
                yield Piece(text, detail, len(told) if told or not detail.get("signature") else None)
                text = ""
            else:  # sealed reasoning without a text, beside some that has one
                yield Piece("", detail, 0)
        if text:
            yield Piece(text)

    def _text_of(self, detail: Mapping[str, object]) -> str:
        """All text of this detail so far, in whole characters, as it goes out."""
        told = as_text(detail.get("text")) or as_text(detail.get("summary"))
        index = str(detail.get("index"))
        if _is_sealed(detail):
            before = self._told.pop(index, None)
            return whole_text(told if before is None else before.getvalue() + told)
        self._kept += len(told) + _STATE
        if self._kept <= _MOST:
            self._told.setdefault(index, StringIO()).write(told)
        return ""


def _is_sealed(detail: Mapping[str, object]) -> bool:
    return bool(as_text(detail.get("signature")) or as_text(detail.get("data")))


def _spoken(details: Iterable[Mapping[str, object]]) -> str:
    return "".join(as_text(detail.get("text")) or as_text(detail.get("summary")) for detail in details)
