"""What an answer is called: `id`, `created` and `model`, constant over a stream (contract W4).

They are the vendor's, from the first chunk that has them before the commit point, else ours; an alias is never written.
"""

from __future__ import annotations

from proxy.canon.chunk import Chunk


class Identity:
    """The part of a writer that keeps them. `fallback_id`, `created` (unix seconds) and `model` stand in where the
    vendor says nothing."""

    speaks: frozenset[str] | None = None

    def __init__(self, fallback_id: str, created: int, model: str) -> None:
        self._fallback = (fallback_id, created, model)
        self.id, self.created, self.model = "", 0, ""

    def adopt(self, chunk: Chunk) -> None:
        """Take identity from a chunk that came before the commit point."""
        self.id = self.id or chunk.id
        self.created = self.created or chunk.created
        self.model = self.model or chunk.model

    def settle(self) -> None:
        """From here on identity is constant."""
        fallback_id, created, model = self._fallback
        self.id = self.id or fallback_id
        self.created = self.created or created
        self.model = self.model or model

    def is_mine(self, chunk: Chunk) -> bool:
        """May the chunk's bytes pass as they are? Only in the grammar that they are of."""
        return False
