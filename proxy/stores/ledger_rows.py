"""A row in its three forms: journal JSON, database columns, contract C5 object.

In and out: values. Times are integer microseconds since 1970 in the database, RFC 3339 in UTC with microseconds in C5;
durations are microseconds there and milliseconds here. Everything a vendor or client chose is made harmless on the way
to the columns: bounded, without NUL and without half surrogates (PostgreSQL refuses both, and one refused row would
hold up all behind it); integers are cut to 64 bits. `vendor_usage` stays JSON text from the journal to the export.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import orjson

from proxy.canon.usage import ABSENT, DERIVED, FIGURES, REPORTED
from proxy.metering.ledger import MAX_OBJECT_BYTES, MAX_TEXT_CHARS, AttemptClose, AttemptOpen
from proxy.metering.tokens import whole

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INT64 = 2**63 - 1
# In seconds: past the year 5000, which still is a date. Whoever says more has no clock.
_LATEST = 1e11
# A close is some 900 bytes. Above this something in it is oversized and the slow way looks for it.
_LARGE_CLOSE = 8 * 1024

BY_WRITER, INFERRED = "writer", "inferred"


# -- to the journal ---------------------------------------------------------------------------------------------------


def encode_open(row: AttemptOpen) -> bytes:
    return _encode(row)


def encode_close(row: AttemptClose) -> bytes:
    return _encode(row)


def _encode(row: AttemptOpen | AttemptClose) -> bytes:
    """JSON without a line feed. Never raises, whatever a vendor put into the row."""
    try:
        payload = orjson.dumps(row, default=_raw_json)
    except TypeError:  # orjson's error for half surrogates, integers over 64 bits and deep nesting alike
        return orjson.dumps(_tame(row))
    return payload if len(payload) <= _LARGE_CLOSE else orjson.dumps(_tame(row))


def _raw_json(value: object) -> str:
    """`bytes` are JSON text as the vendor wrote it; a `str` in this place is taken as such again on the way back."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    raise TypeError(f"a row cannot hold {type(value).__name__}")


