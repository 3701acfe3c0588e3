"""Our own count of a request and its answer, and the vendor's in one vocabulary (contract L2)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

#: Where a vendor counts a part of a figure: in it, beside it, or nowhere.
Place = Literal["inside", "outside", "absent"]


@dataclass(frozen=True, slots=True)
class Count:
    """Our own count by the shared tokenizer, in tokens."""

    input: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a vendor reported, in tokens: `input` includes what a cache gave (`cache_read`) or took (`cache_write`),
    `output` includes `reasoning`. None: it did not say. `cache_added` and `reasoning_added` are those of them that the
    vendor's own figure left out, by what the reader knows of its family, and that were added to it."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cache_added: int = field(default=0, compare=False)
    reasoning_added: int = field(default=0, compare=False)

    def placed(self, reasoning: Place | None, cache: Place | None) -> Usage:
        """The same where it is known of this vendor whether its figures hold reasoning and cached tokens; that wins
        over what the reader took for granted. Neither None nor `absent` says anything about a figure that is there."""
        thought = _added(reasoning, self.reasoning_added, self.reasoning or 0)
        cached = _added(cache, self.cache_added, (self.cache_read or 0) + (self.cache_write or 0))
        return replace(
            self,
            input=None if self.input is None else max(0, self.input - self.cache_added + cached),
            output=None if self.output is None else max(0, self.output - self.reasoning_added + thought),
            cache_added=cached,
            reasoning_added=thought,
        )

    @property
    def is_whole(self) -> bool:
        """Did the vendor say both that are paid for?"""
        return self.input is not None and self.output is not None

    def filled(self, count: Count) -> tuple[int, int]:
        """Input and output, ours where the vendor said none."""
        return (
            count.input if self.input is None else self.input,
            count.output if self.output is None else self.output,
        )


def _added(place: Place | None, added: int, part: int) -> int:
    """How much of a part is to be added to the vendor's own figure."""
    return part if place == "outside" else 0 if place == "inside" else added
