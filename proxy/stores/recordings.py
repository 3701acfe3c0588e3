"""Recordings on disk: one upstream exchange per file, as it happened (`recordings/<vendor>/<name>.jsonl`).

In: a JSON-lines file. Its first line is the head (request, status, headers, how it was obtained, what is odd about it,
how it ended), then comes one line per read: `{"t": seconds since the head, "text": "..."}`, or `"b64"` where the bytes
of a read are not UTF-8 by themselves. Out: a frozen `Recording`. A file that does not hold to this form is a
`RecordingError` with file, line and reason. Never: interpret the bytes, or write a secret (contract L3, R1).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, TypeVar, cast, get_args

from proxy.errors import ConfigError
from proxy.stores.whole_file import write_whole

Obtained = Literal["captured", "simulated", "composed"]
#: How the upstream's side of the connection stopped. `close`: a proper end of the body. `abort`: the connection is
#: closed (FIN) without the end of the body. `reset`: RST, likewise. `hang`: silence, with the connection open.
End = Literal["close", "reset", "abort", "hang"]
_T = TypeVar("_T")

FORMAT_VERSION: Final = 1
#: What an answer bears that no vendor gave; its recording is `simulated`.
SIMULATED_HEADER: Final = "x-sluice-simulated"
_REQUIRED: Final = ("vendor", "name", "obtained", "odd", "request", "response", "end")
_KNOWN: Final = frozenset({"recording", "basis", "at", "end_at", "expect", "dialect", *_REQUIRED})
_SECRET_HEADERS: Final = frozenset(
    [
        "authorization",
        "proxy-authorization",
        "api-key",
        "x-api-key",
        "x-goog-api-key",
        "x-amz-security-token",
        "cookie",
        "set-cookie",
    ]
)
SCRUBBED: Final = "***"
_STREAM_HEADER: Final = "x-dashscope-sse"
# What a live key looks like in a body or a URL. Masked and test keys ("sk-test-000", "****0000") are shorter.
_SECRET_TEXT: Final = re.compile(
    rb"\b(?:sk|gsk|xai|fw|pk|rk|tgp|nvapi)[-_][A-Za-z0-9_-]{20,}|\bBearer\s+[A-Za-z0-9._~+/-]{16,}|\bAIza[A-Za-z0-9_-]{30,}"
)
# Legal inside JSON strings, but editors and diff tools break lines there.
_LINE_BREAKS: Final = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029", 0xFEFF: "\\ufeff"}


class RecordingError(ConfigError):
    """A file that is not a recording, or one that must not be written. Says where and why."""


@dataclass(frozen=True, slots=True)
class Read:
    """What one read brought, and when, in seconds since the head."""

    t: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Recording:
    """One exchange. Header names are lower case; `end_at` is when `end` happened (the last read's time if the file does
    not say); `expect` is what a correct reader makes of it, where known (text, reasoning, tool_calls, finish_reason,
    ending, class, code, usage); `dialect` is the grammar of the exchange where its vendor has several, "" for the usual
    one."""

    path: Path
    vendor: str
    name: str
    obtained: Obtained
    odd: str
    request: Mapping[str, object]
    status: int
    headers: tuple[tuple[str, str], ...]
    end: End
    reads: tuple[Read, ...]
    expect: Mapping[str, object] = field(default_factory=dict)
    basis: str = ""
    at: str = ""
    end_at: float = 0.0
    dialect: str = ""

    @property
    def asks_stream(self) -> bool:
        """Did the recorded request ask for a stream? Some families say so in the path, or in a header alone."""
        body = self.request.get("body")
        asked = body.get("stream", body.get("Stream")) if isinstance(body, dict) else None
        if isinstance(asked, bool):
            return asked
        path = str(self.request.get("path", "")).lower()
        if path.endswith("/generation"):  # DashScope's wish stands in a header, which may not have been recorded
            return self.is_event_stream or _STREAM_HEADER in _names(self.request)
        return "stream" in path

    @property
    def key(self) -> str:
        return f"{self.vendor}/{self.name}"

    @property
    def body(self) -> bytes:
        return b"".join(read.data for read in self.reads)

    @property
    def is_event_stream(self) -> bool:
        """By its header alone: some vendors send events under another content type, or JSON under this one."""
        return self.header("content-type", "").startswith("text/event-stream")

    def header(self, name: str, default: str = "") -> str:
        return next((value for key, value in self.headers if key == name), default)


def _names(request: Mapping[str, object]) -> frozenset[str]:
    """Lower-case names of the recorded request's headers."""
    headers = request.get("headers")
    if isinstance(headers, dict):
        return frozenset(str(name).lower() for name in headers)
    return frozenset(str(pair[0]).lower() for pair in headers if pair) if isinstance(headers, list) else frozenset()


