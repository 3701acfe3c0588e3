"""Counting inline or in a thread."""

from __future__ import annotations

import threading

import pytest

from proxy.metering.meter import INLINE_CHARS
from proxy.metering.prompt import ANSWER_TOKENS, MESSAGE_TOKENS
from proxy.metering.tokens import load_counter
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
    assert await pool.count(pieces) == load_counter().count("".join(pieces))
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
    for settled in range(0, len(pieces), max(1, len(pieces) // 9)):
        growing.take(pieces, settled)
    assert await growing.total(pieces) == load_counter().count(text)
    assert threading.main_thread() not in counter.threads
    pool.close()
