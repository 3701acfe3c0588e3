"""How long to wait, from whatever a vendor wrote: headers, fields of the body, words in the message.

In go headers, named body fields, message texts and the wall clock as a number; out come seconds from now, or None when
nobody said. A hint that is no number, or that lies in the past, is no hint; one beyond any plan is a very long wait,
not none: the caller must not be told to try again at once. It never raises and has no clock of its own. Contract
clause E (`retry_after`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime

from proxy.semantics.sieve import fold

# Longer than any plan window. What goes beyond it is cut to it.
MAX_WAIT_S = 10 * 366 * 86400.0
# Numbers from here on are points in time, not lengths: seconds (2001-09-09) or milliseconds since 1970.
_EPOCH_S, _EPOCH_MS = 1e9, 1e12
# Chinese vendors write the times of their windows without a zone, in their own.
_CHINA = timezone(timedelta(hours=8))

# Possessive: what follows is never a digit, so fewer digits need not be tried at each place.
_NUMBER = r"\d{1,15}+(?:\.\d{1,12}+)?"
_UNIT = (
    r"(?:milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d"
    r"|毫秒|秒钟|秒|分钟|分|个?小时|個?小時|天)(?![a-z])"
)
_PART = re.compile(rf"({_NUMBER})\s*({_UNIT})", re.I)
# Of any size, also as `1e3`: what is too long to mean anything is still a long wait.
_ANY_NUMBER = r"\d{1,100}(?:\.\d{1,100})?(?:e[+-]?\d{1,3})?"
_PLAIN = re.compile(rf"\s*({_ANY_NUMBER})\s*", re.I)
# A header that a proxy joined from two ("7, 9"), or with a comment or a parameter behind ("7;x", "7 (busy)").
_LEADING = re.compile(rf"\s*({_ANY_NUMBER})\s*[,;(]", re.I)
_LENGTH = rf"(?P<length>{_NUMBER}\s*{_UNIT}(?:[\s,]*(?:and\s+)?{_NUMBER}\s*{_UNIT}){{0,3}})"
_IN_WORDS = (
    # "try again in 20s", "please retry after 3 seconds", "resets in 1h2m3s", "wait at least 5 seconds"
    re.compile(
        r"\b(?:again|retry|retried|retrying|resets?|available|wait|waiting|renews?|back|recovers?|returns?|refresh(?:es|ed)?"
        r"|replenish(?:es|ed)?|restored|lifted|cool-?down|limited for)\b"
        rf"[^.\d]{{0,40}}?\b(?:in|after|for|within|least|wait|about)?\s*{_LENGTH}",
        re.I,
    ),
    re.compile(rf"{_LENGTH}\s*(?:之?后|後|以后|再)", re.I),
    # "in 20s, please retry"
    re.compile(rf"\b(?:in|after)\s+{_LENGTH},?\s+(?:please\s+)?(?:re)?try\b", re.I),
    # No unit: "retry after 5".
    re.compile(rf"\bretry[- _]?(?:after|in)\b\s*[:=]?\s*(?P<length>{_NUMBER})(?![\d.:/-])", re.I),
)
# "try again in a minute", "wait an hour"
_ONE = re.compile(r"\b(?:again|retry|wait)\s+(?:in |after |for |about )?an? (?P<unit>second|minute|hour|day)\b", re.I)
# "again in 00:05:00", "replenished in 2.10:00:00", which is days and hours
_CLOCK = re.compile(r"\b(?:in|after)\s+(?:(\d{1,3})\.)?(\d{1,3}):([0-5]\d):([0-5]\d)\b", re.I)
# x-ratelimit-reset-requests, x-rate-limit-reset, anthropic-ratelimit-tokens-reset
_RESET = re.compile(r"rate-?limit-(?:.*-)?reset")
_DATE = re.compile(
    r"(20\d\d)[-/年](\d{1,2})[-/月](\d{1,2})日?"
    r"(?:[T\s]+(?:at\s+)?(\d{1,2}):(\d\d)(?::(\d\d))?(?:\.\d+)?\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?)?",
    re.I,
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DATE_IN_WORDS = re.compile(rf"\b({'|'.join(_MONTHS)})[a-z]*\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(20\d\d)", re.I)
# A date in a message is a hint only where the words around it speak of the limit's end.
_ABOUT_AN_END = re.compile(
    r"return|regain|reset|again|until|retry|renew|available|restored|refresh|resume|lifted|重置|恢复|刷新|解除|重试|更新|可用",
    re.I,
)
_ABOUT_CHARS = 60


def wait_from_headers(headers: Mapping[str, str], now_wall: float) -> float | None:
    """Seconds by `retry-after-ms`, `retry-after`, or the reset of whichever `x-ratelimit-*` window is used up."""
    if (ms := _plain_number(headers.get("retry-after-ms", headers.get("x-ms-retry-after-ms")))) is not None:
        return _sane(ms / 1000)
    if (wait := _retry_after(headers.get("retry-after", "")[:100], now_wall)) is not None:
        return wait
    resets = [
        wait
        for name, value in headers.items()
        if "-reset" in name and _RESET.search(name) is not None and _is_used_up(headers, name)
        if (wait := parse_wait(value, now_wall)) is not None
    ]
    return max(resets, default=None)


def _retry_after(value: str, now_wall: float) -> float | None:
    if (wait := parse_wait(value, now_wall)) is not None:
        return wait
    leading = _LEADING.match(value)
    return _length_or_moment(float(leading.group(1)), now_wall) if leading is not None else None


def _is_used_up(headers: Mapping[str, str], reset_name: str) -> bool:
    """A vendor sends the resets of all its windows; only one whose remainder is 0 is to be waited for.

    The remainder may be left out where the name is `…limit-reset…`: where the window stands between, other words tell.
    """
    left = _plain_number(headers.get(reset_name.replace("-reset", "-remaining")))
    return "limit-reset" in reset_name if left is None else left <= 0


def wait_from_fields(fields: Iterable[tuple[str, object]], now_wall: float, zone: tzinfo | None = None) -> float | None:
    """Seconds by fields such as Gemini's `retryDelay: "20s"` or a relay's `retry_after_ms: 1500`."""
    for name, value in fields:
        wait = parse_wait(value, now_wall, zone)
        if wait is not None:
            in_ms = name.lower().endswith(("_ms", "millis", "milliseconds")) and not isinstance(value, str)
            return wait / 1000 if in_ms else wait
    return None


def wait_from_message(text: str, now_wall: float, zone: tzinfo | None = None) -> float | None:
    """Seconds by words: "try again in 11m31s", "请在 20 秒后重试", "access returns on 2030-01-01". `zone` is that of
    dates which do not say theirs; None: China's in a Chinese text, else UTC."""
    for pattern in _IN_WORDS:
        if (found := pattern.search(text)) is not None:
            wait = parse_wait(found.group("length"), now_wall)
            if wait is not None:
                return wait
    if (one := _ONE.search(text)) is not None:
        return _seconds_in(one.group("unit"))
    if (clock := _CLOCK.search(text)) is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return days * 86400.0 + hours * 3600 + minutes * 60 + seconds
    for pattern, parse in ((_DATE, _date_of), (_DATE_IN_WORDS, _worded_date_of)):
        for found in pattern.finditer(text):
            around = text[max(0, found.start() - _ABOUT_CHARS) : found.end() + _ABOUT_CHARS]
            if _ABOUT_AN_END.search(around) and (wait := _until(parse(found, text, zone), now_wall)) is not None:
                return wait
    return None


