"""The one shared tokenizer (contract L2): text in, its number of `o200k_base` tokens out.

The vocabulary is the one inside the installed quicktok package. It is written out again in tiktoken's own form and
must have the hash that tiktoken expects; it never comes from the network. quicktok does the daily work (4-7x faster,
and its `count` releases the GIL); tiktoken, fed with the same ranks, is the reference that a parity test holds it to.

Text that spells a special token (`<|endoftext|>`) counts as ordinary text: it came from a person or a model and means
nothing here. A lone surrogate counts as U+FFFD, a pair of halves as the character they make.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from typing import Protocol

import quicktok  # type: ignore[import-untyped]  # a binary module without stubs

from proxy.errors import SluiceError

O200K = "o200k_base"
VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"  # tiktoken_ext/openai_public.py
VOCABULARY_SIZE = 199_998
SPECIAL_TOKENS = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}

# How o200k splits text before the ranks are applied; as in tiktoken_ext/openai_public.py, which a test compares.
PATTERN = "|".join(
    [
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)


class TokenCounter(Protocol):
    """Counts tokens. `name` is the vocabulary, `version` the package that applies it. Any `str` may be counted, on any
    thread; nothing raises."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    def count(self, text: str) -> int: ...


class _Counter:
    """A counter over one function that refuses lone surrogates with `refusal`."""

    __slots__ = ("_count", "_refusal", "name", "version")

    def __init__(self, version: str, count: Callable[[str], int], refusal: type[Exception]) -> None:
        self.name, self.version = O200K, version
        self._count, self._refusal = count, refusal

    def count(self, text: str) -> int:
        try:
            return self._count(text)
        except self._refusal:
            return self._count(whole(text))


def whole(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced: what tiktoken itself does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def tokenizer_id(counter: TokenCounter) -> str:
    """What the row's `tokenizer` says: vocabulary, the start of its hash, and what counted."""
    return f"{counter.name}/{VOCABULARY_SHA256[:8]}/{counter.version.replace(' ', '-')}"


@cache
def load_counter() -> TokenCounter:
    """The counter for daily work. Loads once (about 0.6 s); a parent that forks should call it first."""
    _load_vocabulary()
    encoding = quicktok.get_encoding(O200K)
    return _Counter(f"quicktok-v1 {quicktok.__version__}", encoding.count, TypeError)


@cache
def load_reference() -> TokenCounter:
    """tiktoken over the same ranks: the slow judge of the fast counter."""
    import tiktoken  # 0.2 s that the proxy itself does not need

    encoding = tiktoken.Encoding(
        O200K, pat_str=PATTERN, mergeable_ranks=_load_vocabulary(), special_tokens=SPECIAL_TOKENS
    )
    return _Counter(
        f"tiktoken {tiktoken.__version__}", lambda text: len(encoding.encode_ordinary(text)), UnicodeEncodeError
    )


def _load_vocabulary() -> dict[bytes, int]:
    """Token bytes to rank, checked against tiktoken's hash. Raises `SluiceError` on another vocabulary."""
    encoding = quicktok.get_encoding(O200K)
    tokens: list[bytes] = [encoding.decode_single_token_bytes(rank) for rank in range(VOCABULARY_SIZE)]
    lines = b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    found = hashlib.sha256(lines).hexdigest()
    if found != VOCABULARY_SHA256:
        raise SluiceError(
            f"the {O200K} vocabulary in quicktok {quicktok.__version__} has sha256 {found}, not {VOCABULARY_SHA256}: "
            "counts would not be comparable. Install the locked version of quicktok-v1 again."
        )
    return {token: rank for rank, token in enumerate(tokens)}
