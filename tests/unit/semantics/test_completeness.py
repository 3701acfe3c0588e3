"""Did it end, and with which word? (contracts W4, W5)"""

from __future__ import annotations

import pytest

from proxy.semantics.completeness import corrected, finish_for, inferred, is_whole_json
from tests.support.pipelines import shipped_rules

FOUR = {"stop", "length", "tool_calls", "content_filter"}


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", "stop"),
        ("max", "length"),
        ("MAX", "length"),
        ("Weird", "content_filter"),
        ("weird", "stop"),
        ("", "stop"),
    ],
)
def test_a_vendors_word_is_looked_up_then_in_lower_case(word: str, finish: str) -> None:
    """A word that nobody knows is a normal end."""
    assert finish_for(word, {"stop": "stop", "max": "length", "Weird": "content_filter"}) == finish


@pytest.mark.clause("W4", "R1")
def test_every_shipped_word_becomes_one_of_the_four_or_an_error() -> None:
    """And the four words themselves mean themselves, for each vendor."""
    for profile in shipped_rules().vendors.values():
        assert set(profile.finish_reasons.values()) <= FOUR | {"error"}, profile.vendor
        assert {finish_for(word, profile.finish_reasons) for word in FOUR} == FOUR, profile.vendor
        assert finish_for("function_call", profile.finish_reasons) == "tool_calls", profile.vendor


@pytest.mark.clause("W4", "W5")
def test_an_answer_of_tool_calls_ends_with_tool_calls() -> None:
    """Clients wait for that word before they run a tool; other words are the vendor's to say."""
    assert [corrected(finish, True) for finish in ("stop", "length", "content_filter")] == [
        "tool_calls",
        "length",
        "content_filter",
    ]
    assert corrected("stop", False) == "stop"
    assert (inferred(True), inferred(False)) == ("tool_calls", "stop")


@pytest.mark.clause("W5")
@pytest.mark.parametrize(
    ("arguments", "is_whole"),
    [
        ("{}", True),
        ("", True),
        (" \n", True),
        ('{"città":"Forlì"}', True),
        ('{"a":"line\nbreak"}', True),
        ('{"a":"\ud83d"}', True),
        ('{"a":', False),
        ('{"a":1}}', False),
        ("nope", False),
        ("[" * 100_000, False),
    ],
)
def test_arguments_are_whole_if_they_parse(arguments: str, is_whole: bool) -> None:
    """None at all count as `{}`; what no parser can hold is not whole."""
    assert is_whole_json(arguments) is is_whole
