"""Everyday texts in many scripts: held to tiktoken, whole, in parts, and as they grow."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.metering.meter import RunningCount, count_parts
from proxy.metering.tokens import load_counter, load_reference, needs_reference


def corpus() -> dict[str, str]:
    lines = (Path(__file__).parent / "data" / "corpus.txt").read_text(encoding="utf-8").split("\n")
    named = [line.split(": ", 1) for line in lines if line and not line.startswith("#")]
    return {name: text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r") for name, text in named}


CORPUS = corpus()
#: Where a cut is most likely to change a count: inside a contraction, a run of blanks, a character of two halves, a
#: cluster, a run of digits; and a character that only the slow counter knows.
TRICKY = [
    *(
        "it",
        "'s",
        "'",
        "ll",
        " ",
        "  ",
        "\n",
        "\r",
        "\ud83d",
        "\ude00",
        "e",
        "\u0301",
        "\u200d",
        "👩",
        "12",
        "345",
        "7",
    ),
    *(
        "۱",
        "。",
        "字",
        "می",
        "\u200c",
        "خواهم",
        "क",
        "\u094d",
        "ष",
        "각",
        "\u0e32",
        "<|",
        "endoftext",
        "|>",
        "\U000323b0",
    ),
]


@pytest.mark.clause("L2")
@pytest.mark.parametrize("name", CORPUS)
def test_counts_agree_with_tiktoken_in_each_script(name: str) -> None:
    """Once, and repeated so that its end meets its beginning."""
    fast, judge = load_counter(), load_reference()
    for text in (CORPUS[name], CORPUS[name] * 7, CORPUS[name].upper(), CORPUS[name].replace(" ", "")):
        assert fast.count(text) == judge.count(text) > 0
        assert not needs_reference(text), "or tiktoken would be held to itself"


def test_the_corpus_has_the_scripts_that_the_page_speaks_of() -> None:
    """At least ten writing systems, beside emoji, code and JSON."""
    blocks = {
        name: {ord(char) >> 7 for char in text if char.isalpha() and not char.isascii()}
        for name, text in CORPUS.items()
    }
    assert len(CORPUS) >= 20
    assert sum(bool(found) for found in blocks.values()) >= 15
    assert {"emoji", "code", "json"} <= CORPUS.keys()


@st.composite
def cut_texts(draw: st.DrawFn) -> list[str]:
    """A text of the corpus or of tricky pieces, cut anywhere: between code points, and between the halves of one."""
    names = st.sampled_from(sorted(CORPUS)).map(CORPUS.__getitem__)
    text = "".join(draw(st.lists(st.one_of(names, st.sampled_from(TRICKY)), max_size=12)))
    halves = text.encode("utf-16-le", "surrogatepass")
    units = [halves[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(halves), 2)]
    cuts = sorted(draw(st.sets(st.integers(0, len(units)), max_size=12)))
    return ["".join(units[start:end]) for start, end in zip([0, *cuts], [*cuts, len(units)], strict=True)]


@pytest.mark.clause("L2")
@given(cut_texts(), st.integers(1, 5))
def test_the_sum_over_any_cuts_is_the_count_of_the_whole(pieces: list[str], every: int) -> None:
    """However an answer is cut, inside a character, a contraction or a run of blanks, and whenever it is folded."""
    counter = load_counter()
    running = RunningCount(counter)
    for number, piece in enumerate(pieces):
        running.add(piece)
        if number % every == 0:
            running.fold()
    whole = load_reference().count("".join(pieces))
    assert running.total() == count_parts(counter, pieces) == whole
    assert running.total() == whole, "asking leaves the state as it is"
