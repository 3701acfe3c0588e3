"""From a request to what a model is given: ids, places, sight, and every refusal."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import ToonRequest, parse_toon
from proxy.toon.card import Card
from proxy.toon.model.plan import Plan, plan

PAD, BOS, END = 0, 1, 2
ROPE = Card("2.1", 100, 64, "rope", PAD, frozenset((BOS, END)), 16, frozenset((END,)))
LEARNED = replace(ROPE, base="learned")
ALIBI = replace(ROPE, base="alibi")


def request(ids: Sequence[int], **changes: Any) -> ToonRequest:
    """`mask` and `pos` are merged into the plainest ones."""
    body: dict[str, Any] = {"tids": {"v": "2.1", "ids": list(ids)}, "max_tokens": 8, **changes}
    body["mask"] = {"type": "causal", "scope": "full", "fallback": "none", **changes.get("mask", {})}
    body["pos"] = {"base": "rope", "offset": 0, "stride": 1, **changes.get("pos", {})}
    parsed = parse_toon(json.dumps(body).encode())
    assert isinstance(parsed, ToonRequest), parsed
    return parsed


def texts(ids: Sequence[int]) -> list[str]:
    return [chr(ord("a") + one % 26) for one in ids]


def planned(ids: Sequence[int], card: Card = ROPE, **changes: Any) -> Plan:
    made = plan(request(ids, **changes), card, texts)
    assert isinstance(made, Plan), made
    return made


def refused(ids: Sequence[int], card: Card = ROPE, **changes: Any) -> tuple[str, str | None, int]:
    made = plan(request(ids, **changes), card, texts)
    assert isinstance(made, BadRequest), made
    return made.code, made.param, made.status


def segments(*parts: tuple[int, str]) -> list[dict[str, object]]:
    return [{"length": length, "meta": {"source": source}} for length, source in parts]


def seen(made: Plan) -> list[list[int]]:
    """By each id of the prompt, the indices that it sees."""
    count = len(made.ids)
    return [row.nonzero().flatten().tolist() for row in made.sight.rows(0, count, count)]


def test_positions_are_offset_and_stride_as_they_were_sent() -> None:
    made = planned([5, 6, 7], pos={"offset": 9_007_199, "stride": 3})
    assert (made.ids, list(made.positions)) == ([5, 6, 7], [9_007_199, 9_007_202, 9_007_205])
    assert (made.next_position, made.stride) == (9_007_208, 3)
    assert (made.first_offset, made.label_stride, made.truncated) == (9_007_208, 3, 0)
    assert not made.sight.needs_mask and made.sight.is_prefix_stable


def test_without_a_base_the_model_counts_by_itself_and_the_answer_is_numbered_as_asked() -> None:
    made = planned([5, 6, 7], LEARNED, pos={"base": "none", "offset": 1000, "stride": 5})
    assert (list(made.positions), made.next_position, made.stride) == ([0, 1, 2], 3, 1)
    assert (made.first_offset, made.label_stride) == (1015, 5)


def test_with_alibi_an_offset_is_left_to_the_answer() -> None:
    made = planned([5, 6, 7], ALIBI, pos={"base": "alibi", "offset": 2**62, "stride": 2})
    assert (list(made.positions), made.next_position, made.stride) == ([0, 2, 4], 6, 2)
    assert made.first_offset == 2**62 + 6


def test_padding_is_not_given_to_the_model_and_keeps_its_place() -> None:
    made = planned([PAD, PAD, 5, 6, PAD, 7, PAD], mask={"type": "padding"}, pos={"offset": 10, "stride": 2})
    assert (made.ids, list(made.positions)) == ([5, 6, 7], [14, 16, 20])
    assert (made.next_position, made.first_offset, made.truncated) == (24, 24, 0)
    assert not made.sight.needs_mask, "nothing is left that would have to be hidden"


def test_padding_is_an_id_like_any_other_with_another_mask() -> None:
    assert planned([PAD, 5]).ids == [PAD, 5]


def test_special_tokens_that_are_stripped_leave_no_gap() -> None:
    made = planned([BOS, 5, END, 6], x_special_tokens="strip", pos={"offset": 3})
    assert (made.ids, list(made.positions), made.first_offset) == ([5, 6], [3, 4], 5)


def test_special_tokens_that_are_stripped_leave_a_gap_with_the_fallback_pad() -> None:
    made = planned([BOS, 5, END, 6, END], x_special_tokens="strip", mask={"fallback": "pad"}, pos={"offset": 3})
    assert (made.ids, list(made.positions)) == ([5, 6], [4, 6])
    assert (made.next_position, made.first_offset) == (8, 8)


def test_special_tokens_that_are_kept_are_ids_like_any_other() -> None:
    assert planned([BOS, 5, END]).ids == [BOS, 5, END]


def test_truncation_takes_the_oldest_and_leaves_the_system_prompt_and_every_position() -> None:
    made = planned(
        range(3, 73),
        mask={"fallback": "truncate"},
        pos={"offset": 100},
        x_segments=segments((4, "retrieval"), (2, "system_prompt"), (64, "user_input")),
    )
    assert made.truncated == 14
    assert made.ids == [7, 8, *range(19, 73)] and list(made.positions) == [104, 105, *range(116, 170)]
    assert (made.next_position, made.first_offset) == (170, 170)


def test_without_a_base_a_truncated_prompt_is_counted_anew() -> None:
    made = planned(range(3, 83), LEARNED, mask={"fallback": "truncate"}, pos={"base": "none", "offset": 5})
    assert (made.truncated, list(made.positions), made.next_position) == (24, list(range(56)), 56)
    assert made.first_offset == 85


def test_truncation_leaves_what_fits_alone() -> None:
    assert planned(range(3, 59), mask={"fallback": "truncate"}).truncated == 0


def test_padding_needs_no_room() -> None:
    made = planned([PAD] * 30 + [5] * 40, mask={"type": "padding", "fallback": "truncate"})
    assert (len(made.ids), made.truncated, made.positions[0]) == (40, 0, 30)


def test_segments_shrink_with_what_leaves_them() -> None:
    made = planned(
        [BOS, 5, END, 6, 7, 8],
        x_special_tokens="strip",
        mask={"scope": "partial"},
        x_segments=segments((1, "system_prompt"), (2, "retrieval"), (2, "retrieval"), (1, "user_input")),
    )
    assert made.ids == [5, 6, 7, 8]
    assert seen(made) == [[0], [1], [1, 2], [0, 1, 2, 3]]


def test_a_window_is_the_models_own_unless_less_is_asked_for() -> None:
    own = planned(range(3, 43), mask={"scope": "dynamic"})
    asked = planned(range(3, 43), mask={"scope": "dynamic"}, x_window=2)
    assert seen(own)[30] == [0, 1, 2, 3, *range(15, 31)]
    assert seen(asked)[30] == [0, 1, 2, 3, 29, 30]


def test_citations_are_found_in_the_text_of_the_ids() -> None:
    citation = {"type": "custom", "custom_def": {"name": "legal_citation", "citation_pattern": "c+"}}
    assert seen(planned([3, 4, 28, 5], mask=citation)) == [[0, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2, 3]]


def test_a_sliding_window_is_of_so_many_ids_up_to_itself_and_generated_ids_see_all() -> None:
    made = planned([3, 4, 5, 6], mask={"type": "custom", "custom_def": {"name": "sliding_window", "window": 2}})
    assert seen(made) == [[0], [0, 1], [1, 2], [2, 3]]
    assert made.sight.rows(5, 6, 7).tolist() == [[True] * 6 + [False]]


def test_everybody_sees_everybody_in_a_bidirectional_prompt() -> None:
    made = planned([3, 4, 5], mask={"type": "bidirectional"})
    assert seen(made) == [[0, 1, 2]] * 3
    assert made.sight.rows(3, 5, 5).tolist() == [[True] * 4 + [False], [True] * 5]


@pytest.mark.parametrize("pattern", ["(", "(?:a|aa)+$"])
def test_a_pattern_that_cannot_be_used_is_the_callers_mistake(pattern: str) -> None:
    mask = {"type": "custom", "custom_def": {"name": "legal_citation", "citation_pattern": pattern}}
    made = plan(request(range(3, 43), mask=mask), ROPE, lambda ids: ["a" * 100] * (len(ids) - 1) + ["b"])
    assert isinstance(made, BadRequest)
    assert (made.code, made.param) == ("invalid_value", "/mask/custom_def/citation_pattern")


@pytest.mark.parametrize(
    ("ids", "card", "changes", "refusal"),
    [
        ([5, 100], ROPE, {}, ("invalid_value", "/tids/ids/1", 400)),
        ([5, END], ROPE, {"x_special_tokens": "refuse"}, ("special_token", "/tids/ids/1", 400)),
        ([BOS, END], ROPE, {"x_special_tokens": "strip"}, ("invalid_value", "/tids/ids", 400)),
        ([PAD, PAD], ROPE, {"mask": {"type": "padding"}}, ("invalid_value", "/tids/ids", 400)),
        ([5], replace(ROPE, pad=None), {"mask": {"type": "padding"}}, ("invalid_value", "/mask/type", 400)),
        ([5], ROPE, {"x_window": 17, "mask": {"scope": "dynamic"}}, ("invalid_value", "/x_window", 400)),
        ([5] * 57, ROPE, {}, ("context_length_exceeded", "/tids/ids", 413)),
        ([5], ROPE, {"max_tokens": 64}, ("context_length_exceeded", "/tids/ids", 413)),
        ([5], ROPE, {"pos": {"offset": 2**24 - 8}}, ("unsupported_positions", "/pos/offset", 400)),
        ([5], LEARNED, {"pos": {"base": "learned", "offset": 56}}, ("unsupported_positions", "/pos/offset", 400)),
        ([5], LEARNED, {}, ("unsupported_positions", "/pos/base", 400)),
    ],
)
def test_what_a_model_cannot_do_is_refused_by_its_place(
    ids: list[int], card: Card, changes: dict[str, Any], refusal: tuple[str, str, int]
) -> None:
    assert refused(ids, card, **changes) == refusal


def test_what_is_stripped_and_what_is_padding_may_leave_nothing() -> None:
    changes: dict[str, Any] = {"x_special_tokens": "strip", "mask": {"type": "padding"}}
    assert refused([BOS, PAD, END], **changes) == ("invalid_value", "/tids/ids", 400)


def test_a_system_prompt_that_alone_does_not_fit_is_refused() -> None:
    parts = segments((60, "system_prompt"), (1, "user_input"))
    assert refused([5] * 61, mask={"fallback": "truncate"}, x_segments=parts) == (
        "context_length_exceeded",
        "/tids/ids",
        413,
    )


def test_the_last_position_that_is_allowed_is_allowed() -> None:
    assert list(planned([5], pos={"offset": 2**24 - 9}).positions) == [2**24 - 9]
    assert planned([5] * 56).positions[-1] == 55


def test_a_plain_request_of_8192_ids_is_planned_in_a_few_milliseconds() -> None:
    large = replace(ROPE, vocab=50_000, context=16_384)
    asked = request([at * 5 for at in range(8192)], pos={"offset": 7, "stride": 3})
    taken = []
    for _ in range(20):
        started = time.process_time()
        plan(asked, large, texts)
        taken.append(time.process_time() - started)
    assert min(taken) < 0.005  # measured: 0.2 ms
