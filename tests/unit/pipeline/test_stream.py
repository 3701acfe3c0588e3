"""The whole pipeline, as transcripts: what the vendor sends, what the client gets."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest

from proxy.canon.ending import Ending, Stop
from proxy.pipeline import Asked
from tests.support.joined import joined, messages
from tests.support.pipelines import DONE, OUR_COUNT, PLAIN, STREAM, Transcript, begin, run
from tests.support.shape import complaints_about
from tests.support.strategies import END, HEAD, ROLE, STOP, USAGE, call, chunk, event, say

JSON = Asked(stream=True, usage=True, json=True)
JSON_PLAIN = Asked(stream=False, usage=True, json=True)


def told(reads: Sequence[bytes], asked: Asked = STREAM, **changes: object) -> Transcript:
    """A transcript whose stream has the shape that clients rely on."""
    transcript = run(reads, asked, **changes)  # type: ignore[arg-type]  # settings of the pipeline
    if asked.stream and transcript.head.status == 200:
        complete = transcript.closing.ending is Ending.COMPLETED
        assert complaints_about(transcript.client, complete=complete, usage=asked.usage) == []
    return transcript


def deltas(transcript: Transcript) -> list[tuple[object, object, object]]:
    """Choice, delta and finish of each event."""
    return [
        (choice["index"], choice["delta"], choice["finish_reason"])
        for payload in transcript.payloads
        for choice in payload.get("choices") or ()  # type: ignore[attr-defined]  # JSON
    ]


def said(transcript: Transcript, choice: int = 0) -> dict[str, object]:
    stream = transcript.head.content_type.startswith("text/event-stream")
    return (joined(transcript.payloads) if stream else messages(transcript.body))[choice]


# ---- the clean way -------------------------------------------------------------------------------------------------


@pytest.mark.clause("W1", "W4", "W5")
def test_clean_bytes_pass_as_they_came() -> None:
    """Role, texts and finish byte for byte; usage in our chunk, because the client asked; then the end mark."""
    reads = [ROLE, say("Hello"), say("，世界"), STOP, USAGE, END]
    transcript = told(reads)

    assert transcript.client.startswith(b"".join(reads[:4]))
    assert transcript.payloads[4:] == [
        {**HEAD, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}
    ]
    assert transcript.is_done
    assert (transcript.head.status, transcript.head.content_type) == (200, "text/event-stream; charset=utf-8")


@pytest.mark.clause("W4")
def test_usage_is_shown_only_if_asked_and_estimated_if_the_vendor_gave_none() -> None:
    """Our count is marked as such."""
    silent = told([ROLE, say("a"), STOP, USAGE, END], Asked(stream=True))
    guessed = told([ROLE, say("a"), STOP, END])

    assert b"usage" not in silent.client
    assert silent.facts.vendor_usage == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert guessed.payloads[-1]["usage"] == {
        "prompt_tokens": 7,
        "completion_tokens": 11,
        "total_tokens": 18,
        "estimated": True,
    }


@pytest.mark.clause("W4")
def test_identity_comes_before_the_commit_point_and_is_constant() -> None:
    """From the first chunk that has it; what a vendor changes later is written over; what it never says is ours."""
    late = told(
        [event({"choices": [{"delta": {"role": "assistant"}}]}), say("a"), say("b", id="other", model="x"), STOP]
    )
    none = told([event({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]})])

    assert {(p["id"], p["created"], p["model"]) for p in late.payloads} == {
        (HEAD["id"], HEAD["created"], HEAD["model"])
    }
    assert {(p["id"], p["created"], p["model"]) for p in none.payloads} == {
        ("chatcmpl-5eed", 1_772_000_000, "model-asked-for")
    }


@pytest.mark.clause("W6")
def test_nothing_goes_out_before_progress() -> None:
    """Not for a role, a heartbeat or an unknown field; then all at once."""
    pipeline = begin()
    assert [pipeline.feed(data, 0.0) for data in (b": hb\n\n", ROLE, chunk({"x": "y"}), b"data: {}\n\n")] == [b""] * 4
    assert not pipeline.committed
    out = pipeline.feed(say("س"), 0.0)
    assert pipeline.committed
    assert out.startswith(ROLE)
    assert b'"x":"y"' in out


# ---- roles, finishes, choices --------------------------------------------------------------------------------------


@pytest.mark.clause("W4")
def test_the_role_is_told_once_and_first() -> None:
    """Said with the text, said on each delta, or never."""
    for first in (
        [chunk({"role": "assistant", "content": "a"}), chunk({"role": "assistant", "content": "b"})],
        [say("a"), say("b")],
        [ROLE, ROLE, say("a"), ROLE, say("b")],
    ):
        transcript = told([*first, STOP])
        assert [delta.get("role") for _, delta, _ in deltas(transcript)].count("assistant") == 1  # type: ignore[attr-defined]  # JSON
        assert said(transcript) == {"text": "ab", "finish_reason": "stop"}


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("reads", "finish"),
    [
        ([say("a"), STOP, STOP], "stop"),
        ([chunk({"content": "a"}, "stop"), chunk({"content": "b"}, "stop")], "stop"),
        ([chunk({"content": "a"}, "stop"), say("b"), chunk({}, "length")], "length"),
        ([say("a"), STOP, say("b")], "stop"),
        ([say("a"), chunk({}, "eos_token")], "stop"),
        ([say("a"), chunk({}, "LENGTH")], "length"),
        ([chunk({"function_call": {"name": "f", "arguments": "{}"}}), chunk({}, "function_call")], "tool_calls"),
        ([say("a"), chunk({}, "tool_calls")], "stop"),
        ([say("a"), chunk({}, ""), chunk({}, "null"), STOP], "stop"),
    ],
)
def test_one_finish_per_choice_at_the_end(reads: list[bytes], finish: str) -> None:
    """However often and whenever the vendor says it; the last word counts, text behind it is told before it."""
    transcript = told(reads)
    assert said(transcript)["finish_reason"] == finish
    assert transcript.is_done


@pytest.mark.clause("W4", "W5")
def test_every_choice_seen_needs_its_finish() -> None:
    """Two choices interleaved; one of them without an end is a cut."""
    both = [say("春"), say("¿", index=1), say("は"), say("Qué?", index=1), STOP]
    whole, cut = told([*both, chunk({}, "length", 1)]), told(both)

    assert joined(whole.payloads) == {
        0: {"text": "春は", "finish_reason": "stop"},
        1: {"text": "¿Qué?", "finish_reason": "length"},
    }
    assert cut.closing.ending is Ending.STREAM_CUT


@pytest.mark.clause("W4", "W5")
def test_an_empty_delta_opens_no_choice() -> None:
    """A heartbeat for choice 1 must not make the answer wait for choice 1's finish."""
    transcript = told([say("a"), chunk({}, None, 1), STOP])
    assert transcript.closing.ending is Ending.COMPLETED
    assert set(joined(transcript.payloads)) == {0}


