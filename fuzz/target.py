"""What must hold for every plan, whoever made it up: one answer through the whole pipeline, in several ways.

In: bytes (`check`) or a plan (`check_plan`). Out: nothing, or a `Finding` that tells the plan and what is wrong. The
pipeline may not raise, whatever comes (style §7); the cuts and the fast path change nothing (W2), the clock changes no
text; the client's bytes have their shape in its own grammar (W1, W3, W4, W6, D1, D2), its end comes if and only if the
answer is complete (W5), and the row's facts are what was really written (C5).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fuzz.plan import Plan, plan_of
from proxy.canon.ending import TIMEOUTS, Ending, Stop
from proxy.canon.usage import Count
from proxy.canon.verdict import ErrorClass
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.pipeline import EVENT_STREAM, Facts, Head, Pipeline
from tests.support.cuts import cut, one_by_one
from tests.support.decoders import DECODERS, events_of
from tests.support.pipelines import begin
from tests.support.shape import DONE, FINISHES, complaints_about

_COUNT = Count(input=7, output=11)
#: Beyond this an answer is not also read byte by byte: it takes seconds, and shorter ones show the same.
_SMALL = 1_500
_CLASSES = frozenset(ErrorClass)
_SAME_FACTS = (
    "finish_reason",
    "finish_inferred",
    "vendor_usage",
    "served_model",
    "service_tier",
    "vendor_response_id",
    "error_class",
    "rule_id",
    "events_in",
    "events_out",
    "replaced",
)


class Finding(AssertionError):
    """The contract is broken. Its text is enough to write the regression test."""

    def __init__(self, plan: Plan, what: str) -> None:
        super().__init__(f"{what}\n{plan!r}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a client and the ledger see of one way to read the answer."""

    client: bytes
    head: Head
    ending: Ending
    code: str | None
    facts: Facts
    over: bool

    def compared(self) -> dict[str, object]:
        """What no cut may change. How much was read when the answer was over is not part of it."""
        facts = self.facts
        same = {name: getattr(facts, name) for name in _SAME_FACTS}
        return {
            "client": self.client,
            "head": self.head,
            "ending": self.ending,
            "code": self.code,
            "received": "".join(facts.received),
            "delivered": "".join(facts.delivered),
            **same,
            "heartbeats": None if self.over else facts.heartbeats,
        }


def check(data: bytes) -> None:
    """One fuzzer's input."""
    check_plan(plan_of(data))


def check_plan(plan: Plan) -> None:
    """All ways to read this answer. Raises `Finding`, or whatever the pipeline raised."""
    whole = _read(plan, [plan.body])
    _check_outcome(plan, whole)
    ways = {"cut": (cut(plan.body, plan.cuts), True), "event by event": ([plan.body], False)}
    if len(plan.body) <= _SMALL:
        ways["one byte at a time"] = (one_by_one(plan.body), True)
    for how, (reads, fast) in ways.items():
        _check_same(plan, whole, _read(plan, reads, fast=fast), how)
    _check_clock(plan, whole)
    _check_leaving(plan)


# ---- reading -------------------------------------------------------------------------------------------------------


def _begin(plan: Plan, *, fast: bool = True) -> Pipeline:
    return begin(plan.asked, vendor=plan.vendor, status=plan.status, headers=plan.headers, fast=fast, **plan.setup)


def _read(plan: Plan, reads: Iterable[bytes], *, fast: bool = True, steps: tuple[float, ...] = ()) -> Outcome:
    """As the pump does it: read until it is over, let due tails go, then the closing in its order."""
    pipeline = _begin(plan, fast=fast)
    out: list[bytes] = []
    now = 0.0
    for number, data in enumerate(reads):
        if steps:
            now += steps[number % len(steps)]
            if pipeline.deadline is not None and pipeline.deadline <= now:
                out.append(pipeline.tick(now))
        out.append(pipeline.feed(data, now))
        if pipeline.over:
            return _close(pipeline, Stop.AFTER_FINISH, now, out)
    return _close(pipeline, _stop_of(plan, pipeline), now, out)


def _stop_of(plan: Plan, pipeline: Pipeline) -> Stop:
    """Silence after the finish is no failure, and the pump says so."""
    return Stop.AFTER_FINISH if plan.stop in TIMEOUTS and pipeline.finished else plan.stop


