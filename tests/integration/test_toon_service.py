"""The whole token-native route: a client, the proxy, the engine's service with a small random model (docs/toon.md).

The model is in double precision, so that equal answers do not hang on a rounding. `sluice toon serve` runs once.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from proxy.dialects.toon.format import MEDIA_TYPE
from proxy.toon.client import ToonClient, ToonError
from proxy.toon.tokenizers import Tokenizer, load_tokenizer
from tests.support.client import fetch
from tests.support.proxy import ALIAS, MODEL, Proxy, running_proxy
from tests.support.toon import ToonService, made_models, serving_toon, toon

PATH: Final = "/v1/completions/toon"
TYPED: Final = {"content-type": MEDIA_TYPE}
SCHEMA: Final = {
    "type": "object",
    "properties": {"نام": {"type": "string", "maxLength": 4}, "سن": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["نام", "سن"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many rows for so little memory that some must give way to others."""
    small = {"rows": 48, "waiting": 256, "cache_mib": 1}
    return made_models(tmp_path_factory.mktemp("models"), model=MODEL, dtype="float64", **small)


@pytest.fixture(scope="module")
def service(registry: Path) -> Iterator[ToonService]:
    with serving_toon(registry) as running:
        yield running


@pytest.fixture(scope="module")
def tokenizer(registry: Path) -> Tokenizer:
    return load_tokenizer(registry.parent)


@asynccontextmanager
async def proxied(tmp_path: Path, service: ToonService) -> AsyncIterator[Proxy]:
    where = {"toon": {"registry": str(service.registry)}, "vendor": "toon"}
    async with running_proxy(tmp_path, service.base_url, **where) as proxy:
        yield proxy


def greedy(ids: list[int], **more: Any) -> dict[str, object]:
    return toon(ids, temperature=0, **{"max_tokens": 12, **more})


@pytest.mark.clause("T1", "L2")
async def test_a_hundred_streams_have_every_id_in_its_place(tmp_path: Path, service: ToonService) -> None:
    """Of all lengths, offsets and strides at once, a fifth of them left half-way: what each one says is what it says
    when it is asked alone, and nothing stands out of place."""
    dice = random.Random(7)
    asked = [
        greedy(
            [dice.randrange(3, 259) for _ in range(dice.randrange(1, 60))],
            offset=dice.randrange(1000),
            stride=dice.randrange(1, 4),
            max_tokens=dice.randrange(4, 24),
        )
        for _ in range(100)
    ]

    async def read(client: ToonClient, request: dict[str, object], leaves: bool) -> list[int] | None:
        ids: list[int] = []
        async with client.stream(request) as stream:
            async for chunk in stream:
                ids += chunk.ids
                if leaves and len(ids) >= 2:
                    return None
        assert not stream.misplaced
        return ids

    async with proxied(tmp_path, service) as proxy, ToonClient(proxy.base_url) as client:
        leaving = [at % 5 == 0 for at in range(100)]
        answers = await asyncio.gather(*(read(client, one, left) for one, left in zip(asked, leaving, strict=True)))
        alone = [await client.complete(asked[at]) for at in range(1, 100, 7)]
        rows = await proxy.rows(100 + len(alone))

    for at, whole in zip(range(1, 100, 7), alone, strict=True):
        if not leaving[at]:
            assert answers[at] == list(whole.ids)
    endings = [row["ending"] for row in rows]
    assert endings.count("completed") + endings.count("client_gone") == len(rows)
    assert endings.count("completed") >= 80
    finished = [row for row in rows if row["ending"] == "completed"]
    assert all(row["counted"]["output"] == row["vendor_usage"]["completion_ids"] for row in finished)


@pytest.mark.clause("T1")
async def test_an_answer_that_gave_way_to_others_goes_on_in_its_place(tmp_path: Path, service: ToonService) -> None:
    """Eight that grow beyond the engine's memory together: some are preempted, and nobody can tell which."""
    dice = random.Random(3)
    async with proxied(tmp_path, service) as proxy, ToonClient(proxy.base_url) as client:
        asked: list[dict[str, object]] = []
        alone: list[list[int]] = []
        while len(asked) < 8:
            request = greedy([dice.randrange(3, 259) for _ in range(100)], stride=2, max_tokens=240)
            whole = await client.complete(request)
            if len(whole.ids) == 240:  # it does not end by itself before the memory is full
                asked.append(request)
                alone.append(list(whole.ids))
        before = await service.figures()

        async def read(request: dict[str, object]) -> list[int]:
            async with client.stream(request) as stream:
                ids = [one async for chunk in stream for one in chunk.ids]
            assert not stream.misplaced
            return ids

        together = await asyncio.gather(*map(read, asked))
        after = await service.figures()

    assert together == alone
    assert after["preempted_total"] > before["preempted_total"]


@pytest.mark.clause("T1")
async def test_a_stream_says_what_the_plain_answer_says(tmp_path: Path, service: ToonService) -> None:
    """With the same seed, sampled; and another seed says something else."""
    asked = toon(list(range(10, 30)), max_tokens=16, temperature=1.5, top_p=0.9, seed=11, logprobs=2)
    async with proxied(tmp_path, service) as proxy, ToonClient(proxy.base_url) as client:
        whole = await client.complete(asked)
        async with client.stream(asked) as stream:
            ids = [one async for chunk in stream for one in chunk.ids]
        other = await client.complete({**asked, "seed": 12})

    assert ids == list(whole.ids)
    assert ids != list(other.ids)


