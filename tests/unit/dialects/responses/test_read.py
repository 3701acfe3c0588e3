"""The Responses API as vendors speak it: events in, canonical values out."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk, ErrorSeen, Heartbeat, Malformed, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.responses.read import ResponsesReader
from proxy.dialects.seals import ANTHROPIC, RESPONSES
from tests.unit.dialects.responses.told import response

USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 3},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 8},
    "total_tokens": 50,
}


class Reading:
    """One answer, read event by event."""

    def __init__(self) -> None:
        self.reader = ResponsesReader()

    def read(self, kind: str, **fields: object) -> Parsed:
        data = json.dumps({"type": kind, **fields}, ensure_ascii=False).encode()
        return self.reader.read(data, kind)

    def said(self, kind: str, **fields: object) -> list[object]:
        """Texts, calls, finish and details of an event; [] where it says nothing new."""
        parsed = self.read(kind, **fields)
        return said(parsed)


def said(parsed: Parsed) -> list[object]:
    if not isinstance(parsed, Chunk):
        return []
    out: list[object] = []
    for delta in parsed.deltas:
        out += list(delta.texts.items())
        out += [(f.index, f.id, f.name, f.arguments) for f in delta.tools or ()]
        out += [delta.extra["reasoning_details"]] if "reasoning_details" in delta.extra else []
        out += [delta.finish] if delta.finish else []
    return out


def native(parsed: Parsed) -> list[object]:
    return [event["type"] for event in native_events(parsed)]


def native_events(parsed: Parsed) -> list[dict[str, object]]:
    assert isinstance(parsed, Chunk)
    found: list[dict[str, object]] = []
    for delta in parsed.deltas:
        events = delta.extra.get("native", [])
        assert isinstance(events, list)
        found += events
    return found


def at(output: int = 0, content: int = 0) -> dict[str, object]:
    return {"output_index": output, "content_index": content, "item_id": f"msg_{output}"}


def test_identity_comes_with_the_first_event() -> None:
    """The response's id, time and model are the answer's."""
    parsed = Reading().read("response.created", response=response(created_at=1_770_000_000.7))

    assert isinstance(parsed, Chunk)
    assert (parsed.id, parsed.created, parsed.model) == ("resp_v1", 1_770_000_000, "gpt-5-2025-08-07")
    assert native(parsed) == ["response.created"]


@pytest.mark.clause("W3")
def test_a_text_is_said_once() -> None:
    """Deltas are said; what repeats them in done events, in the item and in the response is not."""
    reading = Reading()
    part = {"type": "output_text", "text": "سلام 你好", "annotations": []}
    item = {"type": "message", "id": "msg_0", "role": "assistant", "content": [part]}

    assert reading.said("response.output_text.delta", **at(), delta="سلام ") == [("content", "سلام ")]
    assert reading.said("response.output_text.delta", **at(), delta="你好") == [("content", "你好")]
    assert reading.said("response.output_text.done", **at(), text="سلام 你好") == []
    assert reading.said("response.content_part.done", **at(), part=part) == []
    assert reading.said("response.output_item.done", output_index=0, item=item) == []
    assert reading.said("response.completed", response=response("completed", [item])) == ["completed"]


@pytest.mark.parametrize("silent", [0, 1, 2, 3])
def test_a_text_without_deltas_is_not_lost(silent: int) -> None:
    """Whichever of the events has it first says it, and no other."""
    reading = Reading()
    part = {"type": "output_text", "text": "همه یک‌جا", "annotations": []}
    item = {"type": "message", "id": "msg_0", "role": "assistant", "content": [part]}
    events: list[tuple[str, dict[str, object]]] = [
        ("response.output_text.done", {**at(), "text": "همه یک‌جا"}),
        ("response.content_part.done", {**at(), "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": response("completed", [item])}),
    ]

    told = [reading.said(kind, **fields) for kind, fields in events[silent:]]

    assert told[0][:1] == [("content", "همه یک‌جا")]
    assert [one for rest in told[1:] for one in rest if one != "completed"] == []


def test_refusals_have_events_of_their_own() -> None:
    """A refusal is told as one, also where it stands only in the part."""
    reading = Reading()

    assert reading.said("response.refusal.delta", **at(), delta="نمی‌توانم") == [("refusal", "نمی‌توانم")]
    assert reading.said("response.refusal.done", **at(), refusal="نمی‌توانم") == []
    part = {"type": "refusal", "refusal": "もう一つ"}
    assert reading.said("response.content_part.done", **at(0, 1), part=part) == [("refusal", "もう一つ")]


def test_a_summary_in_parts_has_a_break_between_them() -> None:
    """Parts of a summary are one text elsewhere; the seal comes when the item is done, with the whole text."""
    reading = Reading()
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "encrypted_content": "gAAAA+/=",
        "summary": [{"type": "summary_text", "text": "یک"}, {"type": "summary_text", "text": "दो"}],
    }

    def where(part: int) -> dict[str, object]:
        return {"output_index": 0, "item_id": "rs_1", "summary_index": part}

    told = [
        *reading.said("response.reasoning_summary_part.added", **where(0), part={}),
        *reading.said("response.reasoning_summary_text.delta", **where(0), delta="یک"),
        *reading.said("response.reasoning_summary_text.done", **where(0), text="یک"),
        *reading.said("response.reasoning_summary_part.done", **where(0), part=item["summary"]),
        *reading.said("response.reasoning_summary_part.added", **where(1), part={}),
        *reading.said("response.reasoning_summary_text.delta", **where(1), delta="दो"),
        *reading.said("response.output_item.done", output_index=0, item=item),
        *reading.said("response.completed", response=response("completed", [item])),
    ]

    detail = {"type": "reasoning.encrypted", "data": "gAAAA+/=", "summary": "یک\n\nदो", "id": "rs_1"}
    assert told == [
        ("reasoning_content", "یک"),
        ("reasoning_content", "\n\n"),
        ("reasoning_content", "दो"),
        [{**detail, "format": RESPONSES, "index": 0}],
        "completed",
    ]


def test_reasoning_itself_is_reasoning_too() -> None:
    """Servers of open models send the reasoning and no summary of it."""
    reading = Reading()
    where = {"output_index": 0, "item_id": "rs_1", "content_index": 0}
    added = reading.read("response.content_part.added", **where, part={"type": "reasoning_text", "text": ""})

    assert native(added) == ["response.content_part.added"]
    assert reading.said("response.reasoning_text.delta", **where, delta="考え") == [("reasoning_content", "考え")]
    assert reading.said("response.reasoning_text.done", **where, text="考え") == []


def test_a_seal_of_another_family_is_read_back() -> None:
    """Another proxy of this kind may stand between: its marked seal is the other vendor's again."""
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "فکر"}],
        "encrypted_content": f"{ANTHROPIC}#signature:ErUB==",
    }

    told = Reading().said("response.output_item.done", output_index=0, item=item)

    assert told[1] == [
        {"type": "reasoning.text", "text": "فکر", "signature": "ErUB==", "id": "rs_1", "format": ANTHROPIC, "index": 0}
    ]


