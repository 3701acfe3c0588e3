"""The answers that are known: recordings with an expectation, as observations with the class they must have (R4).

In: rule files and recordings. Out: `Answer`s. They are the background of every new rule, which must leave the verdicts
of them all where they are, and the examples by which the class of a new answer is guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path

from proxy.canon.verdict import ErrorClass
from proxy.learning.replaying import replay
from proxy.learning.values import Answer
from proxy.semantics.classifier import UNMAPPED
from proxy.semantics.rule import RuleSet, VendorProfile
from proxy.stores.evidence import shipped_recordings
from proxy.stores.recordings import Recording, RecordingError, find_recordings
from proxy.stores.rules import default_rules_dir, load_rules

_CLASSES = frozenset(ErrorClass)


def known_answers(rules: RuleSet, recordings: Mapping[str, Recording]) -> list[Answer]:
    """Every recorded answer that a vendor's rules judge, from recordings by place."""
    answers = []
    for place, recording in recordings.items():
        if recording.vendor in rules.vendors:
            answer = answer_of(rules.profile(recording.vendor), recording, place)
            if answer is not None and answer.wanted:
                answers.append(answer)
    return answers


def evidence_of(folder: Path, wanted: Collection[str] | None = None) -> dict[str, Recording]:
    """The folder's recordings by place, and of the shipped ones those that it has not: all, or the ones that are
    wanted."""
    found = find_recordings([folder]) if folder.is_dir() else []
    own = {place_of(one.path, folder.parent): one for one in found}
    shipped = shipped_recordings()
    more = shipped.keys() if wanted is None else shipped.keys() & set(wanted)
    return own | {place: shipped[place] for place in shipped if place in more and place not in own}


@cache
def shipped_answers() -> tuple[RuleSet, tuple[Answer, ...]]:
    """The rules that came with the package, and what its recordings prove of them."""
    rules = load_rules(default_rules_dir())
    return rules, tuple(known_answers(rules, shipped_recordings()))


def answer_of(profile: VendorProfile, recording: Recording, place: str) -> Answer | None:
    """The recording's answer as its vendor's rules see it, None if they are not asked. What no expectation says, the
    present verdict does, if a rule gave it."""
    facts = replay(profile, recording)
    if facts.observation is None:
        return None
    wanted = wanted_classes(recording.expect)
    code = recording.expect.get("code")
    if not wanted and facts.error_class is not None and not facts.unmapped:
        wanted = (ErrorClass(facts.error_class),)
    if code is None and facts.error_class in wanted and not facts.unmapped:
        code = facts.error_code
    return Answer(
        place,
        facts.observation,
        wanted,
        str(code) if code not in (None, UNMAPPED) else None,
        recording.obtained,
        _day_of(recording),
        asked_words(recording),
    )


def _day_of(recording: Recording) -> date | None:
    try:
        return date.fromisoformat(recording.at) if recording.at else None
    except ValueError as error:
        reason = f"at: {recording.at[:40]!r} is no day; write it as 2026-11-30"
        raise RecordingError(str(recording.path), 1, reason) from error


def wanted_classes(expect: Mapping[str, object]) -> tuple[ErrorClass, ...]:
    """The classes that a recording allows; "no error" is none of them."""
    told = expect.get("class")
    listed: Sequence[object] = told if isinstance(told, list) else [told]
    return tuple(ErrorClass(str(one)) for one in listed if one in _CLASSES)


def asked_words(recording: Recording) -> tuple[str, ...]:
    """Texts of the request that the vendor may quote."""
    words = [recording.request.get("model")]
    if isinstance(body := recording.request.get("body"), dict):
        words += [body.get("model"), body.get("Model")]
    quoted = recording.request.get("quoted")
    words += quoted if isinstance(quoted, list) else []
    return tuple({word: None for word in words if isinstance(word, str) and len(word) > 2})


def place_of(path: Path, root: Path) -> str:
    """A recording's path as `evidence:` writes it."""
    path, root = path.absolute(), root.absolute()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
