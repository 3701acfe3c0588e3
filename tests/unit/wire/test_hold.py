"""What `wire.hold` lets go and what it keeps, delta by delta."""

from __future__ import annotations

import pytest
import regex

from proxy.wire.hold import MAX_CLUSTER_CHARS, Boundary, TextHold, settled

SCALAR, GRAPHEME, STRICT = Boundary.SCALAR, Boundary.GRAPHEME, Boundary.STRICT

# A transcript: what comes in, what goes out.
Steps = list[tuple[str, str]]


def transcript(boundary: Boundary, deltas: list[str]) -> Steps:
    hold = TextHold(boundary)
    return [(delta, hold.feed(delta)) for delta in deltas] + [("flush", hold.flush())]


@pytest.mark.clause("W3")
@pytest.mark.parametrize(
    "steps",
    [
        # Never waited for: letters that come precomposed, digits, punctuation, ASCII whatever it is.
        [
            ("Straße 42", "Straße 42"),
            ("κόσμε", "κόσμε"),
            ("мир", "мир"),
            ("你好，", "你好，"),
            ("カ", "カ"),
            ("flush", ""),
        ],
        [("한국어", "한국어"), ("`^", "`^"), ("\r", "\r"), ("\n", "\n"), ("…", "…"), ("flush", "")],
        # Persian: the last letter may get a vowel sign, a joiner or nothing.
        [("سلام", "سلا"), (" دنی", "م دن"), ("ا", "ی"), ("!", "ا!"), ("flush", "")],
        [("کتاب", "کتا"), ("\u200c", ""), ("ها.", "ب\u200cها."), ("flush", "")],
        [("۱۰", "۱"), ("\u200cساله ", "۰\u200cساله "), ("flush", "")],
        # Hebrew points, Thai marks, Tibetan and Myanmar stacks.
        [("של", "ש"), ("\u05b8ום ", "ל\u05b8ום "), ("flush", "")],
        [("ที", ""), ("่", ""), ("นี่ ", "ที่นี่ "), ("flush", "")],
        [("མ", ""), ("\u0f72", ""), ("x", "མ\u0f72x"), ("flush", "")],
        [("က", ""), ("\u1039", ""), ("က ", "က\u1039က "), ("flush", "")],
        # Devanagari: vowel signs, and a conjunct that the next consonant joins.
        [("नम", "न"), ("स्", "म"), ("ते", ""), (" ", "स्ते "), ("flush", "")],
        [("क", ""), ("्", ""), ("ष", ""), ("क", "क्ष"), ("flush", "क")],
        # Emoji: skin tones, families, keycaps, flags of countries and of regions, variation selectors.
        [("ok 👍", "ok "), ("🏽", ""), ("!", "👍🏽!"), ("flush", "")],
        [("👩", ""), ("\u200d", ""), ("👩\u200d", ""), ("👧", ""), ("👧", "👩\u200d👩\u200d👧"), ("flush", "👧")],
        [("1", "1"), ("\ufe0f", ""), ("\u20e3", ""), (".", "\ufe0f\u20e3."), ("flush", "")],
        [("\U0001f1e9", ""), ("\U0001f1ea", ""), ("\U0001f1eb", "🇩🇪"), ("\U0001f1f7", ""), ("flush", "🇫🇷")],
        [
            ("🏴", ""),
            ("\U000e0067", ""),
            ("\U000e0062\U000e007f", ""),
            ("x", "🏴\U000e0067\U000e0062\U000e007fx"),
            ("flush", ""),
        ],
        [("\u2764", ""), ("\ufe0f", ""), ("\u200d🔥", ""), (" ", "\u2764\ufe0f\u200d🔥 "), ("flush", "")],
        # Conjoining jamo build one syllable; a whole syllable lets go of what stands before it.
        [("\u1112", ""), ("\u1161", ""), ("\u11ab", ""), ("글", "\u1112\u1161\u11ab글"), ("flush", "")],
        # A combining sign after a Latin letter: more may come; the letter of a later delta frees it.
        [("cafe\u0301", "caf"), ("\u0327", ""), ("s", "e\u0301\u0327s"), ("flush", "")],
        [("", ""), ("سلام", "سلا"), ("", ""), ("flush", "م")],
    ],
)
def test_grapheme_holds_where_clusters_are_spread(steps: Steps) -> None:
    """A tail waits after what the next delta is likely to continue, and after nothing else."""
    assert transcript(GRAPHEME, [delta for delta, _ in steps[:-1]]) == steps


