"""The engine over real decoders and real plans: what a request asks for is what a batch gives (docs/toon.md)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import pytest

from proxy.dialects.toon.format import ToonRequest, parse_toon
from proxy.toon.card import Card
from proxy.toon.engine.job import Job
from proxy.toon.engine.scheduler import Limits
from proxy.toon.model.loading import load_model
from proxy.toon.model.plan import Plan, plan
from proxy.toon.model.step import Decoder
from proxy.toon.tiny import Family, make_tiny
from tests.support.toon_toy import Bench, slowly

VOCAB, CONTEXT = 300, 512


@dataclass(frozen=True)
class Made:
    decoder: Decoder
    card: Card


@pytest.fixture(scope="module", params=["llama", "gpt2", "mpt"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """A small model of each kind of positions, in double precision."""
    family: Family = request.param
    folder = make_tiny(tmp_path_factory.mktemp(family), family=family, vocab=VOCAB, context=CONTEXT)
    decoder = load_model(folder, device="cpu", dtype="float64")
    special = frozenset({0, 1, 2})
    yield Made(decoder, Card("2.1", VOCAB, CONTEXT, decoder.shape.base, 0, special, 64, frozenset({2})))


def asked(made: Made, count: int, seed: int, mask: dict[str, object] | None = None, **more: object) -> Job:
    ids = random.Random(f"{count}/{seed}").choices(range(3, VOCAB), k=count)
    pos = {"base": made.card.base, "offset": more.pop("offset", 0), "stride": more.pop("stride", 1)}
    whole = {"type": "causal", "scope": "full", "fallback": "none", **(mask or {})}
    body = {"tids": {"v": "2.1", "ids": ids}, "mask": whole, "pos": pos, "max_tokens": 24, **more}
    request = parse_toon(msgspec.json.encode(body))
    assert isinstance(request, ToonRequest), request
    planned = plan(request, made.card, text_of)
    assert isinstance(planned, Plan), planned
    return Job(planned, request.max_tokens, request.temperature, request.top_p, seed, made.card.eos)


def text_of(ids: Sequence[int]) -> list[str]:
    """Every seventh id is a citation."""
    return [" 12 U.S. 34 " if one % 7 == 0 else "法" for one in ids]


def jobs_of(made: Made) -> list[Job]:
    """Every type and scope of masks there is, and places as the model takes them."""
    parts = [{"length": 20, "meta": {"source": "system_prompt"}}, {"length": 30}, {"length": 27}]
    cites = {"name": "legal_citation", "citation_pattern": r"\d+ U\.S\. \d+"}
    return [
        asked(made, 1, 0, temperature=0),
        asked(made, 77, 1, offset=5, temperature=0),
        asked(made, 50, 2, offset=3, stride=4, temperature=0.9),
        asked(made, 33, 3, {"type": "bidirectional"}, temperature=0),
        asked(made, 77, 4, {"scope": "partial"}, x_segments=parts, temperature=0),
        asked(made, 77, 5, {"scope": "dynamic"}, x_segments=parts, x_window=9, temperature=1, top_p=0.9),
        asked(made, 60, 6, {"type": "custom", "custom_def": {"name": "sliding_window", "window": 5}}, temperature=0),
        asked(made, 61, 7, {"type": "custom", "custom_def": cites}, temperature=0),
        asked(made, 77, 8, {"type": "custom", "custom_def": cites, "scope": "partial"}, x_segments=parts),
    ]


@pytest.fixture(scope="module")
def jobs(made: Made) -> list[Job]:
    return jobs_of(made)


@pytest.fixture(scope="module")
def alone(made: Made, jobs: list[Job]) -> list[list[int]]:
    return [slowly(made.decoder, job) for job in jobs]


@pytest.mark.parametrize(
    "limits",
    [Limits(blocks=4096), Limits(blocks=4096, rows=3, chunk=11, step_ids=20), Limits(blocks=24)],
    ids=["at once", "in parts", "in little memory"],
)
def test_every_mask_in_one_batch_is_as_alone(
    made: Made, jobs: list[Job], alone: list[list[int]], limits: Limits
) -> None:
    """And as with everything run again for each id; a second time from what is cached."""
    bench = Bench(made.decoder, limits, is_caching=True)
    assert bench.answers(jobs) == alone
    assert bench.answers(jobs) == alone
    assert bench.core.tally.cached_ids > 0 or limits.blocks == 24
