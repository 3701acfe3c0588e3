"""Any JSON at all, made of a grammar's own names: what no reader may stumble over."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from tests.support.strategies import ODD, TEXTS

_ODD_INSIDE = st.one_of(st.sampled_from(ODD), st.sampled_from(TEXTS))


def payloads(names: Iterable[str]) -> st.SearchStrategy[object]:
    """Objects and lists of these names, with odd values at every depth."""
    keys = st.sampled_from(tuple(names))
    return st.recursive(
        _ODD_INSIDE,
        lambda inner: st.one_of(st.dictionaries(keys, inner, max_size=5), st.lists(inner, max_size=3)),
        max_leaves=12,
    )