def _tame(row: AttemptOpen | AttemptClose) -> dict[str, object]:
    """The row's fields with texts bounded and whole, and objects as JSON text, left out where too large."""
    fields: dict[str, object] = {name: getattr(row, name) for name in row.__slots__}
    tame: dict[str, object] = {}
    for name, value in fields.items():
        if name in ("vendor_usage", "notes"):
            tame[name] = _json_text(value)
        elif isinstance(value, str):
            tame[name] = _text(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            tame[name] = _integer(value)
        else:
            tame[name] = value
    if tame.get("vendor_usage", "") is None and fields["vendor_usage"] is not None:
        tame["notes"] = '{"vendor_usage":"left out: too large or too deep"}'
    return tame


def _json_text(value: object) -> str | None:
    """`value` as JSON text; None for nothing, and for what is over the limit. A line feed in JSON text can only be
    between values (in strings it is escaped), so a space may stand for it."""
    if value is None or value == {}:
        return None
    if isinstance(value, (bytes, str)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else whole(value)
        text = text.replace("\r", " ").replace("\n", " ").replace("\0", "\ufffd")
        if not _is_json(text):
            text = json.dumps(text)
    else:
        text = _dump(value)
    return text if 0 < len(text.encode()) <= MAX_OBJECT_BYTES else None


def _dump(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        try:
            return whole(json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=str))
        except (RecursionError, ValueError):
            return ""


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        pass  # JSON may still hold what orjson cannot: the escape of half a surrogate pair
    else:
        return True
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


# -- from the journal to the columns ----------------------------------------------------------------------------------


def _text(value: object) -> str:
    """Bounded, whole, without NUL."""
    text = value if isinstance(value, str) else str(value)
    if len(text) > MAX_TEXT_CHARS:
        text = text[:MAX_TEXT_CHARS]
    if not text.isascii():
        text = whole(text)
    return text.replace("\0", "\ufffd") if "\0" in text else text


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _integer(value: object) -> int:
    return max(-_INT64, min(_INT64, int(value))) if isinstance(value, int) else 0


def _optional_integer(value: object) -> int | None:
    return None if value is None else _integer(value)


def _micros(value: object, scale: int) -> int | None:
    if isinstance(value, (int, float)) and abs(value) < _LATEST:  # not so for NaN and infinity
        return round(value * scale)
    return None


def _seconds(value: object) -> int:
    return _micros(value, 1_000_000) or 0


def _milliseconds(value: object) -> int | None:
    return _micros(value, 1_000)


USAGE_COLUMNS = (
    *(f"usage_{figure}" for figure in (*FIGURES, "total")),
    *("billed_input", "billed_output"),
)
COST_COLUMNS = (
    *("cost_input", "cost_cache_read", "cost_cache_write", "cost_output"),
    *("own_cost_input", "own_cost_output"),
)

# Column, the row's field, and how the field becomes the column. The order is the table's.
OPEN_COLUMNS: tuple[tuple[str, str, Callable[[object], object]], ...] = (
    ("attempt_id", "attempt_id", _text),
    ("request_id", "request_id", _text),
    ("trace_id", "trace_id", _text),
    ("attempt_no", "attempt_no", _integer),
    ("tenant", "tenant", _text),
    ("endpoint", "endpoint", _text),
    ("streamed", "streamed", bool),
    ("started_at", "started_at", _seconds),
    ("upstream", "upstream", _text),
    ("vendor", "vendor", _text),
    ("credential", "credential", _optional_text),
    ("model_alias", "model_alias", _text),
    ("model", "model", _text),
    ("writer", "writer", _text),
    ("request_bytes", "request_bytes", _integer),
    ("max_output", "max_output", _optional_integer),
    ("price_version", "price_version", _optional_text),
    ("currency", "currency", _optional_text),
    ("cost_bound", "cost_bound", _optional_integer),
)
CLOSE_COLUMNS: tuple[tuple[str, str, Callable[[object], object]], ...] = (
    ("ended_at", "ended_at", _seconds),
    ("ending", "ending", _text),
    ("duration_us", "duration_ms", _milliseconds),
    ("ttft_us", "ttft_ms", _milliseconds),
    ("served_model", "served_model", _optional_text),
    ("service_tier", "service_tier", _optional_text),
    ("vendor_request_id", "vendor_request_id", _optional_text),
    ("vendor_response_id", "vendor_response_id", _optional_text),
    ("upstream_status", "upstream_status", _optional_integer),
    ("rule_id", "rule_id", _optional_text),
    ("error_class", "error_class", _optional_text),
    ("error_code", "error_code", _optional_text),
    ("finish_reason", "finish_reason", _optional_text),
    ("finish_inferred", "finish_inferred", bool),
    ("vendor_usage", "vendor_usage", _json_text),
    ("counted_input", "counted_input", _integer),
    ("counted_output", "counted_output", _integer),
    ("delivered_output", "delivered_output", _integer),
    ("tokenizer", "tokenizer", _optional_text),
    ("bytes_in", "bytes_in", _integer),
    ("bytes_out", "bytes_out", _integer),
    ("events_in", "events_in", _integer),
    ("events_out", "events_out", _integer),
    ("notes", "notes", _json_text),
    ("counted_reasoning", "counted_reasoning", _integer),
    ("count_formula", "count_formula", _optional_text),
    ("usage_state", "usage_state", _optional_text),
    ("usage_told", "usage_told", _optional_text),
    *[(name, name, _optional_integer) for name in USAGE_COLUMNS],
    ("price_tier", "price_tier", _optional_text),
    *[(name, name, _optional_integer) for name in COST_COLUMNS],
)
COLUMNS = (*(name for name, _, _ in OPEN_COLUMNS), *(name for name, _, _ in CLOSE_COLUMNS), "closed_by")

Values = tuple[object, ...]
_NOT_CLOSED: Values = tuple(False if convert is bool else None for _, _, convert in CLOSE_COLUMNS)
_ZEROES = frozenset(name for name, _, convert in CLOSE_COLUMNS if convert is _integer)
_RUNNING: Values = tuple(
    0 if name in _ZEROES else value for (name, _, _), value in zip(CLOSE_COLUMNS, _NOT_CLOSED, strict=True)
)


def open_values(fields: Mapping[str, object]) -> Values:
    """The columns of an attempt that runs."""
    return (*[convert(fields.get(field)) for _, field, convert in OPEN_COLUMNS], *_RUNNING, None)


def close_values(opened: Mapping[str, object], closed: Mapping[str, object]) -> Values:
    """The columns of an attempt that its own writer closed."""
    return (
        *[convert(opened.get(field)) for _, field, convert in OPEN_COLUMNS],
        *[convert(closed.get(field)) for _, field, convert in CLOSE_COLUMNS],
        BY_WRITER,
    )


def interrupted(values: Values, ended_at: int) -> Values:
    """An open row as it is when its writer is dead; what `Database.interrupt` does to it."""
    row = dict(zip(COLUMNS, values, strict=True))
    started = _integer(row["started_at"])
    ended = max(started, ended_at)
    row |= {"ending": "interrupted", "error_class": "model_unavailable", "error_code": "interrupted"}
    row |= {"ended_at": ended, "duration_us": ended - started, "closed_by": INFERRED}
    return tuple(row.values())


# -- from the columns to C5 -------------------------------------------------------------------------------------------


def rfc3339(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def to_micros(moment: datetime) -> int:
    """A moment without a zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def to_c5(values: Sequence[object]) -> dict[str, object]:
    """The object of contract C5, its keys in the contract's order; `notes` last. `vendor_usage` and `notes` are JSON
    text or None here: `with_objects` decodes them, an export writes them as they are."""
    row = dict(zip(COLUMNS, values, strict=True))
    ended = row["ended_at"]
    return {
        **{name: row[name] for name in COLUMNS[:6]},
        "streamed": bool(row["streamed"]),
        "started_at": rfc3339(_integer(row["started_at"])),
        "ended_at": None if ended is None else rfc3339(_integer(ended)),
        **{name: row[name] for name in ("upstream", "vendor", "credential", "model_alias", "model")},
        **{name: row[name] for name in ("served_model", "service_tier", "vendor_request_id", "vendor_response_id")},
        **{name: row[name] for name in ("upstream_status", "rule_id", "ending", "error_class", "error_code")},
        "finish_reason": row["finish_reason"],
        "finish_inferred": bool(row["finish_inferred"]),
        "vendor_usage": row["vendor_usage"],
        "counted": {"input": row["counted_input"], "output": row["counted_output"]},
        "delivered_output": row["delivered_output"],
        "tokenizer": row["tokenizer"],
        "ttft_ms": _to_ms(row["ttft_us"]),
        "duration_ms": _to_ms(row["duration_us"]),
        **{name: row[name] for name in ("bytes_in", "bytes_out", "events_in", "events_out", "writer", "notes")},
        **{name: row[name] for name in ("counted_reasoning", "count_formula", "request_bytes", "max_output")},
        "usage": _usage(row),
        "cost": _cost(row),
    }


_TOLD = {REPORTED: "reported", DERIVED: "derived", ABSENT: "absent"}


def _usage(row: Mapping[str, object]) -> dict[str, object]:
    """The vendor's usage in one vocabulary; `state` is null in rows that were written before there was one."""
    letters = row["usage_told"]
    told = letters if isinstance(letters, str) and len(letters) == len(FIGURES) else ABSENT * len(FIGURES)
    return {
        "state": row["usage_state"],
        **{figure: row[f"usage_{figure}"] for figure in (*FIGURES, "total")},
        **{name: row[name] for name in ("billed_input", "billed_output")},
        **{f"{figure}_told": _TOLD.get(letter, "absent") for figure, letter in zip(FIGURES, told, strict=True)},
    }


def _cost(row: Mapping[str, object]) -> dict[str, object]:
    """Money in nano-units of `currency`."""
    names = ("price_version", "price_tier", "currency")
    parts = {name.replace("own_cost", "own").removeprefix("cost_"): row[name] for name in COST_COLUMNS}
    return {**{name: row[name] for name in names}, **parts, "bound": row["cost_bound"]}


def to_flat(values: Sequence[object]) -> dict[str, object]:
    """The same for a table: `counted_input` and `counted_output` for `counted`, objects as JSON text."""
    flat: dict[str, object] = {}
    for key, value in to_c5(values).items():
        if isinstance(value, dict):
            flat |= {f"{key}_{inner}": figure for inner, figure in value.items()}
        else:
            flat[key] = value
    return flat


def with_objects(row: dict[str, object]) -> dict[str, object]:
    """The C5 object with `vendor_usage` and `notes` as JSON values."""
    for key in ("vendor_usage", "notes"):
        text = row[key]
        row[key] = json.loads(text) if isinstance(text, str) else None
    return row


def with_fragments(row: dict[str, object]) -> dict[str, object]:
    """The C5 object for `orjson.dumps`, its objects written as the vendor wrote them."""
    for key in ("vendor_usage", "notes"):
        text = row[key]
        row[key] = orjson.Fragment(text) if isinstance(text, str) else None
    return row


def _to_ms(micros: object) -> float | None:
    return None if micros is None else _integer(micros) / 1000


FLAT_COLUMNS = tuple(to_flat(tuple(0 if name == "started_at" else None for name in COLUMNS)))
