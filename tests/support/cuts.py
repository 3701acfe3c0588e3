"""Ways to cut one input into reads, and the one door through which parser cases run: whole, unit by unit, with a tail.

For bytes (reads) and for text (deltas) alike. `outcome` turns whatever a decoder does with the reads, an exceeded limit
included, into one list that can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import AnyStr, Protocol, TypeVar

from hypothesis import strategies as st

from proxy.errors import LimitExceeded

Read = TypeVar("Read", bytes, str, contravariant=True)
Result = TypeVar("Result")


class Fed(Protocol[Read]):
    """Anything that is fed and returns a list."""

    def feed(self, data: Read, /) -> Sequence[object]: ...


class FedToTheEnd(Protocol[Read]):
    """And whose end of input brings a list too."""

    def feed(self, data: Read, /) -> Sequence[object]: ...

    def finish(self) -> Sequence[object]: ...


def cut(whole: AnyStr, positions: Iterable[int]) -> list[AnyStr]:
    """`whole` cut at these positions; equal ones give empty reads."""
    edges = [0, *sorted(positions), len(whole)]
    return [whole[a:b] for a, b in pairwise(edges)]


def one_by_one(whole: AnyStr) -> list[AnyStr]:
    return cut(whole, range(1, len(whole)))


def cuts_of(whole: AnyStr, most: int = 8) -> st.SearchStrategy[list[AnyStr]]:
    """Any way to cut `whole`, one by one among them."""
    positions = st.lists(st.integers(0, len(whole)), max_size=most)
    return st.one_of(positions.map(lambda at: cut(whole, at)), st.just(one_by_one(whole)))


def outcome(decoder: FedToTheEnd[Read], reads: Iterable[Read]) -> list[object]:
    """All that comes out of the reads and of the end of input; an exceeded limit stands last, as its two names.

    Nothing may come after it: the decoder must go on to refuse.
    """
    out = fed(decoder, reads)
    try:
        out.extend(decoder.finish())
    except LimitExceeded as exceeded:
        out.append(("limit", exceeded.what, exceeded.limit))
    return out


def fed(decoder: Fed[Read], reads: Iterable[Read]) -> list[object]:
    """All that comes out of the reads; the input has not ended yet."""
    out: list[object] = []
    for read in reads:
        try:
            out.extend(decoder.feed(read))
        except LimitExceeded:
            break
    return out


def three_ways(run: Callable[[list[AnyStr]], Result], whole: AnyStr, tail: AnyStr) -> Result:
    """What `run` makes of `whole`, having made sure that the ways to read it do not matter: in one read, unit by unit,
    and with the beginning of something more behind it, which must not change what is already whole."""
    result = run([whole])
    assert run(one_by_one(whole)) == result, "one by one"
    assert run([whole + tail]) == result, f"with {tail!r} behind it in the same read"
    assert run([whole, tail]) == result, f"with {tail!r} in a read of its own"
    return result