@pytest.mark.clause("W4")
def test_a_choice_that_only_finishes_is_told_with_its_role() -> None:
    """Also when its finish had to be inferred."""
    only = told([chunk({}, "stop")])
    inferred = told([say("a"), chunk({"role": "assistant"}, None, 1), END])

    assert deltas(only) == [(0, {"role": "assistant", "content": ""}, None), (0, {}, "stop")]
    assert joined(inferred.payloads)[1]["finish_reason"] == "stop"
    assert inferred.facts.finish_inferred


# ---- ends ----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("W5")
@pytest.mark.parametrize(
    ("reads", "ending"),
    [
        ([say("a"), STOP], Ending.COMPLETED),
        ([say("a"), END], Ending.COMPLETED),
        ([say("a"), b"data: [DONE]"], Ending.COMPLETED),
        ([say("a"), STOP[:-2]], Ending.COMPLETED),
        ([say("a"), STOP[:-1]], Ending.COMPLETED),
        ([say("a"), STOP[:-4]], Ending.STREAM_CUT),
        ([say("a"), b"data: [DON"], Ending.STREAM_CUT),
        ([say("a")], Ending.STREAM_CUT),
        ([END], Ending.STREAM_CUT),
        ([ROLE, END], Ending.STREAM_CUT),
        ([USAGE, END], Ending.STREAM_CUT),
        ([], Ending.STREAM_CUT),
        ([b"\n\n: hb\n\n"], Ending.STREAM_CUT),
        ([call(index=0, id="a", function={"name": "f", "arguments": '{"a"'}), END], Ending.STREAM_CUT),
        ([call(index=0, id="a", function={"name": "f", "arguments": "{}"}), END], Ending.COMPLETED),
        ([call(index=0, id="a", function={"name": "f", "arguments": '{"a"'}), STOP], Ending.COMPLETED),
    ],
)
def test_complete_means_a_finish_or_a_trusted_end_mark(reads: list[bytes], ending: Ending) -> None:
    """An event without its blank line counts if its JSON is whole; half a tool call speaks against the mark."""
    for asked in (STREAM, PLAIN):
        transcript = told(reads, asked)
        assert transcript.closing.ending is ending
        assert transcript.is_done is (asked.stream and ending is Ending.COMPLETED)


