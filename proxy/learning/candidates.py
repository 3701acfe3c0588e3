"""Conditions that hold for several answers: put together from single ones, and written as a rule has them.

In: the atoms of each answer. Out: `Candidate`s, and what stands under `when:` for those that make one rule. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from proxy.learning.atoms import Atom

_MAX_PAIRS: Final = 10


@dataclass(frozen=True, slots=True)
class Candidate:
    """`atoms` hold together, for those answers of a group whose numbers are in `covers`."""

    atoms: tuple[Atom, ...]
    covers: frozenset[int]
    score: float

    @property
    def is_status(self) -> bool:
        """A status alone, which speaks no louder for being said of many: what nobody has seen yet may have it too."""
        return all(atom.key == "status" for atom in self.atoms)


def combined(atoms: Sequence[Atom], own_status: Atom | None) -> Iterator[tuple[Atom, ...]]:
    """One alone, one under the answer's status, or a code with another condition beside it: of another path, for a rule
    says one thing of each."""
    yield from ((atom,) for atom in atoms)
    if own_status is not None:
        yield from ((own_status, atom) for atom in atoms if atom.key != "status")
    codes = [atom for atom in atoms if atom.key == "json"][:_MAX_PAIRS]
    others = [atom for atom in atoms if atom.key in ("match", "header")][:_MAX_PAIRS]
    yield from ((code, other) for code in codes for other in others)
    yield from (pair for pair in combinations(codes, 2) if pair[0].path != pair[1].path)


def mergeable(chosen: Sequence[Candidate]) -> list[list[Candidate]]:
    """Those that differ in the value of one code or phrase alone make one rule with a list."""
    groups: dict[tuple[object, ...], list[Candidate]] = {}
    for one in chosen:
        status = tuple(atom.value for atom in one.atoms if atom.key == "status")
        rest = tuple((atom.key, atom.path) for atom in one.atoms if atom.key != "status")
        listed = len(rest) == 1 and rest[0][0] in ("json", "match")
        groups.setdefault((status, rest) if listed else (one.atoms,), []).append(one)
    return list(groups.values())


def when_of(candidates: Sequence[Candidate]) -> dict[str, object]:
    """What stands under `when:` of the rule that is made of these."""
    when: dict[str, object] = {}
    if len(candidates) == 1:
        for atom in candidates[0].atoms:
            for key, value in atom.when.items():
                here = when.get(key)
                when[key] = here | value if isinstance(here, dict) and isinstance(value, dict) else value
        return when
    for atom in candidates[0].atoms:
        if atom.key == "status":
            when["status"] = atom.value
    listed = [atom for one in candidates for atom in one.atoms if atom.key != "status"]
    when[listed[0].key] = {listed[0].path: list(dict.fromkeys(atom.value for atom in listed))}
    return when
