"""`proxy.toon.placing`: an event counts if it stands at its true place, and what is dropped moves nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.dialects.toon.format import ToonRequest, parse_toon
from proxy.toon.placing import Places, Reason
from tests.support.toon_events import Event, event, events, request

ASKED = request()
PORTIONS = [[10, 11], [12], [13, 14, 15], [16]]
#: Two events per place, from 112 by 3: offsets 112, 118, 121, 130; the finish and the usage at 133.
RIGHT = events(ASKED, PORTIONS)


def parsed(asked: dict[str, Any]) -> ToonRequest:
    found = parse_toon(json.dumps(asked).encode())
    assert isinstance(found, ToonRequest), found
    return found


def seen(told: Sequence[Event], asked: dict[str, Any] = ASKED) -> tuple[list[int], list[tuple[int, Reason]], bool]:
    """The ids in place; the number and the reason of each event that is not; is it whole?"""
    places = Places(parsed(asked))
    ids: list[int] = []
    out: list[tuple[int, Reason]] = []
    for number, one in enumerate(told):
        misplaced = places.check(one)
        if misplaced is None:
            ids += one["tids"]["ids"]
        else:
            assert misplaced.event is one
            out.append((number, misplaced.reason))
    assert places.count == len(ids)
    return ids, out, places.is_whole


ALL = [10, 11, 12, 13, 14, 15, 16]


def test_an_answer_in_order_is_whole() -> None:
    """Nothing is out of place."""
    assert seen(RIGHT) == (ALL, [], True)


def test_a_duplicate_is_dropped_and_what_follows_stands() -> None:
    """At once, later, the first and the last."""
    assert seen([*RIGHT[:2], RIGHT[1], *RIGHT[2:]]) == (ALL, [(2, "behind")], True)
    assert seen([*RIGHT[:4], RIGHT[0], RIGHT[2], *RIGHT[4:]]) == (ALL, [(4, "behind"), (5, "behind")], True)
    assert seen([*RIGHT[:5], RIGHT[4], *RIGHT[5:]]) == (ALL, [(5, "finished")], True)
    assert seen([*RIGHT, RIGHT[5]]) == (ALL, [(6, "finished")], True)


def test_nothing_counts_behind_a_gap() -> None:
    """The ids before it are a beginning of the answer, and it is not whole, for the finish is out of place too."""
    assert seen(RIGHT[:1] + RIGHT[2:]) == ([10, 11], [(n, "ahead") for n in range(1, 5)], False)
    assert seen(RIGHT[1:]) == ([], [(n, "ahead") for n in range(5)], False)
    assert seen(RIGHT[:4] + RIGHT[5:]) == (ALL, [], False), "its finish is missing"


def test_a_gap_that_is_filled_later_is_one_no_more() -> None:
    """The lost event comes again, and all after it: the true place never moved."""
    assert seen([RIGHT[0], RIGHT[3], *RIGHT[1:]]) == (ALL, [(1, "ahead")], True)


def test_of_a_swap_the_earlier_one_counts() -> None:
    """The later one came too early and is gone; the finish stands behind its hole."""
    told = [RIGHT[0], RIGHT[2], RIGHT[1], *RIGHT[3:]]
    assert seen(told) == ([10, 11, 12], [(1, "ahead"), (3, "ahead"), (4, "ahead"), (5, "ahead")], False)


def test_a_stranger_between_moves_nothing() -> None:
    """Wherever it says it stands, the next is held to the true place."""
    for offset, reason in ((10**12, "ahead"), (0, "off_grid"), (100, "behind"), (119, "off_grid"), (-5, "behind")):
        stranger = event(ASKED, [99], 2)
        stranger["pos"]["offset"] = offset
        assert seen([RIGHT[0], stranger, *RIGHT[1:]]) == (ALL, [(1, reason)], True), offset


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("tids", "v"), "2.2"),
        (("pos", "base"), "rope"),
        (("pos", "stride"), 1),
        (("pos", "stride"), 3.0),
        (("meta", "trace_id"), "trace-0002"),
        (("meta", "trace_id"), None),
        (("meta",), None),
    ],
)
def test_an_event_of_another_answer_is_dropped(path: tuple[str, ...], value: object) -> None:
    """Version, base, stride and trace id are the request's, in every event."""
    assert seen([RIGHT[0], changed(event(ASKED, [99], 2), path, value), *RIGHT[1:]]) == (ALL, [(1, "identity")], True)


