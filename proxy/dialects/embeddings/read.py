"""Answers of the embedding APIs: one plain body to vectors and usage.

In: a body. Out: a Chunk whose `extra` holds `embeddings` (one list of numbers per text, in order) and that is finished,
or an error. Never raises; a body whose vectors are not where they should be says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_mapping, as_text
from proxy.dialects.reading import JsonReader

#: The vectors of a body (None if it has none), and its usage object.
Found = tuple[list[object] | None, Mapping[str, object]]


class EmbeddingsReader(JsonReader):
    """`find` knows where one family keeps its vectors."""

    def __init__(self, find: Callable[[Mapping[str, object]], Found]) -> None:
        super().__init__()
        self._find = find

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        vectors, usage = self._find(value)
        if value.get("error"):
            return ErrorSeen(value, data)
        if not vectors:
            return self.foreign(value, data, event, frozenset())
        return Chunk(
            [Delta(0, {}, finish="stop")],
            id=as_text(value.get("id")),
            model=as_text(value.get("model")),
            usage=usage or None,
            extra={"embeddings": vectors},
        )

    def read_body(self, data: bytes) -> Parsed:
        return self.read(data, None, one_line=False)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        names = ("prompt_tokens", "input_tokens", "total_tokens", "prompt_eval_count", "promptTokenCount")
        return Usage(figure(vendor, *names), 0)


def openai(value: Mapping[str, object]) -> Found:
    return [row["embedding"] for row in objects(value.get("data")) if row.get("embedding")], _usage(value)


def gemini(value: Mapping[str, object]) -> Found:
    return [row["values"] for row in objects(value.get("embeddings")) if row.get("values")], _usage(
        {"usage": value.get("usageMetadata")}
    )


def cohere(value: Mapping[str, object]) -> Found:
    vectors = as_mapping(value.get("embeddings")).get("float")
    units = as_mapping(as_mapping(value.get("meta")).get("billed_units"))
    return vectors if isinstance(vectors, list) else None, units


def ollama(value: Mapping[str, object]) -> Found:
    vectors = value.get("embeddings")
    counted = {name: value[name] for name in ("prompt_eval_count",) if name in value}
    return vectors if isinstance(vectors, list) else None, counted


def dashscope(value: Mapping[str, object]) -> Found:
    rows = objects(as_mapping(value.get("output")).get("embeddings"))
    return [row["embedding"] for row in rows if row.get("embedding")], _usage(value)


def _usage(value: Mapping[str, object]) -> Mapping[str, object]:
    return as_mapping(value.get("usage"))
