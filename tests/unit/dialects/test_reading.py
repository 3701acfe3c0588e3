"""What every vendor's reader does with payloads that are none: marks of relays, prefixes, words, arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from proxy.canon.chunk import Chunk, Delta, EndMark, ErrorSeen, Heartbeat, Malformed, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.reading import JsonReader
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.dialects.signs import is_error

#: Grammars whose own end mark is `[DONE]`.
MARKED: Final = ("openai", "completions", "toon.engine", "toon.vllm")
every_dialect = pytest.mark.parametrize("dialect", sorted(VENDOR_DIALECTS))


class Plain(JsonReader):
    """The least reader: every object is a piece of text, or the end."""

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        delta = Delta(0, {"content": str(value.get("text"))}, finish="stop" if "end" in value else None)
        delta.extra, delta.choice_extra = {"content": 1, "own": 2}, {"delta": 1, "index": 7, "own": 3}
        return Chunk([delta], extra={"error": [], "id": "x", "own": 1})

    def read_whole(self, data: bytes) -> Parsed:
        return self.read_object({}, data, None)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        return Usage()


@pytest.mark.clause("W5")
@every_dialect
def test_a_mark_that_is_not_of_the_grammar_proves_nothing(dialect: str) -> None:
    """One-API writes `[DONE]` behind a cut too: it is no end of an answer that has no finish."""
    kind = EndMark if dialect in MARKED else Heartbeat
    for mark in (b"[DONE]", b" [DONE]\r", b"[done]", b"[DONE];", b"data: [DONE]", b'"[DONE]"'):
        assert isinstance(VENDOR_DIALECTS[dialect].reader({}).read(mark, None), kind), mark


@pytest.mark.clause("W5")
def test_a_mark_behind_the_finish_ends_the_answer() -> None:
    """Nobody need wait for the end of the body then."""
    reader = Plain()
    reader.read(b'{"end":1}', None)
    assert isinstance(reader.read(b"[DONE]", None), EndMark)
    assert isinstance(reader.read(b"[DONE]", "error"), ErrorSeen)


@pytest.mark.parametrize("prefix", ["\ufeff", "data: ", "data:data: ", "\ufeffdata: \ufeff"])
def test_what_a_relay_writes_in_front_again_is_dropped(prefix: str) -> None:
    """Half a pair that is escaped, and bad bytes, are read behind it as anywhere, and counted once."""
    reader = Plain()
    parsed = reader.read(prefix.encode() + b'{"text":"\\ud83d \xff"}', None)
    assert isinstance(parsed, Chunk) and parsed.deltas[0].texts == {"content": "\ud83d \ufffd"}
    assert reader.replaced == 1


@pytest.mark.parametrize("dialect", [name for name in sorted(VENDOR_DIALECTS) if name != "openai"])
def test_words_of_an_event_that_is_called_an_error_are_one(dialect: str) -> None:
    """Words alone may be anything, but not there; broken JSON is told of as a loss. (Relays of chat completions write
    notices in this way: their words are kept aside until the end.)"""
    reader = VENDOR_DIALECTS[dialect].reader({})
    assert isinstance(reader.read("خطا".encode(), "error"), ErrorSeen)
    assert isinstance(reader.read("خطا".encode(), None), Malformed)
    assert isinstance(reader.read(b'{"half', "error"), Malformed)


def test_an_array_around_one_payload_is_that_payload() -> None:
    parsed = Plain().read(b'[{"text":"x"}]', None)
    assert isinstance(parsed, Chunk) and parsed.deltas[0].texts == {"content": "x"}
    assert isinstance(Plain().read(b'[{"error":"x"}]', None), ErrorSeen)
    assert isinstance(Plain().read(b"[]", None), Heartbeat)


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        *((7, 7), ("7", 7), (7.0, 7), (0, 0), (7.5, None), ("7.0", None), (-7.0, None), (True, None), ("٧", None)),
        *((1e300, None), (float("inf"), None), (float("nan"), None), ("9" * 20, None), (None, None), ([7], None)),
    ],
)
def test_a_figure_may_be_written_as_text_or_as_a_fraction(value: object, tokens: int | None) -> None:
    """Relays and typed languages do; nothing that is no whole number becomes one."""
    assert figure({"a": None, "b": value}, "a", "b") == tokens


@pytest.mark.parametrize("code", ["Success", "OK", "SUCCESS", 0, "200"])
def test_a_code_that_says_well_is_no_error(code: object) -> None:
    assert not is_error({"code": code})


@pytest.mark.clause("W4")
def test_unknown_fields_do_not_go_by_names_that_are_taken() -> None:
    """A vendor's `error: []` or `index` would be another thing to a client of chat completions."""
    for chunk in (Plain().read(b"{}", None), Plain().read_body(b"{}")):
        assert isinstance(chunk, Chunk)
        (delta,) = chunk.deltas
        assert (chunk.extra, delta.extra, delta.choice_extra) == ({"own": 1}, {"own": 2}, {"own": 3})
