"""Ids that come, as text that may go: whole characters, and nothing of a stop word (docs/toon.md).

In: ids, in their order. Out: text. A tail that may be the beginning of a stop word is held until it is none. `stopped`
says that one has come: what follows it is no part of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from proxy.toon.text import TextDecoder


class Words:
    def __init__(self, decoder: TextDecoder, stop: Sequence[str]) -> None:
        self._decoder, self._stop = decoder, [word for word in stop if word]
        self._longest = max(map(len, self._stop), default=1) - 1
        self._held = ""
        self.stopped = False

    def feed(self, ids: Sequence[int]) -> str:
        return self._pass(self._decoder.feed(ids), at_end=False)

    def finish(self) -> str:
        """The rest, half a character included."""
        return self._pass(self._decoder.finish(), at_end=True)

    def _pass(self, text: str, *, at_end: bool) -> str:
        if self.stopped:
            return ""
        text = self._held + text
        found = [at for word in self._stop if (at := text.find(word)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)]
        keep = 0 if at_end else self._beginning(text)
        cut = len(text) - keep
        self._held = text[cut:]
        return text[:cut]

    def _beginning(self, text: str) -> int:
        """How long a tail of the text could begin a stop word."""
        for size in range(min(self._longest, len(text)), 0, -1):
            tail = text[-size:]
            if any(word.startswith(tail) for word in self._stop):
                return size
        return 0
