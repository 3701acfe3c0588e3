"""What grammars of little more than text have in common: parts that cannot be said, the order of speakers, fields."""

from __future__ import annotations

import pytest

from proxy.canon.request import (
    Audio,
    Document,
    Image,
    Message,
    NativeTool,
    Reasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from proxy.dialects.base import Losses
from proxy.dialects.plain import (
    append_joined,
    bounded,
    extra,
    functions,
    hint_call,
    no_parallel,
    no_reasoning,
    one_call_each,
    results_of,
    sampling,
    system_first,
    text_of,
    text_of_result,
    thinks,
)

CACHE = {"type": "ephemeral"}


def request(**fields: object) -> Request:
    return Request(**{"client": "chat", "model": "m", "messages": (), **fields})  # type: ignore[arg-type]  # a test names what it means


def test_all_that_is_text_is_said_and_the_rest_is_reported() -> None:
    """Refusals and documents that are text are text; a picture is lost; thoughts and cache markers change nothing."""
    losses = Losses()
    parts = (
        Text("سلام", CACHE),
        Refusal("नहीं"),
        Document(text="本文", name="a.txt"),
        Document(text="無名"),
        Document("application/pdf", "JVBE"),
        Image(url="https://pictures.test/a.png"),
        Audio("AAAA", "wav"),
        Thinking("想"),
    )

    assert text_of(parts, 3, losses) == "سلام\nनहीं\na.txt\n本文\n無名"
    assert losses.real == ("messages[3].document", "messages[3].image", "messages[3].audio")
    assert losses.all == (*losses.real, "cache_control", "messages[3].thinking")


def test_parts_that_the_caller_keeps_are_left_alone() -> None:
    losses = Losses()
    assert text_of((Text("a"), Image(data="AA"), Thinking("b")), 0, losses, Image, Thinking) == "a"
    assert losses.all == ()


@pytest.mark.parametrize(("text", "told"), [("نشد", "Error: نشد"), ("error 404", "error 404")])
def test_a_failed_tool_says_so_in_words(text: str, told: str) -> None:
    """Nothing else can say it, and a text that says it already is left alone."""
    losses = Losses()
    assert text_of_result(ToolResult("c", (Text(text),), is_error=True), 2, losses) == told
    assert losses.all == ("messages[2].is_error",)


def test_system_texts_go_first_and_later_ones_are_the_users() -> None:
    losses = Losses()
    messages = (
        Message("system", (Text("a"),), "n", 0),
        Message("developer", (Text("b"),), None, 1),
        Message("user", (Text("c"),), None, 2),
        Message("system", (Text("d"),), None, 3),
    )

    system, rest = system_first(messages, losses)

    assert system == "a\nb"
    assert [(message.role, message.text) for message in rest] == [("user", "c"), ("user", "d")]
    assert losses.all == ("messages[0].name", "messages[3].role")
    assert losses.real == ()


def test_parallel_calls_are_told_one_after_the_other_each_with_its_result() -> None:
    """In the order of the calls, whatever the order of the results; what answers nothing stays."""
    call_a, call_b = ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}")
    result_a, result_b, stray = ToolResult("a", (Text("1"),)), ToolResult("b", (Text("2"),)), ToolResult("x", ())
    asked, said = Message("user", (Text("?"),)), Message("user", (Text("!"),))

    told = one_call_each(
        (
            asked,
            Message("assistant", (Text("so"), call_a, call_b), at=1),
            Message("tool", (result_b,), at=2),
            Message("tool", (stray, result_a), at=3),
            said,
        )
    )

    assert told == (
        asked,
        Message("assistant", (Text("so"), call_a), at=1),
        Message("tool", (result_a,), at=3),
        Message("assistant", (call_b,), at=1),
        Message("tool", (result_b,), at=2),
        Message("tool", (stray,), at=3),
        said,
    )


def test_a_single_call_and_calls_without_results_stay_as_they_are() -> None:
    single = (Message("assistant", (ToolCall("a", "f", "{}"),)), Message("tool", (ToolResult("a", ()),)))
    assert one_call_each(single) == single
    calls = (ToolCall("a", "f", ""), ToolCall("b", "f", ""))
    assert [message.parts for message in one_call_each((Message("assistant", calls),))] == [calls[:1], calls[1:]]


