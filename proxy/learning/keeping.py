"""Recordings of a probe on disk: what says the same as what is there stays as it is (contract R1).

In: what was heard, the folder of recordings. Out: for each exchange the recording that is in force, old or new, and
files written for those that are new or say something else. Two refusals are the same if they differ in ids, moments
and counts alone, or in words where a rule decides both; two answers if they show the same ways. A second probe of an
unchanged vendor touches no file. Never: takes a file away, or writes a secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, auto
from pathlib import Path
from typing import Final

from proxy.canon.verdict import Observation
from proxy.learning.asking import Heard, name_of
from proxy.learning.probes import Kind
from proxy.learning.replaying import WALL, replay
from proxy.learning.ways import findings, moved_ways
from proxy.semantics.classifier import classify
from proxy.semantics.envelope import read_envelope
from proxy.semantics.rule import VendorProfile
from proxy.semantics.sameness import TELLING_HEADER, fingerprint, without_ids
from proxy.stores.recordings import Recording, RecordingError, dump_recording, find_recordings, load_recording

FOLDER: Final = "probes"
#: A vendor that says one error in more ways than these says it in no way.
MAX_PER_PROBE: Final = 24
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")


class Fate(StrEnum):
    """What became of a recording: `NEW`, `SAME` as the one that is there, which stays, or `CHANGED`."""

    NEW = auto()
    SAME = auto()
    CHANGED = auto()


@dataclass(frozen=True, slots=True)
class Kept:
    """`recording` is in force; `before` is what was there, None if there was nothing to compare with."""

    heard: Heard
    recording: Recording
    fate: Fate
    before: Recording | None = None


def compare(profile: VendorProfile, heard: Sequence[Heard], folder: Path) -> list[Kept]:
    """What is in force if this is kept; nothing is written. Raises RecordingError for a broken file that is there."""
    shelf = _Shelf(profile, folder)
    found = [(one, one.recording) for one in heard if one.recording is not None]
    moved = _moved(profile, [(shelf.at(one.probe.name, one.number), new) for one, new in found if _is_answer(one)])
    return [shelf.place(one, new, new.name not in moved) for one, new in found]


def _is_answer(heard: Heard) -> bool:
    return heard.probe.kind is Kind.ANSWER


def _moved(profile: VendorProfile, answers: Sequence[tuple[Recording | None, Recording]]) -> frozenset[str]:
    """The names of the answers that show other ways than those that are there. Most ways are shown by many together: so
    if all of them moved and none by itself, it is all of them."""
    pairs = [(old, new) for old, new in answers if old is not None]
    if not pairs or not moved_ways(*(findings(recordings, profile) for recordings in zip(*pairs, strict=True))):
        return frozenset()
    alone = {new.name for old, new in pairs if moved_ways(findings([old], profile), findings([new], profile))}
    return frozenset(alone or (new.name for _, new in pairs))


def has_probes(profile: VendorProfile, folder: Path) -> bool:
    """Is there anything to compare with? Raises RecordingError for a broken file: better before a vendor is asked."""
    found = find_recordings([probes]) if (probes := folder / profile.vendor / FOLDER).is_dir() else []
    return any(one.path.name.startswith("probe-") for one in found)


class _Shelf:
    """The recordings of a vendor's probes that are there, and those that are about to be."""

    def __init__(self, profile: VendorProfile, folder: Path) -> None:
        self._profile, self._folder = profile, folder / profile.vendor / FOLDER
        self._there: dict[str, dict[int, Recording]] = {}
        self._taken: set[str] = set()

    def at(self, probe: str, number: int) -> Recording | None:
        """The `number`th of this probe."""
        return self._of(probe).get(number)

    def place(self, heard: Heard, new: Recording, is_same_way: bool) -> Kept:
        """Where it belongs. An answer takes the place of the one before; a refusal that was never heard gets a place of
        its own, for rules rest on the others."""
        probe, number = heard.probe.name, heard.number
        there = self._of(probe)
        before = there.get(number)
        likely = [before] if before is not None else []
        if heard.probe.kind is Kind.REFUSAL:
            likely += [old for old in there.values() if old is not before]
        for old in likely:
            if old.obtained == new.obtained and _says_same(self._profile, heard, old, new, is_same_way):
                return Kept(heard, old, Fate.SAME, before or old)
        if before is None and f"{probe}-{number}" not in self._taken:
            return Kept(heard, self._named(new, probe, number), Fate.NEW)
        if heard.probe.kind is Kind.REFUSAL and len(there) < MAX_PER_PROBE:
            return Kept(heard, self._named(new, probe, self._free(probe)), Fate.NEW, before)
        return Kept(heard, self._named(new, probe, number), Fate.CHANGED, before)

    def _named(self, recording: Recording, probe: str, number: int) -> Recording:
        self._taken.add(f"{probe}-{number}")
        name = name_of(probe, number)
        return replace(recording, name=name, path=self._folder / f"{name}.jsonl")

    def _free(self, probe: str) -> int:
        """The first number behind those of the probe's own asks that nobody has."""
        number = 1 + max(self._of(probe), default=0)
        while f"{probe}-{number}" in self._taken:
            number += 1
        return number

    def _of(self, probe: str) -> dict[int, Recording]:
        if probe not in self._there:
            found = {}
            for path in self._folder.glob(f"{name_of(probe, 0)[:-1]}*.jsonl"):
                number = path.stem.rpartition("-")[2]
                if number.isdecimal() and path.stem == name_of(probe, int(number)):
                    found[int(number)] = load_recording(path)
            self._there[probe] = dict(sorted(found.items()))
        return self._there[probe]