def test_calls_in_parallel_keep_their_places() -> None:
    """A call is begun by its item and goes on by its place in the output; its arguments are said once."""
    reading = Reading()
    one = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": ""}
    two = {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "g", "arguments": ""}
    told = [
        *reading.said("response.output_item.added", output_index=1, item=one),
        *reading.said("response.function_call_arguments.delta", output_index=1, item_id="fc_1", delta='{"ش"'),
        *reading.said("response.output_item.added", output_index=2, item=two),
        *reading.said("response.function_call_arguments.delta", output_index=1, item_id="fc_1", delta=":1}"),
        *reading.said("response.function_call_arguments.done", output_index=1, item_id="fc_1", arguments='{"ش":1}'),
        *reading.said("response.function_call_arguments.done", output_index=2, item_id="fc_2", arguments='{"城":2}'),
        *reading.said("response.output_item.done", output_index=2, item={**two, "arguments": '{"城":2}'}),
        *reading.said("response.completed", response=response("completed", [one, two])),
    ]

    assert told == [
        (1, "call_1", "f", ""),
        (1, None, None, '{"ش"'),
        (2, "call_2", "g", ""),
        (1, None, None, ":1}"),
        (2, None, None, '{"城":2}'),
        "completed",
    ]


def test_places_that_are_left_out_follow_from_the_names() -> None:
    """Older relays name the item and not its place."""
    reading = Reading()
    for number in (1, 2):
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "f"}
        reading.said("response.output_item.added", item=call)

    assert reading.said("response.function_call_arguments.delta", item_id="fc_2", delta="{}") == [(1, None, None, "{}")]


def test_whole_calls_are_not_lost() -> None:
    """A call that stands only in its item, or only in the last response, is told."""
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": {"گ": 1}}

    item_done = Reading().said("response.output_item.done", output_index=0, item=call)
    completed = Reading().said("response.completed", response=response("completed", [call]))

    assert item_done == [(0, "call_1", "f", '{"گ":1}')]
    assert completed == [(0, "call_1", "f", '{"گ":1}'), "completed"]


