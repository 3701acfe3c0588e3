#!/usr/bin/env python3
"""A year of synthetic traffic with known truth: the ledger's rows, the vendors' invoices, and what was done to them.

    .venv/bin/python -m bench.year --attempts 10000000 --seed 1 --faults all --out DIR

Writes `DIR/attempts/day=…/attempts.parquet` as `sluice ledger export --format parquet` does, `DIR/invoices/VENDOR-MM…`
in each vendor's own export format, and `DIR/truth.json`. A day at a time: memory does not grow with the year. The same
seed and size make the same files.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from bench.year_faults import FAULTS, WRONG_ZONE, Charges, Faults, Truth
from bench.year_traffic import DAY_US, DAYS, ENDINGS, FIRST, TENANTS, VENDORS, Day, Ints, Vendor, day_of
from proxy.books.grouping import offsets
from proxy.stores.ledger_rows import COLUMNS
from proxy.stores.schema import attempts as attempts_table

_KINDS = ("input", "cache_read", "cache_write", "output")
_EPOCH = date(1970, 1, 1)
_MOMENT = datetime(1970, 1, 1)
Sums = dict[tuple[date, int], list[int]]


class Year:
    """Makes one year. `run` may be called once."""

    def __init__(self, seed: int, attempts: int, faults: frozenset[str], out: Path) -> None:
        self.seed, self.attempts, self.out = seed, attempts, out
        self.faults = Faults(faults, seed)
        self.rows = 0
        # by vendor and zone: requests and tokens by kind of each day and model
        self._cells: dict[tuple[str, str], Sums] = defaultdict(lambda: defaultdict(lambda: [0] * 5))
        self._by_id: dict[int, list[tuple[Any, ...]]] = defaultdict(list)

    def run(self) -> list[Truth]:
        (self.out / "invoices").mkdir(parents=True, exist_ok=True)
        with duckdb.connect(config={"threads": 1}) as connection:
            for number in range(DAYS):
                days = list(self._days(number))
                _write_day(connection, days, self.out)
                month = (FIRST + timedelta(days=number + 1)).month
                if month != (FIRST + timedelta(days=number)).month:
                    self._write_by_id((FIRST + timedelta(days=number)).month)
        for vendor in VENDORS:
            for month in range(1, 13):
                self._write_month(vendor, month)
        truths = list(self.faults.truths.values())
        told = [{**asdict(one), "reason": one.reason, "days": sorted(map(str, one.days))} for one in truths]
        (self.out / "truth.json").write_text(json.dumps(told, ensure_ascii=False, indent=1))
        return truths

    def _days(self, number: int) -> Iterator[Day]:
        for at in range(len(VENDORS)):
            one = day_of(self.seed, self.attempts, at, number, self.rows)
            self.rows += one.count
            self.faults.alter_traffic(one)
            self._charge(one, self.faults.charges(one))
            yield one

    # -- what is charged ----------------------------------------------------------------------------------------------

    def _charge(self, one: Day, charges: Charges) -> None:
        vendor = one.vendor
        booked = one.started + charges.later * DAY_US
        if vendor.name == "openrouter":
            self._keep_by_id(one, charges)
            return
        for zone in {vendor.zone, WRONG_ZONE if vendor.name == "gemini" else vendor.zone}:
            cells = self._cells[(vendor.name, zone)]
            days = _local_days(booked, zone)
            for day in np.unique(days):
                for model in range(len(vendor.models)):
                    which = (days == day) & (one.model == model)
                    cell = cells[(_EPOCH + timedelta(days=int(day)), model)]
                    cell[0] += int(charges.times[which].sum())
                    for kind in range(4):
                        cell[kind + 1] += int((charges.kinds[which, kind] * charges.times[which]).sum())
            for model, *tokens in charges.extra:
                cell = cells[(one.day, model)]
                cell[0] += 1
                for kind, count in enumerate(tokens):
                    cell[kind + 1] += count

    def _keep_by_id(self, one: Day, charges: Charges) -> None:
        for at in np.flatnonzero(charges.times):
            tokens = tuple(int(count) for count in charges.kinds[at])
            row = (one.first + int(at), int(one.started[at]), int(one.model[at]), tokens)
            self._by_id[0] += [row] * int(charges.times[at])

    def _price(self, vendor: Vendor, model: int, kind: int, day: date) -> int:
        return self.faults.price(vendor.name, model, kind, day, vendor.models[model].prices[kind])

    # -- invoices, in the vendors' own formats ------------------------------------------------------------------------

    def _write_month(self, vendor: Vendor, month: int) -> None:
        zone = self.faults.zone(vendor.name, vendor.zone, month)
        cells = {key: cell for key, cell in self._cells[(vendor.name, zone)].items() if key[0].month == month}
        cells = {key: cells[key] for key in sorted(cells) if key[0].year == FIRST.year}
        base = self.out / "invoices" / f"{vendor.name}-{month:02d}"
        match vendor.name:
            case "openai":
                self._openai(vendor, cells, base)
            case "anthropic":
                self._anthropic(vendor, cells, base)
            case "deepseek":
                self._deepseek(vendor, cells, base)
            case "gemini":
                self._gemini(vendor, cells, base)
            case _:  # the one that lists every generation
                return

    def _openai(self, vendor: Vendor, cells: Sums, base: Path) -> None:
        usage, costs = [], []
        for (day, model), (requests, fresh, read, _, output) in cells.items():
            start = (day - _EPOCH).days * 86_400
            bucket = {"object": "bucket", "start_time": start, "end_time": start + 86_400}
            name = vendor.models[model].served
            result = {
                "object": "organization.usage.completions.result",
                **{"input_tokens": fresh + read, "output_tokens": output, "input_cached_tokens": read},
                **{"num_model_requests": requests, "model": name, "batch": False, "project_id": None},
            }
            usage.append({**bucket, "results": [result]})
            items = [
                {
                    "object": "organization.costs.result",
                    "amount": {
                        "value": float(_money(count * self._price(vendor, model, kind, day), 8)),
                        "currency": "usd",
                    },
                    "line_item": f"{name}, {what}",
                }
                for kind, count, what in ((0, fresh, "input"), (1, read, "cached input"), (3, output, "output"))
            ]
            costs.append({**bucket, "results": items})
        _json(base.with_name(f"{base.name}-usage.json"), {"object": "page", "data": usage, "has_more": False})
        _json(base.with_name(f"{base.name}-costs.json"), {"object": "page", "data": costs, "has_more": False})

    def _anthropic(self, vendor: Vendor, cells: Sums, base: Path) -> None:
        usage, costs = [], []
        types = (
            "uncached_input_tokens",
            "cache_read_input_tokens",
            "cache_creation.ephemeral_5m_input_tokens",
            "output_tokens",
        )
        for (day, model), (_, fresh, read, written, output) in cells.items():
            bucket = {"starting_at": f"{day}T00:00:00Z", "ending_at": f"{day + timedelta(days=1)}T00:00:00Z"}
            name = vendor.models[model].served
            created = {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": written}
            figures = {"uncached_input_tokens": fresh, "cache_read_input_tokens": read, "output_tokens": output}
            tier = {"model": name, "service_tier": "standard", "context_window": "0-200k"}
            usage.append({**bucket, "results": [{**figures, "cache_creation": created, **tier}]})
            items = [
                {
                    "currency": "USD",
                    "amount": str(_money(100 * count * self._price(vendor, model, kind, day), 6)),
                    "cost_type": "tokens",
                    "token_type": types[kind],
                    **tier,
                }
                for kind, count in enumerate((fresh, read, written, output))
            ]
            costs.append({**bucket, "results": items})
        _json(base.with_name(f"{base.name}-usage.json"), {"data": usage, "has_more": False, "next_page": None})
        _json(base.with_name(f"{base.name}-costs.json"), {"data": costs, "has_more": False, "next_page": None})

    def _deepseek(self, vendor: Vendor, cells: Sums, base: Path) -> None:
        figures, costs = [], []
        for (day, model), cell in cells.items():
            name = vendor.models[model].served
            told = zip(("request_count", "input_cache_miss_tokens", "input_cache_hit_tokens"), cell[:3], strict=True)
            for kind, count in (*told, ("output_tokens", cell[4])):
                figures.append((day, name, "main", "sk-***", kind, "", count))
            paid = sum(cell[kind + 1] * self._price(vendor, model, kind, day) for kind in range(4))
            costs.append((day, name, _money(paid, 8), "USD"))
        heading = ("utc_date", "model", "api_key_name", "api_key", "type", "price", "amount")
        _csv(base.with_name(f"{base.name}-amount.csv"), heading, figures)
        _csv(base.with_name(f"{base.name}-cost.csv"), ("utc_date", "model", "cost", "currency"), costs)

    def _gemini(self, vendor: Vendor, cells: Sums, base: Path) -> None:
        rows = []
        for (day, model), (_, fresh, read, _, output) in cells.items():
            name = vendor.models[model].served.replace("-", " ").title()
            for kind, count, what in (
                (0, fresh, "input token count text"),
                (1, read, "cached input token count text"),
                (3, output, "output token count text"),
            ):
                paid = _money(count * self._price(vendor, model, kind, day), 6)
                rows.append((f"{name} {what} - Predictions", day, count, "count", paid, "USD"))
        heading = ("SKU description", "Usage start date", "Usage amount", "Usage unit", "Cost", "Currency")
        _csv(base.with_name(f"{base.name}.csv"), heading, rows)

    def _write_by_id(self, month: int) -> None:
        """OpenRouter: a row for each generation of a month."""
        vendor = next(one for one in VENDORS if one.name == "openrouter")
        rows, self._by_id[0] = self._by_id[0], []
        told = []
        for number, started, model, tokens in rows:
            paid = sum(count * price for count, price in zip(tokens, vendor.models[model].prices, strict=True))
            at = (_MOMENT + timedelta(microseconds=started)).strftime("%Y-%m-%d %H:%M:%S.%f")
            name = vendor.models[model].served
            told.append((f"gen-{number}", at, _money(paid, 8), 0, tokens[0] + tokens[1], tokens[3], 0, name, "false"))
        heading = ("generation_id", "created_at", "cost_total", "cost_web_search", "tokens_prompt", "tokens_completion")
        path = self.out / "invoices" / f"openrouter-{month:02d}.csv"
        _csv(path, (*heading, "tokens_reasoning", "model_permaslug", "cancelled"), told)


def _money(nanos: int, digits: int) -> Decimal:
    """Rounded as an invoice writes it."""
    return (Decimal(nanos) / 10**9).quantize(Decimal(1).scaleb(-digits))


def _json(path: Path, page: object) -> None:
    path.write_text(json.dumps(page))


def _csv(path: Path, heading: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(heading)
        writer.writerows(rows)


def _local_days(moments: Ints, zone: str) -> Ints:
    """Days since 1970 in a zone."""
    spans = offsets(zone)
    edges = np.array([until for until, _ in spans[:-1]], np.int64)
    shift = np.array([offset for _, offset in spans], np.int64)[np.searchsorted(edges, moments, side="right")]
    return (moments + shift) // DAY_US


# -- the ledger's rows ------------------------------------------------------------------------------------------------


def _columns_of(one: Day) -> dict[str, npt.NDArray[Any]]:
    """The compact arrays that the rows are made of."""
    prices = one.prices()
    sure = one.is_sure
    costs = one.true * prices
    vendor_at = VENDORS.index(one.vendor)
    return {
        "number": np.arange(one.first, one.first + one.count),
        "vendor_at": np.full(one.count, vendor_at),
        "model_at": one.model,
        "tenant_at": one.tenant,
        "started": one.started,
        "ended": one.started + one.duration_us,
        "duration": one.duration_us,
        "ending_at": one.ending,
        "attempt_no": one.attempt_no,
        "counted_input": one.counted_input,
        "counted_output": one.counted_output,
        "bytes": 4 * one.true[:, :3].sum(axis=1) + 200,
        "sure": sure,
        **{f"true_{kind}": one.true[:, place] for place, kind in enumerate(_KINDS)},
        **{f"cost_{kind}": costs[:, place] for place, kind in enumerate(_KINDS)},
        "own_input": one.counted_input * prices[:, 0],
        "own_output": one.counted_output * prices[:, 3],
        "bound": (4 * one.true[:, :3].sum(axis=1) + 200) * prices[:, 0] + 8192 * prices[:, 3],
    }


_LIST = "list_extract([{}], {} + 1)"


def _texts(names: tuple[str, ...], index: str) -> str:
    return _LIST.format(", ".join(f"'{name}'" for name in names), index)


_MODELS = tuple(model.name for vendor in VENDORS for model in vendor.models)
_SERVED = tuple(model.served for vendor in VENDORS for model in vendor.models)
_FIRST_MODEL = [sum(len(one.models) for one in VENDORS[:at]) for at in range(len(VENDORS))]
_MODEL = f"(list_extract({_FIRST_MODEL}, vendor_at + 1) + model_at)"
_EXPRESSIONS = {
    "attempt_id": "format('{:012d}', number)",
    "request_id": "format('r-{:012d}', number)",
    "trace_id": "md5(CAST(number AS VARCHAR))",
    "attempt_no": "attempt_no",
    "tenant": _texts(TENANTS, "tenant_at"),
    "endpoint": "'/v1/chat/completions'",
    "streamed": "true",
    "started_at": "started",
    "upstream": _texts(tuple(one.name for one in VENDORS), "vendor_at"),
    "vendor": _texts(tuple(one.name for one in VENDORS), "vendor_at"),
    "credential": "'main'",
    "model_alias": _texts(_MODELS, _MODEL),
    "model": _texts(_MODELS, _MODEL),
    "writer": "'year'",
    "request_bytes": "bytes",
    "max_output": "8192",
    "price_version": f"{_texts(_SERVED, _MODEL)} || '@2026-01-01#year'",
    "currency": "'USD'",
    "cost_bound": "bound",
    "ended_at": "ended",
    "ending": _texts(ENDINGS, "ending_at"),
    "duration_us": "duration",
    "ttft_us": "duration // 8",
    "served_model": f"CASE WHEN sure THEN {_texts(_SERVED, _MODEL)} END",
    "vendor_response_id": "CASE WHEN ending_at <> 1 THEN format('gen-{}', number) END",
    "upstream_status": "CASE WHEN ending_at = 1 THEN 503 ELSE 200 END",
    "error_class": "CASE WHEN sure THEN NULL ELSE 'model_unavailable' END",
    "error_code": f"CASE WHEN sure THEN NULL ELSE {_texts(ENDINGS, 'ending_at')} END",
    "finish_reason": "CASE WHEN sure THEN 'stop' END",
    "finish_inferred": "false",
    "counted_input": "counted_input",
    "counted_output": "counted_output",
    "delivered_output": "counted_output",
    "tokenizer": "CASE WHEN ending_at <> 5 THEN 'o200k_base/446a9538/year' END",
    "bytes_in": "counted_output * 120",
    "bytes_out": "counted_output * 118",
    "events_in": "counted_output",
    "events_out": "counted_output",
    "counted_reasoning": "0",
    "count_formula": "'year'",
    "usage_state": "CASE WHEN sure THEN 'final' WHEN ending_at = 1 THEN 'absent' ELSE 'lost' END",
    "usage_told": "CASE WHEN sure THEN 'rrrra' ELSE 'aaaaa' END",
    "usage_input": "CASE WHEN sure THEN true_input + true_cache_read + true_cache_write END",
    "usage_output": "CASE WHEN sure THEN true_output END",
    "usage_cache_read": "CASE WHEN sure THEN true_cache_read END",
    "usage_cache_write": "CASE WHEN sure THEN true_cache_write END",
    "price_tier": "'standard'",
    **{f"cost_{kind}": f"CASE WHEN sure THEN cost_{kind} END" for kind in _KINDS},
    "own_cost_input": "own_input",
    "own_cost_output": "own_output",
    "closed_by": "CASE WHEN ending_at = 5 THEN 'inferred' ELSE 'writer' END",
}


def _write_day(connection: duckdb.DuckDBPyConnection, days: list[Day], out: Path) -> None:
    parts = [_columns_of(one) for one in days]
    compact = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    connection.register("compact", compact)
    types = {"BIGINT": "BIGINT", "BOOLEAN": "BOOLEAN"}
    select = ", ".join(
        f"CAST({_EXPRESSIONS.get(name, 'NULL')} AS {types.get(str(attempts_table.c[name].type), 'VARCHAR')}) AS {name}"
        for name in COLUMNS
    )
    folder = out / "attempts" / f"day={days[0].day}"
    folder.mkdir(parents=True, exist_ok=True)
    connection.execute(
        f"COPY (SELECT {select}, make_timestamp(started) AS started, make_timestamp(ended) AS ended FROM compact "
        f"ORDER BY started, number) TO '{folder / 'attempts.parquet'}' (FORMAT parquet, COMPRESSION zstd)"
    )
    connection.unregister("compact")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default="all", help=f"all, none, or some of {', '.join(FAULTS)}")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    names = frozenset(FAULTS) if asked.faults == "all" else frozenset(filter(None, asked.faults.split(",")))
    year = Year(asked.seed, asked.attempts, names if asked.faults != "none" else frozenset(), asked.out)
    begun = time.perf_counter()
    truths = year.run()
    taken = time.perf_counter() - begun
    size = sum(file.stat().st_size for file in asked.out.rglob("*") if file.is_file())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{year.rows} attempts, {len(truths)} faults, {size >> 20} MiB in {taken:.0f} s, peak {peak} MiB")


if __name__ == "__main__":
    main()