def write(kept: Kept, secrets: Collection[str]) -> str | None:
    """Write what is new or changed; the reason if it must not be written."""
    if kept.fate is Fate.SAME:
        return None
    try:
        dump_recording(kept.recording, kept.recording.path, secrets)
    except RecordingError as error:
        return error.reason
    return None


def _says_same(profile: VendorProfile, heard: Heard, old: Recording, new: Recording, is_same_way: bool) -> bool:
    before, now = replay(profile, old), replay(profile, new)
    if before.observation is not None and now.observation is not None:
        return same_refusal(profile, before.observation, now.observation)
    if before.observation is not None or now.observation is not None:
        return False
    if heard.probe.kind is Kind.OURS:  # how much came by then is chance
        return True
    same_end = (before.ending, before.error_class) == (now.ending, now.error_class)
    return same_end and (is_same_way or heard.probe.kind is not Kind.ANSWER)


def same_refusal(profile: VendorProfile, one: Observation, other: Observation) -> bool:
    """Do two answers say the same error in the same way? Other words are the same too where one rule decides both:
    some vendors have a dozen for each error."""
    if (one.status, one.phase, one.finish, one.event) != (other.status, other.phase, other.finish, other.event):
        return False
    if _headers(one) != _headers(other):
        return False
    if _print(one) == _print(other) or _words(one) == _words(other):
        return True
    verdict, now = (classify(profile, seen, WALL) for seen in (one, other))
    return verdict.mapped and verdict.rule_id == now.rule_id and _shape(one) == _shape(other)


def _print(seen: Observation) -> str:
    return fingerprint(seen.vendor, seen.status, seen.phase, seen.body)


def _words(seen: Observation) -> tuple[object, ...]:
    """Codes to the letter, messages without their numbers."""
    said = read_envelope(seen.payload, seen.body, seen.comments)
    messages = tuple(_NUMBER.sub("0", without_ids(message)) for message in said.messages)
    text = _NUMBER.sub("0", without_ids(said.text)) if said.text is not None else None
    return (tuple(said.codes), messages, text)


def _shape(seen: Observation) -> object:
    """Codes to the letter, and which fields there are."""
    said = read_envelope(seen.payload, seen.body, seen.comments)
    return (tuple(said.codes), _fields(said.payload))


def _fields(value: object) -> object:
    match value:
        case dict():
            return {str(name): _fields(inner) for name, inner in value.items()}
        case list():
            return [_fields(inner) for inner in value[:1]]
        case _:
            return type(value).__name__


def _headers(seen: Observation) -> list[tuple[str, str]]:
    """Those that speak of errors."""
    return sorted((name, value) for name, value in seen.headers.items() if TELLING_HEADER.search(name))
