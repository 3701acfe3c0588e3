"""Both sides put into one DuckDB connection, ready to be compared.

In: a connection with the relation `attempts` (the ledger's columns, `stores.ledger_rows.COLUMNS`) and an invoice. Out:
two tables, `theirs` (a row for each part of each line) and `ours` (a row for each attempt, with what the vendor said or
will not say of it). All later steps are SQL over these two, so that neither has to fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

import duckdb
import numpy as np

from proxy.books.invoice import Invoice, InvoiceLine, PartKind
from proxy.books.reconciling.names import groups

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BATCH_LINES = 50_000
#: The name of the group of lines that name no model.
NO_MODEL = "(no model named)"

_THEIRS = """
CREATE OR REPLACE TEMP TABLE theirs (
    line BIGINT, place VARCHAR, model VARCHAR, moment BIGINT, until BIGINT, day DATE, request_id VARCHAR,
    requests BIGINT,
    currency VARCHAR, tier VARCHAR, rounding BIGINT, kind VARCHAR, tokens BIGINT, amount BIGINT)
"""
_ENDED_EARLY = "('client_gone', 'stream_cut', 'timeout', 'interrupted', 'limit')"
# A second scale, where there is one, is what is charged. Older rows know no state: their figures are not read.
_OURS = f"""
CREATE OR REPLACE TEMP TABLE ours AS
SELECT attempt_id, request_id, attempt_no, started_at, ended_at, tenant,
    coalesce(served_model, model) AS served, model AS asked, CAST(NULL AS VARCHAR) AS grp,
    vendor_request_id, vendor_response_id, ending, usage_state, currency,
    CASE WHEN ending IS NULL THEN 'unseen'
         WHEN usage_state = 'final' THEN 'sure'
         WHEN ending IN {_ENDED_EARLY} AND tokenizer IS NULL THEN 'unseen'
         WHEN ending IN {_ENDED_EARLY} THEN 'early'
         WHEN ending = 'completed' THEN 'told_nothing'
         ELSE 'failed' END AS state,
    CASE WHEN usage_state = 'final'
         THEN coalesce(billed_input, usage_input - coalesce(usage_cache_read, 0) - coalesce(usage_cache_write, 0), 0)
         WHEN tokenizer IS NULL THEN request_bytes ELSE counted_input END AS input,
    CASE WHEN usage_state = 'final' AND billed_input IS NULL THEN coalesce(usage_cache_read, 0) ELSE 0 END
        AS cache_read,
    CASE WHEN usage_state = 'final' AND billed_input IS NULL THEN coalesce(usage_cache_write, 0) ELSE 0 END
        AS cache_write,
    CASE WHEN usage_state = 'final' THEN coalesce(billed_output, usage_output, 0)
         WHEN tokenizer IS NULL THEN coalesce(max_output, 8192) ELSE counted_output END AS output,
    coalesce(cost_input, 0) AS cost_input, coalesce(cost_cache_read, 0) AS cost_cache_read,
    coalesce(cost_cache_write, 0) AS cost_cache_write, coalesce(cost_output, 0) AS cost_output,
    coalesce(own_cost_input, 0) AS own_cost_input, coalesce(own_cost_output, 0) AS own_cost_output,
    CASE WHEN usage_state = 'final' THEN coalesce(cost_input, 0) + coalesce(cost_cache_read, 0)
              + coalesce(cost_cache_write, 0) + coalesce(cost_output, 0)
         ELSE coalesce(own_cost_input, 0) + coalesce(own_cost_output, 0) END AS cost,
    counted_input, counted_output, price_version IS NOT NULL AS priced
FROM attempts
"""


@dataclass(frozen=True, slots=True)
class Said:
    """What an invoice's lines say: of all kinds of figures only those may be compared."""

    lines: int
    kinds: frozenset[str]
    currency: str | None
    by_request: int
    model_names: frozenset[str]


def load_ours(connection: duckdb.DuckDBPyConnection) -> None:
    """Make `ours` of `attempts`."""
    connection.execute(_OURS)


