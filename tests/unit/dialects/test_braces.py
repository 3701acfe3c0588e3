"""Braces: closed when the JSON is at its end, however it was cut."""

from __future__ import annotations

import pytest

from proxy.dialects.braces import Braces


@pytest.mark.parametrize(
    ("text", "closed_at"),
    [
        ("{}", 2),
        ('{"a": "}\\"}"}', 13),
        ('[{"شهر": "تهران"}] ', 18),
        ('{"a": {"b": []}} {', 16),
        ("", None),
        ('{"a": 1', None),
        ('"text"', None),
        ("12", None),
    ],
)
def test_they_close_with_the_last_of_them(text: str, closed_at: int | None) -> None:
    """Letter by letter, and at once; braces inside strings are letters."""
    slowly, at_once = Braces(), Braces()
    at = None
    for place, char in enumerate(text):
        slowly.feed(char)
        if at is None and slowly.is_closed:
            at = place + 1
    at_once.feed(text)

    assert at == closed_at
    assert at_once.is_closed == slowly.is_closed == (closed_at is not None)


class _Watched(Braces):
    """Notes what it looks at."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = ""

    def _scan(self, char: str) -> None:
        self.looked += char
        super()._scan(char)


def test_each_letter_is_looked_at_once() -> None:
    """Asking again costs nothing, and nothing is looked at before somebody asks."""
    braces = _Watched()
    braces.feed('{"a":')
    assert braces.looked == ""
    assert not braces.is_closed
    assert not braces.is_closed
    braces.feed("1}")
    assert braces.is_closed
    braces.feed(" ")
    assert braces.is_closed
    assert braces.looked == '{"a":1}'