def changed(told: Event, path: tuple[str, ...], value: object) -> Event:
    *outer, last = path
    inner = told
    for name in outer:
        inner = inner[name]
    inner[last] = value
    return told


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("tids",), None),
        (("tids",), [1]),
        (("tids", "ids"), None),
        (("tids", "ids"), [True]),
        (("tids", "ids"), [1.0]),
        (("tids", "ids"), [-1]),
        (("tids", "ids"), ["1"]),
        (("pos",), None),
        (("pos", "offset"), None),
        (("pos", "offset"), 118.0),
        (("pos", "offset"), True),
        (("pos", "offset"), "118"),
        (("finish_reason",), 1),
    ],
)
def test_what_is_no_event_is_dropped(path: tuple[str, ...], value: object) -> None:
    """Whatever it holds; nothing is raised."""
    assert seen([RIGHT[0], changed(event(ASKED, [99], 2), path, value), *RIGHT[1:]]) == (ALL, [(1, "shape")], True)
    assert seen([{}, *RIGHT]) == (ALL, [(0, "shape")], True)


def test_ids_behind_the_finish_are_none_of_the_answer() -> None:
    """Even at the right place."""
    assert seen([*RIGHT[:5], event(ASKED, [99], 7), RIGHT[5]]) == (ALL, [(5, "finished")], True)


def test_a_trace_id_of_the_servers_stays_the_same() -> None:
    """Where the request has none."""
    asked = request(meta={})
    told = events(asked, PORTIONS)
    other = changed(event(asked, [99], 2), ("meta", "trace_id"), "trace-0002")
    assert seen([told[0], other, *told[1:]], asked) == (ALL, [(1, "identity")], True)


def test_stripped_ids_have_no_place_and_the_first_event_says_how_many_have() -> None:
    """Without that word nothing can be placed; it is said once, and may not change, nor be impossible."""
    asked = request(x_special_tokens="strip")
    told = events(asked, PORTIONS, prompt=3)
    assert seen(told, asked) == (ALL, [], True)
    assert seen(told[1:], asked) == ([], [(n, "prompt_ids") for n in range(5)], False)
    for wrong in (0, 5, True, 3.0, "3", None):
        assert seen([{**told[0], "x_prompt_ids": wrong}, *told], asked) == (ALL, [(0, "prompt_ids")], True), wrong
    later = {**told[1], "x_prompt_ids": 4}
    assert seen([told[0], later, *told[1:]], asked) == (ALL, [(1, "prompt_ids")], True)


@pytest.mark.parametrize("fallback", ["none", "pad", "truncate"])
def test_ids_that_leave_a_gap_or_were_cut_have_theirs(fallback: str) -> None:
    """Nobody may say there are fewer than were sent, but where they are stripped without a gap."""
    mask = {"type": "causal", "scope": "full", "fallback": fallback}
    asked = request(mask=mask, x_special_tokens="strip" if fallback == "pad" else "keep")
    assert seen(events(asked, PORTIONS), asked) == (ALL, [], True)
    told = events(asked, PORTIONS, prompt=3)
    assert seen(told, asked)[1][0] == (0, "prompt_ids")


@given(st.lists(st.integers(0, 5), max_size=14))
def test_what_counts_is_always_a_beginning_of_the_answer(order: list[int]) -> None:
    """Any events in any order, any number of times: no hole, nothing twice, and whole only if all is there."""
    ids, _, whole = seen([RIGHT[number] for number in order])
    assert ids == ALL[: len(ids)]
    assert not whole or ids == ALL
