"""Embeddings: what a client asks and gets, whatever API its vendor has."""

from __future__ import annotations

import base64
import json
from array import array

import orjson
import pytest
from openai.types import CreateEmbeddingResponse

from proxy.canon.request import Request
from proxy.dialects.base import BadRequest, Losses
from proxy.dialects.embeddings import EMBEDDINGS
from proxy.dialects.embeddings.client import parse_embeddings_request
from proxy.dialects.incoming import Incoming
from proxy.pipeline import Asked
from tests.support.pipelines import run
from tests.support.strategies import encode

TEXTS = ["سلام دنیا", "你好，世界"]
VECTORS = [[0.5, -0.25, 1.0], [0.125, 0.0, -2.0]]
ANSWERS: dict[str, dict[str, object]] = {
    "openai": {
        "object": "list",
        "data": [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(VECTORS)],
        "model": "text-embedding-3-small",
        "usage": {"prompt_tokens": 9, "total_tokens": 9},
    },
    "gemini": {"embeddings": [{"values": vector} for vector in VECTORS]},
    "cohere": {
        "id": "e1",
        "embeddings": {"float": VECTORS},
        "texts": TEXTS,
        "meta": {"billed_units": {"input_tokens": 9}},
    },
    "ollama": {"model": "nomic", "embeddings": VECTORS, "total_duration": 5, "prompt_eval_count": 9},
    "dashscope": {
        "output": {"embeddings": [{"text_index": i, "embedding": vector} for i, vector in enumerate(VECTORS)]},
        "usage": {"total_tokens": 9},
        "request_id": "r",
    },
}


def parse(**fields: object) -> Incoming:
    request = parse_embeddings_request(encode({"model": "alias", **fields}))
    assert isinstance(request, Incoming)
    return request


def sent(family: str, **fields: object) -> tuple[dict[str, object], Losses]:
    losses = Losses()
    canonical = parse(input=TEXTS, **fields).canonical
    assert isinstance(canonical, Request)
    return EMBEDDINGS[family].send(canonical, "there", losses, {}), losses


def answered(family: str, body: object, **asked: object) -> dict[str, object]:
    transcript = run(
        [encode(body)],
        Asked(stream=False, client="embeddings", body=asked),
        headers={"content-type": "application/json"},
        dialect=EMBEDDINGS[family].name,
    )
    value = json.loads(transcript.client)
    assert isinstance(value, dict)
    return value


@pytest.mark.clause("Q1")
@pytest.mark.parametrize(
    ("family", "body"),
    [
        ("openai", {"model": "there", "input": TEXTS, "dimensions": 3}),
        (
            "gemini",
            {
                "requests": [
                    {"model": "models/there", "content": {"parts": [{"text": text}]}, "outputDimensionality": 3}
                    for text in TEXTS
                ]
            },
        ),
        (
            "cohere",
            {
                "model": "there",
                "texts": TEXTS,
                "input_type": "search_document",
                "embedding_types": ["float"],
                "output_dimension": 3,
            },
        ),
        ("ollama", {"model": "there", "input": TEXTS, "dimensions": 3}),
        ("dashscope", {"model": "there", "input": {"texts": TEXTS}, "parameters": {"dimension": 3}}),
    ],
)
def test_each_family_is_asked_in_its_own_api(family: str, body: dict[str, object]) -> None:
    """Several texts and the number of dimensions; a field that it does not know is named as lost."""
    made, losses = sent(family, dimensions=3, user="u", pooling="cls")
    assert made == body
    assert losses.real == ("pooling",)


@pytest.mark.clause("L2")
@pytest.mark.parametrize("family", sorted(ANSWERS))
@pytest.mark.parametrize("format", ["float", "base64"])
def test_each_familys_vectors_are_told_as_the_client_wants_them(family: str, format: str) -> None:
    """In order, as numbers or in base64; a vendor of the same API is passed through. The official model parses it."""
    answer = answered(family, ANSWERS[family], encoding_format=format)
    CreateEmbeddingResponse.model_validate({**answer, "data": answer["data"] if format == "float" else []})
    rows = answer["data"]
    assert isinstance(rows, list)
    told = [row["embedding"] for row in rows]
    if format == "base64" and family != "openai":
        told = [array("f", base64.b64decode(vector)).tolist() for vector in told]
    assert told == VECTORS
    usage = answer["usage"]
    assert isinstance(usage, dict)
    assert usage["prompt_tokens"] == (7 if family == "gemini" else 9), "our count where the vendor gave none"
    assert ("estimated" in usage) is (family == "gemini")


