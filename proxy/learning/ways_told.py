"""What was found of a vendor's ways in words, and whether two findings say the same.

In: `Ways`. Out: lines for a person; and what moved from one to the other, as far as both show it. Counts, moments and
the cuts of reads differ from one answer to the next and move nothing. Never: calls it a change that one of the two does
not show something.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from proxy.learning.ways_values import NOT_SHOWN, FinishWord, MovedWay, Seen, UsageWay, Ways
from proxy.metering.fit import MAX_LOOSENESS, Fit

#: So many edges without a cut show that there are none.
_ENOUGH_EDGES: Final = 20
_SLOPE_MOVED: Final = 0.1
_OFFSET_MOVED: Final = 5.0


def moved_ways(a: Ways, b: Ways) -> tuple[MovedWay, ...]:
    """What moved from `a` to `b`; empty if nothing did."""
    moved = [
        *_moved("text mode", a.text.mode, b.text.mode),
        *_moved("end mark", a.end.mark, b.end.mark),
        *_moved_finishes(a, b),
        *_moved_signs(a, b),
        *_moved_usage(a.usage, b.usage),
    ]
    for what, before, after in (
        ("events that end inside a surrogate pair", a.cuts.halves, b.cuts.halves),
        ("events with bytes that are no UTF-8", a.cuts.bad_bytes, b.cuts.bad_bytes),
    ):
        if after and not before and a.cuts.events >= _ENOUGH_EDGES:
            moved.append(MovedWay(what, "none", f"{after.count} ({after.example})"))
    return tuple(moved)


def _moved(what: str, before: str, after: str) -> Iterator[MovedWay]:
    if NOT_SHOWN not in (before, after) and before != after:
        yield MovedWay(what, before, after)


def _moved_finishes(a: Ways, b: Ways) -> Iterator[MovedWay]:
    before = {told.word: told for told in a.finishes}
    for told in b.finishes if a.finishes else ():
        if told.word not in before and not told.means:
            yield MovedWay("finish word", "none", f"{told.word!r} ({told.seen.example})")
        elif told.early and told.word in before and not before[told.word].early:
            yield MovedWay(f"finish word {told.word!r}", "last", f"before the end ({told.early.example})")


def _moved_signs(a: Ways, b: Ways) -> Iterator[MovedWay]:
    before = {(sign.kind, sign.text) for sign in a.signs}
    for sign in b.signs if a.streams else ():
        if not sign.is_known and (sign.kind, sign.text) not in before:
            yield MovedWay("sign of life", "none", f"{sign.text!r} ({sign.seen.example})")


def _moved_usage(a: UsageWay, b: UsageWay) -> Iterator[MovedWay]:
    paths = [sorted({path for path, _ in (*usage.at, *usage.unread)}) for usage in (a, b)]
    if all(paths) and set(paths[0]).isdisjoint(paths[1]):
        yield MovedWay("usage stands at", ", ".join(paths[0]), ", ".join(paths[1]))
    if {a.scope, b.scope} != {"final", "cumulative"}:
        yield from _moved("usage", a.scope, b.scope)
    for what, before, after in (("reasoning", a.reasoning, b.reasoning), ("cache", a.cache, b.cache)):
        if "absent" not in (before, after):
            yield from _moved(f"{what} in usage", before, after)
    for what, old, new in (("input", a.input, b.input), ("output", a.output, b.output)):
        if _is_other(old, new):
            yield MovedWay(f"{what} over our count", old.verdict, new.verdict)


def _is_other(a: Fit, b: Fit) -> bool:
    if not (a.is_shown and b.is_shown) or max(a.looseness, b.looseness) > MAX_LOOSENESS:
        return False
    slack = _SLOPE_MOVED + a.looseness + b.looseness
    if abs(a.slope - b.slope) > slack * max(a.slope, b.slope):
        return True
    return abs(a.offset - b.offset) > _OFFSET_MOVED + a.residual + b.residual


def describe(ways: Ways) -> list[str]:
    """What was found, a line for each finding."""
    return [
        f"{ways.vendor} ({ways.dialect}): {ways.streams} streams, {ways.plain} plain answers",
        *_text_lines(ways),
        *_cut_lines(ways),
        *_sign_lines(ways),
        *_end_lines(ways),
        *map(_finish_line, ways.finishes),
        *_usage_lines(ways.usage),
    ]


def _text_lines(ways: Ways) -> Iterator[str]:
    text = ways.text
    told = ", ".join(f"{mode} in {seen.count} ({seen.example})" for mode, seen in text.answers)
    yield f"text mode: {text.mode}" + (f": {told}" if len(text.answers) > 1 else "")
    if text.at:
        undone = ", which the dialect's reader undoes" if text.is_undone else ""
        more = f" and {len(text.at) - 3} more" if len(text.at) > 3 else ""
        yield f"said again at {', '.join(text.at[:3])}{more}{undone}"


def _cut_lines(ways: Ways) -> Iterator[str]:
    cuts = ways.cuts
    for what, seen, of, edges in (
        ("reads that end inside a character", cuts.letters, cuts.reads, "reads"),
        ("events that end inside a surrogate pair", cuts.halves, cuts.events, "edges beyond ASCII"),
        ("events with bytes that are no UTF-8", cuts.bad_bytes, 0, ""),
        ("events with U+FFFD of the vendor's own", cuts.replaced, 0, ""),
        ("events that end inside a grapheme cluster", cuts.clusters, cuts.events, "edges beyond ASCII"),
    ):
        if seen:
            yield f"{what}: {_seen(seen, of, edges)}"


def _sign_lines(ways: Ways) -> Iterator[str]:
    for sign in ways.signs:
        text = f" {sign.text!r}" if sign.text else ""
        rhythm = f", every {sign.every_s:g} s" if sign.every_s is not None else ""
        unknown = "" if sign.is_known else f"; not known{f', pattern {sign.pattern}' if sign.pattern else ''}"
        yield f"sign of life: {sign.kind}{text}: {_seen(sign.seen)}{rhythm}{unknown}"


def _end_lines(ways: Ways) -> Iterator[str]:
    end = ways.end
    yield f"end mark: {end.mark}{f' ({end.word})' if end.word else ''}, by {end.whole} whole answers"
    if end.after_error:
        yield f"end mark after an error: {_seen(end.after_error)}"
    if end.without_finish:
        yield f"end mark without a finish: {_seen(end.without_finish)}"
    for where, kinds in (("finish", end.after_finish), ("end mark", end.after_mark)):
        for kind, seen in kinds:
            yield f"after the {where}: {kind}: {_seen(seen)}"


def _finish_line(told: FinishWord) -> str:
    means = told.means or (f"unknown; perhaps {told.guess}: {told.reason}" if told.guess else "unknown")
    early = f"; before the end: {_seen(told.early)}" if told.early else ""
    return f"finish {told.word!r}: {means}, {_seen(told.seen)}{early}"


def _usage_lines(usage: UsageWay) -> Iterator[str]:
    where = [*(f"at {path}" for path in _all(usage.at)), *_all(usage.when)]
    yield f"usage: {usage.scope}" + (f", {'; '.join(where)}" if where else "")
    if usage.missing:
        yield f"answers without usage: {_seen(usage.missing, usage.answers, 'answers')}"
    if usage.unread:
        yield f"looks like usage and is not read: {'; '.join(_all(usage.unread))}"
    for what, holder, place, is_read in (
        ("reasoning", "output", usage.reasoning, usage.reasoning_read),
        ("cached tokens", "input", usage.cache, usage.cache_read),
    ):
        if place != NOT_SHOWN:
            added = ", which the dialect's reader adds" if place == "outside" and is_read else ""
            yield f"{what}: {place} {holder}{added}" if place != "absent" else f"{what}: not told"
    if usage.odd_sums:
        yield f"totals that do not add up: {_seen(usage.odd_sums)}"
    for what, fit in (("input", usage.input), ("output", usage.output)):
        rest = f", {fit.residual:g} tokens left over at the median" if fit.is_shown else ""
        yield f"{what} over our count: {fit.verdict} ({fit.points} answers{rest})"


def _all(kinds: Sequence[tuple[str, Seen]]) -> list[str]:
    return [f"{name} ({seen.count})" for name, seen in kinds]


def _seen(seen: Seen, of: int = 0, what: str = "") -> str:
    return f"{seen.count}{f' of {of} {what}' if of else ''} ({seen.example})"