@pytest.mark.clause("W3")
@pytest.mark.parametrize(
    "steps",
    [
        [("Hello", "Hell"), (" ", "o"), ("w", " "), ("flush", "w")],
        [("e", ""), ("\u0301", ""), ("t", "e\u0301"), ("flush", "t")],
        [("a\r", "a"), ("\nb", "\r\n"), ("flush", "b")],
        [("한", ""), ("\u11a8", ""), ("글", "한\u11a8"), ("flush", "글")],
        [("🇩🇪🇫🇷🇮", "🇩🇪🇫🇷"), ("🇹🇯", "🇮🇹"), ("flush", "🇯")],
    ],
)
def test_strict_holds_the_last_cluster_of_every_delta(steps: Steps) -> None:
    """No event ends inside a cluster, whatever the script: the last one always waits."""
    assert transcript(STRICT, [delta for delta, _ in steps[:-1]]) == steps


@pytest.mark.clause("W3")
def test_scalar_holds_nothing_but_half_a_character() -> None:
    """Letters, emoji and signs go as they come."""
    deltas = ["سلام", "👩", "\u200d", "👧", "e\u0301", "न", "्"]
    assert transcript(SCALAR, deltas) == [(delta, delta) for delta in deltas] + [("flush", "")]


@pytest.mark.clause("W3")
@pytest.mark.parametrize("boundary", list(Boundary))
def test_the_halves_of_a_surrogate_pair_are_joined(boundary: Boundary) -> None:
    """Two escapes in two deltas, or in one, make one character and never two replacements."""
    hold = TextHold(boundary)
    assert hold.feed("\n\ud83d") == ("" if boundary is STRICT else "\n")
    assert hold.tail.endswith("\ud83d")
    out = hold.feed("\ude00\ud83d\ude01") + hold.feed(" ") + hold.flush()
    assert out.lstrip("\n") == "😀😁 "
    assert (hold.replaced, hold.tail) == (0, "")


@pytest.mark.clause("W3")
@pytest.mark.parametrize(
    ("deltas", "text", "replaced"),
    [
        (["a\ud83d", "b"], "a\ufffdb", 1),
        (["a\ude00b"], "a\ufffdb", 1),
        (["\ud83d", "\ud83d", "\ude00"], "\ufffd😀", 1),
        (["\ud83d\ud83d"], "\ufffd\ufffd", 2),
        (["\ude00\ud83d"], "\ufffd\ufffd", 2),
        (["\ufffd\ud83d", "\ude00"], "\ufffd😀", 0),
        (["क\ud83d"], "क\ufffd", 1),
    ],
)
@pytest.mark.parametrize("boundary", list(Boundary))
def test_a_lone_surrogate_is_replaced_and_counted(
    boundary: Boundary, deltas: list[str], text: str, replaced: int
) -> None:
    """What can never be joined becomes U+FFFD, also when it is all that was left at a flush."""
    hold = TextHold(boundary)
    assert "".join(map(hold.feed, deltas)) + hold.flush() == text
    assert hold.replaced == replaced


@pytest.mark.clause("W3")
def test_half_a_character_and_the_cluster_before_it_wait_together() -> None:
    """The skin tone whose second half is missing belongs to the emoji in front of it."""
    hold = TextHold(GRAPHEME)
    assert hold.feed("ok 👍\ud83c") == "ok "
    assert hold.feed("\udffd") == ""
    assert hold.feed("!") == "👍🏽!"


