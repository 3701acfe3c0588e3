"""From logits to ids (proxy.toon.engine.sampling)."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from proxy.toon.engine.sampling import Asked, Chosen, choose, uniform


def asked(number: int = 0, *, temperature: float = 1.0, top_p: float = 1.0, seed: int = 1) -> Asked:
    return Asked(temperature, top_p, seed, number, None, None)


def ids(chosen: list[Chosen | None]) -> list[int]:
    return [one.id for one in chosen if one is not None]


def test_temperature_zero_takes_the_likeliest() -> None:
    """Whatever the seed."""
    logits = torch.tensor([[0.0, 3.0, 1.0], [5.0, 3.0, 1.0]])
    assert ids(choose(logits, [asked(temperature=0), asked(temperature=0, seed=9)])) == [1, 0]


@pytest.mark.parametrize("top_p", [1.0, 0.999999])
def test_ids_come_as_often_as_they_are_likely(top_p: float) -> None:
    """4000 draws of five ids, within four standard deviations."""
    likely = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05])
    drawn = Counter(ids(choose(likely.log().repeat(4000, 1), [asked(number, top_p=top_p) for number in range(4000)])))
    for one, share in enumerate(likely.tolist()):
        assert abs(drawn[one] / 4000 - share) < 4 * math.sqrt(share * (1 - share) / 4000)


def test_temperature_sharpens_and_flattens() -> None:
    """The share of the likeliest of two: 1 / (1 + exp(-1 / temperature))."""
    for temperature in (0.25, 1.0, 2.0):
        many = [asked(number, temperature=temperature) for number in range(2000)]
        share = ids(choose(torch.tensor([[1.0, 0.0]]).repeat(2000, 1), many)).count(0) / 2000
        assert share == pytest.approx(1 / (1 + math.exp(-1 / temperature)), abs=0.04)


@pytest.mark.parametrize(("top_p", "kept"), [(0.5, 1), (0.51, 2), (0.7, 2), (0.84, 3), (0.99, 5), (1e-9, 1)])
def test_top_p_keeps_the_fewest_ids_that_reach_it(top_p: float, kept: int) -> None:
    """And all of them come."""
    likely = torch.tensor([[0.1, 0.5, 0.15, 0.2, 0.05]], dtype=torch.float64)
    many = [asked(number, top_p=top_p) for number in range(400)]
    drawn = set(ids(choose(likely.log().repeat(400, 1), many)))
    assert drawn == {1, 3, 2, 0, 4} & set([1, 3, 2, 0, 4][:kept])


def test_top_p_is_exact_where_the_first_ids_do_not_reach_it() -> None:
    """A flat vocabulary of 1000: 0.5 keeps the likelier half, far more than are looked at first."""
    logits = torch.linspace(0, 1e-6, 1000, dtype=torch.float64).repeat(3000, 1)
    drawn = set(ids(choose(logits, [asked(number, top_p=0.5) for number in range(3000)])))
    assert min(drawn) >= 499 and len(drawn) > 400


def test_an_id_that_is_impossible_never_comes() -> None:
    """Its weight is zero: not even by rounding at the ends."""
    logits = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]])
    for top_p in (1.0, 0.9):
        many = [asked(number, top_p=top_p, temperature=0.01) for number in range(300)]
        assert set(ids(choose(logits.repeat(300, 1), many))) == {1, 3}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_number_is_no_id_and_no_harm_to_others(temperature: float) -> None:
    """NaN anywhere, infinity, or nothing left."""
    logits = torch.zeros(4, 6)
    logits[0, 3], logits[1, 2], logits[2] = math.nan, math.inf, -math.inf
    logits[3, 4] = 50
    chosen = choose(logits, [asked(temperature=temperature)] * 4)
    assert chosen == [None, None, None, Chosen(4, None)]


def test_only_what_is_allowed_is_chosen_and_log_probabilities_are_from_before() -> None:
    """The likeliest is forbidden, and still the model's own opinion."""
    logits = torch.tensor([[3.0, 2.0, 1.0]], dtype=torch.float64)
    allowed = torch.tensor([False, False, True])
    want = logits[0].log_softmax(-1).tolist()
    chosen = choose(logits, [Asked(0.0, 1.0, 0, 0, 2, allowed)])[0]
    assert chosen is not None and chosen.logprob is not None
    assert chosen.id == 2 and chosen.logprob.logprob == pytest.approx(want[2])
    assert [one for one, _ in chosen.logprob.top] == [0, 1]
    assert [value for _, value in chosen.logprob.top] == pytest.approx(want[:2])


def test_no_alternatives_are_told_where_none_are_asked_for() -> None:
    """`logprobs: 0` is the chosen id alone; more than the vocabulary is all of it."""
    logits = torch.tensor([[3.0, 2.0, 1.0]])
    for wanted, told in ((0, 0), (20, 3)):
        chosen = choose(logits.clone(), [Asked(0.0, 1.0, 0, 0, wanted, None)])[0]
        assert chosen is not None and chosen.logprob is not None
        assert len(chosen.logprob.top) == told


def test_chance_is_of_seed_and_number_alone() -> None:
    """Fixed for ever: answers to a seed are to be had again. Seeds up to 2^63 - 1; even in [0, 1)."""
    assert uniform(0, 0) == uniform(0, 0) != uniform(0, 1)
    assert uniform(2**63 - 1, 5) != uniform(2**63 - 2, 5)
    many = [uniform(7, number) for number in range(2000)]
    assert all(0 <= one < 1 for one in many) and sum(many) / 2000 == pytest.approx(0.5, abs=0.03)
    assert uniform(42, 3) == 0.6137423568902238
