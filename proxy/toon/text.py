"""Ids to text on whole characters, as they come, from a `tokenizer.json` alone.

In: a tokenizer (a folder, a file, its JSON, or an object of the package `tokenizers`) and ids in any portions. Out:
text that never ends inside a code point; joined, it is what all ids at once decode to. What never became whole is
U+FFFD. Code points are the promise: a cluster of several (a family of emoji, a Devanagari conjunct) may come in two
pieces, for who shows ids as text can join them, and who wants to wait has the proxy's chat routes.

Two kinds of vocabulary are known: bytes written as letters (the decoder `ByteLevel`, GPT-2's alphabet), and texts with
bytes as `<0xNN>` (`ByteFallback`, from SentencePiece). In one thing this differs from the package: of bytes that are no
UTF-8, only those that are wrong become U+FFFD, and not the whole run around them, or nothing could be said before it
ends. A space at the start stays, for an answer goes on from its prompt. Never: torch, transformers, a network, and no
exception for an id that the vocabulary lacks (it has no text, and `unknown` counts it).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, Protocol

import orjson

_BYTE: Final = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
_FILE: Final = "tokenizer.json"


class HasJson(Protocol):
    """A `tokenizers.Tokenizer`, of which no more is needed."""

    def to_str(self) -> str: ...


#: Where a vocabulary may come from.
Source = str | PathLike[str] | Mapping[str, object] | HasJson


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The bytes of each id, b"" where it has none, and the ids that are no text (`<|im_end|>` and the like)."""

    pieces: Sequence[bytes]
    special: frozenset[int]

    def text_of(self, ids: Iterable[int], *, keep_special: bool = False) -> str:
        """All ids at once."""
        decoder = TextDecoder(self, keep_special=keep_special)
        return decoder.feed(ids) + decoder.finish()


class TextDecoder:
    """Is fed ids and gives the text that they made whole. One per answer."""

    __slots__ = ("_bytes", "_pieces", "_skipped", "unknown")

    def __init__(self, vocabulary: Vocabulary, *, keep_special: bool = False) -> None:
        self._pieces = vocabulary.pieces
        self._skipped = frozenset() if keep_special else vocabulary.special
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self.unknown = 0
        """How many ids were beyond the vocabulary."""

    def feed(self, ids: Iterable[int]) -> str:
        """ "" while no character is whole."""
        return self._bytes.decode(b"".join(map(self._piece, ids)))

    def finish(self) -> str:
        """What is held: a character that never became whole. Called once."""
        return self._bytes.decode(b"", final=True)

    def _piece(self, one: int) -> bytes:
        if one in self._skipped:
            return b""
        if not 0 <= one < len(self._pieces):
            self.unknown += 1
            return b""
        return self._pieces[one]


def load_vocabulary(source: Source) -> Vocabulary:
    """Reads a tokenizer once. `ValueError` says what of it is not known here. A file is read: not for an event loop."""
    tokenizer = _json_of(source)
    try:
        return _vocabulary(tokenizer)
    except (KeyError, TypeError) as error:
        raise ValueError(f"this tokenizer's JSON is not as the package `tokenizers` writes it: {error!r}") from error


def _json_of(source: Source) -> Mapping[str, object]:
    if isinstance(source, Mapping):
        return source
    if isinstance(source, str | PathLike):
        file = Path(source)
        file = file / _FILE if file.is_dir() else file
        told, name = file.read_bytes(), str(file)
    else:
        told, name = source.to_str().encode(), type(source).__name__
    try:
        value = orjson.loads(told)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{name} is no tokenizer.json: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no tokenizer.json: it holds no object")
    return value


def _vocabulary(tokenizer: Mapping[str, object]) -> Vocabulary:
    decoders = _decoders(tokenizer.get("decoder"))
    names = _names(tokenizer.get("model"))
    if "ByteLevel" in decoders:
        table = {one: _bytes_of_letters(name) for one, name in names.items()}
    elif decoders & {"ByteFallback", "Metaspace"}:
        table = {one: _bytes_or_text(name) for one, name in names.items()}
    else:
        told = ", ".join(sorted(decoders)) or "none"
        raise ValueError(f"this tokenizer's decoder is {told}; known are ByteLevel, ByteFallback and Metaspace")
    special = set()
    for one, content, is_special in _added(tokenizer.get("added_tokens")):
        table[one] = _bytes_of_letters(content) if "ByteLevel" in decoders else content.encode()
        if is_special:
            special.add(one)
    return Vocabulary([table.get(one, b"") for one in range(max(table, default=-1) + 1)], frozenset(special))


def _decoders(decoder: object) -> set[str]:
    """The kinds of the decoder's steps."""
    if not isinstance(decoder, Mapping):
        return set()
    steps = decoder.get("decoders")
    if decoder.get("type") == "Sequence" and isinstance(steps, list):
        return set().union(*map(_decoders, steps))
    return {str(decoder.get("type"))}


def _names(model: object) -> dict[int, str]:
    """Ids and their names: an object of names (BPE), or pairs of name and score in their order (Unigram)."""
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else None
    if isinstance(vocabulary, Mapping):
        return {one: name for name, one in vocabulary.items()}
    if isinstance(vocabulary, list):
        return {one: pair[0] for one, pair in enumerate(vocabulary)}
    raise ValueError("this tokenizer's model has no vocabulary")


def _added(added: object) -> Iterable[tuple[int, str, bool]]:
    for one in added if isinstance(added, list) else ():
        yield one["id"], one["content"], bool(one.get("special"))


def _alphabet() -> dict[str, int]:
    """GPT-2's letters for bytes: those that print stand for themselves, the others follow from U+0100."""
    prints = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in prints]
    return {chr(byte): byte for byte in prints} | {chr(0x100 + at): byte for at, byte in enumerate(others)}


_LETTERS: Final = _alphabet()


def _bytes_of_letters(name: str) -> bytes:
    """A name with a letter that stands for no byte is meant as it is written, as the package has it."""
    try:
        return bytes([_LETTERS[letter] for letter in name])
    except KeyError:
        return name.encode()


def _bytes_or_text(name: str) -> bytes:
    if (byte := _BYTE.match(name)) is not None:
        return bytes((int(byte[1], 16),))
    return name.replace("▁", " ").encode()
