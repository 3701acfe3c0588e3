"""One usage report from every place a ledger can lie in, held to sums that are made here by hand (contracts L4, L1)."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import duckdb
import pytest

from proxy.books import summing
from proxy.books.grouping import KEYS
from proxy.books.own_attempts import NOT_THEIRS
from proxy.books.source import LedgerPlace, LiveLedger, ParquetFolder, duck_attempts
from proxy.books.usage_report import UsageQuestion, usage_report
from proxy.errors import LedgerUnavailable
from proxy.metering.ledger import AttemptClose, AttemptOpen
from proxy.metering.prices import Price, PriceBook, Rates, VendorPrices
from proxy.server.usage import Asked, answer, parse_query
from proxy.stores import drain as drain_module
from proxy.stores.drain import Drain
from proxy.stores.journal import Journal
from proxy.stores.ledger_read import read_rows
from proxy.stores.ledger_rows import COLUMNS
from proxy.stores.ledger_sql import Database
from proxy.stores.parquet import export_parquet
from proxy.stores.repricing import reprice
from proxy.stores.schema import upgrade
from tests.support.books import attempt, ended_early, values_of
from tests.support.rows import closed, opened

pytestmark = pytest.mark.clause("L4")

#: Clocks go back by an hour, forward by half an hour, never change, change at another hour than UTC's.
ZONES: Final = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Chatham")
#: The first seconds of the new offset in Lord Howe and Chatham, Berlin and New York.
CHANGES: Final = (
    *(datetime(2026, 10, 3, 15, 30, tzinfo=UTC), datetime(2026, 9, 26, 14, tzinfo=UTC)),
    *(datetime(2026, 10, 25, 1, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)),
)
#: Texts that a file format could stumble over.
TENANTS: Final = ("فروشگاه", '商店, "二"\n号', "दुकान\r\n", "'; --", "", "🏪\t%s ?")
END: Final = round(datetime(2027, 1, 1, tzinfo=UTC).timestamp() * 1e6)
#: Of a row, what the report adds up; and where to find each in it.
FIGURES: Final = ("requests", "counted_input", "counted_output", "reported", "vendor_input", "vendor_cost", "own_cost")
_COSTS: Final = ("cost_input", "cost_cache_read", "cost_cache_write", "cost_output")


@dataclass(frozen=True)
class Books:
    """A ledger, and the rows that are in it as dictionaries of columns."""

    url: str
    journals: Path
    rows: list[dict[str, Any]]

    @property
    def live(self) -> LiveLedger:
        return LiveLedger(self.url, self.journals)

    def exported(self, folder: Path) -> ParquetFolder:
        export_parquet(self.url, self.journals, folder, None, END, include_open=True)
        return ParquetFolder(folder)


def settled() -> list[dict[str, Any]]:
    """Attempts on both sides of every change of clocks and around every midnight near it."""
    rows: list[dict[str, Any]] = []
    for change in CHANGES:
        for minutes in (-1441, -720, -61, -31, -1, 0, 29, 59, 90, 700, 1440):
            number = len(rows)
            moment = change + timedelta(minutes=minutes, microseconds=-(number % 2))
            row = attempt(
                moment,
                (100 + number, number, number % 3, 20),
                tenant=TENANTS[number % len(TENANTS)],
                vendor=("acme", "deepseek")[number % 2],
                served_model=None if number % 4 == 0 else f"m-{number % 3}",
                credential=None if number % 5 == 0 else "acme-key",
                currency=("USD", "CNY", None)[number % 3],
                vendor_usage='{"prompt_tokens": 1.50, "note": "a\\tb, \\"ق\\""}',
                notes=None if number % 2 else '{"tools": ["天气"]}',
            )
            rows.append(row)
    rows.append(ended_early(CHANGES[0], tenant=TENANTS[1], ending="stream_cut"))
    return rows


def written(url: str, rows: list[dict[str, Any]]) -> None:
    upgrade(url)
    database = Database(url)
    with database.transaction():
        database.write((), [values_of(row) for row in rows])
    database.close()


def told(row: AttemptOpen, end: AttemptClose | None, ending: str | None) -> dict[str, Any]:
    """What the columns of an attempt that came by the journal must be, as far as a report reads them."""
    known: dict[str, Any] = dict.fromkeys(COLUMNS)
    for source in (row, end):
        if source is not None:
            known |= {name: getattr(source, name) for name in source.__slots__ if name in known}
    known["started_at"] = round(row.started_at * 1e6)
    return known | {"ending": ending}


@pytest.fixture
def books(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Books]:
    """Settled rows; a living writer with an attempt in each state between its journal and the database; a dead one."""
    monkeypatch.setattr(drain_module, "INTERVAL_S", 3600.0)
    folder = tmp_path / "journals"
    rows = settled()
    written(url, rows)
    priced = {
        **{"usage_state": "final", "usage_told": "rraaa", "usage_input": 12, "usage_output": 34},
        **{"cost_input": 30, "cost_output": 340, "own_cost_input": 30, "own_cost_output": 340},
    }
    starts = [CHANGES[2].timestamp() + 1800.5 * number for number in range(8)]
    opens = [opened(f"j-{number}", tenant=TENANTS[0], started_at=start) for number, start in enumerate(starts)]
    ends = [closed(row, **priced) for row in opens]
    living, dead = Journal(folder, "living"), Journal(folder, "dead")
    drains = Drain(url, living, "instance"), Drain(url, dead, "instance")

    async def work() -> None:
        living.open(opens[0])  # 0: open in the database, closed in the journal
        living.open(opens[1])  # 1: drained, open and closed
        await living.close(ends[1])
        living.open(opens[2])  # 2: open in the database, and still runs
        dead.open(opens[3])  # 3: open in the database, its writer died
        dead.open(opens[4])  # 4: as 3, but its end is in the journal
        for drain in drains:
            assert drain.cycle(0.0)
        await living.close(ends[0])
        await dead.close(ends[4])
        living.open(opens[5])  # 5: in the journal alone, closed
        await living.close(ends[5])
        living.open(opens[6])  # 6: in the journal alone, and still runs
        dead.open(opens[7])  # 7: in the journal alone, its writer died

    asyncio.run(work())
    dead.finish()
    dead.release()
    fates: dict[int, tuple[bool, str | None]] = {
        **dict.fromkeys((0, 1, 4, 5), (True, "completed")),
        **dict.fromkeys((2, 6), (False, None)),
        **dict.fromkeys((3, 7), (False, "interrupted")),
    }
    for number, (is_closed, ending) in sorted(fates.items()):
        rows.append(told(opens[number], ends[number] if is_closed else None, ending))
    yield Books(url, folder, rows)
    living.finish()
    living.release()
    for drain in drains:
        drain.close()


# -- by hand ----------------------------------------------------------------------------------------------------------


def key_of(row: dict[str, Any], name: str, zone: str) -> str | None:
    """As a reader of the report sees it."""
    local = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row["started_at"])
    local = local.astimezone(ZoneInfo(zone))
    match name:
        case "model":
            return str(row["served_model"] or row["model"])
        case "hour":
            return f"{local:%Y-%m-%d %H}:00"
        case "day":
            return f"{local:%Y-%m-%d}"
        case "week":
            return f"{local:%G-W%V}"
        case "month":
            return f"{local:%Y-%m}"
        case _:
            return None if row[name] is None else str(row[name])


def figures_of(row: dict[str, Any]) -> tuple[int, ...]:
    final = row["usage_state"] == "final"
    return (
        1,
        row["counted_input"] or 0,
        row["counted_output"] or 0,
        int(final),
        (row["usage_input"] or 0) if final else 0,
        sum(row[name] or 0 for name in _COSTS),
        (row["own_cost_input"] or 0) + (row["own_cost_output"] or 0),
    )


Sums = dict[tuple[str | None, ...], tuple[int | None, ...]]


def by_hand(rows: list[dict[str, Any]], by: tuple[str, ...], zone: str) -> Sums:
    sums: dict[tuple[str | None, ...], list[int]] = defaultdict(lambda: [0] * len(FIGURES))
    for row in rows:
        key = (*(key_of(row, name, zone) for name in by), row["currency"])
        sums[key] = [one + more for one, more in zip(sums[key], figures_of(row), strict=True)]
    # money without a currency is not money
    return {key: (*of[:5], *((None, None) if key[-1] is None else of[5:])) for key, of in sums.items()}


def by_report(place: LedgerPlace, question: UsageQuestion) -> Sums:
    table = usage_report(place, question).tables[0]
    names = [column.name for column in table.columns]
    keys = [*range(len(question.by)), names.index("currency")]
    found: Sums = {}
    for row in table.rows:
        key = tuple(None if row[at] is None else str(row[at]) for at in keys)
        assert key not in found
        found[key] = tuple(row[names.index(name)] for name in FIGURES)  # type: ignore[misc]
    return found


# -- tests ------------------------------------------------------------------------------------------------------------


def told_attempts(books: Books, **query: str) -> list[dict[str, Any]]:
    """What `/v1/usage?detail=attempts` gives the first tenant."""
    asked = parse_query({"detail": "attempts", **query}, "", TENANTS[0])
    assert isinstance(asked, Asked)
    return [json.loads(line) for line in bytes(answer(books.live, asked).body).splitlines()]


@pytest.mark.clause("C3", "L1")
def test_a_tenant_is_told_its_own_attempts_wherever_they_are(books: Books) -> None:
    """Each once, with its fate: from the database, from the journals of the living and of the dead; in the words of the
    export, but for what is the operator's business."""
    own = {row["attempt_id"] for row in books.rows if row["tenant"] == TENANTS[0]}
    assert len(own) > 15
    exported = [row for row in read_rows(books.url, books.journals) if row["tenant"] == TENANTS[0]]
    wanted = [{name: cell for name, cell in row.items() if name not in NOT_THEIRS} for row in exported]
    found = told_attempts(books)
    assert found == wanted
    assert {row["attempt_id"] for row in found} == own
    assert {row["ending"] for row in found} >= {None, "completed", "interrupted"}
    assert not {"upstream", "credential", "writer"} & set().union(*found)


