"""The fuzzer's target, a bounded number of times and always on the same inputs (`scripts/fuzz` goes on from there)."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.fuzz_pipeline import made_up
from fuzz.plan import Plan
from fuzz.target import check, check_plan
from proxy.canon.ending import Stop
from proxy.pipeline import Asked
from proxy.wire.hold import Boundary

BATCHES: Final = 8
BATCH: Final = 300


@pytest.mark.clause("W1", "W2", "W3", "W4", "W5", "W6")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_made_up_answers_keep_the_contract(batch: int) -> None:
    """Whatever comes, in whatever cuts, at whatever time: no exception, one ending, a stream of the right shape."""
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        check(made_up(seed))


@pytest.mark.clause("W2", "W4")
@given(data=st.binary(max_size=400))
@settings(derandomize=True)
def test_any_bytes_are_a_plan_that_keeps_the_contract(data: bytes) -> None:
    """The same, with bytes that hypothesis can make small when it finds something."""
    check(data)


# ---- what was found, smallest form first ---------------------------------------------------------------------------


def event(payload: str) -> bytes:
    return f"data: {payload}\n\n".encode()


def of_choices(*choices: str, more: str = "") -> bytes:
    head = '"id":"c-1","object":"chat.completion.chunk","created":1772000000,"model":"m-1"'
    return event(f'{{{head},"choices":[{",".join(choices)}]{more}}}')


def choice(delta: str, index: int = 0, finish: str = "null") -> str:
    return f'{{"index":{index},"delta":{delta},"finish_reason":{finish}}}'


DONE: Final = b"data: [DONE]\n\n"
FOUND: Final = {
    # Choice 0 says nothing at all, choice 1 does, and the end mark stands for both finishes: a finish needs its role.
    "finish-inferred-for-a-choice-without-a-role": of_choices(choice("{}"))
    + of_choices(choice('{"content":"سلام"}', 1))
    + DONE,
    # `usage` that is no object and not null was passed on beside a choice.
    "usage-that-is-a-word": of_choices(choice('{"content":"你好"}'), more=',"usage":"x"')
    + of_choices(choice("{}", finish='"stop"'), more=',"usage":false')
    + DONE,
    # Behind the end mark, in the same read, stands a line that is over the limit: it is not read any more.
    "a-limit-behind-the-end-mark": DONE + b"data: " + b"x" * 200,
}


@pytest.mark.clause("W2", "W4")
@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("limit", [64, 8 << 20])
def test_what_was_found_stays_found(name: str, limit: int) -> None:
    """Each answer that broke the contract once, in every way to read it."""
    body = FOUND[name]
    for asked in (Asked(stream=True, usage=True), Asked(stream=True, json=True), Asked(stream=False)):
        check_plan(
            Plan(
                vendor="openai_compatible",
                asked=asked,
                status=200,
                headers={"content-type": "text/event-stream"},
                body=body,
                cuts=(3, len(body) // 2),
                moments=(0.05,),
                leave_at=1,
                stop=Stop.EOF,
                setup={"boundary": Boundary.GRAPHEME, "max_line_bytes": limit},
            )
        )