@pytest.mark.clause("W5")
def test_an_end_mark_that_is_not_trusted_ends_nothing() -> None:
    """One-API invents it after a cut."""
    transcript = told([say("上游"), END], vendor="one_api")
    assert (transcript.closing.ending, transcript.facts.error_code) == (Ending.STREAM_CUT, "stream_cut")


@pytest.mark.clause("W5")
def test_what_stands_behind_the_end_mark_is_not_looked_at() -> None:
    """In the same read or in another."""
    for last in (
        END + b"oops\n\n",
        END + b'error: {"error":{"message":"m"}}\n\n',
        END + event({"error": "m"}),
        END + say("b"),
    ):
        assert told([say("a"), STOP, last]).client == told([say("a"), STOP, END]).client


@pytest.mark.clause("L2", "W4")
def test_usage_behind_the_end_mark_is_the_vendors_usage() -> None:
    """In the same read or in another; what else stands there is not looked at."""
    usage = {"prompt_tokens": 4, "completion_tokens": 1, "total_tokens": 5}
    late = chunk(usage=usage)
    for reads in ([END + late], [END, late], [END, say("b"), late], [END + b"oops\n\n" + late]):
        transcript = told([say("سلام"), STOP, *reads], STREAM)
        assert (transcript.facts.vendor_usage, said(transcript)["text"]) == (usage, "سلام")


@pytest.mark.clause("W5", "W6")
@pytest.mark.parametrize(
    "stop", [Stop.CUT, Stop.IDLE, Stop.STALL, Stop.TOTAL, Stop.GONE, Stop.SHUTDOWN, Stop.AFTER_FINISH]
)
def test_after_the_finish_no_stop_is_an_error(stop: Stop) -> None:
    """But a vendor's own error is."""
    assert told([say("a"), STOP], stop=stop).is_done
    failed = told([say("a"), STOP, event({"error": {"message": "m", "code": 500}})], stop=stop)
    assert (failed.closing.ending, failed.is_done) == (Ending.VENDOR_ERROR, False)


@pytest.mark.clause("W6", "E")
@pytest.mark.parametrize(
    ("stop", "ending", "code", "status"),
    [
        (Stop.CUT, Ending.STREAM_CUT, "stream_cut", 504),
        (Stop.EOF, Ending.STREAM_CUT, "stream_cut", 504),
        (Stop.STALL, Ending.TIMEOUT, "stall_timeout", 504),
        (Stop.SHUTDOWN, Ending.INTERRUPTED, "shutting_down", 503),
        (Stop.INTERNAL, Ending.INTERRUPTED, "internal_error", 503),
    ],
)
def test_before_the_commit_point_a_status_after_it_an_event(stop: Stop, ending: Ending, code: str, status: int) -> None:
    """The same body either way, with the held tail in front of the event."""
    before, after = told([ROLE], stop=stop), told([ROLE, say("می")], stop=stop)

    assert (before.closing.ending, before.head.status, before.head.content_type) == (ending, status, "application/json")
    assert before.head.headers["x-should-retry"] == "true"
    assert before.error is not None
    assert (before.error["code"], before.facts.delivered) == (code, [])
    assert (after.closing.ending, after.head.status, said(after)["text"]) == (ending, 200, "می")
    assert after.error == before.error


@pytest.mark.clause("W1", "W6")
def test_a_head_that_went_early_makes_errors_events() -> None:
    """A keep-alive before the commit point sends 200."""
    pipeline = begin()
    pipeline.open_early()
    closing = pipeline.finish(Stop.FIRST_BYTE, 9.0)

    assert pipeline.client_head().status == 200
    assert closing.tail.startswith(b'data: {"error":')
    assert pipeline.seal(OUR_COUNT) == b""


@pytest.mark.clause("W5", "L1")
def test_a_row_that_is_not_durable_takes_the_end_mark_back() -> None:
    """An event on a stream that began, 503 for an answer that did not."""
    for asked, reads, begins in ((STREAM, [say("a"), STOP], b"data: "), (PLAIN, [say("a"), STOP], b"{")):
        pipeline = begin(asked)
        for read in reads:
            pipeline.feed(read, 0.0)
        pipeline.finish(Stop.EOF, 0.0)
        head, last = pipeline.unrecorded()
        assert last.startswith(begins)
        assert b'"code":"ledger_unavailable"' in last
        assert head.status == (200 if asked.stream else 503)


