"""Long answers through the running proxy: counted exactly, and while they are written (contract L2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from proxy.metering.tokens import load_counter
from proxy.stores.counting import GrowingCount
from tests.support.answers import ROLE, STOP, chunk, encode, events, say
from tests.support.proxy import chat, running_proxy
from tests.support.upstream import Play, ReplayUpstream

pytestmark = [pytest.mark.clause("L2"), pytest.mark.timeout(60)]

#: No text of its own ends where a delta ends.
SENTENCES = "می‌خواهم فردا ساعت ۱۷ بروم، it's fine。明天见！ क्षमा करें। Ёлка 👩‍👩‍👧 \n\n  "
TIMES = 16_000


def deltas(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pieces were there each time that an answer was given to the thread."""
    seen: list[int] = []
    original = GrowingCount.take

    def take(self: GrowingCount, texts: Sequence[list[str]]) -> None:
        seen.append(sum(map(len, texts)))
        original(self, texts)

    monkeypatch.setattr(GrowingCount, "take", take)
    return seen


@pytest.mark.parametrize("size", [997, 70_001], ids=["small deltas", "large deltas"])
async def test_a_long_answer_is_counted_while_it_is_written(tmp_path: Path, size: int, taken: list[int]) -> None:
    """Whatever its deltas' size, and though each is rewritten because of a letter that is held; reasoning apart."""
    thought, text = "думаю, значит " * TIMES, SENTENCES * TIMES
    says = [chunk({"reasoning_content": part}) for part in deltas(thought, size)] + [
        say(part) for part in deltas(text, size)
    ]
    play = Play([(0.0, events([ROLE, *says, STOP, b"[DONE]"]))])
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask(chat(), timeout_s=30.0)
        row = await proxy.row()

    assert reply.text == text
    count = load_counter().count
    # reasoning and text are one text of choice 0, in the order in which they came
    assert row["counted"]["output"] == count(thought + text)
    assert row["counted_reasoning"] == count(thought)
    assert row["delivered_output"] == count(thought + text)
    assert len(taken) >= 5, "some 5 MB of text, each 256 KiB"


async def test_each_choice_of_a_long_answer_is_counted_by_itself(tmp_path: Path, taken: list[int]) -> None:
    """Two choices side by side, and one that ends early: the sum of their counts."""

    def of(index: int, delta: dict[str, object], finish: str | None = None) -> bytes:
        one = {"index": index, "delta": delta, "finish_reason": finish}
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return encode({**head, "choices": [one]})

    texts = ["سلام، دنیا! " * 30_000, "你好，世界。" * 30_000, "ok"]
    parts = [deltas(text, 501) for text in texts]
    said = [
        of(index, {"content": pieces[number]})
        for number in range(max(map(len, parts)))
        for index, pieces in enumerate(parts)
        if number < len(pieces)
    ]
    ends = [of(index, {}, "stop") for index in range(3)]
    play = Play([(0.0, events([*said, *ends, b"[DONE]"]))])
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        await proxy.ask(chat(n=3), timeout_s=30.0)
        row = await proxy.row()

    assert row["counted"]["output"] == sum(map(load_counter().count, texts))
    assert row["delivered_output"] == row["counted"]["output"]
    assert row["counted_reasoning"] == 0
    assert len(taken) >= 3
