"""Usage where a vendor keeps it and as it counts: `usage` of a rule file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from proxy.canon.ending import Ending
from proxy.pipeline import Asked
from tests.support.pipelines import PLAIN, STREAM, begin, run
from tests.support.strategies import END, HEAD, ROLE, STOP, chunk, encode, event, say
from tests.support.ways import profile_with

pytestmark = pytest.mark.clause("L2", "R1")

REPORT = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def usages(keys: str, reads: Sequence[bytes], asked: Asked = STREAM) -> tuple[object, object]:
    """What the row keeps, and what the client is told."""
    transcript = run(reads, asked, profile=profile_with(keys))
    assert transcript.closing.ending is Ending.COMPLETED
    told = transcript.payloads[-1] if asked.stream else transcript.body
    return transcript.facts.vendor_usage, told["usage"]


@pytest.mark.parametrize(
    "last",
    [
        chunk({}, "stop", x_acme={"usage": REPORT}),
        chunk(x_acme={"usage": REPORT}) + STOP,
        STOP + event({"x_acme": {"usage": REPORT}}),
        STOP + END + event({"x_acme": {"usage": REPORT}}),
    ],
    ids=["with the finish", "without choices", "in an event of its own", "behind the end mark"],
)
def test_usage_is_found_where_the_rule_file_says(last: bytes) -> None:
    """Wherever in the stream it stands, also where nothing else is said."""
    reads = [ROLE, *map(say, ["سلام"] * 9), last, END]
    assert usages("usage: {at: [x_acme.usage]}", reads) == (REPORT, REPORT)
    assert usages("", reads)[0] is None


def test_usage_is_found_in_a_plain_answer() -> None:
    """The same places are looked at in one body."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "你好"}, "finish_reason": "stop"}
    body = encode({**HEAD, "object": "chat.completion", "choices": [choice], "cost": [{"tokens": REPORT}]})
    assert usages("usage: {at: ['meta.usage', 'cost[0].tokens']}", [body], PLAIN) == (REPORT, REPORT)


def test_what_the_reader_finds_comes_first() -> None:
    """Paths of the rule file are further places, not other ones."""
    own = {**REPORT, "completion_tokens": 5, "total_tokens": 8}
    reads = [ROLE, say("x"), STOP, chunk(usage=own, x_acme={"usage": REPORT}), END]
    assert usages("usage: {at: x_acme.usage}", reads) == (own, own)


@pytest.mark.parametrize(
    ("scope", "kept"),
    [
        ("final", {"prompt_tokens": 3, "completion_tokens": 2, "by": {"a": 2, "b": 1}, "tier": "y"}),
        ("cumulative", {"prompt_tokens": 3, "completion_tokens": 2, "by": {"a": 2, "b": 1}, "tier": "y"}),
        ("increments", {"prompt_tokens": 6, "completion_tokens": 3, "by": {"a": 3, "b": 1}, "tier": "y"}),
    ],
)
def test_reports_are_added_up_only_where_they_are_increments(scope: str, kept: Mapping[str, object]) -> None:
    """Numbers add up, inside objects too; of words the last stands."""
    reports = [
        {"prompt_tokens": 3, "completion_tokens": 1, "by": {"a": 1}, "tier": "x"},
        {"prompt_tokens": 3, "completion_tokens": 2, "by": {"a": 2, "b": 1}, "tier": "y"},
    ]
    reads = [ROLE, *(say(text, usage=one) for text, one in zip("نم", reports, strict=True)), STOP, END]
    assert usages(f"usage: {{scope: {scope}}}", reads)[0] == kept


THOUGHT = {"prompt_tokens": 12, "completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 290}}
CACHED = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 90}}


@pytest.mark.parametrize(
    ("keys", "report", "told"),
    [
        ("reasoning: outside", THOUGHT, (12, 291, 303)),
        ("reasoning: outside", {**THOUGHT, "total_tokens": 303}, (12, 291, 303)),
        ("reasoning: outside", {**THOUGHT, "total_tokens": 13}, (12, 291, 303)),
        ("reasoning: inside", {**THOUGHT, "total_tokens": 303}, (12, 1, 303)),
        ("reasoning: absent", {**THOUGHT, "total_tokens": 303}, (12, 291, 303)),
        ("scope: final", {**THOUGHT, "total_tokens": 303}, (12, 291, 303)),
        ("cache: outside", CACHED, (95, 1, 96)),
        ("cache: inside", CACHED, (5, 1, 6)),
    ],
)
def test_output_holds_reasoning_and_input_the_cache(
    keys: str, report: Mapping[str, object], told: tuple[int, int, int]
) -> None:
    """In what a client is told, in OpenAI's terms; the row keeps the vendor's own object. The key wins over what the
    reader takes a total for."""
    kept, client = usages(f"usage: {{{keys}}}", [ROLE, say("ok"), STOP, chunk(usage=report), END])

    assert kept == report
    assert isinstance(client, dict)
    assert (client["prompt_tokens"], client["completion_tokens"], client["total_tokens"]) == told


@pytest.mark.clause("W5")
def test_usage_that_never_comes_is_not_waited_for() -> None:
    """Behind the end mark nothing is left to read."""
    waits, knows = (begin(profile=profile_with(keys)) for keys in ("", "usage: {scope: absent}"))
    for pipeline in (waits, knows):
        pipeline.feed(ROLE + say("x") + STOP + END, 0.0)
    assert (waits.over, knows.over) == (False, True)


@pytest.mark.parametrize("ascii_only", [False, True], ids=["as it is", "escaped"])
def test_the_name_of_a_place_may_be_in_any_script(ascii_only: bool) -> None:
    """JSON may write a name in escapes; it is the same place."""
    payload = json.dumps({**HEAD, "choices": [], "用量": REPORT}, ensure_ascii=ascii_only).encode()
    reads = [ROLE, say("你好"), STOP, b"data: " + payload + b"\n\n", END]
    assert usages("usage: {at: 用量}", reads) == (REPORT, REPORT)
