"""From any bytes to one upstream answer and the way it is read: the fuzzer's grammar.

In: the bytes that a fuzzer made up. Out: a `Plan`: settings, head, body, cuts, moments and disturbances. Every byte
string is a plan, equal bytes are equal plans, and a small change of the bytes is a small change of the plan, so that a
coverage-guided fuzzer can climb. The body is put together from what vendors send (recordings, events), from what breaks
parsers (half characters, line ends, broken JSON), and from the raw bytes themselves.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import brotli  # type: ignore[import-untyped]  # it ships no types

from fuzz.draw import Draw
from fuzz.families import frame_of
from fuzz.payloads import TEXTS, chunk_bytes, payload_of, quoted
from proxy.canon.ending import Stop
from proxy.pipeline import Asked
from proxy.wire.hold import Boundary
from tests.support.pipelines import recordings

_VENDORS: Final = (
    "openai",
    "openai_compatible",
    "azure_openai",
    "deepseek",
    "mistral",
    "openrouter",
    "one_api",
    "new_api",
    "zhipu",
    "qwen_compat",
    "moonshot",
    "vllm",
    "llamacpp",
    "minimax",
)
#: A vendor for each dialect that is not chat completions.
_SPEAKERS: Final = (
    ("anthropic", "anthropic"),
    ("openai", "responses"),
    ("openai_compatible", "completions"),
    ("gemini", "gemini"),
    ("vertex", "vertex"),
    ("bedrock", "bedrock"),
    ("cohere", "cohere"),
    ("ollama", "ollama"),
    ("dashscope", "dashscope"),
    ("baidu_qianfan_v1", "baidu"),
    ("tencent_hunyuan", "hunyuan"),
    ("minimax", "minimax_pro"),
)
#: Bodies that were sent, as far as a reader asks for them.
_SENT: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"model": "m", "stream": True, "parameters": {"incremental_output": True}},
    {"model": "m", "parameters": {"incremental_output": False}},
)
_CLIENTS: Final = ("chat", "chat", "messages", "responses", "completions")
_STATUSES: Final = (200, 200, 200, 200, 200, 201, 204, 206, 301, 400, 401, 402, 403, 404, 408, 413, 422, 429)
_MORE_STATUSES: Final = (451, 498, 500, 502, 503, 504, 520, 529, 598, 100, 999)
_TYPES: Final = (
    "text/event-stream",
    "text/event-stream; charset=utf-8",
    "application/json",
    "application/x-ndjson",
    "application/jsonl",
    "text/plain",
    "text/html",
    "application/vnd.amazon.eventstream",
    "",
)
_ENCODINGS: Final = ("", "", "", "gzip", "deflate", "br", "identity", "GZIP", "x-unknown", "gzip, deflate")
_MORE_HEADERS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"retry-after": "20"},
    {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"},
    {"retry-after": "-1"},
    {"x-ratelimit-reset-requests": "1m30s"},
    {"x-should-retry": "false", "retry-after-ms": "250"},
    {"cf-ray": "8a", "server": "cloudflare"},
    {"retry-after": "9" * 40},
)
_LINE_LIMITS: Final = (8 << 20, 8 << 20, 8 << 20, 64, 300, 2048)
_ANSWER_LIMITS: Final = (64 << 20, 64 << 20, 64 << 20, 8, 60, 700)
_STOPS: Final = (Stop.EOF, Stop.EOF, Stop.CUT, Stop.IDLE, Stop.STALL, Stop.TOTAL, Stop.GONE, Stop.SHUTDOWN)
#: What breaks parsers, alone or behind one another.
_TRICKY: Final = tuple(
    piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
    for piece in (
        "\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "\r\r", ": ping\n\n", ":\n", "data:\n\n", "data: \n\n", "data\n\n",
        "data: [DONE]\n\n", "data:[DONE]\n\n", "[DONE]\n", "data: [DONE]", "data: data: [DONE]\n\n", '"[DONE]"',
        "event: ping\n", "event: error\n", "event: message\n", "id: 7\n", "retry: 3000\n", "\ufeff", "\u2028", "\u2029",
        "\x85", "\0", "\x0b", "\x0c", "data: ", "data:", " ", "\t", "{", "}", "[", "]", '"', "\\", "\\u", "\\ud83d",
        "\\ude00", "null", "NaN", "1e999", "-0", "error: ", '{"error":"x"}', '{"error":{}}\n', "data: {}\n\n",
        "data: null\n\n", "data: []\n\n", "data: 0\n\n", 'data: "سلام"\n\n', "Internal Server Error\n",
        "<html><head><title>502 Bad Gateway</title></head>", "你好", "\u200d", "👩\u200d👧", "🇮", "🇷", "न",
        "\u094d", "\ud83d", b"\xff", b"\xf0\x9f", b"\x98\x80", b"\xd8", b"\xd9\x85",
        b"\xed\xa0\xbd", b"\xc0\xaf", b"\xef\xbb", b"\xbf",
        b"\x1f\x8b", b"\x78\x9c",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """One answer and how it is read. `moments` are the steps of the clock before each read, in turn; `leave_at` is the
    number of the read before which the client leaves; the still clock ignores both."""

    vendor: str
    asked: Asked
    status: int
    headers: dict[str, str]
    body: bytes
    cuts: tuple[int, ...]
    moments: tuple[float, ...]
    leave_at: int | None
    stop: Stop
    setup: dict[str, Any] = field(default_factory=dict)


def plan_of(data: bytes) -> Plan:
    """The plan that these bytes are."""
    draw = Draw(data)
    client = draw.pick(_CLIENTS)
    stream = not draw.flag()
    asked = Asked(stream, draw.flag(), draw.flag(), client, {"model": "alias", "stream": stream})
    vendor, dialect = draw.pick(_SPEAKERS) if draw.flag() else (draw.pick(_VENDORS), "openai")
    status = draw.pick((*_STATUSES, *_MORE_STATUSES)) if draw.below(8) == 7 else 200
    headers = dict(draw.pick(_MORE_HEADERS)) if draw.below(4) == 3 else {}
    if kind := draw.pick(_TYPES):
        headers["content-type"] = kind
    setup: dict[str, Any] = {
        "boundary": draw.pick((Boundary.GRAPHEME, Boundary.GRAPHEME, Boundary.STRICT, Boundary.SCALAR)),
        "hold_s": draw.pick((0.04, 0.0, 0.2)),
        "strip_fences": not draw.flag(),
        "max_line_bytes": draw.pick(_LINE_LIMITS),
        "max_answer_bytes": draw.pick(_ANSWER_LIMITS),
        "dialect": dialect,
        "sent": draw.pick(_SENT),
    }
    if not setup["hold_s"]:  # as the configuration has it: to wait for nothing is to hold nothing
        setup["boundary"] = Boundary.SCALAR
    encoding = draw.pick(_ENCODINGS) if draw.below(4) == 3 else ""
    stop = draw.pick(_STOPS)
    leave = draw.below(6)
    cuts = [draw.below(65536) for _ in range(draw.below(12))]
    moments = tuple(draw.pick((0.0, 0.01, 0.05, 0.3)) for _ in range(8))
    body = _encoded(draw, encoding, _body(draw, dialect))
    if encoding:
        headers["content-encoding"] = encoding
    size = len(body)
    return Plan(
        vendor=vendor,
        asked=asked,
        status=status,
        headers=headers,
        body=body,
        cuts=tuple(sorted(at % (size + 1) for at in cuts)),
        moments=moments,
        leave_at=leave if leave < 4 else None,
        stop=stop,
        setup=setup,
    )


# ---- the body ------------------------------------------------------------------------------------------------------


def _body(draw: Draw, dialect: str) -> bytes:
    pieces: list[bytes] = []
    while not draw.empty and len(pieces) < 200:
        is_own = dialect != "openai" and draw.below(8) < 7
        pieces.append(frame_of(dialect, draw) if is_own else draw.pick(_PIECES)(draw))
    return b"".join(pieces)[: 1 << 20]


def _encoded(draw: Draw, encoding: str, body: bytes) -> bytes:
    """Really compressed most of the time; else only said to be, broken off, damaged or with something behind it."""
    match encoding.lower():
        case "gzip":
            packed = gzip.compress(body, mtime=0)
        case "deflate":
            packed = zlib.compress(body)
        case "br":
            packed = brotli.compress(body, quality=1)
        case _:
            return body
    match draw.below(8):
        case 1:
            return packed[: draw.below(len(packed) + 1)]
        case 2:
            return packed + draw.take(draw.below(20))
        # A brotli decoder that meets an error loses what it decoded in the same call, so there the cuts do matter a
        # little (wire/inflate says how little); the others are held to the letter.
        case 3 if encoding != "br":
            return body
        case 4 if encoding != "br":
            at = draw.below(len(packed))
            return packed[:at] + draw.take(1) + packed[at + 1 :]
    return packed


def _raw(draw: Draw) -> bytes:
    return draw.take(draw.below(40))


def _tricky(draw: Draw) -> bytes:
    return draw.pick(_TRICKY)


def _event(draw: Draw) -> bytes:
    payload = payload_of(draw)
    before = draw.pick(
        (b"data: ", b"data: ", b"data: ", b"data:", b"event: x\ndata: ", b"id: 1\ndata: ", b"data: data: ")
    )
    after = draw.pick((b"\n\n", b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n", b"", b"\n: c\n\n"))
    return before + payload + after


def _line(draw: Draw) -> bytes:
    return payload_of(draw) + b"\n"


def _run(draw: Draw) -> bytes:
    """Many events that differ in their text alone, as the fast path likes them, and one that is only nearly so."""
    texts = [draw.pick(TEXTS) for _ in range(1 + draw.below(8))]
    template = chunk_bytes({"content": "@"})
    many = [template.replace(b"@", quoted(text)) for text in texts * (1 + draw.below(6))]
    events = b"".join(b"data: %b\n\n" % one for one in many)
    return events + (_event(draw) if draw.flag() else b"")


def _recorded(draw: Draw) -> bytes:
    """A recording, or a part of one, or one with a few bytes changed."""
    body = draw.pick(recordings()).body
    match draw.below(4):
        case 1:
            start = draw.below(len(body) + 1)
            return body[start : start + draw.below(2000)]
        case 2:
            changed = bytearray(body)
            for _ in range(1 + draw.below(4)):
                if changed:
                    changed[draw.below(len(changed))] = draw.below(256)
            return bytes(changed)
        case 3:
            return body[: draw.below(len(body) + 1)]
        case _:
            return body


_PIECES: Final[tuple[Callable[[Draw], bytes], ...]] = (_event, _event, _event, _run, _tricky, _raw, _recorded, _line)
