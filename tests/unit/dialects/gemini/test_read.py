"""One payload of the Gemini family in, one canonical value out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Heartbeat, Malformed, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.gemini.read import GeminiReader
from tests.support.strategies import ODD, encode


def read(value: object, reader: GeminiReader | None = None) -> Parsed:
    return (reader or GeminiReader()).read(value if isinstance(value, bytes) else encode(value), None)


def deltas(*parts: object, reader: GeminiReader | None = None, **candidate: object) -> list[Delta]:
    parsed = read({"candidates": [{"content": {"parts": list(parts), "role": "model"}, **candidate}]}, reader)
    assert isinstance(parsed, Chunk)
    return parsed.deltas


def sealed(text: str, signature: str, index: int) -> dict[str, object]:
    return {
        "type": "reasoning.text",
        "text": text,
        "signature": signature,
        "format": "google-gemini-v1",
        "index": index,
    }


@pytest.mark.clause("W4")
def test_a_chunk_gives_text_identity_and_usage() -> None:
    """Texts of all parts are one; usage is the vendor's object as it came."""
    usage = {"promptTokenCount": 9, "totalTokenCount": 12, "trafficType": "ON_DEMAND"}
    value = {
        "candidates": [{"content": {"parts": [{"text": "سلا"}, {"text": "م"}], "role": "model"}, "index": 0}],
        "usageMetadata": usage,
        "modelVersion": "gemini-2.5-flash",
        "createTime": "2026-11-30T09:15:02Z",
        "responseId": "r1",
    }
    assert read(value) == Chunk([Delta(0, {"content": "سلام"})], id="r1", model="gemini-2.5-flash", usage=usage)


@pytest.mark.clause("W5")
@pytest.mark.parametrize(
    ("candidate", "finish"),
    [
        ({"finishReason": "STOP"}, "STOP"),
        ({"finishReason": "FINISH_REASON_UNSPECIFIED"}, None),
        ({"finishReason": ""}, None),
        ({"finishReason": 3}, None),
        ({}, None),
        ({"finishReason": "SAFETY", "content": {}}, "SAFETY"),
        ({"finishReason": "MAX_TOKENS", "content": None}, "MAX_TOKENS"),
    ],
)
def test_a_finish_is_the_vendors_word_and_may_stand_alone(candidate: dict[str, object], finish: str | None) -> None:
    """Content may be missing, and a word that says nothing is none."""
    parsed = read({"candidates": [candidate]})
    assert parsed == Chunk([Delta(0, {}, finish=finish)])
    assert not GeminiReader.finish_is_last


@pytest.mark.clause("W3", "W4")
def test_parts_keep_their_order() -> None:
    """Each kind is a delta of its own: what is held of one must go before the next begins."""
    made = deltas(
        {"text": "想", "thought": True},
        {"text": "好"},
        {"text": "!"},
        {"text": "再想", "thought": True, "thoughtSignature": "c2Vh"},
        {"functionCall": {"name": "f"}},
        {"functionCall": {"name": "g"}},
        {"text": "b"},
        finishReason="STOP",
    )
    assert made == [
        Delta(0, {"reasoning_content": "想"}),
        Delta(0, {"content": "好!"}),
        Delta(0, {"reasoning_content": "再想"}),
        Delta(0, {}, extra={"reasoning_details": [sealed("再想", "c2Vh", 0)]}),
        Delta(0, {}, [ToolFragment(0, None, "f", ""), ToolFragment(1, None, "g", "")]),
        Delta(0, {"content": "b"}, finish="STOP"),
    ]


def test_the_seal_of_a_thought_comes_with_its_whole_text() -> None:
    """The text of all chunks since the last seal, and one number for each seal."""
    reader = GeminiReader()
    first = deltas({"text": "فکر ", "thought": True}, reader=reader)
    second = deltas({"text": "کردن", "thought": True, "thoughtSignature": "c2Vh"}, reader=reader)
    third = deltas({"text": "", "thought": True, "thoughtSignature": "bGVk"}, reader=reader)

    assert [first[0].texts, second[0].texts] == [{"reasoning_content": "فکر "}, {"reasoning_content": "کردن"}]
    assert second[1].extra == {"reasoning_details": [sealed("فکر کردن", "c2Vh", 0)]}
    assert third == [Delta(0, {}, extra={"reasoning_details": [sealed("", "bGVk", 1)]})]


