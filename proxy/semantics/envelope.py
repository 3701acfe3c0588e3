"""What a vendor said about its error, wherever its envelope keeps it.

In goes the decoded body, event or line of an answer (or its text, where it is no JSON); out comes a `Said`: code words,
message texts, the status inside the body, and fields that tell how long to wait. Vendors use an `error` object, an
`error` string, flat fields, `detail` lists, `base_resp`, `Response.Error`, a one-element array, a bare string, JSON or
a Python repr inside a message, JSON inside `metadata.raw`, the title of an HTML page. It looks only into places
that hold errors: never into choices, content or the input that a validator quotes. It never raises; depth, width and
length are bounded, since the body is hostile. Contract clauses E and R1.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

MAX_TEXT = 2000  # characters of one message that are looked at
MAX_TEXTS = 4000  # of all messages together: every rule searches them, on the event loop
MAX_BODY = 64 * 1024  # bytes of a body that are looked at
_MAX_DEPTH = 10
_MAX_ITEMS = 8  # elements of one list: details, violations
_MAX_WORDS = 40

# Where errors are kept; everything else of a payload is passed by.
_HOLDERS = (
    "error", "Error", "errors", "err", "Response", "ResponseMetadata", "response", "base_resp", "innererror",
    "inner_error", "details", "detail", "metadata", "raw", "cause", "fault", "header", "incomplete_details", "x_groq",
    "violations", "provider_error", "upstream_error", "body", "errorInfo",
)  # fmt: skip
_MESSAGES = (
    "message", "msg", "Message", "Msg", "error_msg", "status_msg", "error_message", "errorMessage", "err_msg",
    "ErrorMsg", "error_description", "title", "faultstring", "blockReasonMessage", "status_message",
)  # fmt: skip
_CODES = (
    "code", "Code", "type", "status", "error_code", "status_code", "reason", "error_type", "errcode", "err_code",
    "errorCode", "__type", "blockReason", "quotaId",
)  # fmt: skip
# Explicit names first: `code` may be a vendor's own number.
_STATUSES = (
    "status_code", "http_status_code", "http_code", "statusCode", "http_status", "httpStatus", "code", "status",
    "error_code", "raw_status_code", "originalStatusCode", "param",
)  # fmt: skip
_WAITS = (
    "retryDelay", "retry_after", "retryAfter", "retry_after_seconds", "retryAfterSeconds", "retry_after_ms",
    "retryAfterMs", "resets_in_seconds", "reset_after", "resets_at", "reset_at", "quotaResetDelay", "estimated_time",
    "retry_delay", "retry_in", "retry-after", "wait_seconds", "reset_in_seconds",
)  # fmt: skip
_ALL_MESSAGES, _ALL_WAITS, _ALL_STATUSES = frozenset(_MESSAGES), frozenset(_WAITS), frozenset(_STATUSES)
# Words that stand where a code should and say nothing.
_EMPTY_WORDS = frozenset({"", "none", "null", "error", "undefined", "nil"})

_TITLE = re.compile(r"<title[^>]*>(.{0,400}?)</title>", re.I | re.S)
_HEADING = re.compile(r"<h1[^>]*>(.{0,400}?)</h1>", re.I | re.S)
_TAG = re.compile(r"<[^>]{0,200}>")
# JSON or a Python repr inside a message that does not parse: cut short, or with quotes of another language.
_QUOTED_WORD = re.compile(
    r"['\"](?:error_?|status_?|err_?)?(?:code|type|reason|status)['\"]\s*:\s*['\"]?([A-Za-z0-9_.\-]{1,80})", re.I
)
_QUOTED_MESSAGE = re.compile(
    r"['\"](?:(?:error|status|err)_?)?(?:message|msg)['\"]\s*:\s*(['\"])(.{1,1000}?)\1", re.S | re.I
)
_WORD_EDGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+")
_MAX_CODE_WORDS = 4  # a code of more words is a sentence
_COMMENT_STATUS = re.compile(r"HTTP_STATUS/(\d{3})")
_FIELD_NAME = re.compile(r"^\s*(?:error|data)\s*:\s*")


@dataclass(slots=True)
class Said:
    """`codes` and `messages` in the order found, outermost error first; `spellings` are the codes and, behind them,
    those of many words in one way of writing, so that a rule needs one; `code` and `message` the ones to show;
    `status` the HTTP status that the body claims, None if none; `waits` fields about waiting; `headers` those that a
    relay passes on inside its body; `text` the body's own text where it is no JSON, else None."""

    codes: list[str] = field(default_factory=list)
    spellings: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    code: str | None = None
    message: str | None = None
    status: int | None = None
    waits: list[tuple[str, object]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    text: str | None = None
    payload: object = None
    room: int = MAX_TEXTS


def read_envelope(payload: object, body: bytes, comments: Iterable[str] = ()) -> Said:
    """`payload` is the decoded JSON if the caller has it; else it is sought in `body`, also behind `error:`."""
    said = Said()
    text = "" if payload is not None else body[:MAX_BODY].decode("utf-8", "replace")
    is_json = payload is not None
    if payload is None:
        payload, is_json = _parse(text)
    said.payload = payload
    if is_json:
        _visit(payload, said, 0)
    else:
        said.text = text
        _read_text(text, said)
    for comment in comments:
        if said.status is None and (found := _COMMENT_STATUS.search(comment)) is not None:
            said.status = _as_status(found.group(1))
    said.message = _shown_message(said.messages)
    said.spellings = said.codes + _respelled(said.codes)
    return said


def _parse(text: str) -> tuple[object, bool]:
    bare = _FIELD_NAME.sub("", text, count=1).strip().removeprefix("\ufeff")
    if bare[:1] not in ("{", "[", '"'):
        return None, False
    try:
        return orjson.loads(bare), True
    except orjson.JSONDecodeError:
        return None, False


def _visit(value: object, said: Said, depth: int) -> None:
    if depth > _MAX_DEPTH or len(said.messages) + len(said.codes) > _MAX_WORDS:
        return
    if isinstance(value, dict):
        _visit_object(value, said, depth)
    elif isinstance(value, list):
        for item in value[:_MAX_ITEMS]:
            _visit(item, said, depth + 1)
    elif isinstance(value, str):
        _add_message(value, said, depth)


def _visit_object(value: Mapping[str, object], said: Said, depth: int) -> None:
    # The error inside speaks before what stands around it: `{"type": "error", "error": {…}}`.
    inner = value.get("error") or value.get("Error") or value.get("response")
    if inner:
        _visit(inner, said, depth + 1)
    _add_codes(value, said)
    # Most objects have few names and none of these, which is sooner seen than all are tried.
    if not _ALL_MESSAGES.isdisjoint(value):
        for name in [name for name in _MESSAGES if name in value]:
            _add_messages(value[name], value, said, depth)
    if not _ALL_WAITS.isdisjoint(value):
        said.waits += [(name, value[name]) for name in _WAITS if name in value]
    _add_headers(value.get("headers"), said)
    for name in [name for name in _HOLDERS if name in value]:
        if value[name] is not inner:
            _visit(value[name], said, depth + 1)


def _add_messages(message: object, value: Mapping[str, object], said: Said, depth: int) -> None:
    if isinstance(message, str):
        _add_message(_with_place(message, value), said, depth)
    elif isinstance(message, (dict, list)):
        _visit(message, said, depth + 1)


def _with_place(message: str, value: Mapping[str, object]) -> str:
    """FastAPI tells the wrong field beside the message: `{"loc": ["body", "messages"], "msg": "Field required"}`."""
    loc = value.get("loc")
    if not isinstance(loc, list):
        return message
    return f"{'.'.join(str(part)[:40] for part in loc[:_MAX_ITEMS])}: {message}"


def _add_codes(value: Mapping[str, object], said: Said) -> None:
    for name in [name for name in _CODES if name in value]:
        word = value[name]
        if isinstance(word, bool) or not isinstance(word, (str, int)):
            continue
        text = word[:200] if isinstance(word, str) else f"{word:.0f}" if abs(word) < 10**15 else ""
        if text.lower() not in _EMPTY_WORDS and text not in said.codes:
            said.codes.append(text)
            said.code = said.code or text
    if said.status is None and not _ALL_STATUSES.isdisjoint(value):
        told = (_as_status(value[name]) for name in _STATUSES if name in value)
        said.status = next((status for status in told if status is not None), None)


def _respelled(codes: list[str]) -> list[str]:
    """`RateLimitExceeded`, `rate-limit-exceeded` as `rate_limit_exceeded`, where that is another word."""
    words = [(code, _WORD_EDGE.sub("_", code).lower()) for code in codes if code.count(" ") < _MAX_CODE_WORDS]
    return [word for code, word in words if word != code.lower()]


def _as_status(value: object) -> int | None:
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599 else None


def _add_message(text: str, said: Said, depth: int) -> None:
    """A message; when it holds JSON or a Python repr of the real error, what that says as well."""
    whole = text[:MAX_BODY].strip()
    if whole[:1] in ("{", "["):
        payload, is_json = _parse(whole)
        if is_json:
            _visit(payload, said, depth + 1)
            return
    text = whole[: min(MAX_TEXT, said.room)].strip()
    _keep_message(text, said)
    if "{" in text and not _visit_tail(whole, said, depth):
        said.codes += [word for word in _QUOTED_WORD.findall(text)[:_MAX_ITEMS] if word not in said.codes]
        for _, words in _QUOTED_MESSAGE.findall(text)[:_MAX_ITEMS]:
            _keep_message(words[: said.room], said)


def _keep_message(text: str, said: Said) -> None:
    if text and text not in said.messages:
        said.messages.append(text)
        said.room -= len(text)


def _visit_tail(text: str, said: Said, depth: int) -> bool:
    """JSON behind words: `Error code: 429 - {"error": …}`. False where it does not parse."""
    payload, is_json = _parse(text[text.index("{") : text.rfind("}") + 1])
    if is_json:
        _visit(payload, said, depth + 1)
    return is_json


def _add_headers(value: object, said: Said) -> None:
    if isinstance(value, dict):
        for name, text in list(value.items())[:50]:
            if isinstance(name, str) and isinstance(text, str | int) and not isinstance(text, bool):
                said.headers.setdefault(name.lower(), str(text)[:200])


def _read_text(text: str, said: Said) -> None:
    """An HTML page is told by its title; a short plain text is its own message."""
    if "<" in text and (_TAG.search(text) is not None):
        for pattern in (_TITLE, _HEADING):
            if (found := pattern.search(text)) is not None:
                words = html.unescape(_TAG.sub(" ", found.group(1))).strip()
                if words and words not in said.messages:
                    said.messages.append(words)
    elif text.strip():
        said.messages.append(text.strip()[:MAX_TEXT])


def _shown_message(messages: list[str]) -> str | None:
    """The first message; a relay's "Provider returned error" alone says nothing, so the provider's own words follow."""
    if len(messages) > 1 and len(messages[0]) < 40:
        return f"{messages[0]} ({messages[1]})"
    return messages[0] if messages else None