@pytest.mark.clause("W3")
def test_flush_gives_the_tail_out_and_an_empty_one_gives_nothing() -> None:
    """After a flush nothing is held, and the next delta starts afresh."""
    hold = TextHold(GRAPHEME)
    hold.feed("سلام")
    assert (hold.flush(), hold.tail, hold.flush()) == ("م", "", "")
    assert hold.feed(" دنیا.") == " دنیا."


@pytest.mark.clause("W3")
@pytest.mark.parametrize(
    ("first", "then"),
    [
        # Half a flag left: the next half is its own, and the flags after it are not torn.
        ("\U0001f1e9", [("\U0001f1ea", ""), ("\U0001f1eb\U0001f1f7", "\U0001f1ea"), ("\U0001f1ee", "🇫🇷")]),
        # Half a flag and then something else: it was nobody's half.
        ("\U0001f1e9", [("x", "x"), ("\U0001f1ea", ""), ("\U0001f1eb", ""), ("!", "🇪🇫!")]),
        ("👩", [("\u200d👧", ""), ("\u200d👧", ""), ("x", "\u200d👧\u200d👧x")]),
        ("क\u094d", [("ष", ""), ("\u094dय", ""), (" ", "ष\u094dय ")]),
    ],
)
def test_a_cluster_that_a_flush_cut_is_not_cut_again(first: str, then: Steps) -> None:
    """The deadline may tear one cluster once; what follows still ends where the whole text has a boundary."""
    hold = TextHold(GRAPHEME)
    assert (hold.feed(first), hold.flush()) == ("", first)
    assert [(delta, hold.feed(delta)) for delta, _ in then] == then


@pytest.mark.clause("W3", "W7")
@pytest.mark.parametrize("boundary", [GRAPHEME, STRICT])
def test_a_cluster_beyond_the_limit_is_let_go_at_a_character_edge(boundary: Boundary) -> None:
    """At limit - 1 and limit characters it waits; one more, and nobody's language is torn by letting it go."""
    zalgo = "e" + "\u0301" * (MAX_CLUSTER_CHARS - 2)
    hold = TextHold(boundary)
    assert hold.feed(zalgo) == ""
    assert hold.feed("\u0302") == ""
    assert len(hold.tail) == MAX_CLUSTER_CHARS
    assert hold.feed("\u0303") == zalgo + "\u0302\u0303"
    assert hold.tail == ""
    assert hold.feed("x" + "\u0301" * 999) == "x" + "\u0301" * 999
    assert hold.feed("\u0301\ud83d") == ""
    assert hold.flush() == "\u0301\ufffd"


@pytest.mark.clause("W3")
@pytest.mark.parametrize("filler", ["", "x", "क" * 60, "a" * 400])
@pytest.mark.parametrize("flags", [1, 2, 3, 100, 101, 301])
def test_flags_pair_up_from_the_head_of_their_run(filler: str, flags: int) -> None:
    """However long the run of regional indicators, what is held is the last flag or its half."""
    run = "\U0001f1e9" * flags
    hold = TextHold(GRAPHEME)
    assert hold.feed(filler + run) + hold.tail == filler + run
    assert len(hold.tail) == (1 if flags % 2 else 2)


@pytest.mark.clause("W3")
@pytest.mark.parametrize("lead", ["", "a", "ab ", "क" * 300, "👩" * 70])
@pytest.mark.parametrize(
    "cluster",
    [
        "👩🏽\u200d\u2764\ufe0f\u200d💋\u200d👩🏿",
        "\u200d".join("👨👩👧👦👨👩👧👦"),
        "क" + "\u094dष" * 6,
        "ক" + "\u09cd\u200dষ" * 30,
        "e" + "\u0301" * 200,
        "\u1112\u1161\u11ab",
        "\u1112" * 70 + "\u1161",
        "\u0600\u06f1",
        "ก\u0e33",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    ],
)
def test_the_whole_last_cluster_is_held_however_far_back_it_begins(lead: str, cluster: str) -> None:
    """Looking at the end of a text only finds the same cluster as reading all of it."""
    text = lead + cluster
    hold = TextHold(STRICT)
    hold.feed(text)
    assert hold.tail == regex.findall(r"\X", text)[-1] == cluster


