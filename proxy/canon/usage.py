"""Our own count of a request and its answer, and the vendor's in one vocabulary (contract L2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Count:
    """Our own count by the shared tokenizer, in tokens."""

    input: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a vendor reported, in tokens: `input` includes what a cache gave (`cache_read`) or took (`cache_write`),
    `output` includes `reasoning`. None: it did not say."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

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
