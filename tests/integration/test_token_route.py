"""`POST /v1/completions/toon` through the real proxy: before an engine's answers, and before vLLM's (docs/toon.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from proxy.dialects.toon.format import MEDIA_TYPE
from tests.support.proxy import MODEL, running_proxy
from tests.support.toon import REQUEST, made_models, toon
from tests.support.upstream import Play, ReplayUpstream, play_events
from tests.support.vllm import EOS, Vllm

PATH: Final = "/v1/completions/toon"
TYPED: Final = {"content-type": MEDIA_TYPE}


def engine_event(ids: Sequence[int], **more: object) -> str:
    """What the engine sends; its offsets are wrong on purpose: the proxy tells its own."""
    told = {"id": "toon-1", "created": 1_790_000_000, "model": "tiny"}
    tids, pos = {"v": "2.1", "ids": list(ids)}, {"base": "rope", "offset": 999, "stride": 1}
    return json.dumps({**told, "tids": tids, "pos": pos, **more})


ENGINE_STREAM: Final = (
    engine_event([30], x_prompt_ids=3),
    engine_event([31, 32]),
    engine_event([], finish_reason="stop", stop_id=2),
    engine_event([], usage={"prompt_ids": 3, "completion_ids": 3, "cached_ids": 2}),
)


class Configured:
    """The configuration of a proxy whose model takes ids."""

    def __init__(self, registry: Path) -> None:
        self._registry = registry

    def __call__(self, vendor: str = "toon") -> dict[str, Any]:
        return {"toon": {"registry": str(self._registry)}, "vendor": vendor}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Configured:
    return Configured(made_models(tmp_path_factory.mktemp("models"), model=MODEL))


@pytest.mark.clause("T1", "W4", "W5", "L2")
async def test_a_stream_has_every_id_at_its_true_place(tmp_path: Path, config: Configured) -> None:
    """Offset + stride x (prompt ids + ids before), whatever the engine said; one finish, usage, `[DONE]`."""
    asked = toon(ids=[5, 6, 7], offset=100, stride=2, stream=True)
    async with (
        ReplayUpstream(play_events(*ENGINE_STREAM)) as upstream,
        running_proxy(tmp_path, upstream.base_url, **config()) as proxy,
    ):
        reply = await proxy.ask(asked, path=PATH, headers=TYPED)
        row = await proxy.row()

    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.body.endswith(b"data: [DONE]\n\n")
    places = [(event["tids"]["ids"], event["pos"]) for event in reply.events]  # type: ignore[index]  # JSON
    at = {"base": "rope", "stride": 2}
    assert places == [
        ([30], {**at, "offset": 106}),
        ([31, 32], {**at, "offset": 108}),
        ([], {**at, "offset": 112}),
        ([], {**at, "offset": 112}),
    ]
    first, *_, finish, last = reply.events
    assert {event["meta"]["trace_id"] for event in reply.events} == {"trace-0001"}  # type: ignore[index]  # JSON
    assert (first["x_prompt_ids"], finish["finish_reason"], finish["stop_id"]) == (3, "stop", 2)
    assert last["usage"] == {"prompt_ids": 3, "completion_ids": 3, "cached_ids": 2}
    assert upstream.hits[0].path == f"/v1/completions/toon?model={MODEL}"
    assert json.loads(upstream.hits[0].body) == asked
    assert upstream.hits[0].headers["content-type"] == MEDIA_TYPE
    assert (row["ending"], row["counted"], row["delivered_output"]) == ("completed", {"input": 3, "output": 3}, 3)
    assert (row["tokenizer"], row["endpoint"], row["trace_id"]) == ("toon/2.1", PATH, "trace-0001")
    assert row["vendor_usage"] == {"prompt_ids": 3, "completion_ids": 3, "cached_ids": 2}


@pytest.mark.clause("T1", "T4")
async def test_a_plain_answer_says_the_same(tmp_path: Path, config: Configured) -> None:
    """One body of TOON, with what the request passes through."""
    whole = engine_event(
        [30, 31, 32], finish_reason="length", x_prompt_ids=3, usage={"prompt_ids": 3, "completion_ids": 3}
    )
    play = Play([(0.0, whole.encode())], headers=[("content-type", MEDIA_TYPE)])
    segments = [{"length": 1, "meta": {"source": "system_prompt"}}, {"length": 2, "meta": {"source": "retrieval"}}]
    asked = toon(ids=[5, 6, 7], x_segments=segments, x_note={"شناسه": "سند ۷"})
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, **config()) as proxy,
    ):
        reply = await proxy.ask(asked, path=PATH, headers=TYPED)
        row = await proxy.row()

    assert (reply.status, reply.headers["content-type"]) == (200, MEDIA_TYPE)
    answer = json.loads(reply.body)
    assert (answer["tids"], answer["pos"]["offset"], answer["finish_reason"]) == (
        {"v": "2.1", "ids": [30, 31, 32]},
        3,
        "length",
    )
    assert (answer["x_segments"], answer["x_note"]) == (segments, {"شناسه": "سند ۷"})
    assert answer["meta"] == {"source": "model_output", "trace_id": "trace-0001"}
    assert (row["counted"], row["delivered_output"], row["streamed"]) == ({"input": 3, "output": 3}, 3, False)


@pytest.mark.clause("W5", "W6")
async def test_a_cut_answer_ends_with_an_error_event(tmp_path: Path, config: Configured) -> None:
    """As in every grammar: no `[DONE]`, and the row tells what came."""
    play = play_events(*ENGINE_STREAM[:2], done=False)
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, **config()) as proxy,
    ):
        reply = await proxy.ask(toon(ids=[5, 6, 7], stream=True), path=PATH, headers=TYPED)
        row = await proxy.row()

    assert b"[DONE]" not in reply.body
    error = reply.events[-1]["error"]
    assert isinstance(error, dict)
    assert (error["code"], error["type"]) == ("stream_cut", "upstream_timeout")
    assert (row["ending"], row["counted"]["output"], row["delivered_output"]) == ("stream_cut", 3, 3)


@pytest.mark.clause("T2", "E")
@pytest.mark.parametrize(
    ("headers", "body", "status", "code", "param"),
    [
        ({"content-type": "application/json"}, {}, 415, "unsupported_media_type", "content-type"),
        ({"content-type": f"{MEDIA_TYPE}; charset=utf-16"}, {}, 415, "unsupported_media_type", "content-type"),
        ({**TYPED, "accept": "application/json"}, {}, 406, "not_acceptable", "accept"),
        ({**TYPED, "accept": f"{MEDIA_TYPE};q=0, text/*"}, {}, 406, "not_acceptable", "accept"),
        ({**TYPED, "accept": "text/plain"}, {"stream": True}, 406, "not_acceptable", "accept"),
        (TYPED, {"tids": {"v": "2.1", "ids": [1, True]}}, 400, "invalid_type", "/tids/ids/1"),
        (TYPED, {"tids": {"v": "2.0", "ids": [1]}}, 400, "unsupported_version", "/tids/v"),
        (TYPED, {"tids": {"v": "2.1", "ids": [1, 2, 99_999]}}, 400, "invalid_value", "/tids/ids/2"),
        (TYPED, {"tids": {"v": "2.1", "ids": [1] * 9000}}, 413, "too_many_ids", "/tids/ids"),
        (TYPED, {"tids": {"v": "2.1", "ids": [1] * 500}}, 413, "context_length_exceeded", "/tids/ids"),
        (TYPED, {"pos": {"base": "alibi", "offset": 0, "stride": 1}}, 400, "unsupported_positions", "/pos/base"),
        (TYPED, {"pos": {"base": "rope", "offset": 2**24, "stride": 1}}, 400, "unsupported_positions", "/pos/offset"),
        (TYPED, {"model": "missing"}, 404, "model_not_found", "/model"),
        (TYPED, {"x_window": 8000}, 400, "invalid_value", "/x_window"),
    ],
)
async def test_what_is_refused_before_any_attempt(
    tmp_path: Path,
    config: Configured,
    headers: Mapping[str, str],
    body: Mapping[str, object],
    status: int,
    code: str,
    param: str,
) -> None:
    """With status, code and pointer; the upstream hears nothing, and there is no row."""
    async with (
        ReplayUpstream(play_events(*ENGINE_STREAM)) as upstream,
        running_proxy(tmp_path, upstream.base_url, **config()) as proxy,
    ):
        reply = await proxy.ask({**REQUEST, **body}, path=PATH, headers=dict(headers))
        rows = await proxy.rows_now()

    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"], error["param"], error["type"]) == (status, code, param, "invalid_request")
    assert reply.headers["x-should-retry"] == "false"
    assert (upstream.hits, rows) == ([], [])


async def test_without_models_the_route_says_how_to_enable_it(tmp_path: Path) -> None:
    async with (
        ReplayUpstream(play_events(*ENGINE_STREAM)) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
    ):
        reply = await proxy.ask(REQUEST, path=PATH, headers=TYPED)

    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"]) == (404, "toon_not_enabled")
    assert "sluice-proxy[toon]" in error["message"]


@pytest.mark.clause("W8")
async def test_a_client_that_leaves_takes_its_request_along(tmp_path: Path, config: Configured) -> None:
    """The engine's connection closes, and the row has what was received."""
    play = Play([(0.0, b"data: %b\n\n" % ENGINE_STREAM[0].encode())], end="hang")
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, **config()) as proxy,
    ):
        async with proxy.open(toon(ids=[5, 6, 7], stream=True), path=PATH, headers=TYPED) as stream:
            while b"[30]" not in stream.reply.body:
                await stream.read_once()
        row = await proxy.row()
        hit = await upstream.hits[0].wait_over()
    assert hit.gone_at is not None

    assert (row["ending"], row["counted"]["output"], row["delivered_output"]) == ("client_gone", 1, 1)


