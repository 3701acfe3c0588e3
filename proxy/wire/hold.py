"""Keeps characters whole over deltas (contract W3): text in, the part of it that may leave now out.

In: the deltas of one field of one choice, as decoded from JSON; they may hold lone surrogates, because an upstream
wrote the two halves of a pair as escapes into two deltas. Out: text that never holds one. What is not whole waits in
`tail` until the next delta completes it or the caller, who owns the clock and `hold_ms`, calls `flush`. Nothing is ever
dropped or put in another order; what can never become a character becomes U+FFFD and is counted.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import StrEnum

import regex


class Boundary(StrEnum):
    """Where an event may end: after any character; not inside a cluster where models spread them over deltas; or never
    inside a cluster, which holds the last one of every delta back."""

    SCALAR = "scalar"
    GRAPHEME = "grapheme"
    STRICT = "strict"


# Longer than any cluster of any language (a family emoji has 11 characters, the Tibetan HAKṢHMALAWARAYAṀ 9); what is
# longer was made to be long, and is let go at a character's edge.
MAX_CLUSTER_CHARS = 256

# How far back to look for the head of the last cluster: most are short.
_WINDOWS = (8, 64, MAX_CLUSTER_CHARS + 8)

# What a tail is held after: all that the next character is likely to continue. Whole blocks where the script writes
# with combining signs, digits and punctuation too: in Persian a ZWNJ may follow a digit.
_OPEN = "".join(
    (
        r"\p{M}",  # combining signs, variation selectors, keycaps
        r"\u200C\u200D",  # the joiners: ZWNJ, ZWJ
        r"\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Regional_Indicator}\p{So}\p{Sk}",
        r"\U0001F000-\U0001FBFF\U000E0020-\U000E007F",  # emoji to come; tags, which write the flags of regions
        r"\p{Hangul_Syllable_Type=L}\p{Hangul_Syllable_Type=V}\p{Hangul_Syllable_Type=T}",
        r"\u0590-\u109F",  # Hebrew, Arabic, Syriac, Thaana, the Indic scripts, Thai, Lao, Tibetan, Myanmar
        r"\u1700-\u18AF\u1900-\u1C7F\u1CD0-\u1CFF",  # Philippine scripts, Khmer, Mongolian, Limbu to Lepcha, Vedic
        r"\uA800-\uABFF",  # Syloti Nagri, Saurashtra, Devanagari Extended, Javanese, Cham, Meetei Mayek
        r"\uFB1D-\uFDFF\uFE70-\uFEFF",  # Hebrew and Arabic presentation forms
        r"\U00010A00-\U00010A5F\U00010D00-\U00010D4F",  # Kharoshthi, Rohingya
        r"\U00011000-\U00011FFF\U0001E900-\U0001E95F",  # Brahmi, Chakma, Grantha and their kin, Adlam
        r"\uD800-\uDFFF",  # half a character
    )
)
# What begins a cluster of its own after anything but a Prepend: no rule of UAX 29 joins it to what stands before it.
_BEGINS = r"\p{GCB=Other}--\p{InCB=Consonant}--\p{Extended_Pictographic}"


def _edges_of(members: str) -> tuple[int, ...]:
    """The code points at which membership in a set changes, in order: a member comes after an odd number of them.

    ASCII is left out (`^` and the backtick are modifier symbols, but nobody combines them), and so are the planes
    without scripts. Looked up by bisection: one tenth of a microsecond, and a few hundred numbers for all of Unicode.
    """
    runs = regex.compile(f"[{members}]+", regex.V1)
    edges: list[int] = []
    for first, last in ((0x80, 0x1FFFF), (0xE0000, 0xE0FFF)):
        for run in runs.finditer("".join(map(chr, range(first, last + 1)))):
            edges += (first + run.start(), first + run.end())
    return tuple(edges)


_OPEN_EDGES = _edges_of(_OPEN)
_BEGINS_EDGES = _edges_of(_BEGINS)
_PREPEND = frozenset(regex.findall(r"\p{GCB=Prepend}", "".join(map(chr, range(0x20000)))))

# None of these is open; asked first, since in Chinese and Japanese nearly every delta ends in one.
_FIRST_HAN, _LAST_HAN = 0x4E00, 0x9FFF

_LAST_CLUSTER = regex.compile(r"\X\Z")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def settled(text: str) -> bool:
    """Does `text` end where no next character is waited for under `grapheme`? Looks at the last character only."""
    if text.isascii():
        return True
    code = ord(text[-1])
    return _FIRST_HAN <= code <= _LAST_HAN or not bisect_right(_OPEN_EDGES, code) & 1


class TextHold:
    """What is held of one field of one choice: `tail`, at most `MAX_CLUSTER_CHARS` and a surrogate.

    `replaced` counts the lone surrogates that became U+FFFD.
    """

    __slots__ = ("_before", "_is_grapheme", "_is_strict", "boundary", "replaced", "tail")

    def __init__(self, boundary: Boundary) -> None:
        self.boundary = boundary
        self.tail = ""
        self.replaced = 0
        self._is_grapheme = boundary is Boundary.GRAPHEME
        self._is_strict = boundary is Boundary.STRICT
        # The cluster that was flushed before it was known to be whole: what it means for the next characters stays
        # true. Half a flag makes the next half its own; after an emoji a joiner does not stand alone.
        self._before = ""

    def would_pass(self, text: str) -> bool:
        """Would `feed(text)` return `text` as it is and hold nothing? Then the caller may pass it on without `feed`.
        (False as well for the delta that follows a flush: `feed` has to forget what was flushed.)"""
        if self.tail or self._before:
            return False
        if text.isascii():
            return not (self._is_strict and text)
        if self._is_strict or (self._is_grapheme and not settled(text)):
            return False
        return not _has_surrogate(text)

    def feed(self, text: str) -> str:
        """The held tail and `text`, less what is held from now on."""
        if not text:
            return ""
        whole, half = self._joined(self.tail + text)
        start = self._start_of_tail(whole)
        self.tail = whole[start:] + half
        if start:
            self._before = ""
        return whole[:start]

    def flush(self) -> str:
        """The tail, whole or not: its time is up, or something else of its choice is to be sent."""
        whole, half = self._joined(self.tail)
        self.tail = ""
        if half:
            self.replaced += 1
        if whole:
            self._before = self._last_cluster(self._before + whole)
        return whole + (_REPLACEMENT if half else "")

    def _joined(self, text: str) -> tuple[str, str]:
        """Pairs of surrogates as one character, lone ones as U+FFFD; a high one at the end apart, it may still pair."""
        if not _has_surrogate(text):
            return text, ""
        text = _PAIR.sub(_scalar_of_pair, text)
        half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        whole, lone = _LONE.subn(_REPLACEMENT, text.removesuffix(half))
        self.replaced += lone
        return whole, half

    def _start_of_tail(self, whole: str) -> int:
        if not whole or self._may_end_after(whole):
            return len(whole)
        held = self._last_cluster(self._before + whole)
        return max(len(whole) - len(held), 0) if held else len(whole)

    def _may_end_after(self, whole: str) -> bool:
        if self._is_grapheme:
            return settled(whole)
        return not self._is_strict

    def _last_cluster(self, text: str) -> str:
        """Empty if it is too long to be one of a language."""
        last = text[_start_of_last_cluster(text) :]
        return last if len(last) <= MAX_CLUSTER_CHARS else ""


def _has_surrogate(text: str) -> bool:
    # Encoding is the fastest way to ask: a tenth of a microsecond for a delta.
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _scalar_of_pair(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _start_of_last_cluster(text: str) -> int:
    """Where the last extended grapheme cluster (UAX 29) begins. `text` is not empty and begins with a cluster."""
    if bisect_right(_BEGINS_EDGES, ord(text[-1])) & 1 and text[-2:-1] not in _PREPEND:
        return len(text) - 1
    start = 0
    for window in _WINDOWS:
        # The search begins at the head of the window, but for the rules that look back (joiners, viramas, pairs of
        # regional indicators) it sees what stands before. Only a cluster that the window begins inside of is found
        # too short, and then it is found at the window's head.
        head = max(len(text) - window, 0)
        match = _LAST_CLUSTER.search(text, head)
        assert match is not None, "one character at least is a cluster"
        start = match.start()
        if start > head or head == 0:
            break
    return start
