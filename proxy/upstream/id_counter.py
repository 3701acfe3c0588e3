"""The count of answers that come as token ids: exact, with no tokenizer at work (docs/toon.md; contract L2).

In: texts in which each letter stands for one id (`pipeline.values.ID`). Out: how many there are. Never: waits.
"""

from __future__ import annotations

from collections.abc import Sequence

#: How a prompt of ids is counted: by their number.
FORMULA = "ids-1"


class IdCounter:
    """A `pump.Counter` for ids of one tokenizer `version`; `name` says in the row which one made them."""

    def __init__(self, version: str) -> None:
        self.name, self.formula = f"toon/{version}", FORMULA

    def growing(self) -> IdCounter:
        return self

    def take(self, texts: Sequence[list[str]]) -> None:
        """Nothing to do ahead of the end: counting letters takes no time."""

    async def totals(self, texts: Sequence[list[str]]) -> list[int]:
        return self.count_now(texts)

    async def count(self, texts: Sequence[list[str]]) -> list[int]:
        return self.count_now(texts)

    def count_now(self, texts: Sequence[list[str]]) -> list[int]:
        return [sum(map(len, pieces)) for pieces in texts]