def _close(pipeline: Pipeline, stop: Stop, now: float, out: list[bytes]) -> Outcome:
    closing = pipeline.finish(stop, now)
    out.append(closing.tail)
    out.append(pipeline.seal(_COUNT))
    code = closing.verdict.code if closing.verdict is not None else None
    return Outcome(b"".join(out), pipeline.client_head(), closing.ending, code, pipeline.facts, pipeline.over)


# ---- what must hold ------------------------------------------------------------------------------------------------


def _check_same(plan: Plan, whole: Outcome, other: Outcome, how: str) -> None:
    others = other.compared()
    for name, value in whole.compared().items():
        if value != others[name]:
            raise Finding(plan, f"{how} {name} is different\nwhole: {value!r}\n{how}: {others[name]!r}")


def _check_clock(plan: Plan, whole: Outcome) -> None:
    """Under any timing the joined texts are the same, and so is how it ended."""
    timed = _read(plan, cut(plan.body, plan.cuts), steps=plan.moments)
    _check_outcome(plan, timed)
    if (timed.ending, timed.code) != (whole.ending, whole.code):
        raise Finding(
            plan, f"with the clock moving it ended {timed.ending} {timed.code}, else {whole.ending} {whole.code}"
        )
    # One who leaves does not get what is held then, and how much that is depends on the clock.
    if plan.stop is not Stop.GONE and (still := _texts(whole)) != (moving := _texts(timed)):
        raise Finding(plan, f"the clock changed the text\nstill: {still!r}\nmoving: {moving!r}")


