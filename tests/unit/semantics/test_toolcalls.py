"""Fragments as vendors send them to calls as clients join them: one slot, one id, one name per call (contract W4)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import ToolFragment
from proxy.semantics.toolcalls import ToolCalls

pytestmark = pytest.mark.clause("W4")

Fragment = tuple[int | None, str | None, str | None, str]


def place(fragments: list[Fragment]) -> list[tuple[str, str]]:
    """The id and the joined arguments of each call, in the order of the slots."""
    calls = ToolCalls("5eed")
    began = []
    for fragment in fragments:
        call, begins = calls.place(ToolFragment(*fragment))
        call.name = call.name or fragment[2] or ""
        began += [call.slot] if begins else []
    assert began == list(range(len(calls.calls))), "slots count up, and each begins once"
    return [(call.id, "".join(call.arguments)) for call in calls.calls]


def test_fragments_are_joined_by_their_index() -> None:
    """As OpenAI sends them, interleaved."""
    fragments: list[Fragment] = [
        (0, "a", "天气", ""),
        (1, "b", "время", ""),
        (0, None, None, '{"città"'),
        (1, None, None, "{}"),
        (0, None, None, ':"Forlì"}'),
    ]
    assert place(fragments) == [("a", '{"città":"Forlì"}'), ("b", "{}")]


@pytest.mark.parametrize(
    ("oddity", "fragments", "calls"),
    [
        (
            "every call has index 0",
            [(0, "a", "f", "{}"), (0, "b", "g", "{}"), (0, None, None, "")],
            [("a", "{}"), ("b", "{}")],
        ),
        (
            "no index",
            [(None, "a", "f", "{"), (None, None, None, "}"), (None, "b", "g", "{}")],
            [("a", "{}"), ("b", "{}")],
        ),
        (
            "no index, ids tell",
            [(None, "a", "f", "{"), (None, "b", "g", "["), (None, "a", None, "}")],
            [("a", "{}"), ("b", "[")],
        ),
        ("the id on each fragment", [(0, "a", "f", "{"), (0, "a", None, "}"), (0, "a", "f", "")], [("a", "{}")]),
        ("an id of its own on each", [(0, "a", "f", "{"), (0, "b", None, "}")], [("a", "{}")]),
        ("no id at all", [(0, None, "f", "{}"), (1, None, "g", "{}")], [("call_5eed0", "{}"), ("call_5eed1", "{}")]),
        (
            "neither id nor index",
            [(None, None, "f", "{}"), (None, None, "g", "{}")],
            [("call_5eed0", "{}"), ("call_5eed1", "{}")],
        ),
        (
            "the same function again",
            [(0, None, "f", '{"a":"}"}'), (0, None, "f", "{}")],
            [("call_5eed0", '{"a":"}"}'), ("call_5eed1", "{}")],
        ),
        ("its name repeated", [(0, None, "f", '{"a":"'), (0, None, "f", '}"}')], [("call_5eed0", '{"a":"}"}')]),
        ("the name late", [(0, "a", None, ""), (0, None, "f", "{}")], [("a", "{}")]),
        ("arguments first", [(None, None, None, "{"), (None, None, "f", "}")], [("call_5eed0", "{}")]),
        ("indexes from 1", [(1, "a", "f", "{}"), (2, "b", "g", "{}")], [("a", "{}"), ("b", "{}")]),
        ("one id for all", [(0, "x", "f", "{}"), (1, "x", "g", "[]")], [("x", "{}"), ("x", "[]")]),
        ("the id at another index", [(0, "a", "f", "{"), (5, "a", None, "}")], [("a", "{}")]),
    ],
)
def test_each_oddity_gives_whole_calls(oddity: str, fragments: list[Fragment], calls: list[tuple[str, str]]) -> None:
    """Ids and order survive."""
    assert place(fragments) == calls, oddity


@given(
    arguments=st.lists(
        st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2).map(json.dumps), min_size=1, max_size=3
    ),
    data=st.data(),
)
def test_calls_survive_any_cuts_and_any_order_of_interleaving(arguments: list[str], data: st.DataObject) -> None:
    """One id and its arguments per index, whatever comes between its pieces."""
    queues = [[(n, f"id{n}", "f", "")] + [(n, None, None, char) for char in text] for n, text in enumerate(arguments)]
    fragments: list[Fragment] = [queue.pop(0) for queue in queues]
    while waiting := [queue for queue in queues if queue]:
        fragments.append(data.draw(st.sampled_from(waiting)).pop(0))

    assert place(fragments) == [(f"id{n}", text) for n, text in enumerate(arguments)]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 2)),
            st.one_of(st.none(), st.sampled_from(("a", "b"))),
            st.one_of(st.none(), st.sampled_from(("f", "g"))),
            st.sampled_from(("", "a", "{", "}")),
        ),
        max_size=8,
    )
)
def test_no_piece_of_arguments_is_lost(fragments: list[Fragment]) -> None:
    """Each lands in one call, in order (but a placeholder and a repetition: they are told of below)."""
    joined = "".join(sorted("".join(arguments for _, arguments in place(fragments))))
    assert joined == "".join(sorted("".join(fragment[3] for fragment in fragments)))


@pytest.mark.parametrize(
    ("oddity", "pieces", "arguments"),
    [
        ("a placeholder, then the real ones", ["{}", '{"città":', '"Forlì"}'], '{"città":"Forlì"}'),
        ("a placeholder that was meant", ["{}", "", ""], "{}"),
        ("the whole again at the end", ['{"a":', "1}", '{"a":1}'], '{"a":1}'),
        ("blanks around the repetition", ['{"a":1}', ' {"a":1}\n'], '{"a":1}'),
    ],
)
def test_arguments_are_told_once(oddity: str, pieces: list[str], arguments: str) -> None:
    """What would be broken JSON for a client that joins fragments is not: `{}{"a":1}`."""
    fragments: list[Fragment] = [(0, "a", "f", pieces[0]), *((0, None, None, piece) for piece in pieces[1:])]
    assert place(fragments) == [("a", arguments)], oddity
