"""Paths into payloads: what they find, and what is no path."""

from __future__ import annotations

import pytest

from proxy.semantics.paths import MAX_VALUES, parse_path

PAYLOAD = {"error": {"code": 7, "details": [{"reason": "A"}, {"reason": "B"}, "text"]}, "a b": {"c": None}}


@pytest.mark.clause("R1")
@pytest.mark.parametrize(
    ("path", "payload", "found"),
    [
        ("error.code", PAYLOAD, [7]),
        ("error.details[1].reason", PAYLOAD, ["B"]),
        ("error.details[*].reason", PAYLOAD, ["A", "B"]),
        ("a b.c", PAYLOAD, [None]),
        ("error.details[9].reason", PAYLOAD, []),
        ("error.code.deeper", PAYLOAD, []),
        ("error.nothing", PAYLOAD, []),
        ("error.code", [{"error": {"code": 5}}], [5]),
        ("[0].error.code", [{"error": {"code": 5}}], [5]),
        ("[*].x", [{"x": 1}, {}, {"x": 2}], [1, 2]),
        ("error", "a bare string", []),
        ("$", "a bare string", ["a bare string"]),
        ("سبب", {"سبب": "لا يوجد"}, ["لا يوجد"]),
    ],
)
def test_a_path_finds_every_value_at_it(path: str, payload: object, found: list[object]) -> None:
    """Objects, lists, a list around the whole body; nothing where it leads nowhere."""
    assert parse_path(path).select(payload) == found


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", "[x]", "a[", "a[1", "$nothing", "a[-1]"])
def test_what_is_no_path_is_refused(text: str) -> None:
    """With a reason that shows how paths look."""
    with pytest.raises(ValueError, match=r"path such as|unknown name"):
        parse_path(text)


def test_a_wide_payload_costs_no_more_than_its_limit() -> None:
    """`[*]` looks at so many values and no further."""
    payload = {"a": [{"b": list(range(MAX_VALUES))}] * MAX_VALUES}
    assert len(parse_path("a[*].b[*]").select(payload)) == MAX_VALUES