def test_a_text_ends_the_thought_before_it() -> None:
    """What was thought before an unsealed end does not belong to a later seal."""
    reader = GeminiReader()
    deltas({"text": "one", "thought": True}, {"text": "said"}, reader=reader)
    made = deltas({"text": "two", "thought": True, "thoughtSignature": "c2Vh"}, reader=reader)
    assert made[1].extra == {"reasoning_details": [sealed("two", "c2Vh", 0)]}


@pytest.mark.parametrize("part", [{"text": "", "thoughtSignature": "c2Vh"}, {"thoughtSignature": "c2Vh"}])
def test_the_seal_of_a_text_has_no_text_of_its_own(part: dict[str, object]) -> None:
    """It comes with the last chunk, whose text is empty."""
    detail = {"type": "reasoning.encrypted", "data": "c2Vh", "format": "google-gemini-v1", "index": 0}
    assert deltas(part) == [Delta(0, {}, extra={"reasoning_details": [detail]})]


@pytest.mark.clause("W4")
def test_calls_are_whole_and_counted_through_the_answer() -> None:
    """With an id or without, arguments as JSON text, a seal where OpenAI's clients look for Google's."""
    reader = GeminiReader()
    first = deltas(
        {"functionCall": {"name": "天气", "args": {"城市": "北京", "天": 3}, "id": "a1"}, "thoughtSignature": "c2Vh"},
        {"functionCall": {"name": "time", "args": {}}},
        reader=reader,
    )
    second = deltas({"functionCall": {"name": "time"}}, reader=reader)

    seal = {"extra_content": {"google": {"thought_signature": "c2Vh"}}}
    assert first[0].tools == [
        ToolFragment(0, "a1", "天气", '{"城市":"北京","天":3}', seal),
        ToolFragment(1, None, "time", "{}"),
    ]
    assert second[0].tools == [ToolFragment(2, None, "time", "")]


def test_a_part_that_says_nothing_is_nothing() -> None:
    """The last chunk often has an empty text, thought or not."""
    assert deltas({"text": ""}, {"text": "", "thought": True}, finishReason="STOP") == [Delta(0, {}, finish="STOP")]


def test_candidates_are_choices() -> None:
    """By their index, else by their place; each counts its own calls."""
    call = {"content": {"parts": [{"functionCall": {"name": "f"}}]}}
    parsed = read({"candidates": [call, {**call, "index": 3}, "odd", {**call, "index": -1}]})
    assert isinstance(parsed, Chunk)
    assert [delta.choice for delta in parsed.deltas] == [0, 3, 2]
    assert all(delta.tools == [ToolFragment(0, None, "f", "")] for delta in parsed.deltas)


def test_what_is_not_known_passes() -> None:
    """Pictures as clients know them, other parts as they came; fields of the candidate and of the chunk."""
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    parsed = read(
        {
            "candidates": [
                {
                    "content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": "aQ=="}}, code, {}, 7]},
                    "groundingMetadata": {"webSearchQueries": ["q"]},
                    "safetyRatings": [],
                }
            ],
            "modelStatus": {"stage": "PREVIEW"},
        }
    )
    assert isinstance(parsed, Chunk)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aQ=="}}
    assert [delta.extra for delta in parsed.deltas] == [{"images": [picture]}, {"native": [code]}]
    assert parsed.deltas[1].choice_extra == {"groundingMetadata": {"webSearchQueries": ["q"]}}
    assert parsed.extra == {"modelStatus": {"stage": "PREVIEW"}}


