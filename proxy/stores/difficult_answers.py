"""The difficult vendor's answers, as recordings: its errors in their envelopes, and its streams.

In: drawn habits, what was asked, and a source of chance that is the answer's own. Out: a `Recording` with what a
correct reader makes of it in `expect`. Ids, numbers, quoted names, order and cuts differ from answer to answer; the
mark does not. Pure: the same chance makes the same answer.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

from proxy.stores.difficult_habits import Envelope, Fields, Habit, Habits, Mark, Place, WaitPlace, Ways
from proxy.stores.recordings import Read, Recording

VENDOR: Final = "difficult"
#: The same for all answers: the simulator says it in a header, where it must not give the cause away.
_NAME: Final = "answer"
_JSON: Final = ("content-type", "application/json")
_SSE: Final = ("content-type", "text/event-stream; charset=utf-8")
_BEGINNING: Final = "حالا که می‌پرسید، "
_SAYINGS: Final = (
    "آهسته و پیوسته: هر سخن جایی و هر نکته مکانی دارد. ",
    "千里之行，始于足下；路遥知马力。 ",
    "नमस्ते, क्षत्रिय ज्ञान की बात है। ",
    "Drop by drop 👩‍👩‍👧 the jar fills 🇮🇷. ",
    "صبرٌ جميلٌ، والله المستعان. ",
    "한 걸음씩 나아가면 됩니다. ",
)
#: A prompt that holds a text between two such lines gets it back.
_TO_REPEAT: Final = re.compile(r"^---\n(.+)\n---$", re.DOTALL | re.MULTILINE)
_PAUSE_S: Final = 0.004


@dataclass(frozen=True, slots=True)
class Asked:
    """What the request wanted."""

    model: str = "fine"
    stream: bool = False
    prompt: str = ""
    max_tokens: int | None = None

    @property
    def request(self) -> dict[str, object]:
        body = {"model": self.model, "stream": self.stream}
        return {"method": "POST", "path": "/v1/chat/completions", "body": body}


def error_answer(habits: Habits, habit: Habit, wording: str, asked: Asked, rng: random.Random) -> Recording:
    """One answer of a cause. `expect` has the true class, and the wait where the vendor tells one."""
    wait = rng.randint(2, 50)
    payload = _payload(habit, habits.fields, _message(habit, wording, asked, wait, rng), wait, rng)
    headers = list(_headers(habit, habits.fields, wait, rng))
    is_event = asked.stream and habit.place in (Place.FIRST, Place.MID)
    if is_event:
        begun = _event(asked, rng, {"role": "assistant", "content": _BEGINNING}) if habit.place is Place.MID else b""
        body = begun + b"data: " + payload.encode() + b"\n\n"
        headers.append(_SSE)
    else:
        body = payload.encode()
        headers.append(_content_type(habit.envelope))
    expect: dict[str, object] = {"class": [habit.error_class.value]}
    if habit.wait is not WaitPlace.NOWHERE:
        expect["retry_after"] = wait
    return _recording(asked, habit.status, headers, _cut(body, rng, 400), expect)


def _message(habit: Habit, wording: str, asked: Asked, wait: int, rng: random.Random) -> str:
    said = wording.replace("{model}", asked.model).replace("{id}", _id(rng)).replace("{n}", str(rng.randint(11, 999)))
    if habit.mark is Mark.PHRASE:
        frame = rng.choice(("{mark}: {said}", "[{mark}] {said}", "{said} ({mark})", "{said} — {mark}"))
        said = frame.replace("{mark}", habit.mark_text).replace("{said}", said)
    return f"{said} Try again in {wait}s." if habit.wait is WaitPlace.MESSAGE else said


def _payload(habit: Habit, fields: Fields, message: str, wait: int, rng: random.Random) -> str:
    inner: dict[str, object] = {"message": message, "code": habit.code, fields.number: habit.number}
    waits = {fields.wait: wait} if habit.wait is WaitPlace.FIELD else {}
    own = {fields.request_id: _id(rng), "ts": 1_790_000_000 + rng.randrange(10_000_000)}
    body: dict[str, object]
    match habit.envelope:
        case Envelope.TEXT:
            return message
        case Envelope.PAGE:
            return f"<html><head><title>{message}</title></head><body><hr>{_id(rng)}</body></html>"
        case Envelope.EMPTY:
            return ""
        case Envelope.NESTED:
            body = {"error": inner | waits, **own}
        case Envelope.FLAT:
            body = {**inner, **waits, **own}
        case Envelope.LISTED:
            body = {"errors": [inner | waits], **own}
        case Envelope.QUOTED:
            body = {"error": {"message": json.dumps({"error": inner}, ensure_ascii=False)}, **waits, **own}
        case Envelope.ODD:
            name, number, words = fields.odd
            body = {name: {number: habit.number, "kind": habit.code, words: message, **waits}, **own}
        case Envelope.STRING:
            body = {"error": message, **waits, **own}
        case Envelope.DETAIL:
            body = {"detail": message, **waits, **own}
    return json.dumps(_shuffled(body, rng), ensure_ascii=False)


def _headers(habit: Habit, fields: Fields, wait: int, rng: random.Random) -> list[tuple[str, str]]:
    headers = [("x-request-id", _id(rng))]
    if habit.mark is Mark.HEADER:
        headers.append((fields.header, habit.mark_text))
    if habit.wait is WaitPlace.HEADER:
        headers.append(("retry-after", str(wait)))
    return headers


def _content_type(envelope: Envelope) -> tuple[str, str]:
    match envelope:
        case Envelope.TEXT | Envelope.EMPTY:
            return ("content-type", "text/plain; charset=utf-8")
        case Envelope.PAGE:
            return ("content-type", "text/html; charset=utf-8")
        case _:
            return _JSON


# ---- answers that are well ---------------------------------------------------------------------------------------


def healthy_answer(ways: Ways, asked: Asked, rng: random.Random, count: Callable[[str], int]) -> Recording:
    """A stream or a plain answer in this vendor's ways. `count` is our tokenizer's."""
    words = re.findall(r"\S+\s*", _spoken(asked.prompt, rng))
    is_cut = asked.max_tokens is not None and asked.max_tokens < len(words)
    words = words[: asked.max_tokens] if is_cut else words
    texts = ["".join(words[at : at + 2]) for at in range(0, len(words), 2)]
    finish = ways.length if is_cut else ways.stop
    prompt = _scaled(ways, count(asked.prompt)) + ways.offset
    done = [_scaled(ways, count(so_far)) for so_far in accumulate(texts)]
    usages = [_usage(ways, prompt, each) for each in done]
    expect: dict[str, object] = {
        "text": "".join(texts),
        "finish_reason": "length" if is_cut else "stop",
        "ending": "completed",
    }
    if not asked.stream:
        whole = _object(asked, rng, "message", {"role": "assistant", "content": "".join(texts)}, finish)
        _place_usage(whole, ways, usages[-1] if usages else None)
        return _recording(asked, 200, [_JSON], _cut(json.dumps(whole, ensure_ascii=False).encode(), rng, 400), expect)
    body = b"".join(_events(ways, asked, rng, texts, finish, usages))
    return _recording(asked, 200, [_SSE], _cut(body, rng, 90), expect)


def _spoken(prompt: str, rng: random.Random) -> str:
    found = _TO_REPEAT.search(prompt)
    return found[1] if found is not None else _BEGINNING + "".join(rng.choices(_SAYINGS, k=rng.randint(2, 4)))


def _events(
    ways: Ways,
    asked: Asked,
    rng: random.Random,
    texts: list[str],
    finish: str,
    usages: list[dict[str, object]],
) -> list[bytes]:
    written = []
    so_far = ""
    for number, text in enumerate(texts):
        so_far += text
        said = so_far if ways.text_mode == "cumulative" else text
        delta = {"role": "assistant", "content": said} if number == 0 else {"content": said}
        told = usages[number] if ways.usage_scope == "cumulative" else None
        written.append(_event(asked, rng, delta, ways=ways, usage=told))
        if ways.heartbeat and number % 4 == 0:
            written.append(ways.heartbeat.replace("{n}", str(number)).encode() + b"\n\n")
    last = {"content": so_far} if ways.text_mode == "final_repeat" else {}
    told = usages[-1] if usages and ways.usage_scope != "absent" else None
    written.append(_event(asked, rng, last, finish, ways, told))
    return [*written, b"data: [DONE]\n\n"] if ways.end_mark else written


def _event(
    asked: Asked,
    rng: random.Random,
    delta: Mapping[str, object],
    finish: str | None = None,
    ways: Ways | None = None,
    usage: Mapping[str, object] | None = None,
) -> bytes:
    value = _object(asked, rng, "delta", delta, finish)
    if ways is not None:
        _place_usage(value, ways, usage)
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def _object(
    asked: Asked, rng: random.Random, increment: str, said: Mapping[str, object], finish: str | None
) -> dict[str, object]:
    kind = "chat.completion.chunk" if increment == "delta" else "chat.completion"
    choice = {"index": 0, increment: dict(said), "finish_reason": finish}
    return {"id": f"d-{_id(rng)}", "object": kind, "created": 1_790_000_000, "model": asked.model, "choices": [choice]}


def _usage(ways: Ways, prompt: int, output: int) -> dict[str, object]:
    return dict(zip(ways.usage_names, (prompt, output, prompt + output), strict=True))


def _scaled(ways: Ways, tokens: int) -> int:
    return round(ways.slope * tokens)


def _place_usage(value: dict[str, object], ways: Ways, usage: Mapping[str, object] | None) -> None:
    """At this vendor's place for it, which may be in the choice."""
    if usage is None or ways.usage_scope == "absent":
        return
    at: object = value
    for step in ways.usage_at[:-1]:
        if isinstance(at, dict):
            at = at.setdefault(step, {})
        elif isinstance(at, list):
            at = at[int(step)]
    assert isinstance(at, dict), "usage stands in an object"
    at[ways.usage_at[-1]] = dict(usage)


# ---- what differs from answer to answer --------------------------------------------------------------------------


def _id(rng: random.Random) -> str:
    return f"{rng.getrandbits(64):016x}"


def _shuffled(body: Mapping[str, object], rng: random.Random) -> dict[str, object]:
    keys = list(body)
    rng.shuffle(keys)
    return {key: body[key] for key in keys}


def _cut(body: bytes, rng: random.Random, longest: int) -> tuple[Read, ...]:
    """Anywhere, also inside a character."""
    reads: list[Read] = []
    at = 0
    while at < len(body):
        size = rng.randint(1, longest)
        reads.append(Read(_PAUSE_S * len(reads), body[at : at + size]))
        at += size
    return tuple(reads)


def _recording(
    asked: Asked, status: int, headers: list[tuple[str, str]], reads: tuple[Read, ...], expect: dict[str, object]
) -> Recording:
    return Recording(
        path=Path(VENDOR, f"{_NAME}.jsonl"),
        vendor=VENDOR,
        name=_NAME,
        obtained="simulated",
        odd="",
        request=asked.request,
        status=status,
        headers=tuple(headers),
        end="close",
        reads=reads,
        expect=expect,
        end_at=reads[-1].t if reads else 0.0,
    )
