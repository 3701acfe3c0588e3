"""Two versions of a tokenizer, held against each other: which texts have other ids, and which ids mean something else.

In: a registry's tokenizers and a corpus. Out: a `Comparison` per pair of versions: each version with the one before it,
and with the one that it says it is compatible with. That promise is broken by a text with other ids, an id with other
bytes, or a conversation that is told otherwise; ids that are new break nothing. Never: a judgement by the hash, which
changes with a blank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from proxy.toon.registry import TokenizerEntry
from proxy.toon.tokenizers import TemplateError, Tokenizer, load_tokenizer

_CHAT = (
    {"role": "system", "content": "You are terse. संक्षिप्त उत्तर दो।"},
    {"role": "user", "content": "سلام! 你好 🙂"},
    {"role": "assistant", "content": "Γειά σου."},
    {"role": "user", "content": "  two\n\nlines "},
)


@dataclass(frozen=True, slots=True)
class MovedText:
    """`line` is 1-based among the script's texts; `at` is the first id that differs."""

    script: str
    line: int
    text: str
    old: Sequence[int]
    new: Sequence[int]
    at: int


@dataclass(frozen=True, slots=True)
class MovedId:
    """What an id of the old version means in both; None where it means nothing."""

    id: int
    old: str
    new: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`promised`: the new version says that it is compatible with the old one. `added`: ids that only the new has."""

    old: str
    new: str
    promised: bool
    texts: int
    moved_texts: Sequence[MovedText]
    moved_ids: Sequence[MovedId]
    added: int
    chat_moved: bool

    @property
    def is_equal(self) -> bool:
        return not (self.moved_texts or self.moved_ids or self.chat_moved)

    @property
    def is_broken(self) -> bool:
        return self.promised and not self.is_equal


def compare_versions(
    tokenizers: Mapping[str, TokenizerEntry],
    corpus: Mapping[str, Sequence[str]],
    load: Callable[[Path], Tokenizer] = load_tokenizer,
) -> list[Comparison]:
    """By version, ascending. Raises `ConfigError` for a tokenizer that cannot be read."""
    loaded = {version: load(entry.folder) for version, entry in sorted(tokenizers.items())}
    promised = {
        (entry.compatible_with, version) for version, entry in tokenizers.items() if entry.compatible_with is not None
    }
    pairs = sorted({*pairwise(loaded), *promised}, key=lambda pair: (pair[1], pair[0]))
    return [_compare(old, new, (old, new) in promised, loaded, corpus) for old, new in pairs]


def _compare(
    old: str, new: str, promised: bool, loaded: Mapping[str, Tokenizer], corpus: Mapping[str, Sequence[str]]
) -> Comparison:
    before, after = loaded[old], loaded[new]
    pieces = len(after.vocabulary.pieces) - len(before.vocabulary.pieces)
    return Comparison(
        old=old,
        new=new,
        promised=promised,
        texts=sum(map(len, corpus.values())),
        moved_texts=_moved_texts(before, after, corpus),
        moved_ids=_moved_ids(before, after),
        added=max(0, pieces),
        chat_moved=_chat(before) != _chat(after),
    )


def _moved_texts(before: Tokenizer, after: Tokenizer, corpus: Mapping[str, Sequence[str]]) -> list[MovedText]:
    moved = []
    for script, texts in corpus.items():
        for line, text in enumerate(texts, 1):
            old, new = before.encode(text), after.encode(text)
            if old != new:
                at = next(
                    (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
                )
                moved.append(MovedText(script, line, text, old, new, at))
    return moved


def _moved_ids(before: Tokenizer, after: Tokenizer) -> list[MovedId]:
    """An id that was a special token and now is a text, or the other way round, has moved too."""
    moved = []
    for one, piece in enumerate(before.vocabulary.pieces):
        is_gone = one >= len(after.vocabulary.pieces)
        turned = (one in before.vocabulary.special) != (one in after.vocabulary.special)
        if is_gone or turned or piece != after.bytes_of(one):
            moved.append(MovedId(one, _shown(piece), None if is_gone else _shown(after.bytes_of(one))))
    return moved


def _shown(piece: bytes) -> str:
    """A part of a character by its bytes."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "".join(f"\\x{byte:02x}" for byte in piece)


def _chat(tokenizer: Tokenizer) -> list[int] | None:
    """A conversation's ids; None where the template, if there is one, takes none such."""
    try:
        return tokenizer.chat_ids(_CHAT)
    except TemplateError:
        return None
