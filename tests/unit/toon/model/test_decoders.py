"""The decoders against transformers, which has other code for the same weights.

Single precision inside transformers (angles, norms) bounds what can be equal: 1e-5 of logits of about 6, in a model of
double precision, and 1e-4 in one of single. Against arithmetic written down by hand it is 1e-9 (`test_positions`).
"""

from __future__ import annotations

import torch

from tests.unit.toon.model.growing import IDS, apart, decoder, gpt2, llama, logits, mpt


def standard(model: object, **asked: object) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([IDS]), **asked).logits[0]  # type: ignore[operator,no-any-return] # of transformers


def test_a_llama_gives_the_logits_that_transformers_gives() -> None:
    model = llama()
    assert apart(standard(model), logits(decoder(model))) < 1e-5


def test_a_gpt2_gives_the_logits_that_transformers_gives() -> None:
    model = gpt2()
    assert apart(standard(model), logits(decoder(model))) < 1e-9


def test_an_mpt_gives_the_logits_that_transformers_gives() -> None:
    model = mpt()
    assert apart(standard(model), logits(decoder(model))) < 1e-5
