"""The values of learning: an answer and what it should mean, a rule that is proposed, a changed way (contract R1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from proxy.canon.verdict import ErrorClass, Observation

#: How evidence was obtained, from the weakest to the strongest.
PROOFS: Final = ("composed", "simulated", "captured")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer that was an error. `place` is its recording's path as `evidence:` has it, "" where there is none;
    `wanted` are the classes that are right (none known: empty), `code` the code it should have, None if any will do;
    `asked` are words of the request that a vendor may quote (model, wrong key): never a reason for a rule. `cause`
    names what brought it about (a probe), "" where nobody knows."""

    place: str
    observation: Observation
    wanted: tuple[ErrorClass, ...] = ()
    code: str | None = None
    proof: str = "captured"
    seen: date | None = None
    asked: tuple[str, ...] = ()
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A rule that is proposed, as plain YAML values. `before` is the id of the rule of the same file that it must
    precede, None if it may stand last; `reason` is for the person who decides."""

    vendor: str
    id: str
    when: Mapping[str, object]
    then: Mapping[str, object]
    evidence: tuple[str, ...]
    seen: date
    proof: str
    before: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class WayChange:
    """A key of a vendor's file that should say something else, with the reason. For a mapping or a list, `value` holds
    what is to be added."""

    key: str
    value: object
    reason: str