@pytest.mark.clause("W8")
def test_what_the_client_left_is_delivered_and_what_is_drained_is_received() -> None:
    """`drain` reads on for the usage; the row says what the client got until then."""
    pipeline = begin()
    pipeline.feed(ROLE + say("a"), 0.0)
    pipeline.leave()
    pipeline.feed(say("b") + STOP + USAGE + END, 0.0)
    closing = pipeline.finish(Stop.AFTER_FINISH, 0.0)

    assert (closing.ending, closing.tail, closing.verdict) == (Ending.CLIENT_GONE, b"", None)
    assert (pipeline.facts.delivered, pipeline.facts.received) == (["a"], ["a", "b"])
    assert pipeline.facts.events_out == 2
    assert pipeline.facts.vendor_usage is not None


@pytest.mark.clause("W8", "C4")
def test_what_waited_for_the_head_was_not_delivered() -> None:
    """A client that leaves while a fence is in doubt got nothing."""
    for drain in (True, False):
        pipeline = begin(JSON)
        pipeline.feed(say("\n") + chunk({"reasoning": "想"}), 0.0)
        if drain:
            pipeline.leave()
        assert pipeline.finish(Stop.EOF if drain else Stop.GONE, 0.0).ending is Ending.CLIENT_GONE
        assert pipeline.facts.delivered == []


# ---- errors of the vendor ------------------------------------------------------------------------------------------


@pytest.mark.clause("W5", "W6", "E")
def test_moderation_before_text_is_a_status_and_after_it_a_finish() -> None:
    """400 and nothing else; or `content_filter`, the end mark, and the class in the row."""
    before, after = told([ROLE, chunk({}, "content_filter")]), told([say("前半"), chunk({}, "content_filter"), END])

    assert (before.head.status, before.facts.error_class) == (400, "content_blocked")
    assert said(after) == {"text": "前半", "finish_reason": "content_filter"}
    assert (after.is_done, after.facts.ending, after.facts.error_class) == (True, "completed", "content_blocked")


@pytest.mark.clause("W6")
def test_what_an_error_carried_besides_is_told_before_it() -> None:
    """The text of the same event; its finish belongs to the error."""
    transcript = told(
        [
            ROLE,
            event(
                {
                    **HEAD,
                    "choices": [{"delta": {"content": "تا اینجا"}, "finish_reason": "error"}],
                    "error": {"code": 502},
                }
            ),
        ]
    )
    assert said(transcript) == {"text": "تا اینجا", "finish_reason": None}
    assert transcript.facts.ending == "vendor_error"


@pytest.mark.clause("W6")
def test_an_event_that_is_no_json_is_a_loss() -> None:
    """Nobody may call an answer complete of which a part is gone; words are kept for the rules instead."""
    lost = told([say("a"), b'data: {"choices":[{"delta":{"content":"b}}]}\n\n', say("c"), STOP])
    words = told([say("a"), b"data: still thinking\n\n", STOP])

    assert (lost.facts.ending, lost.facts.error_code) == ("vendor_error", "malformed_event")
    assert words.is_done


@pytest.mark.clause("W6")
def test_several_payloads_in_one_event_are_read_one_by_one() -> None:
    """A server that forgot its blank lines."""
    transcript = told([ROLE[:-1] + say("a")[:-1] + say("b")[:-1] + STOP[:-1] + END])
    assert said(transcript) == {"text": "ab", "finish_reason": "stop"}


# ---- holding -------------------------------------------------------------------------------------------------------


@pytest.mark.clause("W3")
def test_a_held_tail_goes_before_anything_else_of_its_choice() -> None:
    """Reasoning before content, content before a tool call, text before the finish; other choices do not wait."""
    transcript = told(
        [
            chunk({"reasoning_content": "فکر"}),
            say("می"),
            say("x", index=1),
            call(index=0, id="a", function={"name": "f", "arguments": "{}"}),
            STOP,
            chunk({}, "stop", 1),
        ]
    )
    parts = [(index, *(name for name in delta if name != "role")) for index, delta, _ in deltas(transcript)]  # type: ignore[attr-defined]  # JSON

    assert parts == [
        (0, "content"),
        (0, "reasoning_content"),
        (0, "reasoning_content"),
        (0, "content"),
        (1, "content"),
        (1, "content"),
        (0, "content"),
        (0, "tool_calls"),
        (0, "tool_calls"),  # `{}` may have been a placeholder
        (0,),
        (1,),
    ]
    assert said(transcript)["reasoning_content"] == "فکر"
    assert said(transcript)["text"] == "می"