def test_log_probabilities_are_those_of_chat_completions() -> None:
    """Each chosen token with the likeliest ones of its step; a probability of one is left out there."""
    made = deltas(
        {"text": "hé"},
        logprobsResult={
            "chosenCandidates": [{"token": "hé", "tokenId": 5, "logProbability": -0.25}, {"token": "!"}],
            "topCandidates": [
                {"candidates": [{"token": "hé", "logProbability": -0.25}, {"token": "x", "logProbability": -2}]}
            ],
        },
    )
    he = {"token": "hé", "logprob": -0.25, "bytes": [104, 195, 169]}
    assert made[0].logprobs == {
        "content": [
            {**he, "top_logprobs": [he, {"token": "x", "logprob": -2, "bytes": [120]}]},
            {"token": "!", "logprob": 0.0, "bytes": [33], "top_logprobs": []},
        ]
    }


# ---- errors and what is no answer ------------------------------------------------------------------------------------


@pytest.mark.clause("W6")
def test_a_prompt_that_was_held_back_is_an_error_with_its_usage() -> None:
    """There are no candidates, and the rules are shown the feedback."""
    value = {"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 4}}
    parsed = read(value)
    assert isinstance(parsed, ErrorSeen)
    assert (parsed.payload, parsed.is_vague) == ({"blockReason": "OTHER"}, False)
    assert parsed.chunk is not None and parsed.chunk.usage == {"promptTokenCount": 4}


def test_feedback_beside_candidates_is_no_error() -> None:
    """Ratings alone, or a reason beside an answer, hold nothing back."""
    said = [{"content": {"parts": [{"text": "a"}]}}]
    assert isinstance(read({"candidates": said, "promptFeedback": {"blockReason": "OTHER"}}), Chunk)
    assert isinstance(read({"candidates": said, "promptFeedback": {"safetyRatings": []}}), Chunk)


@pytest.mark.clause("W6")
def test_errors_are_told_in_every_form() -> None:
    """As an object, in a list of one, beside candidates, as a plain body."""
    error = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    beside = read({**error, "candidates": [{"content": {"parts": [{"text": "a"}]}}]})

    assert read(error) == ErrorSeen(error, encode(error))
    assert read([error]) == ErrorSeen([error], encode([error]))
    assert isinstance(beside, ErrorSeen) and beside.chunk == Chunk([Delta(0, {"content": "a"})])
    for body in (error, [error]):
        assert GeminiReader().read_body(encode(body)) == ErrorSeen(body, encode(body))


def test_a_plain_body_is_one_chunk() -> None:
    """`generateContent` answers in the form of one chunk; what is no answer is not taken for one."""
    body = encode({"candidates": [{"content": {"parts": [{"text": "नमस्ते"}]}, "finishReason": "STOP"}]})
    assert GeminiReader().read_body(body) == Chunk([Delta(0, {"content": "नमस्ते"}, finish="STOP")])
    assert GeminiReader().read_body(b'{"candidates":[]}') == Chunk([])
    assert isinstance(GeminiReader().read_body(b"[]"), Malformed)
    assert isinstance(GeminiReader().read_body(b"<html>"), Malformed)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"[DONE]", Heartbeat),
        (b"{}", Heartbeat),
        (b"null", Heartbeat),
        (b'{"candidates":', Malformed),
        (b'{"candidates":[]}', Chunk),
        (b'{"usageMetadata":{"promptTokenCount":1}}', Chunk),
        (b'{"message":"busy"}', ErrorSeen),
    ],
)
def test_what_is_no_piece_of_an_answer(data: bytes, kind: type) -> None:
    """End marks of relays, signs of life, words, halves of JSON."""
    assert isinstance(GeminiReader().read(data, None), kind)


def test_bytes_that_are_no_utf8_are_replaced_and_counted() -> None:
    """One bad byte costs one character."""
    reader = GeminiReader()
    made = reader.read(b'{"candidates":[{"content":{"parts":[{"text":"a\xffb"}]}}]}', None)
    assert made == Chunk([Delta(0, {"content": "a\ufffdb"})])
    assert reader.replaced == 1


odd = st.sampled_from(ODD)


