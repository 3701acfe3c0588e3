"""What a probe is: the questions of one purpose, and one question as a vendor's family writes it (contract R1).

In: an `Ask`, in canonical form, and a dialect. Out: the bytes to send, damaged where the ask says so; or why that
family cannot be asked this. What is asked stands in `catalogue`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto

from proxy.canon.request import Request
from proxy.canon.verdict import ErrorClass
from proxy.dialects.base import Losses, VendorDialect, Ways
from proxy.dialects.payload import encode_json


class Kind(StrEnum):
    """What a probe is after. `ANSWER`: the vendor answers. `REFUSAL`: it refuses. `OURS`: we end the exchange."""

    ANSWER = auto()
    REFUSAL = auto()
    OURS = auto()


class Key(StrEnum):
    OURS = auto()
    WRONG = auto()
    NONE = auto()


class Until(StrEnum):
    """How long an answer is read: to its `END`, to its first `PROGRESS` (then we hang up), or to a deadline of ours:
    before the `HEAD` can come, or in the `MIDDLE`."""

    END = auto()
    PROGRESS = auto()
    HEAD = auto()
    MIDDLE = auto()


Damage = Callable[[dict[str, object]], bytes]


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. `needs` are fields without which it asks something else; `asked` are words of it that the vendor
    may quote; `expected` is the text that a model which obeys will give; `wrong_key` goes with `Key.WRONG`."""

    request: Request
    odd: str
    key: Key = Key.OURS
    wrong_key: str = field(default="", repr=False)
    damage: Damage | None = None
    until: Until = Until.END
    needs: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    expected: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """A few asks with one purpose. `wanted` is the class that an answer which refuses must have; `code` the word that
    a rule for it should give. `burst`: the asks go out together, and the first refusals end it. `needs_refusal`: what
    follows the first ask makes sense only if that was refused. `also`: a class that is right too where a rule gives it,
    for another limit may strike first."""

    name: str
    about: str
    kind: Kind
    asks: tuple[Ask, ...]
    wanted: ErrorClass | None = None
    code: str | None = None
    burst: bool = False
    needs_refusal: bool = False
    also: ErrorClass | None = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """One ask in one vendor's grammar. `sent` is the body as its reader wants to know it, `lost` what could not be
    said."""

    body: bytes
    path: str
    sent: Mapping[str, object]
    lost: tuple[str, ...]


def encode(ask: Ask, dialect: VendorDialect, ways: Ways) -> Encoded:
    """The bytes to send; damaged last, so that everything else of the request is as it should be."""
    losses = Losses()
    model, stream = ask.request.model, ask.request.stream
    sent = dialect.send(ask.request, model, losses, ways)
    path = dialect.path(model, stream, sent)
    body = encode_json(sent) if ask.damage is None else ask.damage(dict(sent))
    return Encoded(body, path, sent, losses.real)


def unaskable(ask: Ask, dialect: VendorDialect, ways: Ways) -> str | None:
    """Why this cannot be asked in that grammar, None if it can."""
    lost = encode(replace(ask, damage=None), dialect, ways).lost
    if missing := [name for name in ask.needs if name in lost]:
        return f"{dialect.name} has no {', '.join(missing)}"
    return None