@pytest.mark.clause("W3")
def test_halves_are_joined_in_text_reasoning_and_arguments() -> None:
    """Across deltas, in each field by itself; a half that stays alone is U+FFFD and counted."""
    transcript = told(
        [
            say("\ud83d"),
            say("\ude00"),
            chunk({"reasoning": "\ud83e"}),
            chunk({"reasoning": "\uddf5"}),
            call(index=0, id="a", function={"name": "f", "arguments": '{"e":"\ud83d'}),
            call(index=0, function={"arguments": '\ude00"}'}),
            say("\ud83d"),
            STOP,
        ]
    )
    assert said(transcript) == {
        "text": "😀\ufffd",
        "reasoning": "🧵",
        "tool_calls": [{"id": "a", "name": "f", "arguments": '{"e":"😀"}'}],
        "finish_reason": "tool_calls",
    }
    assert transcript.facts.replaced == 1


@pytest.mark.clause("W3", "W4")
def test_log_probabilities_stay_with_their_text() -> None:
    """Those of a text that is held go with it, also where it leaves at the end or the fence was dropped."""
    probs = [{"content": [{"token": token}]} for token in ("a", "b", "c")]
    held = told([_with_probs("👩", probs[0]), _with_probs("\u200d", probs[1]), _with_probs("👧", probs[2]), STOP])
    fenced = told(
        [_with_probs("```json\n{", probs[0]), _with_probs("}\n", probs[1]), _with_probs("```", probs[2]), STOP], JSON
    )

    for transcript in (held, fenced):
        tokens = [
            one["token"]
            for payload in transcript.payloads
            for choice in payload["choices"]  # type: ignore[attr-defined]  # JSON
            for one in (choice.get("logprobs") or {"content": []})["content"]
        ]
        assert tokens == ["a", "b", "c"][: 3 if transcript is held else 2]
    plain = told([_with_probs("a", probs[0]), _with_probs("b", probs[1]), STOP], PLAIN)
    assert plain.body["choices"][0]["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}  # type: ignore[index]  # JSON


def _with_probs(text: str, logprobs: object) -> bytes:
    return event(
        {**HEAD, "choices": [{"index": 0, "delta": {"content": text}, "logprobs": logprobs, "finish_reason": None}]}
    )


# ---- tool calls ----------------------------------------------------------------------------------------------------


@pytest.mark.clause("W4")
def test_calls_are_told_once_and_end_with_arguments_that_parse() -> None:
    """Interleaved, with empty fragments; a call without arguments gets `{}`, in a stream and in a body."""
    reads = [
        call(index=0, id="a", type="function", function={"name": "天气", "arguments": ""}),
        call(index=1, id="b", type="function", function={"name": "时间", "arguments": ""}),
        call(index=0, id="", function={"name": "", "arguments": '{"città":'}),
        call(index=0, function={"arguments": '"Forlì"}'}),
        STOP,
    ]
    for asked in (STREAM, PLAIN):
        transcript = told(reads, asked)
        assert said(transcript) == {
            "text": "",
            "tool_calls": [
                {"id": "a", "name": "天气", "arguments": '{"città":"Forlì"}'},
                {"id": "b", "name": "时间", "arguments": "{}"},
            ],
            "finish_reason": "tool_calls",
        }


@pytest.mark.clause("W4")
def test_a_legacy_function_call_passes_in_pieces_and_is_joined_in_a_body() -> None:
    """An unknown field of the delta for us, but its arguments are one text."""
    reads = [
        chunk({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"a":'}}),
        chunk({"function_call": {"arguments": "1}"}}),
        chunk({}, "function_call"),
    ]
    streamed, plain = told(reads), told(reads, PLAIN)

    pieces = [delta["function_call"]["arguments"] for _, delta, _ in deltas(streamed) if "function_call" in delta]  # type: ignore[index, operator]  # JSON
    assert pieces == ["", '{"a":', "1}"]
    assert plain.body["choices"][0]["message"]["function_call"] == {"name": "f", "arguments": '{"a":1}'}  # type: ignore[index]  # JSON


@pytest.mark.clause("W4")
def test_unknown_fields_pass() -> None:
    """Of the payload, the choice and the delta; in one body lists go on, and the last of the rest stands."""
    reads = [
        ROLE,
        event(
            {
                **HEAD,
                "citations": [1],
                "choices": [{"index": 0, "delta": {"content": "a", "annotations": [1]}, "seed": 4}],
            }
        ),
        event({**HEAD, "choices": [{"index": 0, "delta": {"annotations": [2], "mood": "glad"}}]}),
        STOP,
    ]
    streamed, plain = told(reads), told(reads, PLAIN)

    assert streamed.payloads[1]["citations"] == [1]
    assert streamed.payloads[1]["choices"][0]["seed"] == 4  # type: ignore[index]  # JSON
    assert streamed.payloads[2]["choices"][0]["delta"] == {"annotations": [2], "mood": "glad"}  # type: ignore[index]  # JSON
    message = plain.body["choices"][0]["message"]  # type: ignore[index]  # JSON
    assert message == {"role": "assistant", "content": "a", "annotations": [1, 2], "mood": "glad"}


# ---- fences --------------------------------------------------------------------------------------------------------


@pytest.mark.clause("C4")
def test_the_fence_around_json_is_removed_and_the_head_says_so() -> None:
    """The head waits for the first letters; nothing is held when the stream ends."""
    pieces = ["\n``", "`json\n", '{"شهر"', ': "می', '"}', "\n", "```", "\n"]
    streamed = told([ROLE, *map(say, pieces), STOP], JSON)
    plain = told([ROLE, *map(say, pieces), STOP], JSON_PLAIN)
    left = told([ROLE, *map(say, pieces), STOP], JSON, strip_fences=False)

    for transcript in (streamed, plain):
        assert said(transcript)["text"] == '{"شهر": "می"}'
        assert transcript.head.headers == {"x-sluice-repaired": "fences"}
        assert "".join(transcript.facts.received) == "".join(pieces)
        assert "".join(transcript.facts.delivered) == '{"شهر": "می"}'
    assert said(left)["text"] == "".join(pieces)
    assert left.head.headers == {}


@pytest.mark.clause("C4", "W3")
def test_what_a_fence_held_leaves_with_the_tail_that_was_held_before_it() -> None:
    """At the end, in order, also before an error."""
    pieces = ["```json\n", '"می', "\n``"]
    for last, ending in (([STOP], Ending.COMPLETED), ([event({"error": {"code": 500}})], Ending.VENDOR_ERROR)):
        transcript = told([*map(say, pieces), *last], JSON)
        assert transcript.closing.ending is ending
        assert said(transcript)["text"] == '"می\n``'


@pytest.mark.clause("C4")
def test_a_tool_call_does_not_wait_for_a_fence() -> None:
    """Qwen writes blanks before its calls: they go out with them."""
    pipeline = begin(JSON)
    assert pipeline.feed(say("\n\n"), 0.0) == b""
    out = pipeline.feed(call(index=0, id="a", function={"name": "f", "arguments": "{"}), 0.0)
    assert b'"content":"\\n\\n"' in out
    assert b'"name":"f"' in out


# ---- hostile payloads ----------------------------------------------------------------------------------------------


@pytest.mark.clause("W4", "W7")
@pytest.mark.parametrize("depth", [260, 600, 1000])
def test_deep_nesting_does_not_break_a_stream(depth: int) -> None:
    """In unknown fields of an event that passes, of one that is rewritten, in usage, in an error."""
    deep = b"[" * depth + b"]" * depth
    before, after = say("@").split(b"@")
    extra = before.replace(b'"model"', b'"deep":' + deep + b',"model"')
    for payload in (
        extra + b"a" + after,
        extra + "می".encode() + after,
        b'data: {"choices":[],"usage":{"prompt_tokens":' + deep + b"}}\n\n",
        b'data: {"x":' + deep + b"}\n\n",
    ):
        for asked in (STREAM, PLAIN):
            assert run([ROLE, say("x"), payload * 2, STOP], asked).closing.ending is Ending.COMPLETED
    assert told([ROLE, say("x"), b'data: {"error":' + deep + b"}\n\n"]).closing.ending is Ending.VENDOR_ERROR


@pytest.mark.clause("W7")
@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("times", [1, 40])
def test_the_line_limit_is_on_the_line(over: int, times: int) -> None:
    """limit-1, limit, limit+1; also in a run of events that would pass unread."""
    line = say("x" * 300)[:-2]
    reads = [ROLE + say("a") * times, (say("b") * times) + line + b"\n\n", STOP]
    transcript = told(reads, max_line_bytes=len(line) - over)

    assert transcript.closing.ending is (Ending.COMPLETED if over <= 0 else Ending.LIMIT)
    if over > 0:
        assert transcript.error is not None
        assert transcript.error["code"] == "line_too_long"
        assert said(transcript)["text"] == "a" * times + "b" * times


@pytest.mark.clause("W7")
def test_words_kept_for_the_rules_are_bounded() -> None:
    """Many of them cost no more than few."""
    transcript = told([say("a"), b"data: x\n\n" * 30_000, STOP])
    assert transcript.closing.ending is Ending.COMPLETED


@pytest.mark.clause("W2")
def test_nothing_is_read_once_it_is_over() -> None:
    """After the first error later reads change nothing."""
    pipeline = begin()
    out = pipeline.feed(say("a") + event({"error": {"message": "m"}}), 0.0)
    assert pipeline.over
    assert pipeline.feed(say("b") + STOP, 0.0) == b""
    closing = pipeline.finish(Stop.AFTER_FINISH, 0.0)
    assert closing.ending is Ending.VENDOR_ERROR
    assert DONE not in out + closing.tail
    assert orjson.loads(closing.tail[6:])["error"]["type"] == "model_unavailable"


@pytest.mark.clause("L3", "C5")
def test_notes_hold_filter_results_and_never_an_answer() -> None:
    """Azure's results before and after the text go to the row; what another API's answer looks like does not."""
    filters = {"hate": {"filtered": False, "severity": "safe"}}
    transcript = told(
        [
            event({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
            say("a"),
            event({"choices": [{"index": 0, "delta": {}, "content_filter_results": filters, "text": "secret"}]}),
            event({"response": "secret", "done": False}),
            event({**HEAD, "choices": [], "reply": "secret"}),
            STOP,
        ]
    )
    assert transcript.facts.notes == {"prompt_filter_results": [{"prompt_index": 0}], "content_filter_results": filters}
    assert transcript.facts.heartbeats == 4


@pytest.mark.clause("L2")
def test_each_choice_is_a_text_of_its_own_to_be_counted() -> None:
    """Two choices whose deltas come in turn are not counted as one mixed text."""
    pairs = zip("سلام دنیا", "你好,世界！再见。", strict=True)
    deltas = [say(text, choice) for pair in pairs for choice, text in enumerate(pair)]

    facts = run([*deltas, STOP, chunk({}, "stop", 1), END], STREAM).facts

    assert ["".join(pieces) for pieces in facts.all_received()] == ["سلام دنیا", "你好,世界！再见。"]
    assert ["".join(pieces) for pieces in facts.all_delivered()] == ["سلام دنیا", "你好,世界！再见。"]


@pytest.mark.clause("W7")
def test_what_is_kept_for_the_count_is_folded() -> None:
    """A hundred thousand one-letter deltas take the memory of their text, not of a string object each."""
    many = [say("ab" if n % 7 else "c") for n in range(20_000)]

    facts = run(many, STREAM, stop=Stop.CUT).facts

    assert len(facts.received) < 5_000
    assert "".join(facts.received) == "".join("ab" if n % 7 else "c" for n in range(20_000))


@pytest.mark.clause("W4")
def test_a_custom_tool_call_passes_with_what_it_has() -> None:
    """A call that is no function keeps its type and fields, and gets no arguments of ours."""
    begins = {"index": 0, "id": "call_7", "type": "custom", "custom": {"name": "sql", "input": ""}}
    goes_on = {"index": 0, "custom": {"input": "SELECT «سلام»"}}
    reads = [chunk({"tool_calls": [begins]}), chunk({"tool_calls": [goes_on]}), chunk({}, "tool_calls"), END]

    told = [c for p in run(reads, STREAM).payloads for o in p["choices"] for c in o["delta"].get("tool_calls") or ()]  # type: ignore[attr-defined]  # JSON

    assert told == [begins, goes_on]


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    "names", [["get_", "天气"], ["ge", "t_", "天气"], ["get_", "get_天气"], ["get_天气", "get_天气"]]
)
def test_a_name_in_pieces_is_told_whole(names: list[str]) -> None:
    """A vendor that cuts anywhere cuts names too; pieces, a growing name and a name said again all give one name."""
    pieces: list[dict[str, object]] = [{"index": 0, "function": {"name": name, "arguments": ""}} for name in names]
    pieces[0]["id"] = "call_1"

    reads = [chunk({"tool_calls": [piece]}) for piece in (*pieces, {"index": 0, "function": {"arguments": '{"v":1}'}})]
    transcript = told([*reads, chunk({}, "tool_calls"), END])

    assert said(transcript)["tool_calls"] == [{"id": "call_1", "name": "get_天气", "arguments": '{"v":1}'}]
    named = [c for _, d, _ in deltas(transcript) for c in d.get("tool_calls") or () if "name" in c["function"]]  # type: ignore[attr-defined]  # JSON
    assert len(named) == 1, "some clients take the last name they see, not the joined one"


@pytest.mark.clause("W4")
def test_the_last_piece_of_a_name_may_come_with_arguments() -> None:
    """And one call may come without the list around it."""
    begun = chunk({"tool_calls": {"index": 0, "id": "c", "function": {"name": "get_", "arguments": ""}}})
    rest = chunk({"tool_calls": [{"index": 0, "function": {"name": "天气", "arguments": '{"v":1}'}}]})

    transcript = told([begun, rest, chunk({}, "tool_calls"), END])

    assert said(transcript)["tool_calls"] == [{"id": "c", "name": "get_天气", "arguments": '{"v":1}'}]


@pytest.mark.clause("W2")
def test_a_name_whose_rest_comes_late_is_told_in_pieces() -> None:
    """A call's beginning waits as long as a tail, no longer; joined by its index the name is the same."""
    begun = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "get_", "arguments": ""}}]})
    rest = chunk({"tool_calls": [{"index": 0, "function": {"name": "время", "arguments": ""}}]})

    transcript = run([begun, rest, chunk({}, "tool_calls"), END], STREAM, times=[0.0, 1.0, 1.0, 1.0])

    assert said(transcript)["tool_calls"] == [{"id": "c", "name": "get_время", "arguments": "{}"}]


