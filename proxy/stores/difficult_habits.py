"""The difficult vendor's hidden habits: how it says each error, and how it streams, drawn from a seed.

In: a seed. Out: a table from cause to `Habit`, and the stream's `Ways`. A status may mislead, an envelope may be any
that vendors have, codes are of its own making and may be shared, words change from answer to answer. What can be relied
on is a mark: every answer of a cause has its mark, whatever else changes, and no answer of another cause does. Causes
that a caller can bring about share nothing with those that it cannot: what nobody has seen cannot be told apart.
Pure: the same seed draws the same vendor.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from proxy.canon.verdict import ErrorClass
from proxy.stores.difficult_words import FRANK, RIDDLES, Cause


class Envelope(StrEnum):
    """Where an answer keeps its words."""

    NESTED = "nested"  # {"error": {"message": …}}
    FLAT = "flat"  # {"code": …, "message": …}
    LISTED = "listed"  # {"errors": [{…}]}
    QUOTED = "quoted"  # {"error": {"message": "{\"error\": …}"}}
    ODD = "odd"  # fields that no other vendor has
    STRING = "string"  # {"error": "…"}
    DETAIL = "detail"  # {"detail": "…"}
    TEXT = "text"  # no JSON
    PAGE = "page"  # HTML
    EMPTY = "empty"  # headers alone


class Place(StrEnum):
    """Where the error stands. Of the last three, a plain answer has it in a body under 200."""

    HEAD = "head"  # an HTTP error
    BODY = "body"  # a body under 200, also where a stream was asked for
    FIRST = "first"  # the stream's first event
    MID = "mid"  # an event behind some text


class Mark(StrEnum):
    """What tells a cause from all others of this vendor."""

    CODE = "code"
    NUMBER = "number"
    PHRASE = "phrase"
    HEADER = "header"


class WaitPlace(StrEnum):
    """Where a hint about waiting stands."""

    NOWHERE = "nowhere"
    HEADER = "header"  # Retry-After
    FIELD = "field"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Habit:
    """How the vendor says one cause. `mark_text` is in every answer of the cause; `shown` are the wordings that callers
    get to see, `held` those that are kept back for a test."""

    cause: Cause
    status: int
    place: Place
    envelope: Envelope
    mark: Mark
    mark_text: str
    code: str
    number: int
    shown: tuple[str, ...]
    held: tuple[str, ...]
    wait: WaitPlace

    @property
    def error_class(self) -> ErrorClass:
        return self.cause.error_class


@dataclass(frozen=True, slots=True)
class Fields:
    """This vendor's own names."""

    number: str
    odd: tuple[str, str, str]  # the object, its number, its words
    header: str
    wait: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Ways:
    """How the vendor streams. `heartbeat` is a line as sent, "" for none; `usage_at` where usage sits in an event;
    `slope` and `offset` make its tokens of ours; the finish words are its names for `stop` and `length`."""

    heartbeat: str
    end_mark: bool
    stop: str
    length: str
    text_mode: str  # delta | cumulative | final_repeat
    usage_at: tuple[str, ...]
    usage_scope: str  # final | cumulative | absent
    usage_names: tuple[str, str, str]
    slope: float
    offset: int


@dataclass(frozen=True, slots=True)
class Habits:
    table: Mapping[Cause, Habit]
    fields: Fields
    ways: Ways


_SYLLABLES: Final = (
    "ba", "bro", "dru", "fen", "gli", "hoz", "jor", "ku", "lem", "mov", "nax",
    "olt", "pim", "quo", "rys", "sko", "tev", "ulm", "vra", "wex", "yol", "zan",
)  # fmt: skip
_STATUSES: Final = (200, 400, 403, 409, 418, 422, 429, 500, 503)
#: What this vendor's operators would have sent had they read the standard.
_FAIR: Final[Mapping[ErrorClass, int]] = {
    ErrorClass.AUTH_FAILURE: 401,
    ErrorClass.RATE_LIMITED: 429,
    ErrorClass.CONTENT_BLOCKED: 400,
    ErrorClass.UPSTREAM_TIMEOUT: 500,  # 504 is known to everybody: it would never be kept for learning beside its like
    ErrorClass.MODEL_UNAVAILABLE: 503,
    ErrorClass.INVALID_REQUEST: 400,
}
_WITH_CODES: Final = (Envelope.NESTED, Envelope.FLAT, Envelope.LISTED, Envelope.QUOTED, Envelope.ODD)
_WITHOUT: Final = (Envelope.STRING, Envelope.DETAIL, Envelope.TEXT, Envelope.PAGE)
#: What a reader can tell from an answer, under a good status.
_INSIDE_200: Final = (Envelope.NESTED, Envelope.FLAT, Envelope.LISTED, Envelope.QUOTED, Envelope.STRING)
#: Taken for a gateway's own by rules that every vendor may use: never kept for learning, and no proof of a rate limit.
_LIKE_A_GATEWAY: Final = (Envelope.PAGE, Envelope.EMPTY)
_LIMITED: Final = (Cause.RATE_LIMITED, Cause.CONCURRENCY, Cause.OVERLOADED)
_EARLY: Final = (Cause.NO_KEY, Cause.WRONG_KEY, Cause.MALFORMED_JSON)
_SHOWN_WORDINGS: Final = 3


def draw_habits(seed: int) -> Habits:
    """The vendor of this seed."""
    rng = random.Random(f"difficult vendor {seed}")
    draw = _Draw(rng)
    table = {cause: draw.habit(cause) for cause in Cause}
    return Habits(table, draw.fields, _draw_ways(rng))


