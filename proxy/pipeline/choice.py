"""The state of one choice of the answer: its held tails, its tool calls, its fence and its finish. (contract W3, W4)"""

from __future__ import annotations

from proxy.canon.chunk import Chunk, Delta
from proxy.semantics.fences import FenceStrip
from proxy.semantics.toolcalls import Call, ToolCalls
from proxy.wire.hold import Boundary, TextHold

Key = str | int  # a text field's name, the slot of a tool call, or CALL
CALL = "call"  # the beginning of a tool call, held because its name may still grow


class Choice:
    """`finish` is canonical, `finish_chunk` and `finish_delta` what brought it, `is_doubted`: this vendor says it
    before the end too; `last` the chunk that it was last fed from (not kept up to date by what passes unparsed, after
    which nothing is held). `held_since` says for each field with a tail that has a deadline when the oldest part of it
    came. `texts` and `extra` are kept only where many events are to become one body."""

    __slots__ = (
        "boundary",
        "extra",
        "fence",
        "finish",
        "finish_chunk",
        "finish_delta",
        "held_since",
        "holds",
        "index",
        "is_doubted",
        "last",
        "logprobs",
        "pending",
        "role_sent",
        "seen",
        "stripped",
        "texts",
        "tools",
    )

    def __init__(self, index: int, boundary: Boundary, seed: str, fence: FenceStrip | None) -> None:
        self.index = index
        self.boundary = boundary
        self.fence = fence
        self.tools = ToolCalls(f"{seed}{index}_" if index else seed)
        self.holds: dict[Key, TextHold] = {}
        self.held_since: dict[Key, float] = {}
        self.role_sent = False
        self.seen: set[str] = set()
        self.finish: str | None = None
        self.is_doubted = False
        self.last: Chunk | None = None
        self.finish_chunk: Chunk | None = None
        self.finish_delta: Delta | None = None
        self.logprobs: list[object] = []
        self.texts: dict[str, list[str]] = {}
        self.extra: dict[str, object] = {}
        self.stripped: str | None = None
        self.pending: Call | None = None

    @property
    def has_calls(self) -> bool:
        """Tool calls, or the one `function_call` of older APIs."""
        return bool(self.tools.calls) or "function_call" in self.seen

    @property
    def open(self) -> bool:
        """Is anything held?"""
        if self.pending is not None:
            return True
        for hold in self.holds.values():  # noqa: SIM110  # asked per event: a generator costs three times as much
            if hold.tail:
                return True
        return False

    def pend(self, call: Call, now: float) -> None:
        """Hold the beginning of a call: vendors that cut everywhere cut its name too, and a client takes a name
        whole."""
        self.pending = call
        self.held_since[CALL] = now

    def take_pending(self) -> Call | None:
        call, self.pending = self.pending, None
        self.held_since.pop(CALL, None)
        return call

    def held(self, keep: set[Key]) -> list[Key]:
        """What is held, in the order in which it goes, but for `keep`."""
        pending: list[Key] = [CALL] if self.pending is not None else []
        return [key for key in (*pending, *self.holds) if key not in keep]

    def _hold_of(self, key: Key) -> TextHold:
        hold = self.holds.get(key)
        if hold is None:
            hold = self.holds[key] = TextHold(self.boundary)
        return hold

    def hold(self, key: Key, text: str, now: float) -> str:
        """The part of the text that may leave now."""
        hold = self._hold_of(key)
        out = hold.feed(text)
        if not hold.tail:
            self.held_since.pop(key, None)
        elif out or key not in self.held_since:
            self.held_since[key] = now
        return out

    def passes(self, key: Key, text: str) -> bool:
        """Would this text leave whole and unchanged?"""
        return self._hold_of(key).would_pass(text)

    def release(self, key: Key, *, halves: bool) -> str:
        """What is held of a field. Without `halves` the first half of a surrogate pair stays, and has no deadline: the
        joined text must not depend on the clock (contract W2)."""
        hold = self.holds[key]
        self.held_since.pop(key, None)
        half = hold.tail[-1:] if not halves and "\ud800" <= hold.tail[-1:] <= "\udbff" else ""
        hold.tail = hold.tail.removesuffix(half)
        text = hold.flush() if hold.tail else ""
        hold.tail = half
        return text

    def take_logprobs(self, logprobs: object) -> object:
        """Log probabilities of texts that were held whole, joined with those of the text that now leaves."""
        if not self.logprobs:
            return logprobs
        kept, self.logprobs = [*self.logprobs, logprobs], []
        joined: dict[str, object] = {}
        for one in kept:
            for name, value in one.items() if isinstance(one, dict) else ():
                before = joined.get(name)
                if isinstance(before, list) and isinstance(value, list):
                    before += value
                else:
                    joined[name] = list(value) if isinstance(value, list) else value
        return joined
