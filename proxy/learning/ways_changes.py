"""From what was found of a vendor's ways to changes of its rule file, each with its reason (contract R1).

In: the profile as it is, and `Ways`. Out: `WayChange`s, for keys that should say something else. Never: proposes what
few answers show, what answers contradict, what the dialect's reader knows by itself, or what a rule file refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.learning.values import WayChange
from proxy.learning.ways_values import MIXED, NOT_SHOWN, TextWay, Ways
from proxy.semantics.rule import VendorProfile

#: So many whole answers say something by what they do not have (an end mark, usage).
_ENOUGH_TO_MISS: Final = 3
#: So many answers say something by what they have.
_ENOUGH: Final = 2
_LAST_COUNTS: Final = ("final", "cumulative")


def way_changes(profile: VendorProfile, ways: Ways) -> list[WayChange]:
    """What the rule file should say otherwise, in the order of its keys."""
    changes = [*_heartbeats(ways), *_finish_reasons(ways)]
    if ways.dialect == profile.dialect:  # the others of a vendor have the ways of their families
        changes += [*_end_mark(profile, ways), *_untrusted(profile, ways), *_text_mode(profile, ways.text)]
        changes += _usage(profile, ways)
    return changes


def _heartbeats(ways: Ways) -> Iterator[WayChange]:
    patterns = [sign.pattern for sign in ways.signs if sign.pattern]
    if patterns:
        told = "; ".join(f"{sign.text!r} ({sign.seen.example})" for sign in ways.signs if sign.pattern)
        yield WayChange("heartbeats", patterns, f"after these words the answer went on: {told}")


def _finish_reasons(ways: Ways) -> Iterator[WayChange]:
    guessed = {word.word: word for word in ways.finishes if not word.means and word.guess}
    if guessed:
        reason = "; ".join(f"{word!r}: {told.reason}" for word, told in guessed.items())
        yield WayChange("finish_reasons", {word: told.guess for word, told in guessed.items()}, reason)


def _end_mark(profile: VendorProfile, ways: Ways) -> Iterator[WayChange]:
    end = ways.end
    if end.mark not in (NOT_SHOWN, MIXED, profile.ways.end_mark) and end.whole >= _ENOUGH_TO_MISS:
        what = f"end with {end.word}" if end.mark == "sent" else "have no end mark"
        yield WayChange("end_mark", end.mark, f"all {end.whole} whole answers {what}")


def _untrusted(profile: VendorProfile, ways: Ways) -> Iterator[WayChange]:
    if not VENDOR_DIALECTS[ways.dialect].reader({}).finish_is_last:
        return  # in this family a finish never ends an answer by itself
    if not profile.end_mark_trusted and profile.ways.end_mark != "never":
        return  # with neither to trust nothing would end an answer
    known = profile.ways.untrusted_finishes
    words = [told for told in ways.finishes if told.early and told.word.lower() not in known]
    if words:
        reason = "; ".join(f"{told.word!r} came before more text ({told.early.example})" for told in words)
        yield WayChange("untrusted_finishes", [told.word for told in words], reason)


def _text_mode(profile: VendorProfile, text: TextWay) -> Iterator[WayChange]:
    if text.mode in (NOT_SHOWN, MIXED, profile.ways.text_mode) or text.is_undone:
        return
    (_, seen), *_rest = text.answers
    if seen.count >= _ENOUGH:
        yield WayChange("text_mode", text.mode, f"{seen.count} answers show it, such as {seen.example}")


def _usage(profile: VendorProfile, ways: Ways) -> list[WayChange]:
    change: dict[str, object] = {}
    reasons: list[str] = []
    for key, value, reason in (*_place(profile, ways), *_scope(profile, ways), *_parts(profile, ways)):
        change[key] = value
        reasons.append(reason)
    return [WayChange("usage", change, "; ".join(reasons))] if change else []


def _place(profile: VendorProfile, ways: Ways) -> Iterator[tuple[str, object, str]]:
    usage = ways.usage
    known = {path.text for path in profile.ways.usage.at}
    paths = [(path, seen) for path, seen in usage.unread if path not in known]
    if paths and usage.is_legible and not usage.at and max(seen.count for _, seen in paths) >= _ENOUGH:
        told = ", ".join(f"{path} ({seen.example})" for path, seen in paths)
        yield "at", [path for path, _ in paths], f"usage stands at {told}"


def _scope(profile: VendorProfile, ways: Ways) -> Iterator[tuple[str, object, str]]:
    usage, now = ways.usage, profile.ways.usage.scope
    if usage.scope == "absent":
        if now is None and not usage.unread and usage.answers >= _ENOUGH_TO_MISS:
            yield "scope", "absent", f"none of {usage.answers} whole answers has usage"
    elif usage.answers >= _ENOUGH and (
        (usage.scope == "increments" and now != "increments")
        or (usage.scope in _LAST_COUNTS and now in ("increments", "absent"))
    ):
        yield "scope", usage.scope, f"the reports of {usage.answers} answers are {usage.scope}"


def _parts(profile: VendorProfile, ways: Ways) -> Iterator[tuple[str, object, str]]:
    usage, now = ways.usage, profile.ways.usage
    parts = (
        ("reasoning", usage.reasoning, usage.reasoning_read, usage.reasoning_seen, now.reasoning),
        ("cache", usage.cache, usage.cache_read, usage.cache_seen, now.cache),
    )
    for name, found, is_read, seen, current in parts:
        is_new = current is None and found == "outside" and not is_read
        is_other = current is not None and found in ("inside", "outside") and found != current
        if (is_new or is_other) and seen.count >= _ENOUGH:
            yield name, found, f"the figures of {seen.count} answers show {name} {found} (such as {seen.example})"
