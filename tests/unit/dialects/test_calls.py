"""Ids of calls for vendors that are particular, and results that stand beside their calls."""

from __future__ import annotations

import re

from proxy.canon.request import Message, Native, Text, ToolCall, ToolResult
from proxy.dialects.calls import CallIds, results_beside_calls, short_id

BAD = re.compile(r"[^a-z_]")


def call(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(one, "f", "{}") for one in ids))


def result(*ids: str, at: int = 0) -> Message:
    return Message("tool", tuple(ToolResult(one, (Text(one),)) for one in ids), at=at)


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def test_long_ids_are_cut_and_stay_apart() -> None:
    long = ["x" * 90 + "1", "x" * 90 + "2"]
    assert short_id("abc", 40) == "abc"
    assert len({short_id(one, 40) for one in long}) == 2
    assert {len(short_id(one, 40)) for one in long} == {40}


def test_ids_are_used_once_and_results_go_to_the_first_open_call() -> None:
    """An id given twice at once, given again later, and one that nobody made."""
    ids = CallIds(BAD, 40)
    assert [ids.of_call(one) for one in ("f", "f", "F", "ид", "")] == ["f", "f_2", "_", "__", "call"]
    assert [ids.of_result(one) for one in ("f", "f", "f")] == ["f", "f_2", "f_2"]
    assert ids.of_call("f") == "f_3"
    assert ids.of_result("f") == "f_3"
    assert ids.of_result("nobody") == "nobody"


def test_many_calls_of_one_name_take_no_time() -> None:
    ids = CallIds(BAD, 40)
    assert len({ids.of_call("f") for _ in range(20_000)}) == 20_000


def test_results_move_to_their_calls() -> None:
    """Past what was said between, in whichever message they came."""
    between = user("wait")
    assert results_beside_calls((call("a"), between, result("a"))) == (call("a"), result("a"), between)
    assert results_beside_calls((call("a"), call("b"), result("b", "a", at=5))) == (
        *(call("a"), result("a", at=5)),
        *(call("b"), result("b", at=5)),
    )


def test_what_is_in_order_stays_as_it_is() -> None:
    """Parallel calls in any order, one message or several; results that nobody asked for; what stands beside one."""
    beside = Message("tool", (ToolResult("a", ()), Native("chat", "x", {})))
    for messages in (
        (user("q"), call("a", "b"), result("b"), result("a"), user("r")),
        (user("q"), call("a"), beside, call("a"), result("a")),
        (result("lost"), user("q"), result("lost")),
        (),
    ):
        assert results_beside_calls(messages) == messages
