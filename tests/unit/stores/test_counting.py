"""Counting inline or in a thread."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.metering.meter import INLINE_CHARS, INLINE_TEXTS, INLINE_WIDE_CHARS
from proxy.metering.prompt import ANSWER_TOKENS, MESSAGE_TOKENS, count_prompt
from proxy.metering.tokens import load_counter, needs_reference
from proxy.stores.counting import CountingPool


class Watched:
    """A counter that remembers on which threads it counted."""

    name = version = "watched"

    def __init__(self) -> None:
        self.threads: set[threading.Thread] = set()

    def count(self, text: str) -> int:
        self.threads.add(threading.current_thread())
        return load_counter().count(text)


@pytest.mark.clause("L2")
@pytest.mark.parametrize("pieces", [["سلام", " دنیا"], ["word "] * (INLINE_CHARS // 2), ["你好，世界。"] * 40_000, []])
async def test_the_count_is_that_of_the_joined_text_wherever_it_is_made(pieces: list[str]) -> None:
    """Short texts are counted at once, long ones in another thread, with the same result."""
    counter = Watched()
    pool = CountingPool(counter)
    assert await pool.count([pieces]) == [load_counter().count("".join(pieces))]
    inline = counter.threads == {threading.main_thread()}
    assert inline is (sum(map(len, pieces)) <= INLINE_CHARS)
    pool.close()


@pytest.mark.parametrize("words", [2, 5000])
async def test_a_prompt_is_counted_whole_wherever_it_is_counted(words: int) -> None:
    """A large request is walked in the thread too."""
    counter = Watched()
    pool = CountingPool(counter)
    body: dict[str, object] = {
        "messages": [{"role": "user", "content": "کلمه " * words}, {"role": "user", "content": "?"}]
    }
    found = await pool.count_prompt(body, body_bytes=words * 10)
    texts = load_counter().count("user\n" + "کلمه " * words + "\nuser\n?")
    assert found == texts + 2 * MESSAGE_TOKENS + ANSWER_TOKENS
    assert (threading.main_thread() in counter.threads) is (words == 2)
    pool.close()


@pytest.mark.clause("L2")
@pytest.mark.parametrize("cut", [1, 7, 1000])
async def test_an_answer_counted_while_it_grows_has_the_count_of_the_whole(cut: int) -> None:
    """In another thread, in any steps, in ten scripts; nothing is counted on the loop."""
    text = 'سلام دنیا، it\'s 你好。नमस्ते दुनिया 안녕하세요 สวัสดี Привет שלום é́ 👨‍👩‍👧 \n\n  {"a": 1}' * 300
    pieces = [text[start : start + cut] for start in range(0, len(text), cut)]
    counter = Watched()
    pool = CountingPool(counter)
    growing = pool.growing()
    said: list[str] = []
    other: list[str] = []
    for number, piece in enumerate(pieces):
        said.append(piece)
        if number % 3 == 0:
            other.append(piece)
        if number % max(1, len(pieces) // 9) == 0:
            growing.take([said, other])
    late = ["そして、"] * 3
    assert await growing.totals([said, late, other]) == [
        load_counter().count("".join(each)) for each in (said, late, other)
    ]
    assert threading.main_thread() not in counter.threads
    pool.close()


@pytest.mark.clause("L2")
async def test_a_count_that_was_given_up_is_made_again_and_counts_nothing_twice() -> None:
    """The client leaves while the end of its long answer is being counted; its row asks once more."""
    gate = threading.Event()

    class Slow(Watched):
        def count(self, text: str) -> int:
            assert gate.wait(60)
            return super().count(text)

    pool = CountingPool(Slow())
    growing = pool.growing()
    said = ["سلام، "] * 40_000
    growing.take([said])
    said += ["وداع. "] * 10
    first = asyncio.ensure_future(growing.totals([said]))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await growing.totals([said]) == [load_counter().count("".join(said))]
    pool.close()


@pytest.mark.clause("L2")
async def test_a_count_that_failed_is_not_counted_over() -> None:
    """What goes wrong in the thread is heard by the one who asks for the sum."""

    class Broken(Watched):
        def count(self, text: str) -> int:
            raise MemoryError

    pool = CountingPool(Broken())
    growing = pool.growing()
    growing.take([["words, and more "] * 10_000])
    with pytest.raises(MemoryError):
        await growing.totals([["end"]])
    pool.close()


class Inline(Watched):
    """Remembers how many characters were counted on the event loop, one entry for each time."""

    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []

    def count(self, text: str) -> int:
        if threading.current_thread() is threading.main_thread():
            self.inline.append(text)
        return super().count(text)


@pytest.mark.clause("L2")
@given(
    st.lists(st.tuples(st.sampled_from(["word ", "کلمه ", "字", "\U000323b0", ""]), st.integers(0, 3000)), max_size=40)
)
@settings(max_examples=60)
def test_what_is_counted_on_the_loop_is_bounded_in_sum(choices: list[tuple[str, int]]) -> None:
    """However many choices an answer has: together no more than one short text, else all of them in a thread."""
    counter = Inline()
    pool = CountingPool(counter)
    texts = [[word] * times for word, times in choices]
    found = asyncio.run(pool.count(texts))
    pool.close()
    assert found == [load_counter().count("".join(pieces)) for pieces in texts]
    wide = sum(len(text) for text in counter.inline if not text.isascii())
    narrow = sum(map(len, counter.inline)) - wide
    assert narrow / INLINE_CHARS + wide / INLINE_WIDE_CHARS <= 1
    assert len(counter.inline) <= INLINE_TEXTS
    assert not any(map(needs_reference, counter.inline))


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{}] * 500},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "آ"}] * 100}]},
        {"messages": [{"role": "user", "content": "?"}], "tools": [{}] * 100},
        {"texts": ["a"] * 100},
    ],
    ids=["messages", "parts", "tools", "texts"],
)
async def test_a_request_of_many_small_things_is_walked_in_a_thread(body: dict[str, object]) -> None:
    """A few bytes can hold thousands of messages: not their size, their number keeps the event loop."""
    counter = Inline()
    pool = CountingPool(counter)
    assert await pool.count_prompt(body, body_bytes=100) == count_prompt(load_counter(), body)
    assert counter.inline == []
    pool.close()