def test_what_only_this_family_knows_goes_along() -> None:
    """Items of tools that the vendor runs, their states, and annotations are native events, each told once."""
    reading = Reading()
    search = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
    cited = {"type": "url_citation", "url": "https://example.org/", "title": "آب", "start_index": 0, "end_index": 1}
    part = {"type": "output_text", "text": "آب", "annotations": [cited]}
    message = {"type": "message", "id": "msg_1", "content": [part]}

    assert native(reading.read("response.output_item.added", output_index=0, item=search)) == [
        "response.output_item.added"
    ]
    assert native(reading.read("response.web_search_call.searching", output_index=0, item_id="ws_1")) == [
        "response.web_search_call.searching"
    ]
    reading.read("response.output_item.done", output_index=0, item=search)
    reading.read("response.output_text.delta", **at(1), delta="آب")
    added = reading.read("response.output_text.annotation.added", **at(1), annotation_index=0, annotation=cited)
    assert native(added) == ["response.output_text.annotation.added"]
    assert native(reading.read("response.output_item.done", output_index=1, item=message)) == [
        "response.output_item.done"
    ]
    assert native(reading.read("response.completed", response=response("completed", [search, message]))) == [
        "response.completed"
    ]


def test_annotations_that_stand_only_in_the_item_come_before_its_end() -> None:
    reading = Reading()
    cited = [{"type": "url_citation", "url": f"https://example.org/{number}"} for number in (1, 2)]
    part = {"type": "output_text", "text": "آب", "annotations": cited}

    done = reading.read("response.output_item.done", output_index=0, item={"type": "message", "content": [part]})

    assert native(done) == [
        "response.output_text.annotation.added",
        "response.output_text.annotation.added",
        "response.output_item.done",
    ]
    assert [event["annotation"] for event in native_events(done)[:2]] == cited


@pytest.mark.clause("W5")
@pytest.mark.parametrize(
    ("status", "details", "word"),
    [
        ("completed", None, "completed"),
        ("incomplete", {"reason": "max_output_tokens"}, "max_output_tokens"),
        ("incomplete", {"reason": "content_filter"}, "content_filter"),
        ("incomplete", None, "incomplete"),
        ("cancelled", None, "cancelled"),
    ],
)
def test_the_last_event_ends_the_answer(status: str, details: object, word: str) -> None:
    """Its finish is the vendor's own word, its usage the vendor's object."""
    last = response(status, incomplete_details=details, usage=USAGE, service_tier="priority")
    parsed = Reading().read(f"response.{status}", response=last)

    assert isinstance(parsed, Chunk)
    assert parsed.deltas[0].finish == word
    assert parsed.usage == USAGE
    assert parsed.extra == {"service_tier": "priority"}


def test_usage_in_our_words() -> None:
    assert ResponsesReader().usage(USAGE) == Usage(30, 20, 12, 3, 8)
    assert ResponsesReader().usage({"input_tokens": "many"}) == Usage()


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "خطا", "param": None, "sequence_number": 3},
        {"type": "error", "error": {"code": "server_error", "message": "خطا"}, "sequence_number": 3},
        {"type": "response.failed", "response": response("failed", error={"code": "server_error", "message": "خطا"})},
        {"type": "response.failed"},
        {"error": {"message": "خطا"}},
        {"object": "response", "status": "failed", "output": []},
    ],
)
def test_errors_in_every_form(event: Mapping[str, object]) -> None:
    """Nested, flat, as a failed response, or without any event around it."""
    kind = event.get("type")
    parsed = ResponsesReader().read(json.dumps(event).encode(), str(kind) if kind else None)

    assert isinstance(parsed, ErrorSeen)
    assert not parsed.is_vague


def test_logprobs_are_those_of_chat_completions() -> None:
    parsed = Reading().read("response.output_text.delta", **at(), delta="آ", logprobs=[{"token": "آ", "logprob": -0.1}])

    assert isinstance(parsed, Chunk)
    assert parsed.deltas[0].logprobs == {"content": [{"token": "آ", "logprob": -0.1}]}


def test_signs_of_life_and_marks() -> None:
    reader = ResponsesReader()

    assert isinstance(reader.read(b'{"type":"keepalive","sequence_number":4}', "keepalive"), Heartbeat)
    assert isinstance(reader.read(b"[DONE]", None), Heartbeat)
    assert isinstance(reader.read(b"overloaded", None), Malformed)
    assert said(reader.read(b'{"type":"response.in_progress","response":{}}', None)) == []