def _maybe(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.fixed_dictionaries({}, optional={name: odd | value for name, value in fields.items()})


_part = _maybe(
    text=st.text(max_size=3),
    thought=st.booleans(),
    thoughtSignature=st.just("c2Vh"),
    functionCall=_maybe(name=st.just("f"), args=odd, id=st.just("1")),
    inlineData=_maybe(mimeType=st.just("image/png"), data=st.just("aQ==")),
)
_logprob = _maybe(token=st.text(max_size=2), logProbability=st.floats())
_candidate = _maybe(
    index=st.integers(-1, 2),
    finishReason=st.sampled_from(["STOP", "SAFETY"]),
    content=_maybe(parts=st.lists(odd | _part, max_size=3) | _part),
    logprobsResult=_maybe(chosenCandidates=st.lists(_logprob | odd), topCandidates=st.lists(_maybe(candidates=odd))),
)
_payload = _maybe(
    candidates=st.lists(odd | _candidate, max_size=2),
    usageMetadata=odd,
    promptFeedback=_maybe(blockReason=st.just("SAFETY")),
    modelVersion=odd,
    error=odd,
)


@pytest.mark.clause("W3")
@given(st.lists(odd | _payload, max_size=4), st.binary(max_size=20))
def test_no_traffic_raises(values: list[object], noise: bytes) -> None:
    """Any types in any places, and any bytes: everything has a value."""
    reader = GeminiReader()
    for value in values:
        for parsed in (reader.read(encode(value), None), reader.read_body(encode(value))):
            assert isinstance(parsed, Parsed)
            if isinstance(parsed, Chunk) and parsed.usage is not None:
                reader.usage(parsed.usage)
    assert isinstance(reader.read(noise, None), Parsed)
    assert isinstance(reader.read_body(noise), Parsed)


# ---- usage -----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    ("vendor", "usage"),
    [
        (
            {"promptTokenCount": 9, "candidatesTokenCount": 23, "thoughtsTokenCount": 185, "totalTokenCount": 217},
            Usage(9, 208, reasoning=185),
        ),
        (
            {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 64,
                "toolUsePromptTokenCount": 30,
                "candidatesTokenCount": 5,
                "totalTokenCount": 135,
            },
            Usage(130, 5, cache_read=64),
        ),
        ({"promptTokenCount": 7, "thoughtsTokenCount": 40, "totalTokenCount": 47}, Usage(7, 40, reasoning=40)),
        ({"promptTokenCount": 4, "totalTokenCount": 4}, Usage(4, 0)),
        ({"trafficType": "ON_DEMAND"}, Usage()),
        ({"promptTokenCount": "9", "candidatesTokenCount": -1, "totalTokenCount": None}, Usage(9)),
    ],
)
def test_usage_is_read_into_our_vocabulary(vendor: dict[str, object], usage: Usage) -> None:
    """Thoughts are output, what tools put into the prompt is input, cached tokens are part of it."""
    assert GeminiReader().usage(vendor) == usage


@pytest.mark.parametrize(
    "value",
    [
        {"candidates": [{"content": "متن"}]},
        {"candidates": [{"content": {"parts": "متن"}}]},
        {"candidates": [{"content": {"parts": {"text": "متن"}}}]},
        {"candidates": {"content": {"parts": [{"text": "متن"}]}}},
        [{"candidates": [{"content": {"parts": [{"text": "متن"}]}}]}],
    ],
)
def test_text_is_found_where_lists_are_missing(value: object) -> None:
    """Relays write one where many should be, and tear the array apart without taking its brackets away."""
    parsed = read(value)
    assert isinstance(parsed, Chunk) and parsed.deltas[0].texts == {"content": "متن"}


def test_arguments_may_come_as_text() -> None:
    (delta,) = deltas({"functionCall": {"name": "f", "args": '{"x":1}'}})
    assert delta.tools is not None and delta.tools[0].arguments == '{"x":1}'


@pytest.mark.clause("W5")
def test_a_prompt_that_is_blocked_late_ends_the_answer() -> None:
    """After some text it is an ending, before any an error."""
    blocked = {"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 4}}
    reader = GeminiReader()
    assert isinstance(read(blocked, reader), ErrorSeen)
    deltas({"text": "سلام"}, reader=reader)
    late = read(blocked, reader)
    assert isinstance(late, Chunk) and [delta.finish for delta in late.deltas] == ["SAFETY"]
    assert late.usage == {"promptTokenCount": 4}