def test_a_message_of_the_tools_holds_results_alone() -> None:
    losses = Losses()
    message = Message("tool", (ToolResult("c", ()), Image(url="https://pictures.test/a.png")), at=5)
    assert list(results_of(message, losses)) == [ToolResult("c", ())]
    assert losses.real == ("messages[5].image",)


def test_what_stands_beside_a_call_is_reported() -> None:
    losses = Losses()
    hint_call(ToolCall("c", "f", "{}", signature="seal", cache=CACHE), 2, losses)
    assert (losses.real, losses.all) == ((), ("cache_control", "messages[2].thought_signature"))


def test_the_same_speaker_goes_on_in_one_message() -> None:
    """Only where both are nothing but text: a call or a result has a message of its own."""
    made: list[dict[str, object]] = []
    for message in (
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "c", "function_call": {}},
        {"role": "assistant", "content": "d"},
        {"role": "tool", "content": "e"},
        {"role": "tool", "content": "f"},
    ):
        append_joined(made, dict(message), "role", "content")
    assert [message["content"] for message in made] == ["a\nb", "c", "d", "e", "f"]


def test_fields_go_by_the_vendors_names_and_the_rule_file_knows_better() -> None:
    losses = Losses()
    asked = request(max_tokens=5, temperature=0.0, stop=("。",), top_k=3, min_p=0.1, user="u", n=1, presence_penalty=0)

    told = sampling(
        asked, {"max_tokens": "limit", "temperature": "t", "stop": "stop"}, losses, {"top_k": "k", "temperature": None}
    )

    assert told == {"limit": 5, "k": 3, "stop": ["。"]}
    assert losses.real == ("temperature", "min_p")
    assert losses.all == ("temperature", "min_p", "user")


def test_further_fields_that_the_vendor_knows_pass() -> None:
    losses = Losses()
    asked = request(extra={"repetition_penalty": 1.1, "metadata": {}, "strange": "low", "known": None})
    assert extra(asked, {"repetition_penalty": "rep", "known": "k"}, losses) == {"rep": 1.1}
    assert losses.real == ("strange",)
    assert losses.all == ("strange", "metadata")


@pytest.mark.parametrize(
    ("value", "told", "real", "reported"), [(0, 0.01, (), ("t",)), (0.5, 0.5, (), ()), (1.7, 1.0, ("t",), ("t",))]
)
def test_what_is_out_of_bounds_is_brought_in_and_reported(
    value: float, told: float, real: tuple[str, ...], reported: tuple[str, ...]
) -> None:
    """The least stands for 0, which means the same; the most stands for nothing."""
    losses, fields = Losses(), {"t": value}
    bounded(fields, "t", 0.01, 1.0, losses)  # type: ignore[arg-type]  # a dict of floats is one of objects here
    bounded(fields, "absent", 0.01, 1.0, losses)  # type: ignore[arg-type]
    assert fields == {"t": told}
    assert (losses.real, losses.all) == (real, reported)


def test_tools_that_are_no_functions_are_lost() -> None:
    losses = Losses()
    tool = Tool("f", strict=True, cache=CACHE)
    assert functions(request(tools=(tool, NativeTool("messages", "web_search", {}))), losses) == [tool]
    assert losses.real == ("tools.web_search",)
    assert losses.all == ("tools.web_search", "cache_control", "tools.strict")


@pytest.mark.parametrize(
    ("reasoning", "wanted"),
    [
        (None, None),
        (Reasoning(summary="auto"), None),
        (Reasoning("none"), False),
        (Reasoning(enabled=False), False),
        (Reasoning(budget=0), False),
        (Reasoning("low"), True),
        (Reasoning(enabled=True), True),
        (Reasoning(budget=900), True),
    ],
)
def test_is_it_asked_to_think(reasoning: Reasoning | None, wanted: bool | None) -> None:
    """A vendor that cannot think loses only the wish that it does, which is no loss of what is asked."""
    asked, losses = request(reasoning=reasoning), Losses()
    assert thinks(asked) is wanted
    no_reasoning(asked, losses)
    assert (losses.real, losses.all) == ((), ("reasoning_effort",) if wanted else ())


def test_one_call_at_a_time_is_told_of_only_where_there_are_tools() -> None:
    losses = Losses()
    no_parallel(request(parallel_tools=False), losses)
    no_parallel(request(parallel_tools=True, tools=(Tool("f"),)), losses)
    assert not losses.all
    no_parallel(request(parallel_tools=False, tools=(Tool("f"),)), losses)
    assert (losses.real, losses.all) == ((), ("parallel_tool_calls",))