@pytest.mark.parametrize("text", ["", "abc", "naïve", "你好", "한글", "。", "ロ", "42", "سلام ", "👩!", "क।\n"])
def test_settled_and_would_pass_let_plain_ends_through(text: str) -> None:
    """What ends in nothing that waits passes untouched, without a call of `feed`."""
    assert settled(text)
    assert TextHold(GRAPHEME).would_pass(text)
    assert TextHold(GRAPHEME).feed(text) == text


@pytest.mark.parametrize("text", ["سلام", "न", "👍", "e\u0301", "\u200d", "🇩🇪", "\u1112", "°", "کتاب‌", "ก", "\ud83d"])
def test_settled_and_would_pass_stop_at_open_ends(text: str) -> None:
    """What ends in something that may be continued has to be fed."""
    assert not settled(text)
    assert not TextHold(GRAPHEME).would_pass(text)


def test_would_pass_knows_the_tail_the_boundary_and_broken_text() -> None:
    """A held tail, a lone surrogate inside and the strict boundary all need `feed`."""
    hold = TextHold(GRAPHEME)
    hold.feed("سلام")
    assert not hold.would_pass("abc")
    hold.flush()
    assert not hold.would_pass("abc"), "what was flushed is still to be forgotten"
    hold.feed("abc")
    assert hold.would_pass("abc")
    assert not hold.would_pass("a\ud83db")
    assert TextHold(SCALAR).would_pass("سلام")
    assert not TextHold(SCALAR).would_pass("\ud83d\ude00")
    assert [TextHold(STRICT).would_pass(text) for text in ("", "abc", "你好")] == [True, False, False]


@pytest.mark.clause("W3")
@pytest.mark.parametrize(
    ("first", "last"),
    [
        (0x0590, 0x109F),  # Hebrew, Arabic, Syriac, Thaana, the Indic scripts, Thai, Lao, Tibetan, Myanmar
        (0x1100, 0x11FF),  # conjoining jamo
        (0x1780, 0x17FF),  # Khmer
        (0xFB1D, 0xFDFF),  # presentation forms
        (0xFE70, 0xFEFF),
        (0xA8E0, 0xABFF),
        (0x1F000, 0x1FBFF),  # emoji and what will be one
        (0xE0020, 0xE007F),  # tags
        (0xD800, 0xDFFF),
    ],
)
def test_these_blocks_are_open_from_end_to_end(first: int, last: int) -> None:
    """No letter of a script that writes with combining signs is forgotten, assigned or not."""
    assert [hex(code) for code in range(first, last + 1) if settled(chr(code))] == []


@pytest.mark.clause("W3")
def test_signs_and_symbols_are_open_wherever_they_stand() -> None:
    """Every combining sign of Unicode, and every symbol but ASCII's own, is waited after."""
    every = "".join(chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code <= 0xDFFF)
    signs = regex.findall(r"[\p{Mn}\p{Mc}\p{Me}\p{So}\p{Sk}\p{Extended_Pictographic}]", every)
    assert [hex(ord(sign)) for sign in signs if settled(sign)] == []


@pytest.mark.clause("W3")
def test_precomposed_letters_and_ascii_are_never_open() -> None:
    """Latin, Greek, Cyrillic, CJK, kana and whole Hangul syllables are not waited for, nor is any ASCII character."""
    every = "".join(chr(code) for code in range(0x30000) if not 0xD800 <= code <= 0xDFFF)
    letters = regex.findall(
        r"[\p{ASCII}[\p{L}&&[\p{Latin}\p{Greek}\p{Cyrillic}\p{Han}\p{Hiragana}\p{Katakana}\uAC00-\uD7A3]]]",
        every,
        regex.V1,
    )
    # Meetei Mayek's neighbours: extensions of Latin for dialectology, taken along with their block.
    dialectology = range(0xAB30, 0xAB70)
    assert [hex(ord(c)) for c in letters if not settled(c) and ord(c) not in dialectology] == []
