"""What is found of a vendor's ways: plain values that become JSON, with counts and a place to look at.

Nothing here looks at an answer (`ways_*`) or proposes anything (`ways_changes`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from proxy.metering.fit import Fit

#: What the answers did not show, and what they showed in more than one way.
NOT_SHOWN: Final = "not shown"
MIXED: Final = "mixed"


@dataclass(frozen=True, slots=True)
class Seen:
    """How often something was seen, and where first: recording and number of the read or event, "" if never."""

    count: int = 0
    example: str = ""

    def __bool__(self) -> bool:
        return self.count > 0

    def plus(self, example: str, count: int = 1) -> Seen:
        return Seen(self.count + count, self.example or example)


@dataclass(frozen=True, slots=True)
class Cuts:
    """How text beyond ASCII is cut. `reads` and `events` are how many edges there were to look at, the others those
    that cut something: `letters` reads that end inside a character's bytes; `halves` events that end inside a surrogate
    pair; `bad_bytes` events with bytes that are no UTF-8; `replaced` events in which the vendor itself wrote U+FFFD;
    `clusters` events that end inside a grapheme cluster."""

    reads: int = 0
    letters: Seen = Seen()
    events: int = 0
    halves: Seen = Seen()
    bad_bytes: Seen = Seen()
    replaced: Seen = Seen()
    clusters: Seen = Seen()


@dataclass(frozen=True, slots=True)
class Sign:
    """One kind of sign of life. `kind` is `comment`, `blank line`, `empty event`, `event`, `words` (data that is no
    JSON, or JSON with words alone) or `bare line` (none of the fields of SSE); `text` its shape, numbers as `#`.
    `is_known`: it is passed over as it should. `pattern` is a regular expression for `heartbeats:`, "" where none
    helps. `every_s` is the median of the seconds between two, None if never two in one answer."""

    kind: str
    text: str
    seen: Seen
    is_known: bool = True
    pattern: str = ""
    every_s: float | None = None


@dataclass(frozen=True, slots=True)
class EndWay:
    """How answers end. `mark` is `sent`, `never`, `mixed` or `not shown`, judged by `whole` answers alone; `word` is
    the mark as it was written. `after_finish` and `after_mark` are kinds of what came there."""

    mark: str = NOT_SHOWN
    word: str = ""
    whole: int = 0
    after_error: Seen = Seen()
    without_finish: Seen = Seen()
    after_finish: tuple[tuple[str, Seen], ...] = ()
    after_mark: tuple[tuple[str, Seen], ...] = ()


@dataclass(frozen=True, slots=True)
class FinishWord:
    """One finish word of the vendor's. `means` is ours by the profile, "" if unknown there; `early` are answers in
    which more was said after it. `guess` (ours) and `reason` are for an unknown one, "" if the answers do not show
    it."""

    word: str
    seen: Seen
    means: str = ""
    early: Seen = Seen()
    guess: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TextWay:
    """`mode` is `delta`, `cumulative`, `final_repeat`, `mixed` or `not shown`; `answers` how many showed which.
    `is_undone`: the dialect's reader undoes every repetition. `at` are JSON paths of what is said again."""

    mode: str = NOT_SHOWN
    answers: tuple[tuple[str, Seen], ...] = ()
    is_undone: bool = False
    at: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UsageWay:
    """Where usage sits and what it says. `at` are JSON paths with how often each; `when` the places in the stream;
    `unread` paths of objects that look like usage in answers in which the dialect's reader found none, and `is_legible`
    says that it could read them there; `missing` are answers without any. `scope` is `final`, `cumulative`,
    `increments`, `absent`, `mixed` or `not shown`; `reasoning` and `cache` are `inside`, `outside`, `absent`, `mixed`
    or `not shown`, and `*_read` says that the reader accounts for it. `odd_sums` are totals that no reading adds up to.
    `input` and `output` are the vendor's figures over our count."""

    at: tuple[tuple[str, Seen], ...] = ()
    when: tuple[tuple[str, Seen], ...] = ()
    unread: tuple[tuple[str, Seen], ...] = ()
    is_legible: bool = False
    scope: str = NOT_SHOWN
    answers: int = 0
    missing: Seen = Seen()
    reasoning: str = NOT_SHOWN
    reasoning_read: bool = True
    reasoning_seen: Seen = Seen()
    cache: str = NOT_SHOWN
    cache_read: bool = True
    cache_seen: Seen = Seen()
    odd_sums: Seen = Seen()
    input: Fit = field(default_factory=Fit)
    output: Fit = field(default_factory=Fit)


@dataclass(frozen=True, slots=True)
class MovedWay:
    """One way that is another now."""

    what: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class Ways:
    """What answers show of one vendor's ways in one dialect. `streams` and `plain` are how many answers were looked
    at."""

    vendor: str
    dialect: str
    streams: int = 0
    plain: int = 0
    cuts: Cuts = Cuts()
    signs: tuple[Sign, ...] = ()
    end: EndWay = EndWay()
    finishes: tuple[FinishWord, ...] = ()
    text: TextWay = TextWay()
    usage: UsageWay = field(default_factory=UsageWay)
