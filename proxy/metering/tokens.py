"""The one shared tokenizer (contract L2): text in, its number of `o200k_base` tokens out.

The vocabulary is the one inside the installed quicktok package. It is written out again in tiktoken's own form and
must have the hash that tiktoken expects; it never comes from the network. quicktok does the daily work (4-7x faster,
and its `count` releases the GIL); tiktoken, fed with the same ranks, is the reference that a parity test holds it to,
and counts the few texts with characters that quicktok does not know yet.

Text that spells a special token (`<|endoftext|>`) counts as ordinary text: it came from a person or a model and means
nothing here. A lone surrogate counts as U+FFFD, a pair of halves as the character they make.
"""

from __future__ import annotations

import base64
import hashlib
import re
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


# Characters that came with Unicode 17: tiktoken knows them for letters, marks or digits, quicktok 0.4.0 does not, and
# splits text around them otherwise. Where one occurs tiktoken counts. A test looks for any other difference.
_NEWER = (
    "\u088f\u0c5c\u0cdc\u1acf-\u1add\u1ae0-\u1aeb\ua7ce-\ua7cf\ua7d2\ua7d4\ua7f1"
    "\U00010940-\U00010959\U00010ec5-\U00010ec7\U00010efa-\U00010efb\U00011b60-\U00011b67\U00011db0-\U00011ddb"
    "\U00011de0-\U00011de9\U00016ea0-\U00016eb8\U00016ebb-\U00016ed3\U00016ff2-\U00016ff6\U000187f8-\U000187ff"
    "\U00018d09-\U00018d1e\U00018d80-\U00018df2\U0001e6c0-\U0001e6de\U0001e6e0-\U0001e6f5\U0001e6fe-\U0001e6ff"
    "\U0002b73a-\U0002b73f\U0002cea2-\U0002cead\U000323b0-\U00033479"
)
_HAS_NEWER = re.compile(f"[{_NEWER}]")
# The same, coarser and eight times faster: 4 ns a character, and rarely true (no emoji, no CJK in common use).
_MAY_HAVE_NEWER = re.compile(
    "[\u088f\u0c5c\u0cdc\u1acf-\u1aeb\ua7ce-\ua7f1\U00010940-\U00018df2\U0001e6c0-\U0001e6ff\U0002b73a-\U00033479]"
)


class TokenCounter(Protocol):
    """Counts tokens. `name` is the vocabulary, `version` the package that applies it. Any `str` may be counted, on any
    thread; nothing raises."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    def count(self, text: str) -> int: ...


def needs_reference(text: str) -> bool:
    """Whether `text` holds what only tiktoken splits right. Counting it is slow, and the first time very slow."""
    return not text.isascii() and _MAY_HAVE_NEWER.search(text) is not None and _HAS_NEWER.search(text) is not None


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


class _FastCounter(_Counter):
    __slots__ = ()

    def count(self, text: str) -> int:
        return load_reference().count(text) if needs_reference(text) else super().count(text)


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
    return _FastCounter(f"quicktok-v1 {quicktok.__version__}", encoding.count, TypeError)


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