# ---- vLLM ----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("T1", "T4", "L2")
async def test_vllm_serves_the_same_route(tmp_path: Path, config: Configured) -> None:
    """Ids go as the prompt, ids come back at their places; the id that stopped it is no part of the answer."""
    asked = toon(ids=[5, 6, 7], base="none", offset=10, stream=True, seed=7, stop_ids=[11], max_tokens=20, logprobs=1)
    vllm = Vllm()
    async with (
        vllm.serving() as url,
        running_proxy(tmp_path, url, **config("vllm")) as proxy,
    ):
        reply = await proxy.ask(asked, path=PATH, headers=TYPED)
        row = await proxy.row()

    assert reply.body.endswith(b"data: [DONE]\n\n")
    *made, finish, last = reply.events
    assert [(event["tids"]["ids"], event["pos"]["offset"]) for event in made] == [  # type: ignore[index]  # JSON
        ([8], 13),
        ([9], 14),
        ([10], 15),
    ]
    assert [event["logprobs"] for event in made] == [
        [{"id": one, "logprob": -0.25, "top": [[one, -0.25]]}] for one in (8, 9, 10)
    ]
    assert (finish["finish_reason"], finish["stop_id"], finish["tids"]) == ("stop", 11, {"v": "2.1", "ids": []})
    assert last["usage"] == {"prompt_ids": 3, "completion_ids": 4, "cached_ids": 0}
    (sent,) = vllm.asked
    assert (sent["model"], sent["prompt"], sent["return_token_ids"]) == (MODEL, [5, 6, 7], True)
    assert sent["add_special_tokens"] is False
    assert (sent["seed"], sent["stop_token_ids"], sent["max_tokens"]) == (7, [11], 20)
    assert (row["counted"], row["finish_reason"]) == ({"input": 3, "output": 3}, "stop")


