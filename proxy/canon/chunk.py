"""The canonical, vendor-free unit of an answer: what one payload said.

A dialect's reader makes these from vendor JSON, a dialect's writer turns them into a client's grammar. They are
mutable on purpose: the stages between reader and writer trim texts in place, and a stage that changes anything clears
`wire`, so that only bytes that are right as they came are ever passed on unparsed (design, "The fast path").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class _Nothing(dict[str, object]):
    """The empty mapping that everything shares which has no unknown fields; it stays empty."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # one value, so its identity will do (dataclass defaults ask)

    def __setitem__(self, key: str, value: object) -> None:
        raise TypeError("NOTHING stays empty")


NOTHING: Mapping[str, object] = _Nothing()

# Fields of a delta that hold text for a person, in the order in which they are told. Reasoning has two names in the
# wild; both are kept apart so that each client finds the one its vendor uses.
TEXT_FIELDS = ("reasoning_content", "reasoning", "content", "refusal")


@dataclass(slots=True)
class ToolFragment:
    """A piece of a tool call. `index`, `id` and `name` are None where the vendor left them out; `arguments` is the next
    piece of JSON text; `extra` holds fields that we do not know, of the call. `type` is the vendor's word where it is
    not `function`: such a call passes with all it has in `extra`."""

    index: int | None
    id: str | None
    name: str | None
    arguments: str
    extra: Mapping[str, object] = NOTHING
    type: str = "function"


@dataclass(slots=True)
class Delta:
    """One choice's increment. `texts` maps names of `TEXT_FIELDS` to non-empty text (which may hold half a surrogate
    pair); `finish` is the vendor's own word, None if it said nothing; `extra` and `choice_extra` are unknown fields of
    the delta and of the choice."""

    choice: int
    texts: dict[str, str]
    tools: list[ToolFragment] | None = None
    role: str | None = None
    finish: str | None = None
    logprobs: object = None
    extra: Mapping[str, object] = NOTHING
    choice_extra: Mapping[str, object] = NOTHING


@dataclass(slots=True)
class Chunk:
    """One payload understood. `id`, `created` and `model` are empty or 0 where the vendor did not say; `usage` is its
    usage object verbatim; `extra` unknown fields of the payload. `wire` is the payload's bytes if they are a whole
    chat.completion.chunk on one line that may pass as they are, else None."""

    deltas: list[Delta]
    id: str = ""
    created: int = 0
    model: str = ""
    usage: Mapping[str, object] | None = None
    extra: Mapping[str, object] = NOTHING
    wire: bytes | None = None


@dataclass(slots=True)
class ErrorSeen:
    """A payload that speaks of an error; the rules decide what it means. `chunk` is what else it carried. `is_vague`:
    it has words but no sign of an error, so it is one only if a rule knows it."""

    payload: object
    data: bytes
    chunk: Chunk | None = None
    is_vague: bool = False


@dataclass(slots=True)
class EndMark:
    """The vendor's end mark, such as `[DONE]`."""


@dataclass(slots=True)
class Heartbeat:
    """Only says "still here". `notes` is what it carried besides."""

    notes: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Malformed:
    """Bytes that are no JSON: kept aside for the rules if they are plain words, an error if they began as an object."""

    data: bytes


Parsed = Chunk | ErrorSeen | EndMark | Heartbeat | Malformed