def parse_wait(value: object, now_wall: float, zone: tzinfo | None = None) -> float | None:
    """Seconds from one value: a number, "1s", "6m0s", "120ms", a point in time as a number or in words."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _length_or_moment(value, now_wall)
    if not isinstance(value, str) or len(value) > 100:
        return None
    if (plain := _plain_number(value)) is not None:
        return _length_or_moment(plain, now_wall)
    parts = _PART.findall(value)
    if parts and not _PART.sub("", value).replace("and", "").strip(" ,"):
        return _sane(sum(float(number) * _seconds_in(unit) for number, unit in parts))
    if (found := _DATE.search(value)) is not None:
        return _until(_date_of(found, value, zone), now_wall)
    return _until(_http_date(value), now_wall)


def _plain_number(value: object) -> float | None:
    if not isinstance(value, str) or (found := _PLAIN.fullmatch(value)) is None:
        return None
    return float(found.group(1))


def _length_or_moment(number: float, now_wall: float) -> float | None:
    number = min(number, 1e18)  # an integer of any length from JSON, which no float may hold
    if number >= _EPOCH_MS:
        return _until(number / 1000, now_wall)
    return _until(number, now_wall) if number >= _EPOCH_S else _sane(number)


def _seconds_in(unit: str) -> float:
    word = fold(unit).lstrip("个個")  # an expression without case takes ſ for s
    if word.startswith(("ms", "milli", "毫")):
        return 0.001
    return {"s": 1.0, "秒": 1.0, "m": 60.0, "分": 60.0, "h": 3600.0, "小": 3600.0, "d": 86400.0, "天": 86400.0}[word[0]]


def _date_of(found: re.Match[str], text: str, zone: tzinfo | None) -> float | None:
    year, month, day, hour, minute, second, told = found.groups()
    is_chinese = any("\u4e00" <= c <= "\u9fff" for c in text)
    tz = _zone(told) if told else zone or (_CHINA if is_chinese else UTC)
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=tz
        )
    except ValueError:
        return None
    return moment.timestamp()


def _zone(text: str) -> timezone:
    if text[0] not in "+-":
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > 23 or minutes > 59:
        return UTC
    return timezone((1 if text[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))


def _worded_date_of(found: re.Match[str], _text: str, zone: tzinfo | None) -> float | None:
    month = _MONTHS.index(fold(found.group(1))[:3]) + 1
    try:
        return datetime(int(found.group(3)), month, int(found.group(2)), tzinfo=zone or UTC).timestamp()
    except ValueError:
        return None


def _http_date(value: str) -> float | None:
    try:
        moment = parsedate_to_datetime(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _until(moment: float | None, now_wall: float) -> float | None:
    """None for a moment that has passed: a stale date says nothing about how long to wait from now."""
    if moment is None or moment <= now_wall:
        return None
    return _sane(moment - now_wall)


def _sane(seconds: float) -> float | None:
    return round(min(seconds, MAX_WAIT_S), 3) if seconds >= 0 else None  # not a number is not >= 0 either
