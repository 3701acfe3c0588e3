"""A row's three forms, and what vendors may put into one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.metering.ledger import MAX_OBJECT_BYTES, MAX_TEXT_CHARS
from proxy.stores.ledger_rows import (
    COLUMNS,
    FLAT_COLUMNS,
    close_values,
    encode_close,
    encode_open,
    interrupted,
    open_values,
    rfc3339,
    to_c5,
    to_flat,
    to_micros,
    with_fragments,
    with_objects,
)
from tests.support.rows import USAGE, closed, opened


def c5(**fields: Any) -> dict[str, object]:
    """A closed row, through the journal and the columns, as C5 has it."""
    row = opened("a1", writer="w")
    return with_objects(to_c5(values(row, **fields)))


def values(row: Any, **fields: Any) -> tuple[object, ...]:
    return close_values(orjson.loads(encode_open(row)), orjson.loads(encode_close(closed(row, **fields))))


@pytest.mark.clause("C5")
def test_a_closed_row_has_every_field_of_the_contract_in_its_order_and_form() -> None:
    """Times in RFC 3339 with microseconds and Z, durations in milliseconds, `counted` one object, null for nothing."""
    row = c5()
    assert " ".join(row) == (
        "attempt_id request_id trace_id attempt_no tenant endpoint streamed started_at ended_at upstream vendor "
        "credential model_alias model served_model service_tier vendor_request_id vendor_response_id upstream_status "
        "rule_id ending error_class error_code finish_reason finish_inferred vendor_usage counted delivered_output "
        "tokenizer ttft_ms duration_ms bytes_in bytes_out events_in events_out writer notes "
        "counted_reasoning count_formula request_bytes max_output usage cost"
    )
    assert row["started_at"] == "2026-03-01T12:00:00.000000Z"
    assert row["ended_at"] == "2026-03-01T12:00:01.500000Z"
    assert (row["ttft_ms"], row["duration_ms"]) == (250.125, 1500.0)
    assert row["counted"] == {"input": 12, "output": 34}
    assert (row["streamed"], row["finish_inferred"]) == (True, False)
    assert (row["error_class"], row["notes"], row["vendor_usage"]) == (None, None, USAGE)


@pytest.mark.clause("C5")
def test_a_running_row_has_no_ending_and_no_end() -> None:
    """What is not known yet is null, and counts are nought."""
    row = with_objects(to_c5(open_values(orjson.loads(encode_open(opened("a1"))))))
    assert [row[key] for key in ("ending", "ended_at", "ttft_ms", "duration_ms", "vendor_usage")] == [None] * 5
    assert (row["counted"], row["tokenizer"], row["finish_inferred"]) == ({"input": 0, "output": 0}, None, False)


@pytest.mark.clause("L1")
def test_an_interrupted_row_ends_at_its_writers_last_sign_of_life_but_not_before_its_start() -> None:
    """The end is what was given, or the start where that is later."""
    running = open_values(orjson.loads(encode_open(opened("a1"))))
    later = to_c5(interrupted(running, 1_772_366_403_000_000))
    assert (later["ending"], later["error_class"]) == ("interrupted", "model_unavailable")
    assert (later["ended_at"], later["duration_ms"]) == ("2026-03-01T12:00:03.000000Z", 3000.0)
    assert to_c5(interrupted(running, 0))["duration_ms"] == 0.0


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    ("usage", "text"),
    [
        ({"z": 1, "a": 2.50, "deep": {"و": [None, True]}}, '{"z":1,"a":2.5,"deep":{"و":[null,true]}}'),
        (b'{"z": 1.10, "a": 12345678901234567890123, "z": 2}', '{"z": 1.10, "a": 12345678901234567890123, "z": 2}'),
        (b'{\n  "a": "\\ud83d",\r\n  "b": 1e-07\n}', '{   "a": "\\ud83d",    "b": 1e-07 }'),
        ({"big": 10**30}, '{"big":1000000000000000000000000000000}'),
        ({"half": "\ud83d"}, '{"half":"\ufffd"}'),
        (b"not JSON", '"not JSON"'),
        (b"[NaN]", '"[NaN]"'),
    ],
)
def test_the_vendors_usage_is_kept_to_the_letter(usage: object, text: str) -> None:
    """Key order, doubled keys and the writing of numbers stay; only line feeds between values become spaces."""
    row = to_c5(values(opened("a1"), vendor_usage=usage))
    assert row["vendor_usage"] == text
    assert orjson.dumps(with_fragments(row)).count(text.encode()) == 1
    json.loads(orjson.dumps(with_fragments(row)))


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "usage", [{"x": "y" * MAX_OBJECT_BYTES}, b'["' + b"x" * MAX_OBJECT_BYTES + b'"]', nested(100_000)]
)
def test_a_usage_object_too_large_or_too_deep_is_left_out_and_noted(usage: object) -> None:
    """A row stays small whatever a vendor sends, and says what it has not."""
    row = c5(vendor_usage=usage)
    assert row["vendor_usage"] is None
    assert row["notes"] == {"vendor_usage": "left out: too large or too deep"}


@pytest.mark.parametrize(("length", "kept"), [(MAX_TEXT_CHARS - 1, -1), (MAX_TEXT_CHARS, 0), (MAX_TEXT_CHARS + 1, 0)])
def test_a_text_longer_than_its_limit_is_cut(length: int, kept: int) -> None:
    """At the limit it is whole, above it ends there."""
    assert c5(served_model="ن" * length)["served_model"] == "ن" * (MAX_TEXT_CHARS + kept)


def test_texts_that_a_database_refuses_are_made_harmless() -> None:
    """NUL and half a surrogate pair become U+FFFD; a pair in two halves becomes its character."""
    assert c5(error_code="a\0b\ud83dc\ud83d\ude00")["error_code"] == "a\ufffdb\ufffdc😀"


@given(
    text=st.text(st.characters(codec=None), max_size=30),
    number=st.integers() | st.booleans(),
    moment=st.floats(),
    usage=st.recursive(
        st.none() | st.integers() | st.floats() | st.text(st.characters(codec=None)), st.lists, max_leaves=5
    ),
)
def test_any_values_make_a_row_that_both_databases_take(text: str, number: int, moment: float, usage: object) -> None:
    """Whatever stands in a row: texts are whole and bounded, integers have 64 bits, times are dates."""
    made = values(
        opened(text, tenant=text, attempt_no=number, started_at=moment),
        error_code=text,
        upstream_status=number,
        duration_ms=moment,
        bytes_in=number,
        vendor_usage={"any": usage},
        notes={"any": text},
    )
    for value in made:
        if isinstance(value, str):
            assert "\0" not in value
            value.encode()
        elif value is not None:
            assert isinstance(value, int)
            assert -(2**63) <= value < 2**63
    orjson.loads(orjson.dumps(with_fragments(to_c5(made))))


def test_a_table_has_the_counts_apart_and_objects_as_text() -> None:
    """The flat form has the names of its header, in order."""
    flat = to_flat(values(opened("a1"), vendor_usage={"total_tokens": 46}, notes={"filter": "medium"}))
    assert tuple(flat) == FLAT_COLUMNS
    assert (flat["counted_input"], flat["counted_output"]) == (12, 34)
    assert (flat["vendor_usage"], flat["notes"]) == ('{"total_tokens":46}', '{"filter":"medium"}')
    assert (flat["usage_input_told"], flat["cost_own_input"]) == ("absent", None)
    assert len(set(FLAT_COLUMNS)) == len(FLAT_COLUMNS) > len(COLUMNS)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(4000, 1, 1)))
def test_a_moment_survives_the_way_to_microseconds_and_back(moment: datetime) -> None:
    """No rounding: what is stored is what is told."""
    assert datetime.fromisoformat(rfc3339(to_micros(moment))) == moment.replace(tzinfo=UTC)
