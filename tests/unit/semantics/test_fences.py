"""The fence around JSON: found however the text is cut, removed only where JSON was fenced, and never half."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.semantics.fences import FenceStrip
from tests.support.cuts import cuts_of, three_ways

pytestmark = pytest.mark.clause("C4")

JSON = '{"شهر": "اصفهان", "n": [1, 2]}'


def strip(deltas: list[str]) -> tuple[str, bool]:
    fence = FenceStrip()
    out = "".join([*map(fence.feed, deltas), fence.finish()])
    assert fence.decided
    return out, fence.repaired


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        (f"```json\n{JSON}\n```", JSON),
        (f"```json\n{JSON}\n```\n\n", JSON),
        (f"\n \n```json\n{JSON}```", JSON),
        (f"```JSON  \r\n{JSON}\r\n```\r\n", JSON),
        (f"```\n{JSON}\n```", JSON),
        (f"``` {JSON} ```", JSON),
        (f"```{JSON}```", JSON),
        (f"````json\n{JSON}\n````", JSON),
        (f"```json\n\n\n  {JSON}\n```", f"\n\n  {JSON}"),
        ("```json\n[1]\n```", "[1]"),
        ('```json\n"س"\n```', '"س"'),
        ("```json\n-1.5\n```", "-1.5"),
        ("```json\ntrue\n```", "true"),
        ("```json\nnull\n```", "null"),
        (f"```json\n{JSON}", JSON),
        (f"```json\n{JSON}\n``", f"{JSON}\n``"),
        ("```json\n", ""),
    ],
)
def test_a_fence_around_json_is_removed(text: str, stripped: str) -> None:
    """With its language, its blanks, and whether or not it was ever closed."""
    if text == "```json\n":
        assert strip([text]) == (text, False), "nothing was fenced"
        return
    assert three_ways(strip, text, "") == (stripped, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        JSON,
        f"\n{JSON}\n",
        "`",
        "``",
        "`x` is a variable",
        "``x``",
        f"Here it is:\n```json\n{JSON}\n```",
        "```python\nprint('hi')\n```",
        "```sh\n$ ls\n```",
        "```\nвыход\n```",
        "```" + "x" * 80 + "\n{}\n```",
        "`````json` is code",
        "中文 ``` 中文",
    ],
)
def test_what_is_no_fence_around_json_stays(text: str) -> None:
    """Plain JSON, prose before a fence, other code."""
    assert three_ways(strip, text, "") == (text, False)


@pytest.mark.parametrize(
    ("inside", "rest"),
    [
        ('{"md": "```js\\nf()\\n```"}', ""),
        ('{"md": "a\n```\nb"}', ""),
        ("{}\n```\nThat is all.", ""),
        ("{}``", ""),
        ("{} ` ", "` "),
    ],
)
def test_a_fence_inside_stays(inside: str, rest: str) -> None:
    """Only what nothing but blanks follows is the closing fence."""
    assert three_ways(strip, f"```json\n{inside}", "") == (inside, True)


@given(
    text=st.lists(
        st.sampled_from(("```json\n", "```", "``", "`", "\n", " ", "\r\n", "{", "}", "س", "json", "x", '"')),
        max_size=14,
    ).map("".join),
    data=st.data(),
)
@example(text="```python\nprint", data=None)
@example(text="```json\n" + "`" * 70, data=None)
def test_the_cuts_do_not_matter(text: str, data: st.DataObject | None) -> None:
    """The joined text is the same for any deltas, and only blanks and one fence were taken from it."""
    out, repaired = strip([text])

    for deltas in ([*text], *([data.draw(cuts_of(text))] if data is not None else [])):
        assert strip(list(deltas)) == (out, repaired)
    assert out in text
    if not repaired:
        assert out == text


def test_nothing_waits_longer_than_it_must() -> None:
    """The head waits for its first letters; then only what may be the closing fence is held."""
    fence = FenceStrip()
    assert [
        fence.feed(delta) for delta in ("\n", "``", "`js", "on\n", '{"a"', ": 1}", "\n", "``", "`", " ", "x", "\n")
    ] == (["", "", "", "", '{"a"', ": 1}", "", "", "", "", "\n``` x", ""])
    assert fence.finish() == "\n"


def test_a_plain_answer_is_decided_by_its_first_letter() -> None:
    """And from then on nothing is held."""
    fence = FenceStrip()
    assert [fence.feed(delta) for delta in (" ", '{"', "```", "\n")] == ["", ' {"', "```", "\n"]


@pytest.mark.clause("W7")
@pytest.mark.parametrize("before", ["", "```json\n{}", "```"], ids=["head", "fenced", "opening"])
@pytest.mark.parametrize("delta", ["\n", "  ", "`"])
def test_blanks_without_end_cost_no_more_than_their_length(before: str, delta: str) -> None:
    """JSON modes are known to fall into endless blanks: forty thousand deltas of them must not be quadratic."""
    fence = FenceStrip()
    begun = time.process_time()
    out = fence.feed(before) + "".join(fence.feed(delta) for _ in range(40_000)) + fence.finish()

    assert time.process_time() - begun < 1.0
    assert len(out) <= len(before) + 40_000 * len(delta)


@pytest.mark.clause("C4")
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('~~~json\n{"شهر": "تهران"}\n~~~', '{"شهر": "تهران"}'),
        ('```json\n{"a": 1}\n```\nHope this helps!', None),
        ('```json\n{"a": 1}\n```\n\n```json\n{"b": 2}\n```', None),
        ('```json\n{"a": 1', '{"a": 1'),
        ('```\n{"code": "```x```"}\n```\n', '{"code": "```x```"}'),
    ],
)
def test_a_whole_answer_is_stripped_only_of_a_fence_around_it(text: str, answer: str | None) -> None:
    """Words or another fence behind the closing one: nothing is removed, for half a repair is none."""
    strip = FenceStrip()
    assert (strip.whole(text), strip.repaired) == (text if answer is None else answer, answer is not None)