def _check_leaving(plan: Plan) -> None:
    """Who leaves is told nothing more; the rest may still be read, and the row is closed."""
    if plan.leave_at is None:
        return
    reads = cut(plan.body, plan.cuts)
    pipeline = _begin(plan)
    delivered: int | None = None
    for number, data in enumerate(reads):
        if number == plan.leave_at:
            pipeline.leave()
            delivered = pipeline.facts.events_out
        pipeline.feed(data, 0.0)
        if pipeline.over:
            break
    closing = pipeline.finish(Stop.AFTER_FINISH if pipeline.over else _stop_of(plan, pipeline), 0.0)
    if closing.ending is Ending.CLIENT_GONE and delivered is not None:
        if pipeline.facts.events_out != delivered:
            raise Finding(plan, f"{pipeline.facts.events_out} events told to one who left after {delivered}")
        if closing.tail:
            raise Finding(plan, f"told to one who left: {closing.tail!r}")
    gone = _begin(plan)
    gone.feed(plan.body[: len(plan.body) // 2], 0.0)
    if _close(gone, Stop.GONE, 0.0, []).ending is Ending.INTERRUPTED:
        raise Finding(plan, "one who left is told as interrupted")


def _check_outcome(plan: Plan, outcome: Outcome) -> None:
    if plan.stop is not Stop.GONE and (outcome.ending is Ending.COMPLETED) != (outcome.code is None):
        raise Finding(plan, f"ending {outcome.ending} with the code {outcome.code}")
    if outcome.head.content_type == EVENT_STREAM and plan.asked.client != "chat":
        _check_other_stream(plan, outcome)
    elif outcome.head.content_type == EVENT_STREAM:
        _check_stream(plan, outcome)
    elif outcome.client:
        _check_body(plan, outcome)
    elif outcome.ending is not Ending.CLIENT_GONE:
        raise Finding(plan, "the client got nothing")


def _check_stream(plan: Plan, outcome: Outcome) -> None:
    complete = outcome.ending is Ending.COMPLETED
    if not complete and not outcome.client:
        return  # who left before anything was told
    if found := complaints_about(outcome.client, complete=complete, usage=plan.asked.usage):
        raise Finding(plan, "\n".join([*found, repr(outcome.client)]))
    told = sum(event.startswith(b"data: {") for event in outcome.client.split(b"\n\n"))
    if told != outcome.facts.events_out:
        raise Finding(plan, f"{told} events were told, the row says {outcome.facts.events_out}: {outcome.client!r}")


def _check_other_stream(plan: Plan, outcome: Outcome) -> None:
    """A stream in another grammar than chat completions: its form, its end, and what can be decoded of it."""
    complete = outcome.ending is Ending.COMPLETED
    try:
        events = events_of(outcome.client)
    except (AssertionError, UnicodeDecodeError) as error:
        raise Finding(plan, f"no events: {error}: {outcome.client!r}") from error
    told = [json.loads(data) for _, data in events if data != DONE]
    if len(told) != outcome.facts.events_out:
        raise Finding(plan, f"{len(told)} events, the row says {outcome.facts.events_out}: {outcome.client!r}")
    last = _END[plan.asked.client]
    ended = bool(events) and (events[-1][0] or events[-1][1]) in last
    if ended is not complete:
        raise Finding(plan, f"{outcome.ending}, and the end is {'there' if ended else 'not there'}: {outcome.client!r}")
    if not _is_native(plan):
        _decode(plan, outcome)


def _is_native(plan: Plan) -> bool:
    """What a vendor of the client's family says of its own passes as it is, odd things too."""
    return VENDOR_DIALECTS[plan.setup.get("dialect") or "openai"].native == plan.asked.client


def _decode(plan: Plan, outcome: Outcome) -> None:
    """As a client does, which may choke on nothing but arguments that the vendor has not ended."""
    try:
        DECODERS[plan.asked.client](outcome.client, outcome.head.content_type == EVENT_STREAM)
    except json.JSONDecodeError:
        return
    except (AssertionError, LookupError, TypeError) as error:
        raise Finding(plan, f"{error!r}: {outcome.client!r}") from error


#: The event, or the mark, that ends a stream that is complete.
_END = {
    "messages": ("message_stop",),
    "responses": ("response.completed", "response.incomplete"),
    "completions": (DONE,),
}


def _check_body(plan: Plan, outcome: Outcome) -> None:
    body = json.loads(outcome.client)
    if plan.asked.client != "chat":
        if (outcome.head.status == 200) is not (outcome.ending is Ending.COMPLETED):
            raise Finding(plan, f"{outcome.ending} as {outcome.head.status}: {outcome.client!r}")
        if outcome.head.status == 200 and not _is_native(plan):
            _decode(plan, outcome)
    elif outcome.head.status == 200:
        finishes = [choice["finish_reason"] for choice in body["choices"]]
        if outcome.ending is not Ending.COMPLETED or not finishes or not set(finishes) <= set(FINISHES):
            raise Finding(plan, f"{outcome.ending} as 200: {outcome.client!r}")
        if body["object"] != "chat.completion" or not all("message" in choice for choice in body["choices"]):
            raise Finding(plan, f"no chat.completion: {outcome.client!r}")
    elif outcome.ending is Ending.COMPLETED or body["error"]["type"] not in _CLASSES:
        raise Finding(plan, f"{outcome.ending}, {outcome.head}: {outcome.client!r}")


def _texts(outcome: Outcome) -> dict[tuple[object, ...], str]:
    """Every text that grows by deltas, joined."""
    texts: dict[tuple[object, ...], str] = {}
    if outcome.head.content_type != EVENT_STREAM:
        return texts
    calls: dict[int, str] = {}
    for _, data in events_of(outcome.client):
        payload = {} if data == DONE else json.loads(data)
        for choice in payload.get("choices") or ():
            _add_texts(texts, choice["index"], choice.get("delta") or {"content": choice.get("text")})
        if "choices" not in payload:
            _add_pieces(texts, calls, payload)
    return texts


def _add_pieces(texts: dict[tuple[object, ...], str], calls: dict[int, str], payload: dict[str, Any]) -> None:
    """The same of the other grammars. How many blocks a text is spread over depends on the clock: each is one text,
    and each call's arguments are; `calls` are their ids by the place of their blocks."""
    begun = payload.get("content_block") or payload.get("item")
    if isinstance(begun, dict) and begun.get("id"):
        calls[payload.get("index", payload.get("output_index", 0))] = begun.get("call_id") or begun["id"]
    delta = payload.get("delta")
    if isinstance(delta, str):  # Responses
        call = calls.get(payload.get("output_index", 0)) if "arguments" in str(payload.get("type")) else None
        _add(texts, (str(payload.get("type")), call), delta)
    elif isinstance(delta, dict) and payload.get("type") == "content_block_delta":  # Messages
        for name in ("text", "thinking", "partial_json"):
            _add(texts, (name, calls.get(payload["index"]) if name == "partial_json" else None), delta.get(name))


def _add_texts(texts: dict[tuple[object, ...], str], choice: object, delta: dict[str, Any]) -> None:
    for name in ("content", "reasoning_content", "reasoning", "refusal"):
        _add(texts, (choice, name), delta.get(name))
    for call in delta.get("tool_calls") or ():
        _add(texts, (choice, "tool", call["index"]), (call.get("function") or {}).get("arguments"))


def _add(texts: dict[tuple[object, ...], str], key: tuple[object, ...], text: object) -> None:
    if isinstance(text, str):
        texts[key] = texts.get(key, "") + text