@pytest.mark.clause("C3")
def test_attempts_are_bounded_and_chosen_as_groups_are(books: Books) -> None:
    """By days of a zone, moments, vendors and models; and CSV has what JSON has."""

    def hand(since: datetime, until: datetime, **chosen: tuple[str, ...]) -> set[str]:
        low, high = (round(moment.timestamp() * 1e6) for moment in (since, until))
        own = [row for row in books.rows if row["tenant"] == TENANTS[0] and low <= row["started_at"] < high]
        return {row["attempt_id"] for row in own if all(key_of(row, name, "UTC") in of for name, of in chosen.items())}

    def told(**query: str) -> set[str]:
        return {row["attempt_id"] for row in told_attempts(books, **query)}

    berlin = ZoneInfo("Europe/Berlin")
    day = datetime(2026, 10, 25, tzinfo=berlin), datetime(2026, 10, 26, tzinfo=berlin)
    always = datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    assert told(period="2026-10-25", time_zone="Europe/Berlin") == hand(*day) != hand(*always)
    assert told(since=CHANGES[2].isoformat()) == hand(CHANGES[2], always[1]) != hand(*always)
    assert told(vendor="acme") == hand(*always, vendor=("acme",)) != set()
    chosen = hand(*always, vendor=("acme", "deepseek"), model=("m-1",))
    assert told(vendor="acme,deepseek", model="m-1") == chosen != set()
    assert told(vendor="nobody") == told(until="2020-01-01") == set()
    asked = parse_query({"detail": "attempts"}, "text/csv", TENANTS[0])
    assert isinstance(asked, Asked)
    lines = list(csv.DictReader(io.StringIO(bytes(answer(books.live, asked).body).decode(), newline="")))
    assert [line["attempt_id"] for line in lines] == [row["attempt_id"] for row in told_attempts(books)]
    assert [int(line["counted_input"]) for line in lines] == [row["counted"]["input"] for row in told_attempts(books)]
    assert not set(NOT_THEIRS) & lines[0].keys()