class _Draw:
    """One vendor in the making: its house style, and what it has used up."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[str] = set()
        self._house = rng.choice((*_WITH_CODES, *_WITHOUT))
        self._one_status = rng.choice(_STATUSES) if rng.random() < 0.3 else None
        self._is_frank = rng.random() < 0.6
        self._style = rng.choice((str.upper, str.capitalize, str.lower))
        self._joint = rng.choice("_-.")
        # Shared by all causes that have a mark elsewhere: one for those that can be brought about, one for the others.
        self._shared = {is_probeable: (self._word(), self._number()) for is_probeable in (True, False)}
        own = self._syllables(2)
        self.fields = Fields(
            number=rng.choice(("errno", "sub_code", "biz_code", "ret_code")),
            odd=rng.choice((("ret", "rc", "why"), ("outcome", "kind_no", "remark"), ("fault_info", "errno", "say"))),
            header=f"x-{own}-{rng.choice(('reason', 'code', 'errno'))}",
            wait=rng.choice((f"{own}_cooldown", "retry_after", "wait_seconds")),
            request_id=rng.choice(("request_id", "trace", "rid")),
        )

    def habit(self, cause: Cause) -> Habit:
        rng = self._rng
        envelope = self._house if rng.random() < 0.6 else rng.choice(tuple(Envelope))
        while envelope in _LIKE_A_GATEWAY and (cause is Cause.RATE_LIMITED or not cause.is_probeable):
            envelope = rng.choice(tuple(Envelope))
        place = self._place(cause, envelope)
        mark = self._mark(envelope, place)
        code, number = self._shared[cause.is_probeable]
        mark_text = ""
        match mark:
            case Mark.CODE:
                mark_text = code = self._word()
            case Mark.NUMBER:
                number = self._number()
                mark_text = str(number)
            case Mark.PHRASE:
                mark_text = self._phrase()
            case Mark.HEADER:
                mark_text = self._word().lower()
        wordings = list(FRANK[cause] if self._is_frank else rng.sample(RIDDLES, 2 * _SHOWN_WORDINGS))
        rng.shuffle(wordings)
        return Habit(
            cause=cause,
            status=self._status(cause, place),
            place=place,
            envelope=envelope,
            mark=mark,
            mark_text=mark_text,
            code=code,
            number=number,
            shown=tuple(wordings[:_SHOWN_WORDINGS]),
            held=tuple(wordings[_SHOWN_WORDINGS:]),
            wait=rng.choice(tuple(WaitPlace)) if cause in _LIMITED else WaitPlace.NOWHERE,
        )

    def _place(self, cause: Cause, envelope: Envelope) -> Place:
        if envelope not in _INSIDE_200 or self._rng.random() < 0.55:
            return Place.HEAD
        if cause in _EARLY:
            return Place.BODY
        return self._rng.choice((Place.BODY, Place.FIRST, Place.MID))

    def _mark(self, envelope: Envelope, place: Place) -> Mark:
        if envelope is Envelope.EMPTY:
            return Mark.HEADER
        marks = [Mark.PHRASE]
        if envelope in _WITH_CODES:
            marks += [Mark.CODE, Mark.CODE, Mark.NUMBER]
        if place is Place.HEAD:
            marks.append(Mark.HEADER)
        return self._rng.choice(marks)

    def _status(self, cause: Cause, place: Place) -> int:
        if place is not Place.HEAD:
            return 200
        wrong = self._one_status or self._rng.choice(_STATUSES)
        status = _FAIR[cause.error_class] if self._one_status is None and self._rng.random() < 0.4 else wrong
        if cause is Cause.RATE_LIMITED and status >= 500:
            return 429  # a burst that is answered by 5xx may be an overload: nobody could tell
        return status if status != 200 else 400

    def _word(self) -> str:
        return self._style(f"{self._syllables(2)}{self._joint}{self._syllables(2)}")

    def _phrase(self) -> str:
        """Two words of its own, or, where all else that it says means nothing, what can be told for a mark: a tag."""
        if self._is_frank:
            return f"{self._syllables(2).capitalize()} {self._syllables(2)}"
        return f"{self._syllables(2).upper()}-{self._rng.randint(100, 999)}"

    def _syllables(self, count: int) -> str:
        while True:
            word = "".join(self._rng.choices(_SYLLABLES, k=count))
            if word not in self._used:
                self._used.add(word)
                return word

    def _number(self) -> int:
        while True:
            number = self._rng.randint(1001, 9999)
            if str(number) not in self._used:
                self._used.add(str(number))
                return number


def _draw_ways(rng: random.Random) -> Ways:
    names: Sequence[tuple[str, str, str]] = (
        ("prompt_tokens", "completion_tokens", "total_tokens"),
        ("input_tokens", "output_tokens", "total_tokens"),
    )
    return Ways(
        heartbeat=rng.choice(("", ": hum", 'data: {"hum": {n}}', "data: ~still here~", "event: tick\ndata: {n}")),
        end_mark=rng.random() < 0.6,
        stop=rng.choice(("stop", "fin", "done.", "结束")),
        length=rng.choice(("length", "cap", "full")),
        text_mode=rng.choice(("delta", "delta", "cumulative", "final_repeat")),
        usage_at=rng.choice((("usage",), ("x_meter", "tokens"), ("extra", "usage"), ("choices", "0", "usage"))),
        usage_scope=rng.choice(("final", "final", "cumulative", "absent")),
        usage_names=rng.choice(names),
        slope=round(rng.uniform(0.7, 1.6), 2),
        offset=rng.randint(0, 12),
    )
