"""The shared tokenizer: exact, offline, and held to tiktoken."""

from __future__ import annotations

import random
import unicodedata

import pytest
import quicktok  # type: ignore[import-untyped]  # a binary module without stubs
from hypothesis import given
from hypothesis import strategies as st
from tiktoken_ext import openai_public  # type: ignore[import-untyped]  # ships no type marker

from proxy.errors import SluiceError
from proxy.metering import tokens
from proxy.metering.tokens import load_counter, load_reference, tokenizer_id

SCRIPTS = [
    "",
    "Hello, world! It's 12345.678 o'clock; they'll've gone.",
    "سلام دنیا، می‌خواهم ۱۲۳ کتاب بخوانم؟",
    "مرحبا بالعالم: كيف حالك اليوم؟",
    "你好，世界！今天天气怎么样？",
    "नमस्ते दुनिया, क्या हाल है? क्षत्रिय",
    "안녕하세요 세계! 각각의 자모",
    "สวัสดีชาวโลก",
    "ສະບາຍດີ ຊາວໂລກ",
    "Привет, мир! Ёлка",
    "γειά σου Κόσμε",
    "שלום עולם",
    "👩‍👩‍👧‍👦 🇮🇷🇨🇳 👍🏽 e\u0301 \u200d\ufe0f",
    'def f(x):\n\treturn {"a": [1, 2.5e-3]}  # \r\n\r\n   \n',
    '{"name":"get_weather","arguments":"{\\"city\\": \\"تهران\\"}"}',
    "   \t\n\n  leading and trailing   \n",
    "a\u2028b\u2029c\u0085d\0e",
    "A" * 3000,
    " " * 3000,
    "ab" * 1500,
    "<|endoftext|> and <|endofprompt|> and <|start|>",
]
PIECES = [piece for script in SCRIPTS[1:16] for piece in script.split(" ")] + [" ", "\n", "\r\n", "'s", "  ", "7", "\t"]


@pytest.mark.clause("L2")
@pytest.mark.parametrize("text", SCRIPTS, ids=range(len(SCRIPTS)))
def test_the_fast_counter_agrees_with_tiktoken_in_every_script(text: str) -> None:
    """The counter for daily work gives the number of tokens that tiktoken gives."""
    assert load_counter().count(text) == load_reference().count(text)


@pytest.mark.clause("L2")
def test_the_fast_counter_agrees_with_tiktoken_on_thousands_of_mixed_texts() -> None:
    """No mix of scripts, spaces, digits and marks makes the two counters differ."""
    chance = random.Random(20260301)
    fast, judge = load_counter(), load_reference()
    for _ in range(3000):
        text = "".join(chance.choices(PIECES, k=chance.randint(1, 30)))
        assert fast.count(text) == judge.count(text), text


@pytest.mark.clause("L2")
@given(st.text(st.characters(codec=None), max_size=200))
def test_the_fast_counter_agrees_with_tiktoken_on_any_text(text: str) -> None:
    """Neither counter raises on any string, half surrogates included, and they agree."""
    assert load_counter().count(text) == load_reference().count(text)


@pytest.mark.clause("L2")
def test_there_is_no_character_that_the_two_counters_treat_differently() -> None:
    """Every character that is not ages old is tried between letters, digits and marks: a new version of either counter
    that knows more of Unicode than the other is found here, and its characters belong into `_NEWER`."""
    fast, judge = load_counter(), load_reference()
    planes = (*range(0x40000), *range(0xE0000, 0xF0000))
    young = [chr(code) for code in planes if unicodedata.category(chr(code)) == "Cn"]
    assert len(young) > 100_000
    for character in young:
        text = f"{character}:A a{character}B 1{character}1\n{character}"
        assert fast.count(text) == judge.count(text), hex(ord(character))


def test_the_spelling_of_a_special_token_counts_as_ordinary_text() -> None:
    """A user who writes `<|endoftext|>` has written seven tokens, not one."""
    assert load_counter().count("<|endoftext|>") == load_reference().count("<|endoftext|>") == 7


def test_half_surrogates_count_as_replacement_characters_and_pairs_as_their_character() -> None:
    """What a vendor escaped in two halves counts as the one character it is; a lone half counts as U+FFFD."""
    counter = load_counter()
    assert counter.count("ok \ud83d") == counter.count("ok \ufffd")
    assert counter.count("ok \ud83d\ude00") == counter.count("ok 😀")


def test_pattern_hash_and_special_tokens_are_those_that_tiktoken_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our copies of what o200k is made of are tiktoken's own."""
    asked: list[str] = []

    def load(url: str, expected_hash: str) -> dict[bytes, int]:
        asked.append(expected_hash)
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    original = openai_public.o200k_base()
    assert asked == [tokens.VOCABULARY_SHA256]
    assert (original["pat_str"], original["special_tokens"]) == (tokens.PATTERN, tokens.SPECIAL_TOKENS)


def test_another_vocabulary_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose vocabulary has another hash is not counted with; the message says what to do."""

    class Other:
        def decode_single_token_bytes(self, rank: int) -> bytes:
            return b"%d" % rank

    monkeypatch.setattr(quicktok, "get_encoding", lambda name: Other())
    load_counter.cache_clear()
    try:
        with pytest.raises(SluiceError, match=r"sha256 .* not 446a9538.*Install the locked version"):
            load_counter()
    finally:
        load_counter.cache_clear()


def test_the_row_names_vocabulary_and_counter() -> None:
    """What a row calls its tokenizer has the vocabulary's name, the start of its hash, and what counted."""
    assert tokenizer_id(load_counter()) == f"o200k_base/446a9538/quicktok-v1-{quicktok.__version__}"
    assert tokenizer_id(load_reference()).startswith("o200k_base/446a9538/tiktoken-")