@pytest.mark.clause("L1")
def test_every_key_and_zone_has_the_sums_of_the_rows_in_every_place(books: Books, tmp_path: Path) -> None:
    """Database and journals, and the export of both: for each key, and for each span of time in each zone."""
    places = (books.live, books.exported(tmp_path / "export"))
    times = ("hour", "day", "week", "month")
    questions: list[tuple[tuple[str, ...], str]] = [((name,), "UTC") for name in KEYS if name not in times]
    questions += [((name,), zone) for name in times for zone in ZONES]
    questions += [((), "UTC"), (("tenant", "model", "day"), "Europe/Berlin"), (("ending", "vendor", "hour"), ZONES[3])]
    for by, zone in questions:
        expected = by_hand(books.rows, by, zone)
        for place in places:
            assert by_report(place, UsageQuestion(by, zone=zone)) == expected, (place, by, zone)


def test_bounds_and_filters_take_the_same_rows_in_every_place(books: Books, tmp_path: Path) -> None:
    """From a microsecond up to another; by tenant, and by the model that answered, or else the asked one."""
    places = (books.live, books.exported(tmp_path / "export"))
    edges = sorted(row["started_at"] for row in books.rows)
    since, until = edges[5], edges[-5]
    within = [row for row in books.rows if since <= row["started_at"] < until]
    assert len(within) < len(books.rows) - 8
    for place in places:
        assert by_report(place, UsageQuestion(("day",), since, until)) == by_hand(within, ("day",), "UTC")
    for name, chosen in (("tenant", TENANTS[1:4]), ("model", ("m-1", "gpt-4o-2024-11-20")), ("vendor", ("no such",))):
        kept = [row for row in books.rows if key_of(row, name, "UTC") in chosen]
        for place in places:
            found = by_report(place, UsageQuestion((name,), filters={name: tuple(chosen)}))
            assert found == by_hand(kept, (name,), "UTC")