async def test_a_plain_answer_of_vllm_is_one_of_the_route(tmp_path: Path, config: Configured) -> None:
    vllm = Vllm()
    async with vllm.serving() as url, running_proxy(tmp_path, url, **config("vllm")) as proxy:
        reply = await proxy.ask(toon(ids=[5, 6, 7], max_tokens=4), path=PATH, headers=TYPED)
        row = await proxy.row()

    answer = json.loads(reply.body)
    assert (answer["tids"]["ids"], answer["pos"]["offset"], answer["finish_reason"]) == ([8, 9, 10, 11], 3, "length")
    assert row["counted"] == {"input": 3, "output": 4}


@pytest.mark.parametrize("stream", [True, False])
async def test_the_end_of_vllms_own_model_is_no_part_of_the_answer(
    tmp_path: Path, config: Configured, stream: bool
) -> None:
    """vLLM says None for its reason then, and the end is the last of its ids."""
    vllm = Vllm(eos_after=2)
    async with vllm.serving() as url, running_proxy(tmp_path, url, **config("vllm")) as proxy:
        reply = await proxy.ask(toon(ids=[5, 6, 7], stream=stream), path=PATH, headers=TYPED)
        row = await proxy.row()

    told = reply.events[2] if stream else json.loads(reply.body)
    assert (told["finish_reason"], told["stop_id"]) == ("stop", EOS)
    assert row["counted"] == {"input": 3, "output": 2}


@pytest.mark.clause("T4")
@pytest.mark.parametrize(
    ("asked", "param"),
    [
        (toon(mask_type="bidirectional"), "/mask/type"),
        (toon(scope="dynamic"), "/mask/scope"),
        (toon(offset=3), "/pos/offset"),
        (toon(stride=2), "/pos/stride"),
        (toon(x_special_tokens="strip"), "/x_special_tokens"),
    ],
)
async def test_what_vllm_cannot_be_told_is_refused(
    tmp_path: Path, config: Configured, asked: dict[str, object], param: str
) -> None:
    """A mask or positions that are silently dropped would change the answer."""
    vllm = Vllm()
    async with vllm.serving() as url, running_proxy(tmp_path, url, **config("vllm")) as proxy:
        reply = await proxy.ask(asked, path=PATH, headers=TYPED)

    assert (reply.status, json.loads(reply.body)["error"]["param"], vllm.asked) == (400, param, [])


@pytest.mark.clause("T4")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_vllm_that_gives_no_ids_is_an_error(tmp_path: Path, config: Configured, stream: bool) -> None:
    """Its text alone would be an answer without its positions."""
    vllm = Vllm(returns_ids=False)
    async with vllm.serving() as url, running_proxy(tmp_path, url, **config("vllm")) as proxy:
        reply = await proxy.ask(toon(stream=stream), path=PATH, headers=TYPED)
        row = await proxy.row()

    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"], row["rule_id"]) == (503, "no_token_ids", "vllm.no_token_ids")
