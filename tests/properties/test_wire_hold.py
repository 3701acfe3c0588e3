"""Holding, whatever the text, the cuts and the moments at which the deadline strikes."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.hold import Boundary, TextHold, settled
from tests.support.cuts import cuts_of

# Words and pieces of clusters from many scripts, so that any two may meet in one cluster.
PIECES = [
    *(
        "Hello ",
        "naïve",
        "e\u0301",
        "κόσμε",
        "мир",
        "你好，",
        "こんにちは",
        "か\u3099",
        "한국어",
        "\u1112\u1161\u11ab",
        "42",
    ),
    *(
        "سلام",
        "کتاب\u200cها",
        "۱۰\u200cساله",
        "\u0600۱",
        "שָׁלוֹם",
        "ހެލޯ",
        "ܫܠܡܐ",
        "नमस्ते",
        "क्ष",
        "त्र्य",
        "ক্ষ",
        "தமிழ்",
        "ശ്രീ",
        "ක්‍ෂ",
    ),
    *(
        "ไทย",
        "กำ",
        "ລາວ",
        "བོད་",
        "မြန်မာ",
        "ក្ក",
        "ᠮᠣᠩ",
        "ꦗꦮ",
        "𑄌𑄋𑄴",
        "👩",
        "👩\u200d👩\u200d👧",
        "👍🏽",
        "🏽",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
    ),
    *(
        "\U0001f1e9",
        "🇩🇪",
        "🇫🇷🇮🇹",
        "🏴\U000e0067\U000e007f",
        "\u200d",
        "\u200c",
        "\ufe0f",
        "\u0301",
        "\u094d",
        "क",
        "\r",
        "\n",
        " ",
        "°",
    ),
]
texts = st.lists(st.sampled_from(PIECES), max_size=16).map("".join)
boundaries = st.sampled_from(list(Boundary))
FLUSH = None


def edge_by_the_book(boundary: Boundary, text: str) -> int:
    """How much of `text` may have left when it is all that came: read from its head, with no window."""
    clusters = regex.findall(r"\X", text)
    if boundary is Boundary.SCALAR or not clusters or (boundary is Boundary.GRAPHEME and settled(text)):
        return len(text)
    return len(text) - len(clusters[-1])


@pytest.mark.clause("W3")
@given(st.data(), boundaries, texts)
def test_what_leaves_ends_where_a_reader_of_the_whole_text_sees_an_edge(
    data: st.DataObject, boundary: Boundary, text: str
) -> None:
    """After each delta, all but the last cluster of everything so far has left; the deadline may let more go, once."""
    hold, came, left = TextHold(boundary), "", ""
    for delta in data.draw(cuts_of(text)):
        passes, out = hold.would_pass(delta), hold.feed(delta)
        came, left = came + delta, left + out
        assert not passes or (out, hold.tail) == (delta, "")
        assert len(left) == max(len(left) - len(out), edge_by_the_book(boundary, came))
        if data.draw(st.integers(0, 3)) == 0:
            left += hold.flush()
        assert left + hold.tail == came
    assert left + hold.flush() == text


@pytest.mark.clause("W3")
@given(st.data(), texts)
def test_no_event_ends_inside_a_cluster_after_what_is_waited_for(data: st.DataObject, text: str) -> None:
    """With the clock held still, events meet where two clusters of the whole text meet, unless the first of them ends
    in a letter that is never waited for."""
    edges = {match.end() for match in regex.finditer(r"\X", text)}
    hold, left = TextHold(Boundary.GRAPHEME), ""
    for delta in data.draw(cuts_of(text)):
        left += hold.feed(delta)
        assert not left or len(left) in edges or settled(left)


@pytest.mark.clause("W3")
@given(
    st.data(), boundaries, st.lists(st.sampled_from([*PIECES, "😀", "\ud83d", "\ude00", "\udb40\udc67"]), max_size=10)
)
def test_surrogates_in_any_cuts_give_the_same_text(data: st.DataObject, boundary: Boundary, pieces: list[str]) -> None:
    """Text as UTF-16 code units, cut anywhere: pairs are joined, lone halves become U+FFFD, each counted once."""
    raw = "".join(pieces).encode("utf-16-le", "surrogatepass")
    units = "".join(chr(raw[i] | raw[i + 1] << 8) for i in range(0, len(raw), 2))
    whole = raw.decode("utf-16-le", "replace")
    hold = TextHold(boundary)
    outs = [hold.feed(delta) for delta in data.draw(cuts_of(units))] + [hold.flush()]
    assert "".join(outs) == whole
    assert hold.replaced == whole.count("\ufffd")
    assert not any("\ud800" <= char <= "\udfff" for out in outs for char in out)