def test_whole_documents_are_the_same_from_every_place(books: Books, tmp_path: Path) -> None:
    """Open and ended attempts, charts, headlines and notes too; and a second reading gives the same."""
    export = books.exported(tmp_path / "export")
    for by in (("tenant", "day"), ("vendor", "month"), ()):
        question = UsageQuestion(by, zone="Asia/Kathmandu")
        document = usage_report(books.live, question)
        assert document == usage_report(export, question)
        assert document == usage_report(books.live, question)
    early = usage_report(books.live, UsageQuestion(())).tables[1]
    names = [column.name for column in early.columns]
    ended: dict[str, int] = defaultdict(int)
    for row in early.rows:
        ended[str(row[names.index("ending")])] += int(str(row[names.index("requests")]))
    assert ended == {"interrupted": 2, "open": 2, "stream_cut": 1}


def test_the_relation_of_attempts_is_the_same_from_every_place(books: Books, tmp_path: Path) -> None:
    """Every column of every row, whatever stands in the texts."""
    ask = f"SELECT {', '.join(COLUMNS)} FROM attempts ORDER BY started_at, attempt_id"
    with duck_attempts(books.live, None, None) as connection:
        live = connection.execute(ask).fetchall()
    with duck_attempts(books.exported(tmp_path / "export"), None, None) as connection:
        exported = connection.execute(ask).fetchall()
    assert live == exported
    ids = [row["attempt_id"] for row in read_rows(books.url, books.journals)]
    assert [row[0] for row in live] == ids
    assert len(set(ids)) == len(books.rows)
    kept = {row["attempt_id"]: values_of(row) for row in books.rows if row["writer"] == "w"}
    assert {values[0]: values for values in live if values[COLUMNS.index("writer")] == "w"} == kept
    with duck_attempts(books.live, None, None, "deepseek") as connection:
        (vendors,) = connection.execute("SELECT list(DISTINCT vendor) FROM attempts").fetchall()
    assert vendors == (["deepseek"],)


# -- prices of today --------------------------------------------------------------------------------------------------


def book(price: int, version: str) -> PriceBook:
    rates = Rates(price, price, price, price, price)
    models = {name: (Price("acme", name, version, "USD", 0, None, rates),) for name in ("m-0", "m-1", "m-2")}
    return PriceBook({"acme": VendorPrices("acme", models)})