def test_an_event_is_known_by_its_name_too() -> None:
    """Some relays leave the type to the event's name."""
    parsed = ResponsesReader().read(b'{"output_index":0,"delta":"ok"}', "response.output_text.delta")

    assert said(parsed) == [("content", "ok")]


def test_events_without_any_place_belong_to_what_was_spoken_of_last() -> None:
    """Some relays leave `output_index` and `item_id` out: nothing may be said twice then."""
    item = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "سلام"}]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": ""}
    reader = ResponsesReader()
    texts, arguments = "", ""
    for value in (
        {"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1", "summary": []}},
        {"type": "response.output_item.added", "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "delta": "سلام"},
        {"type": "response.output_text.done", "text": "سلام"},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.output_item.added", "item": call},
        {"type": "response.function_call_arguments.delta", "delta": "{}"},
        {"type": "response.function_call_arguments.done", "arguments": "{}"},
        {"type": "response.output_item.done", "item": {**call, "arguments": "{}"}},
    ):
        parsed = reader.read(json.dumps(value).encode(), None)
        for delta in parsed.deltas if isinstance(parsed, Chunk) else ():
            texts += delta.texts.get("content", "")
            arguments += "".join(fragment.arguments for fragment in delta.tools or ())
    assert (texts, arguments) == ("سلام", "{}")


@pytest.mark.clause("W5")
@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_promise_is_an_answer_to_those_alone_who_asked_for_one(status: str) -> None:
    """A response that is still being made has no end, and must not look like an empty answer."""
    body = json.dumps(response(status, usage=None)).encode()
    assert isinstance(ResponsesReader({"model": "m"}).read_body(body), Heartbeat)
    assert isinstance(ResponsesReader({"model": "m", "background": True}).read_body(body), Chunk)


@pytest.mark.clause("L2")
def test_a_response_that_failed_says_what_it_cost() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4}
    failed = response("failed", usage=usage, error={"code": "server_error", "message": "x"})
    for parsed in (
        ResponsesReader().read_body(json.dumps(failed).encode()),
        ResponsesReader().read(json.dumps({"type": "response.failed", "response": failed}).encode(), None),
    ):
        assert isinstance(parsed, ErrorSeen) and parsed.chunk is not None
        assert (parsed.chunk.usage, parsed.chunk.deltas) == (usage, [])


def test_a_plain_body() -> None:
    """The items of a whole response in their order, each from its beginning to its end."""
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "سلام"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"},
    ]
    parsed = ResponsesReader().read_body(json.dumps(response("completed", output, usage=USAGE)).encode())

    assert said(parsed) == [
        [{"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "format": RESPONSES, "index": 0}],
        ("content", "سلام"),
        (3, "call_1", "f", "{}"),
        "completed",
    ]
    item = ["response.output_item.added", "response.output_item.done"]
    assert native(parsed) == [*item, item[1], *item, *item, "response.completed"]


@pytest.mark.parametrize("body", [b"[1, 2]", b'{"data": []}', b'"words"', b"<html>"])
def test_a_body_that_is_no_response(body: bytes) -> None:
    assert not isinstance(ResponsesReader().read_body(body), Chunk)


def test_a_failed_body_is_an_error() -> None:
    body = json.dumps(response("failed", error={"code": "server_error", "message": "x"})).encode()

    assert isinstance(ResponsesReader().read_body(body), ErrorSeen)


_KINDS = [
    *("response.created", "response.output_item.added", "response.output_item.done", "response.content_part.done"),
    *("response.output_text.delta", "response.output_text.done", "response.function_call_arguments.delta"),
    *("response.reasoning_summary_part.added", "response.reasoning_summary_text.delta", "response.completed"),
    *("response.output_text.annotation.added", "response.web_search_call.searching", "response.failed", "error"),
]
_FIELDS = st.sampled_from(
    [
        *("type", "item", "part", "response", "output", "content", "summary", "delta", "text", "arguments", "id"),
        *("call_id", "output_index", "content_index", "annotations", "annotation", "logprobs", "error", "usage"),
    ]
)
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_FIELDS, inner, max_size=4),
    max_leaves=12,
)


@given(events=st.lists(st.tuples(st.sampled_from(_KINDS), st.dictionaries(_FIELDS, _ANY, max_size=5)), max_size=6))
def test_any_json_is_read(events: list[tuple[str, dict[str, object]]]) -> None:
    """Whatever types a vendor sends, reading never raises."""
    reader = ResponsesReader()
    for kind, fields in events:
        reader.read(json.dumps({"type": kind, **fields}).encode(), kind)
        reader.read_body(json.dumps(fields).encode())
