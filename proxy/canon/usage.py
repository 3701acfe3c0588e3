"""Our own count of a request and its answer, and the vendor's in one vocabulary (contract L2)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Literal

#: Where a vendor counts a part of a figure: in it, beside it, or nowhere.
Place = Literal["inside", "outside", "absent"]

#: What became of a vendor's report. `final`: it counts, and says both input and output. `partial`: the stream ended
#: before the last one came, so its figures are too low, or it lacks input or output. `total_only`: one sum and no
#: parts. `characters`: not in tokens. `estimated`: a relay's own guess. `lost`: the attempt ended before any came.
#: `absent`: this vendor or this answer has none.
UsageState = Literal["final", "partial", "total_only", "characters", "estimated", "lost", "absent"]

#: The five figures, in the order of the letters of `NormalUsage.told`.
FIGURES = ("input", "output", "cache_read", "cache_write", "reasoning")
#: A figure as the vendor wrote it; one computed from nothing but the vendor's own figures; none.
REPORTED, DERIVED, ABSENT = "r", "d", "a"


@dataclass(frozen=True, slots=True)
class Count:
    """Our own count by the shared tokenizer, in tokens. `reasoning` is a part of `output`."""

    input: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class NormalUsage:
    """A vendor's usage object by its recipe. `input` includes what a cache gave and took, `output` includes reasoning;
    None: not known, and never filled with our own count. `told` has a letter for each of `FIGURES`. `total` is the
    vendor's own sum; `billed_*` is its second scale, where it has one that it charges by."""

    state: UsageState
    told: str = ABSENT * len(FIGURES)
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    total: int | None = None
    billed_input: int | None = None
    billed_output: int | None = None


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
    #: Figures that the reader computed from others of the vendor's own, where it said none.
    derived: frozenset[str] = field(default=frozenset(), compare=False)
    #: A second scale, where the vendor has one that it charges by.
    billed_input: int | None = field(default=None, compare=False)
    billed_output: int | None = field(default=None, compare=False)
    #: The vendor's own sum of everything.
    total: int | None = field(default=None, compare=False)
    #: False where the object's last part, which has the output, has not come.
    is_final: bool = field(default=True, compare=False)

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

    def without(self, untrusted: Collection[str]) -> Usage:
        """The same with these of `FIGURES` not told, nor a sum that one of them is in."""
        if not untrusted:
            return self
        wrong = set(untrusted)
        if self.reasoning_added and "reasoning" in wrong:
            wrong.add("output")
        if self.cache_added and any(getattr(self, name) for name in wrong.intersection(("cache_read", "cache_write"))):
            wrong.add("input")
        return replace(
            self,
            input=None if "input" in wrong else self.input,
            output=None if "output" in wrong else self.output,
            cache_read=None if "cache_read" in wrong else self.cache_read,
            cache_write=None if "cache_write" in wrong else self.cache_write,
            reasoning=None if "reasoning" in wrong else self.reasoning,
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