def load_recording(path: Path) -> Recording:
    """Read one file. Lines end at LF only: a recorded read may hold any other line break inside its JSON string."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RecordingError(str(path), None, f"cannot be read: {error.strerror}") from error
    if lines[-1] == b"":
        lines.pop()
    if not lines:
        raise RecordingError(str(path), 1, "is empty; the first line must be the head")
    where = _Place(str(path))
    head = where.parse_object(1, lines[0])
    reads = tuple(_parse_read(where, number, line) for number, line in enumerate(lines[1:], start=2))
    for number, (earlier, later) in enumerate(pairwise(reads), start=3):
        if later.t < earlier.t:
            raise where.error(number, f"t goes back from {earlier.t} to {later.t}")
    return _parse_head(where, path, head, reads)


def find_recordings(paths: Iterable[Path]) -> list[Recording]:
    """Load files as given and folders with all below them, by name. A path given twice counts once."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise RecordingError(str(path), None, "no such file or folder")
        found.update(dict.fromkeys(sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]))
    return [load_recording(path) for path in found]


def dump_recording(recording: Recording, path: Path, secrets: Collection[str] = ()) -> None:
    """Write one file. Credential headers are replaced by `***`. What still looks like a key, or holds one of `secrets`
    (the values that were in use, also as base64), is refused: a body is evidence, and is not edited silently.
    Raises RecordingError, and then has written nothing."""
    head = _encode_line(_dump_head(scrub_recording(recording)))
    _refuse_secrets(str(path), head.encode() + b"\n" + recording.body, secrets)
    lines = [head, *(_encode_line(_dump_read(read)) for read in recording.reads)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise RecordingError(str(path), None, f"cannot be written: {error.strerror}") from error


def scrub_recording(recording: Recording) -> Recording:
    """The same exchange without credentials in the request's and the response's headers."""
    request = dict(recording.request)
    sent = request.get("headers")
    if isinstance(sent, list):
        request["headers"] = [[name, _scrub_value(name, value)] for name, value in sent]
    elif isinstance(sent, dict):
        request["headers"] = {name: _scrub_value(name, value) for name, value in sent.items()}
    headers = tuple((name, _scrub_value(name, value)) for name, value in recording.headers)
    return replace(recording, request=request, headers=headers)


def _scrub_value(name: str, value: str) -> str:
    return SCRUBBED if name.lower() in _SECRET_HEADERS else value


def _refuse_secrets(file: str, written: bytes, secrets: Collection[str]) -> None:
    if (match := _SECRET_TEXT.search(written)) is not None:
        raise RecordingError(file, None, f"not written: {match.group(0)[:6].decode()}… looks like a credential")
    for secret in filter(None, secrets):
        if secret.encode() in written or base64.b64encode(secret.encode()) in written:
            raise RecordingError(file, None, "not written: it holds a credential that was in use")


def _dump_head(recording: Recording) -> dict[str, object]:
    head: dict[str, object] = {
        "recording": FORMAT_VERSION,
        "vendor": recording.vendor,
        "name": recording.name,
        "obtained": recording.obtained,
        "basis": recording.basis,
        "odd": recording.odd,
        "at": recording.at,
        "request": dict(recording.request),
        "response": {"status": recording.status, "headers": [list(pair) for pair in recording.headers]},
        "end": recording.end,
    }
    if recording.end_at > (recording.reads[-1].t if recording.reads else 0.0):
        head["end_at"] = recording.end_at
    if recording.dialect:
        head["dialect"] = recording.dialect
    if recording.expect:
        head["expect"] = dict(recording.expect)
    return head


def _dump_read(read: Read) -> dict[str, object]:
    try:
        return {"t": round(read.t, 6), "text": read.data.decode()}
    except UnicodeDecodeError:
        return {"t": round(read.t, 6), "b64": base64.b64encode(read.data).decode()}


def _encode_line(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False).translate(_LINE_BREAKS)


class _Place:
    """Says where in a file something is wrong."""

    def __init__(self, file: str) -> None:
        self.file = file

    def error(self, line: int, reason: str) -> RecordingError:
        return RecordingError(self.file, line, reason)

    def parse_object(self, line: int, text: bytes) -> dict[str, object]:
        try:
            value = json.loads(text)
        except ValueError as error:
            raise self.error(line, f"is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise self.error(line, "is not a JSON object")
        return value


def _parse_head(where: _Place, path: Path, head: dict[str, object], reads: tuple[Read, ...]) -> Recording:
    if head.get("recording") != FORMAT_VERSION:
        raise where.error(1, f'the first line is not a head: it must have "recording": {FORMAT_VERSION}')
    if missing := [key for key in _REQUIRED if key not in head]:
        raise where.error(1, f"the head lacks {', '.join(missing)}")
    if unknown := sorted(set(head) - _KNOWN):
        raise where.error(1, f"the head has unknown keys: {', '.join(unknown)}")
    response = _narrow(where, head["response"], dict, "response")
    last = reads[-1].t if reads else 0.0
    end_at = head.get("end_at", last)
    if not isinstance(end_at, int | float) or end_at < last:
        raise where.error(1, "end_at must be a number of seconds, not before the last read")
    _check_word(where, head, "obtained", get_args(Obtained))
    _check_word(where, head, "end", get_args(End))
    return Recording(
        path=path,
        vendor=_narrow(where, head["vendor"], str, "vendor"),
        name=_narrow(where, head["name"], str, "name"),
        obtained=cast("Obtained", head["obtained"]),
        odd=_narrow(where, head["odd"], str, "odd"),
        request=_narrow(where, head["request"], dict, "request"),
        status=_narrow(where, response.get("status"), int, "response.status"),
        headers=_parse_headers(where, response.get("headers", [])),
        end=cast("End", head["end"]),
        reads=reads,
        expect=_narrow(where, head.get("expect", {}), dict, "expect"),
        basis=_narrow(where, head.get("basis", ""), str, "basis"),
        at=_narrow(where, head.get("at", ""), str, "at"),
        end_at=float(end_at),
        dialect=_narrow(where, head.get("dialect", ""), str, "dialect"),
    )


def _narrow(where: _Place, value: object, kind: type[_T], name: str) -> _T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise where.error(1, f"{name} must be {'text' if kind is str else 'an object' if kind is dict else 'a number'}")
    return value


def _check_word(where: _Place, head: Mapping[str, object], key: str, words: tuple[str, ...]) -> None:
    if head[key] not in words:
        raise where.error(1, f"{key} must be one of {', '.join(words)}")


def _parse_headers(where: _Place, value: object) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for pair in value if isinstance(value, list) else [value]:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise where.error(1, 'response.headers must be a list of ["name", "value"] pairs')
        pairs.append((pair[0].lower(), pair[1]))
    return tuple(pairs)


def _parse_read(where: _Place, number: int, line: bytes) -> Read:
    fields = where.parse_object(number, line)
    t, text, b64 = fields.get("t"), fields.get("text"), fields.get("b64")
    if not isinstance(t, int | float) or isinstance(t, bool) or t < 0:
        raise where.error(number, "t must be a number of seconds since the head")
    if unknown := sorted(set(fields) - {"t", "text", "b64"}):
        raise where.error(number, f"unknown keys: {', '.join(unknown)}")
    if (text is None) == (b64 is None):
        raise where.error(number, "a read has either text or b64")
    try:
        if isinstance(text, str):
            return Read(float(t), text.encode())
        if isinstance(b64, str):
            return Read(float(t), base64.b64decode(b64, validate=True))
    except ValueError as error:  # a lone surrogate in text, or not base64
        raise where.error(number, f"the bytes of the read cannot be told: {error}") from error
    raise where.error(number, "text and b64 must be strings")
