"""Usage where a vendor keeps it and as it counts: `usage` of a rule file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from proxy.canon.ending import Ending, Stop
from proxy.pipeline import Asked
from tests.support.pipelines import OUR_COUNT, PLAIN, SSE, STREAM, begin, finish, run
from tests.support.strategies import END, HEAD, ROLE, STOP, chunk, encode, event, say
from tests.support.usage import line_of
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


ALL = chunk(usage=REPORT)
SPOKEN = [ROLE, say("سلام"), say(" دنیا")]


@pytest.mark.parametrize(
    ("reads", "stop", "keys", "state"),
    [
        pytest.param([*SPOKEN, STOP, ALL, END], Stop.AFTER_FINISH, "", "final", id="whole"),
        pytest.param([*SPOKEN, STOP, ALL], Stop.CUT, "", "final", id="cut behind the report"),
        pytest.param(
            [*SPOKEN, chunk({}, "stop", usage=REPORT)], Stop.GONE, "", "final", id="with the finish, then left"
        ),
        pytest.param([*SPOKEN, STOP, END, ALL], Stop.CUT, "", "final", id="behind the end mark"),
        pytest.param(
            [ROLE, say("x", usage=REPORT), STOP], Stop.EOF, "", "final", id="before the finish of a whole one"
        ),
        pytest.param([ROLE, say("x", usage=REPORT), STOP], Stop.CUT, "", "partial", id="cut before a later one"),
        pytest.param(
            [ROLE, say("x", usage=REPORT), STOP], Stop.EOF, "end_mark: sent", "partial", id="ended without its mark"
        ),
        pytest.param([ROLE, say("x", usage=REPORT), say("y")], Stop.CUT, "", "partial", id="running figures, cut"),
        pytest.param([ROLE, say("x", usage=REPORT), say("y")], Stop.GONE, "", "partial", id="running figures, left"),
        pytest.param([ROLE, say("x", usage=REPORT), say("y")], Stop.SHUTDOWN, "", "partial", id="running, shut down"),
        pytest.param(SPOKEN, Stop.CUT, "", "lost", id="cut before any"),
        pytest.param(SPOKEN, Stop.GONE, "", "lost", id="left before any"),
        pytest.param([], Stop.FIRST_BYTE, "", "lost", id="nothing came, though it may have worked"),
        pytest.param([], Stop.GONE, "", "lost", id="left before anything came"),
        pytest.param([], Stop.CONNECT, "", "absent", id="never reached it"),
        pytest.param([], Stop.CONNECT_FAILED, "", "absent", id="could not reach it"),
        pytest.param([*SPOKEN, STOP], Stop.CUT, "", "lost", id="cut between finish and report"),
        pytest.param([*SPOKEN, STOP], Stop.AFTER_FINISH, "", "lost", id="silent behind the finish"),
        pytest.param([*SPOKEN, STOP], Stop.EOF, "", "absent", id="whole, without any"),
        pytest.param([*SPOKEN, STOP], Stop.EOF, "end_mark: sent", "lost", id="whole, without its mark"),
        pytest.param([*SPOKEN, STOP, END], Stop.AFTER_FINISH, "", "absent", id="its mark says that nothing comes"),
        pytest.param(SPOKEN, Stop.CUT, "usage: {scope: absent}", "absent", id="cut, and it sends none"),
        pytest.param([*SPOKEN, event({"error": {"message": "x"}})], Stop.EOF, "", "lost", id="an error instead"),
        pytest.param([event({"error": {"message": "x"}})], Stop.EOF, "", "absent", id="an error before anything"),
        pytest.param(
            [ROLE, say("x", usage=REPORT), event({"error": {"message": "x"}})],
            Stop.EOF,
            "",
            "partial",
            id="then an error",
        ),
        pytest.param(
            [*SPOKEN, chunk({}, "error", usage=REPORT)], Stop.EOF, "", "final", id="with the error that ends the answer"
        ),
        pytest.param([*SPOKEN, STOP, ALL, END], Stop.EOF, "usage: {source: relay}", "estimated", id="a relay's"),
        pytest.param([*SPOKEN, STOP, ALL, END], Stop.EOF, "usage: {unit: characters}", "characters", id="characters"),
    ],
)
def test_the_row_says_what_became_of_the_report(reads: Sequence[bytes], stop: Stop, keys: str, state: str) -> None:
    """Where in the stream it came, how the stream ended, and what the rule file says, tell whether it counts."""
    assert run(reads, stop=stop, profile=profile_with(keys)).pipeline.normal_usage().state == state


@pytest.mark.parametrize("status", [429, 500])
@pytest.mark.parametrize("stop", [Stop.EOF, Stop.CUT, Stop.GONE])
def test_a_refused_request_owes_no_report(status: int, stop: Stop) -> None:
    """However its body ended."""
    pipeline = run([b'{"error": {'], stop=stop, status=status, headers={"content-type": "application/json"}).pipeline
    assert pipeline.normal_usage().state == "absent"


def test_what_the_vendor_said_behind_a_client_that_left_counts() -> None:
    """`drain`: the ending is the client's, the figures are the vendor's last (contract W8)."""
    pipeline = begin(headers=SSE)
    out = [pipeline.feed(ROLE + say("x"), 0.0)]
    pipeline.leave()
    out.append(pipeline.feed(say("y") + STOP + ALL + END, 0.0))

    drained = finish(pipeline, Stop.AFTER_FINISH, 0.0, out)

    assert drained.closing.ending is Ending.CLIENT_GONE
    assert line_of(pipeline.normal_usage()) == "final rraaa 3/4 -/- - =7 -/-"


def test_a_second_scale_stands_where_the_rule_file_says() -> None:
    """Inside the vendor's object, as a number or as text; what is not there is not told."""
    keys = "usage: {billed: {input: billing.in, output: 'billing.out[0]'}}"
    told = {**REPORT, "billing": {"in": 2, "out": ["3"]}}
    for report, line in ((told, "2/3"), (REPORT, "-/-"), ({**REPORT, "billing": {"in": "零"}}, "-/-")):
        transcript = run([*SPOKEN, STOP, chunk(usage=report), END], profile=profile_with(keys))
        assert line_of(transcript.pipeline.normal_usage()) == f"final rraaa 3/4 -/- - =7 {line}"


@pytest.mark.clause("W4")
@pytest.mark.parametrize("asked", [STREAM, PLAIN], ids=["stream", "plain"])
def test_a_client_is_never_told_characters_for_tokens(asked: Asked) -> None:
    """It gets our count, and is told that it is ours; the row keeps the vendor's object."""
    kept, told = usages("usage: {unit: characters}", [*SPOKEN, STOP, ALL, END], asked)

    ours = {"prompt_tokens": OUR_COUNT.input, "completion_tokens": OUR_COUNT.output, "estimated": True}
    assert kept == REPORT
    assert told == {**ours, "total_tokens": OUR_COUNT.input + OUR_COUNT.output}
