"""What goes into a pipeline and what comes out: the settings of one attempt, and its closing.

`Setup` and `Asked` are fixed when the attempt begins; `Facts` grows while the stream runs and becomes the ledger's row;
`Closing` is how the stream ends, as a value with an order (contract W5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.canon.ending import Ending
from proxy.canon.verdict import Observation, Verdict
from proxy.dialects.payload import is_empty
from proxy.semantics.ruleset import VendorProfile
from proxy.wire.hold import Boundary

# Azure's filter results (of the prompt, of the answer, their offsets), others' moderation, queues, native finishes.
_NOTED = ("filter", "moderation", "sensitive", "safety", "queue", "processing", "finish")
_MAX_NOTES = 16
#: What stands for one token id among the texts that are counted: its counter counts letters (`upstream.id_counter`).
ID = "·"
# Joining so many takes a few hundredths of a millisecond.
_FOLD_AT = 4096


@dataclass(frozen=True, slots=True)
class Asked:
    """What the client asked for: a stream, its usage chunk, JSON as the answer's text; in which dialect, and the whole
    request for a grammar that says it back."""

    stream: bool
    usage: bool = False
    json: bool = False
    client: str = "chat"
    body: Mapping[str, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Setup:
    """One attempt. `upstream` is the configured name, `model` the name asked of it; `seed` (hex) makes the ids that a
    vendor leaves out; `wall` is the unix time at which the attempt began; limits are in bytes, `hold_s` in seconds;
    `secrets` are our key there and its parts, which no answer may show. `dialect` is what the upstream speaks (None:
    what its vendor usually does) and `sent` the body that it got; `headers` are for the client, whatever the
    answer."""

    profile: VendorProfile
    upstream: str
    model: str
    trace_id: str
    seed: str
    wall: float
    boundary: Boundary = Boundary.GRAPHEME
    hold_s: float = 0.040
    max_line_bytes: int = 8 * 1024 * 1024
    max_answer_bytes: int = 64 * 1024 * 1024
    strip_fences: bool = True
    secrets: tuple[str, ...] = field(default=(), repr=False)
    dialect: str | None = None
    sent: Mapping[str, object] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers for the client."""

    status: int
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Pieces(list[str]):
    """Pieces of one text. A delta is a few letters and a string object some fifty bytes, so `fold` joins what has
    gathered: a long answer then takes the memory of its text (contract W7)."""

    __slots__ = ("blocks",)

    def __init__(self) -> None:
        super().__init__()
        self.blocks = 0

    @property
    def ripe(self) -> bool:
        return len(self) - self.blocks >= _FOLD_AT

    def fold(self) -> None:
        if self.ripe:
            self.settle()

    def settle(self) -> None:
        """Join what has gathered, however little: no piece that is here now will change any more."""
        if len(self) > self.blocks:
            self[self.blocks :] = ["".join(self[self.blocks :])]
            self.blocks += 1


@dataclass(slots=True)
class Facts:
    """What the row will say. `received` is what the vendor sent, `delivered` what was written for the client, both as
    pieces of text to be counted and then forgotten (contract L3), of choice 0 and, in `others`, of each other one;
    they are equal unless `altered`. `observation` is the answer that the rules judged, None where they judged none.
    Moments are on the clock that `feed` is given."""

    ending: Ending | None = None
    upstream_status: int | None = None
    served_model: str | None = None
    service_tier: str | None = None
    vendor_response_id: str | None = None
    rule_id: str | None = None
    error_class: str | None = None
    error_code: str | None = None
    finish_reason: str | None = None
    finish_inferred: bool = False
    vendor_usage: Mapping[str, object] | None = None
    first_progress_at: float | None = None
    bytes_in: int = 0
    events_in: int = 0
    events_out: int = 0
    heartbeats: int = 0
    replaced: int = 0
    held_chars: int = 0
    unmapped: bool = False
    observation: Observation | None = None
    altered: bool = False
    notes: dict[str, object] = field(default_factory=dict)
    received: Pieces = field(default_factory=Pieces)
    delivered: Pieces = field(default_factory=Pieces)
    others: dict[int, tuple[Pieces, Pieces]] = field(default_factory=dict)
    #: Of what was received, the reasoning, by choice.
    reasoned: dict[int, Pieces] = field(default_factory=dict)

    def received_of(self, choice: int) -> Pieces:
        """What the vendor sent of this choice."""
        return self.received if choice == 0 else self._other(choice)[0]

    def delivered_of(self, choice: int) -> Pieces:
        """What was written of this choice."""
        return self.delivered if choice == 0 else self._other(choice)[1]

    def _other(self, choice: int) -> tuple[Pieces, Pieces]:
        return self.others.setdefault(choice, (Pieces(), Pieces()))

    def all_received(self) -> list[Pieces]:
        """By choice, each a text of its own to be counted."""
        return [self.received, *(received for received, _ in self.others.values())]

    def all_delivered(self) -> list[Pieces]:
        return [self.delivered, *(delivered for _, delivered in self.others.values())]

    def undeliver(self) -> dict[int, Pieces]:
        """Forget what was written, as far as the row goes; returns it by choice, for `redeliver`."""
        before = {0: self.delivered, **{choice: delivered for choice, (_, delivered) in self.others.items()}}
        self.redeliver({})
        return before

    def redeliver(self, delivered: Mapping[int, Pieces]) -> None:
        """Only this was written."""
        self.altered = True
        self.delivered = delivered.get(0) or Pieces()
        self.others = {i: (received, delivered.get(i) or Pieces()) for i, (received, _) in self.others.items()}

    def counted(self) -> tuple[list[Pieces], list[Pieces], list[Pieces]]:
        """The texts whose counts the row has: what was received, the reasoning in it, and what was delivered where
        that is not the same."""
        return self.all_received(), list(self.reasoned.values()), self.all_delivered() if self.altered else []

    def fold(self) -> None:
        """Join what has grown long."""
        for pieces in (*self.all_received(), *self.all_delivered(), *self.reasoned.values()):
            pieces.fold()

    def forget(self) -> None:
        """The texts have been counted."""
        self.received, self.delivered, self.others, self.reasoned = Pieces(), Pieces(), {}, {}

    def note(self, name: str, value: object) -> None:
        """Keep what a heartbeat carried for the row, if its name says that it is no text: a foreign API's answer looks
        like a heartbeat too, and completions are not stored (contract L3)."""
        if len(self.notes) < _MAX_NOTES and not is_empty(value) and any(word in name for word in _NOTED):
            self.notes.setdefault(name, value)


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of a stream: write `tail`, make the row durable, write the pipeline's `seal`. `verdict` is None if the
    answer is complete or nobody is there to be told."""

    ending: Ending
    tail: bytes
    verdict: Verdict | None