@pytest.mark.clause("W5")
def test_an_event_behind_a_stray_byte_is_not_lost_without_a_word() -> None:
    """A NUL before `data:` makes an unknown line of it; the answer is then not whole, finish or no finish."""
    transcript = told([say("سلام "), b"\x00" + say("دنیا"), STOP, END])

    assert (transcript.closing.ending, transcript.facts.error_code) == (Ending.VENDOR_ERROR, "malformed_event")
    assert not transcript.is_done


@pytest.mark.clause("E", "W6")
def test_an_error_inside_one_choice_is_an_error() -> None:
    """OpenRouter says which provider failed in the choice; its words reach the rules and the client."""
    inner = {"code": 502, "message": "Provider disconnected"}
    failed = event(
        {**HEAD, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": inner}]}
    )

    transcript = told([say("سلام"), failed, END])

    assert transcript.closing.ending is Ending.VENDOR_ERROR
    assert "Provider disconnected" in transcript.client.decode()
    assert not transcript.is_done


@pytest.mark.clause("W4")
def test_older_completions_say_their_text_without_a_delta() -> None:
    """`choices[].text`, as a relay of the old API sends it."""
    old = event({**HEAD, "choices": [{"index": 0, "text": "你好", "finish_reason": None}]})

    assert said(told([old, STOP, END]))["text"] == "你好"


@pytest.mark.clause("W4")
def test_log_probabilities_alone_make_no_empty_event() -> None:
    """They go out with the text that follows; no delta is empty (`told` looks)."""
    alone = event({**HEAD, "choices": [{"index": 0, "delta": {}, "logprobs": {"content": [1]}, "finish_reason": None}]})

    transcript = told([say("a"), alone, say("b"), STOP, END])

    probs = [c["logprobs"] for p in transcript.payloads for c in p["choices"] if c.get("logprobs")]  # type: ignore[attr-defined]  # JSON
    assert probs == [{"content": [1]}]


@pytest.mark.clause("W4")
def test_a_plain_answer_has_no_error_key() -> None:
    """Relays write `"error": null` into every body, and clients look for the key."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "नमस्ते"}, "finish_reason": "stop"}
    body = orjson.dumps({**HEAD, "object": "chat.completion", "choices": [choice], "error": None})

    assert "error" not in told([body], PLAIN).body


@pytest.mark.clause("W5", "E")
def test_an_error_event_is_one_whatever_it_says_and_talk_is_none() -> None:
    """`event: error` before `[DONE]` fails the answer; `{"message": "processing"}`, which no rule knows, does not."""
    failed = told([say("a"), STOP, b"event: error\n" + END])
    talked = told([event({"message": "processing"}), say("a"), STOP, END])

    assert (failed.closing.ending, talked.closing.ending) == (Ending.VENDOR_ERROR, Ending.COMPLETED)
    assert talked.facts.heartbeats == 1