@pytest.mark.clause("E")
@pytest.mark.parametrize("family", sorted(ANSWERS))
def test_an_answer_without_vectors_is_no_answer(family: str) -> None:
    """An empty list is a cut, an error is an error."""
    assert answered(family, {"embeddings": [], "data": []})["error"]["code"] == "stream_cut"  # type: ignore[index]  # JSON
    assert "error" in answered(family, {"error": {"message": "quota exceeded", "code": "insufficient_quota"}})


@pytest.mark.clause("Q1")
@pytest.mark.parametrize("value", [None, [], [1, 2], [["a"]], 5])
def test_token_ids_are_for_vendors_of_this_api(value: object) -> None:
    """They pass to those as they came, and nowhere else."""
    request = parse(input=value)
    assert isinstance(request.canonical, BadRequest)
    assert orjson.loads(request.for_upstream("there")) == {"model": "there", "input": value}


@pytest.mark.clause("Q1")
def test_a_stream_of_embeddings_is_refused() -> None:
    """Nobody has one."""
    refused = parse_embeddings_request(encode({"model": "m", "input": "x", "stream": True}))
    assert isinstance(refused, BadRequest) and refused.param == "stream"


def test_vectors_stand_for_the_texts_that_they_are_of() -> None:
    """A vendor that says which text each is of may answer in any order; places that make no order are not believed."""
    rows = [{"text_index": i, "embedding": [float(i)]} for i in (2, 0, 1)]
    assert answered("dashscope", {"output": {"embeddings": rows}})["data"] == [
        {"object": "embedding", "index": i, "embedding": [float(i)]} for i in range(3)
    ]
    odd = [{**row, "text_index": 7} for row in rows]
    data = answered("dashscope", {"output": {"embeddings": odd}})["data"]
    assert isinstance(data, list)
    assert [row["embedding"] for row in data] == [[2.0], [0.0], [1.0]]


@pytest.mark.clause("W5")
@pytest.mark.parametrize("hole", [None, [], {}, 7])
def test_an_answer_that_lacks_a_vector_is_not_whole(hole: object) -> None:
    """The vectors behind it would stand for other texts than their own."""
    bodies: dict[str, object] = {
        "openai": {"data": [{"embedding": [1.0]}, {"embedding": hole}, {"embedding": [3.0]}]},
        "gemini": {"embeddings": [{"values": [1.0]}, {"values": hole}, {"values": [3.0]}]},
        "cohere": {"embeddings": {"float": [[1.0], hole, [3.0]]}},
        "ollama": {"embeddings": [[1.0], hole, [3.0]]},
        "dashscope": {"output": {"embeddings": [{"embedding": [1.0]}, hole, {"embedding": [3.0]}]}},
    }
    for family, body in bodies.items():
        assert answered(family, body)["error"]["code"] == "stream_cut"  # type: ignore[index]  # JSON


def test_numbers_that_are_none_keep_their_place() -> None:
    """A vector is as long as the vendor's, whatever stands in it, and nothing raises."""
    vector = b'[0.5, null, "x", 1e999, -' + b"9" * 400 + b", 2]"
    made = run(
        [b'{"model": "nomic", "embeddings": [' + vector + b"]}"],
        Asked(stream=False, client="embeddings", body={"encoding_format": "base64"}),
        headers={"content-type": "application/json"},
        dialect=EMBEDDINGS["ollama"].name,
    )
    told = array("f", base64.b64decode(json.loads(made.client)["data"][0]["embedding"])).tolist()
    assert [str(number) for number in told] == ["0.5", "nan", "nan", "inf", "-inf", "2.0"]


def test_a_body_in_an_array_is_that_body() -> None:
    """Readers take it for one, so nothing of it may be lost; a model that was not named is the one asked for."""
    told = answered("openai", [{**ANSWERS["openai"], "model": None, "x": 1}])
    assert told == {**ANSWERS["openai"], "model": "model-asked-for", "x": 1}
