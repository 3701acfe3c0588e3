"""Answers of the embedding APIs: one plain body to vectors and usage.

In: a body. Out: a Chunk whose `extra` holds `embeddings` (one list of numbers per text, in order) and that is finished,
or an error. Never raises; a body whose vectors are not where they should be, or that lacks one, says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.payload import as_count, as_mapping, as_text
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

    def read_whole(self, data: bytes) -> Parsed:
        return self.read(data, None, one_line=False)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        """Vectors are no tokens: the output is none, and a total is the input."""
        asked = figure(vendor, "prompt_tokens", "input_tokens", "prompt_eval_count", "promptTokenCount")
        total = figure(vendor, "total_tokens", "totalTokenCount")
        if asked is None:
            return Usage(total, 0, derived=frozenset(("input", "output")), total=total)
        return Usage(asked, 0, derived=frozenset(("output",)), total=total)


def openai(value: Mapping[str, object]) -> Found:
    return _vectors(value.get("data"), "embedding", "index"), as_mapping(value.get("usage"))


def gemini(value: Mapping[str, object]) -> Found:
    return _vectors(value.get("embeddings"), "values"), as_mapping(value.get("usageMetadata"))


def cohere(value: Mapping[str, object]) -> Found:
    vectors = as_mapping(value.get("embeddings")).get("float")
    units = as_mapping(as_mapping(value.get("meta")).get("billed_units"))
    return _whole(vectors), units


def ollama(value: Mapping[str, object]) -> Found:
    counted = {name: value[name] for name in ("prompt_eval_count",) if name in value}
    return _whole(value.get("embeddings")), counted


def dashscope(value: Mapping[str, object]) -> Found:
    rows = as_mapping(value.get("output")).get("embeddings")
    return _vectors(rows, "embedding", "text_index"), as_mapping(value.get("usage"))


def _vectors(rows: object, name: str, place: str = "") -> list[object] | None:
    """The vectors of rows, in the order of the texts, where the rows say theirs."""
    found = [as_mapping(row) for row in rows] if isinstance(rows, list) else []
    at = [as_count(row.get(place)) for row in found]
    if sorted(told for told in at if told is not None) == list(range(len(found))):
        found = [row for _, row in sorted(zip(at, found, strict=True), key=lambda one: one[0] or 0)]
    return _whole([row.get(name) for row in found])


def _whole(vectors: object) -> list[object] | None:
    """None where one is missing: all behind it would stand for other texts than their own."""
    if not isinstance(vectors, list) or not vectors:
        return None
    return vectors if all(isinstance(vector, list | str) and vector for vector in vectors) else None