@pytest.mark.clause("L2")
def test_the_newest_prices_are_the_same_from_every_place(books: Books, tmp_path: Path) -> None:
    """A price that was corrected and then taken back is in force again; what was recorded stays to be asked for."""
    recorded = usage_report(books.live, UsageQuestion(("vendor", "model")))

    def latest() -> Sums:
        return by_report(books.live, UsageQuestion(("vendor", "model"), latest_prices=True))

    first = reprice(books.url, book(1_000_000, "acme/2"), None, None, 1)
    once = latest()
    assert sum(change.attempts for change in first) == sum(row["vendor"] == "acme" for row in settled())
    (change, *_) = reprice(books.url, book(3_000_000, "acme/3"), None, None, 2)
    assert (change.after, change.own_after) == (3 * change.before, 3 * change.own_before)
    thrice = latest()
    assert reprice(books.url, book(1_000_000, "acme/2"), None, None, 3) != []
    assert latest() == once != thrice
    assert reprice(books.url, book(1_000_000, "acme/2"), None, None, 4) == []
    export = books.exported(tmp_path / "export")
    assert by_report(export, UsageQuestion(("vendor", "model"), latest_prices=True)) == once
    assert usage_report(books.live, UsageQuestion(("vendor", "model"))) == recorded


@pytest.mark.clause("L2")
def test_an_export_is_joined_with_its_new_prices_some_days_at_a_time(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few are joined at once, the sums are those of the database: days without a new price before, between and
    behind the others, attempts priced twice, and an export that says neither the day nor which price is the newest."""
    rows = settled()
    written(url, rows)
    edges = sorted(row["started_at"] for row in rows)
    reprice(url, book(1_000_000, "acme/2"), edges[10], edges[30], 1)
    reprice(url, book(3_000_000, "acme/3"), edges[20], edges[-10], 2)
    live = LiveLedger(url, tmp_path / "journals")
    export_parquet(url, live.journal_dir, tmp_path / "export", None, END)
    export = ParquetFolder(tmp_path / "export")
    questions = [
        UsageQuestion(by, since, until, zone, latest_prices=True)
        for by, zone in ((("tenant", "day"), "UTC"), (("vendor", "hour"), "Australia/Lord_Howe"), ((), "UTC"))
        for since, until in ((None, None), (edges[15], edges[-15]))
    ]
    expected = [usage_report(live, question) for question in questions]
    for at_once in (1, 3, 10, 1_000):
        monkeypatch.setattr(summing, "_JOINED_AT_ONCE", at_once)
        assert [usage_report(export, question) for question in questions] == expected, at_once
    prices = export.path / "repricings.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE prices AS FROM '{prices}'")
        told = connection.execute("SELECT count(*), count(*) FILTER (newest), count(DISTINCT day) FROM prices")
        assert told.fetchone() == (19, 13, 6)
        connection.execute(f"COPY (SELECT * EXCLUDE (day, newest) FROM prices ORDER BY random()) TO '{prices}'")
    assert [usage_report(export, question) for question in questions] == expected


def test_a_partition_that_is_no_day_is_named(tmp_path: Path) -> None:
    """Rather than left out of the sums without a word."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    written(url, [attempt(CHANGES[0])])
    export_parquet(url, tmp_path / "journals", tmp_path / "export", None, END)
    (day,) = (tmp_path / "export" / "attempts").iterdir()
    day.rename(day.with_name("day=yesterday"))
    with pytest.raises(LedgerUnavailable, match="yesterday: is named after no day"):
        usage_report(ParquetFolder(tmp_path / "export"), UsageQuestion(()))


@pytest.mark.clause("L2", "L1")
def test_an_attempt_whose_writer_seems_dead_is_not_priced_again(url: str, tmp_path: Path) -> None:
    """Its writer may come back with the figures, and then they are priced as recorded."""
    row = attempt(CHANGES[0], served_model="m-1")
    inferred = dict.fromkeys(("usage_input", "usage_output", *_COSTS, "own_cost_input", "own_cost_output"))
    written(url, [row | inferred | {"ending": "interrupted", "closed_by": "inferred", "usage_state": None}])
    assert reprice(url, book(1_000_000, "acme/2"), None, None, 1) == []
    written(url, [row])
    found = by_report(LiveLedger(url, tmp_path / "journals"), UsageQuestion(("ending",), latest_prices=True))
    assert found == by_hand([row], ("ending",), "UTC")
    (change,) = reprice(url, book(1_000_000, "acme/2"), None, None, 2)
    assert (change.attempts, change.after) == (1, 120)
