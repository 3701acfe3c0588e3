"""The row type itself."""

from __future__ import annotations

from dataclasses import fields

import pytest

from proxy.metering.ledger import AttemptClose, AttemptOpen

NAMES = {field.name for row in (AttemptOpen, AttemptClose) for field in fields(row)}
CONTRACT = (
    "attempt_id request_id trace_id attempt_no tenant endpoint streamed started_at ended_at upstream vendor credential "
    "model_alias model served_model service_tier vendor_request_id vendor_response_id upstream_status rule_id ending "
    "error_class error_code finish_reason finish_inferred vendor_usage counted_input counted_output delivered_output "
    "tokenizer ttft_ms duration_ms bytes_in bytes_out events_in events_out writer"
)
#: What finance needs besides: numbers, names of states and prices.
BOOKS = (
    "request_bytes max_output price_version currency cost_bound counted_reasoning count_formula usage_state usage_told "
    "usage_input usage_output usage_cache_read usage_cache_write usage_reasoning usage_total billed_input "
    "billed_output "
    "price_tier cost_input cost_cache_read cost_cache_write cost_output own_cost_input own_cost_output"
)


@pytest.mark.clause("L3", "C5")
def test_a_row_has_the_fields_of_the_contract_and_no_place_for_a_prompt_or_an_answer() -> None:
    """The contract's fields, `notes` and the books' figures are all: a prompt or an answer has no field to stand in."""
    assert {*CONTRACT.split(), "notes", *BOOKS.split()} == NAMES
