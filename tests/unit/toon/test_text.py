"""`proxy.toon.text`: ids become text on whole characters, the same by every cut, and as the package says it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from proxy.toon.text import TextDecoder, Vocabulary, load_vocabulary
from tests.support.scripts import END, SCRIPTS, byte_fallback, byte_level

BYTES = load_vocabulary(byte_level())
FALLBACK = load_vocabulary(byte_fallback())
KINDS = [pytest.param(BYTES, byte_level(), id="byte level"), pytest.param(FALLBACK, byte_fallback(), id="fallback")]


def pieces_of(vocabulary: Vocabulary, portions: list[list[int]]) -> list[str]:
    decoder = TextDecoder(vocabulary)
    return [*(decoder.feed(portion) for portion in portions), decoder.finish()]


@pytest.mark.parametrize(("vocabulary", "tokenizer"), KINDS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_id_at_a_time_is_the_whole_text(script: str, vocabulary: Vocabulary, tokenizer: Tokenizer) -> None:
    """No piece has half a character, and joined they are the text."""
    ids = tokenizer.encode(SCRIPTS[script]).ids
    pieces = pieces_of(vocabulary, [[one] for one in ids])
    assert "".join(pieces) == SCRIPTS[script] == tokenizer.decode(ids)
    assert not any("\ufffd" in piece for piece in pieces)
    assert pieces[-1] == "", "nothing was held at the end"


@given(
    texts=st.lists(st.sampled_from(list(SCRIPTS.values())), min_size=1, max_size=3),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    stop=st.integers(0, 400),
    kind=st.sampled_from([(BYTES, byte_level()), (FALLBACK, byte_fallback())]),
)
def test_cuts_change_nothing(texts: list[str], cuts: list[int], stop: int, kind: tuple[Vocabulary, Tokenizer]) -> None:
    """Any portions, and any end, inside of a character too: the text of all ids at once."""
    vocabulary, tokenizer = kind
    ids = tokenizer.encode(" ".join(texts)).ids[: stop or None]
    edges = [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
    pieces = pieces_of(vocabulary, [ids[a:b] for a, b in pairwise(edges)])
    assert "".join(pieces) == vocabulary.text_of(ids)
    assert all("\ufffd" not in piece for piece in pieces[:-1]), "half a character is held, not told"


@given(st.lists(st.integers(0, byte_level().get_vocab_size() - 1), max_size=40), st.booleans())
def test_any_ids_are_what_the_package_makes_of_them(ids: list[int], keep: bool) -> None:
    """Bytes that are no text, special and added tokens among them."""
    expected = byte_level().decode(ids, skip_special_tokens=not keep)
    decoder = TextDecoder(BYTES, keep_special=keep)
    assert "".join(decoder.feed([one]) for one in ids) + decoder.finish() == expected


def test_half_a_character_is_held() -> None:
    """Each id is one byte of 👋: nothing until the last of them."""
    wave = [BYTES.pieces.index(bytes([byte])) for byte in "👋".encode()]
    assert pieces_of(BYTES, [[one] for one in wave]) == ["", "", "", "👋", ""]
    assert pieces_of(BYTES, [wave[:3]]) == ["", "\ufffd"]
    letter = BYTES.pieces.index(b"s")
    assert pieces_of(BYTES, [wave[:3], [letter]]) == ["", "\ufffds", ""]


def test_special_tokens_are_no_text_unless_wanted() -> None:
    """One between the halves of a character does not part them."""
    end = byte_level().get_vocab()[END]
    first, second = (BYTES.pieces.index(bytes([byte])) for byte in "م".encode())
    assert BYTES.text_of([first, end, second]) == "م"
    assert BYTES.text_of([end, first, second], keep_special=True) == f"{END}م"
    assert FALLBACK.text_of([1, 2]) == ""
    assert FALLBACK.text_of([1, 2], keep_special=True) == "<s></s>"


def test_a_space_at_the_start_stays_and_wrong_bytes_do_not_spoil_right_ones() -> None:
    """An answer goes on from its prompt; and what is whole is told before what is wrong comes."""
    names = byte_fallback().get_vocab()
    assert FALLBACK.text_of([names["▁the"]]) == " the"
    bytes_of = [names[f"<0x{byte:02X}>"] for byte in [*"世".encode(), 0xFF]]
    assert FALLBACK.text_of([*bytes_of, names["你"]]) == "世\ufffd你"


def test_ids_without_a_name_are_counted() -> None:
    """A model's vocabulary may be larger than its tokenizer's."""
    decoder = TextDecoder(BYTES)
    assert decoder.feed([10**9, -1]) == ""
    assert decoder.unknown == 2


def test_a_vocabulary_comes_from_wherever_it_is(tmp_path: Path) -> None:
    """A folder, its file, its JSON, and the package's own object; Unigram as well."""
    file = tmp_path / "tokenizer.json"
    file.write_text(byte_level().to_str(), encoding="utf-8")
    assert load_vocabulary(tmp_path) == load_vocabulary(str(file)) == load_vocabulary(json.loads(file.read_text()))
    assert load_vocabulary(file) == BYTES
    pairs = {"vocab": [["<0xD8>", 0], ["<0xB3>", 0], ["▁你", -1.5]]}
    assert load_vocabulary({"model": pairs, "decoder": {"type": "Metaspace"}}).text_of([0, 1, 2]) == "س 你"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{", "is no tokenizer.json"),
        ("[]", "holds no object"),
        ('{"model": {}, "decoder": {"type": "ByteLevel"}}', "has no vocabulary"),
        ('{"model": {"vocab": {}}, "decoder": {"type": "WordPiece"}}', "decoder is WordPiece; known are"),
        ('{"model": {"vocab": {}}, "decoder": null}', "decoder is none"),
        ('{"model": {"vocab": {"a": "x"}}, "decoder": {"type": "ByteLevel"}}', "not as the package"),
        ('{"model": {"vocab": {}}, "decoder": {"type": "ByteLevel"}, "added_tokens": [{}]}', "not as the package"),
    ],
)
def test_what_is_no_tokenizer_is_refused_with_a_reason(written: str, told: str, tmp_path: Path) -> None:
    """In words that say what was found."""
    (tmp_path / "tokenizer.json").write_text(written)
    with pytest.raises(ValueError, match=told):
        load_vocabulary(tmp_path)