async def test_both_ways_to_the_same_model_say_the_same(
    tmp_path: Path, service: ToonService, tokenizer: Tokenizer
) -> None:
    """A chat, and the ids that its template makes of it."""
    conversation = [{"role": "system", "content": "پاسخ کوتاه"}, {"role": "user", "content": "你好，世界 👋🏽"}]
    ids = tokenizer.chat_ids(conversation)
    async with proxied(tmp_path, service) as proxy:
        chat = await proxy.ask(
            {"model": ALIAS, "messages": conversation, "temperature": 0, "max_tokens": 20, "stream": False}
        )
        spoken = await proxy.ask(
            {"model": ALIAS, "messages": conversation, "temperature": 0, "max_tokens": 20, "stream": True}
        )
        tokens = await proxy.ask(greedy(ids, max_tokens=20), path=PATH, headers=TYPED)

    said = json.loads(chat.body)["choices"][0]["message"]["content"]
    assert spoken.text == said
    assert tokenizer.decode(json.loads(tokens.body)["tids"]["ids"]) == said
    assert json.loads(chat.body)["usage"]["prompt_tokens"] == len(ids)


@pytest.mark.clause("W8")
async def test_leaving_frees_the_row(tmp_path: Path, service: ToonService) -> None:
    """The engine stops working for who has left, long before the answer's end."""
    before = await service.figures()
    async with proxied(tmp_path, service) as proxy:
        async with proxy.open(greedy([9] * 8, max_tokens=400, stream=True), path=PATH, headers=TYPED) as stream:
            while b"tids" not in stream.reply.body:
                await stream.read_once()
        row = await proxy.row()
        async with asyncio.timeout(10):
            while (after := await service.figures())["running"]:  # noqa: ASYNC110  # the metric alone tells
                await asyncio.sleep(0.01)

    assert row["ending"] == "client_gone"
    assert after["cancelled_total"] == before["cancelled_total"] + 1
    assert after["completion_ids_total"] - before["completion_ids_total"] < 400


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_obeys_its_schema(
    tmp_path: Path, service: ToonService, tokenizer: Tokenizer, stream: bool
) -> None:
    """A random model writes JSON of that schema, on both routes."""
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
    ids = tokenizer.encode("آدم: ")
    async with proxied(tmp_path, service) as proxy:
        asked = toon(ids, seed=5, max_tokens=150, response_format=wanted, stream=stream)
        reply = await proxy.ask(asked, path=PATH, headers=TYPED)
        message = [{"role": "user", "content": "آدم"}]
        more = {"seed": 5, "max_tokens": 150, "response_format": wanted, "stream": stream}
        chat = await proxy.ask({"model": ALIAS, "messages": message, **more})

    answers = reply.events if stream else [json.loads(reply.body)]
    made = [one for answer in answers for one in answer["tids"]["ids"]]  # type: ignore[index]  # JSON
    spoken = chat.text if stream else json.loads(chat.body)["choices"][0]["message"]["content"]
    for text in (tokenizer.decode(made), spoken):
        jsonschema.validate(json.loads(text), SCHEMA)


async def test_a_schema_that_cannot_be_enforced_is_refused(tmp_path: Path, service: ToonService) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    async with proxied(tmp_path, service) as proxy:
        reply = await proxy.ask(toon(response_format=wanted), path=PATH, headers=TYPED)
        row = await proxy.row()

    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"], error["type"]) == (400, "unsupported_schema", "invalid_request")
    assert row["rule_id"] == "toon.schema"


async def test_stop_words_end_a_chat_and_are_not_said(tmp_path: Path, service: ToonService) -> None:
    """In a stream too, where they come letter by letter."""
    message = [{"role": "user", "content": "بگو"}]
    asked = {"model": ALIAS, "messages": message, "temperature": 0, "max_tokens": 30, "stream": False}
    async with proxied(tmp_path, service) as proxy:
        whole = json.loads((await proxy.ask(asked)).body)["choices"][0]["message"]["content"]
        word = whole[len(whole) // 2 :][:2]
        stopped = json.loads((await proxy.ask({**asked, "stop": [word]})).body)["choices"][0]
        spoken = await proxy.ask({**asked, "stop": [word], "stream": True})

    assert (stopped["message"]["content"], stopped["finish_reason"]) == (whole[: whole.find(word)], "stop")
    assert spoken.text == stopped["message"]["content"]


async def test_the_service_answers_for_itself(service: ToonService) -> None:
    """Without the proxy in front: models, health, the contract's errors with pointers."""
    models = await fetch(service.port, method="GET", path="/v1/models")
    ready = await fetch(service.port, method="GET", path="/readyz")
    nowhere = await fetch(service.port, method="GET", path="/v2")
    bad = await fetch(service.port, toon([1, 10**6]), path=PATH, headers=TYPED)
    unknown = await fetch(service.port, toon(version="0.1"), path=PATH, headers=TYPED)

    (model,) = json.loads(models.body)["data"]
    assert (model["id"], model["tokenizer_version"], model["base"]) == (MODEL, "2.1", "rope")
    assert (ready.status, nowhere.status) == (200, 404)
    assert json.loads(bad.body)["error"]["param"] == "/tids/ids/1"
    assert (unknown.status, json.loads(unknown.body)["error"]["code"]) == (400, "unsupported_version")


async def test_a_client_hears_what_was_wrong(tmp_path: Path, service: ToonService) -> None:
    async with proxied(tmp_path, service) as proxy, ToonClient(proxy.base_url) as client:
        with pytest.raises(ToonError) as refused:
            await client.complete(toon(base="learned"))

    assert (refused.value.status, refused.value.code, refused.value.param) == (
        400,
        "unsupported_positions",
        "/pos/base",
    )
