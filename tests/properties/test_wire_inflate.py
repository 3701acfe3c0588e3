"""Compressed bodies, cut and damaged anywhere."""

from __future__ import annotations

import zlib

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.inflate import Inflater
from tests.support.cuts import cut, cuts_of

BODY = "".join(f'data: {{"متن":"{n} 你好 👩‍👧"}}\n\n' for n in range(20)).encode()
ENCODED = {
    "gzip": zlib.compress(BODY[:400], wbits=31) + zlib.compress(BODY[400:], wbits=31),
    "deflate": zlib.compress(BODY),
    "br": brotli.compress(BODY),
}
encodings = st.sampled_from(sorted(ENCODED))


def body_of(encoding: str, reads: list[bytes]) -> tuple[bytes, bool, bool]:
    inflater = Inflater(encoding)
    out = b"".join(piece for read in reads for piece in inflater.feed(read))
    return out, inflater.finish(), inflater.broken is None


@pytest.mark.clause("W2")
@given(st.data(), encodings)
def test_cuts_do_not_change_the_body(data: st.DataObject, encoding: str) -> None:
    """Any reads give the body; any number of bytes from the head gives a head of it."""
    encoded = ENCODED[encoding]
    assert body_of(encoding, data.draw(cuts_of(encoded))) == (BODY, True, True)
    head, _ = cut(encoded, [data.draw(st.integers(0, len(encoded) - 1))])
    out, _, fine = body_of(encoding, [head])
    assert (BODY.startswith(out), fine) == (True, True)


@pytest.mark.clause("W2")
@given(st.data(), st.sampled_from(["gzip", "deflate"]))
def test_damage_gives_the_same_head_whatever_the_cuts(data: st.DataObject, encoding: str) -> None:
    """A flipped byte raises nothing, and how much comes out before it shows does not depend on the reads."""
    encoded = bytearray(ENCODED[encoding])
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    assert body_of(encoding, data.draw(cuts_of(bytes(encoded)))) == body_of(encoding, [bytes(encoded)])


@given(st.data(), encodings, st.binary(max_size=60))
def test_noise_raises_nothing(data: st.DataObject, encoding: str, noise: bytes) -> None:
    """Any bytes are taken; what is no compressed body is not whole, or had an end of its own."""
    out, whole, fine = body_of(encoding, data.draw(cuts_of(noise)))
    assert fine or not whole
    assert whole or not noise or not out or len(noise) > 1