def load_theirs(connection: duckdb.DuckDBPyConnection, invoice: Invoice) -> Said:
    """Make `theirs` of the invoice's lines, which are read once."""
    connection.execute(_THEIRS)
    numbered = enumerate(invoice.lines, start=1)
    while batch := list(islice(numbered, _BATCH_LINES)):
        _append(connection, batch)
    row = connection.execute(
        "SELECT count(DISTINCT line), list(DISTINCT kind ORDER BY kind), count(DISTINCT line) FILTER "
        "(request_id IS NOT NULL), list(DISTINCT currency ORDER BY currency) FILTER (currency IS NOT NULL), "
        "list(DISTINCT coalesce(model, ?)) FROM theirs",
        [NO_MODEL],
    ).fetchone()
    assert row is not None, "an aggregate has a row"
    currencies = row[3] or []
    if len(currencies) > 1:
        raise ValueError(
            f"the invoice is in several currencies ({', '.join(currencies)}): give one file for each currency"
        )
    kinds = frozenset(row[1] or ())
    return Said(row[0], kinds, currencies[0] if currencies else None, row[2], frozenset(row[4] or ()))


def _append(connection: duckdb.DuckDBPyConnection, batch: list[tuple[int, InvoiceLine]]) -> None:
    rows = list(_long(batch))
    names = (
        "line",
        "place",
        "model",
        "moment",
        "until",
        "day",
        "request_id",
        "requests",
        "currency",
        "tier",
        "rounding",
    )
    columns = dict(zip((*names, "kind", "tokens", "amount"), zip(*rows, strict=True), strict=True))
    lines = {name: _array(values) for name, values in columns.items()}
    connection.register("lines_read", lines)
    connection.execute(
        "INSERT INTO theirs SELECT line, place, model, CAST(moment AS BIGINT), CAST(until AS BIGINT), "
        "CAST(day AS DATE), request_id, CAST(requests AS BIGINT), currency, tier, CAST(rounding AS BIGINT), kind, "
        "CAST(tokens AS BIGINT), CAST(amount AS BIGINT) FROM lines_read"
    )
    connection.unregister("lines_read")


def _array(values: Iterable[object]) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """As texts: DuckDB guesses a type from the first values of an object column, and None is no guide."""
    texts = [None if value is None else str(value) for value in values]
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def _long(batch: list[tuple[int, InvoiceLine]]) -> Iterator[tuple[object, ...]]:
    """A row for each part. A line's number of requests stands at its first part alone, so that it can be summed."""
    for number, line in batch:
        for place, part in enumerate(line.parts):
            rounding = None if part.amount is None else (line.precision or 0)
            yield (
                number,
                line.place,
                line.model,
                _micros(line.at),
                _micros(line.until),
                line.day,
                line.request_id,
                line.requests if place == 0 else None,
                line.currency,
                line.tier,
                rounding,
                PartKind(part.kind).value,
                part.tokens,
                part.amount,
            )


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def name_groups(connection: duckdb.DuckDBPyConnection, said: Said) -> None:
    """Fill `ours.grp`, and call lines without a model so. An invoice that names no model at all is compared as one."""
    connection.execute("UPDATE theirs SET model = ? WHERE model IS NULL", [NO_MODEL])
    if said.model_names <= {NO_MODEL}:
        connection.execute("UPDATE ours SET grp = ?", [NO_MODEL])
        return
    pairs = connection.execute("SELECT DISTINCT served, asked FROM ours ORDER BY ALL").fetchall()
    named = groups(pairs, said.model_names - {NO_MODEL})
    connection.execute("CREATE OR REPLACE TEMP TABLE model_names (served VARCHAR, asked VARCHAR, grp VARCHAR)")
    if named:
        connection.executemany(
            "INSERT INTO model_names VALUES (?, ?, ?)", [(*pair, group) for pair, group in sorted(named.items())]
        )
    connection.execute(
        "UPDATE ours SET grp = model_names.grp FROM model_names "
        "WHERE ours.served = model_names.served AND ours.asked = model_names.asked"
    )
