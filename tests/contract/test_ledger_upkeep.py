"""The ledger's upkeep on both databases: migrations from the first version on, pruning, re-pricing, one report."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proxy.books.source import LiveLedger, ParquetFolder
from proxy.books.usage_report import UsageQuestion, usage_report
from proxy.errors import JournalFull, LedgerUnavailable
from proxy.metering.prices import Price, PriceBook, Rates, VendorPrices
from proxy.server.readiness import readiness
from proxy.stores import drain as drain_module
from proxy.stores import repricing as repricing_module
from proxy.stores.drain import Drain
from proxy.stores.journal import Journal
from proxy.stores.ledger_db import LedgerState
from proxy.stores.ledger_read import read_rows
from proxy.stores.ledger_sql import Database, connect_raw, is_sqlite
from proxy.stores.parquet import export_parquet
from proxy.stores.pruning import Wish, count, prune
from proxy.stores.repricing import reprice
from proxy.stores.schema import HEAD, upgrade
from tests.support.books import PRICES, at, attempt, ended_early, values_of
from tests.support.rows import closed, opened

#: The statements of revision 0001, as that version made them, and a row as that version wrote it.
FIRST_COLUMNS = (
    *("attempt_id", "request_id", "trace_id", "attempt_no", "tenant", "endpoint", "streamed", "started_at", "upstream"),
    *("vendor", "credential", "model_alias", "model", "writer", "ended_at", "ending", "duration_us", "ttft_us"),
    *("served_model", "service_tier", "vendor_request_id", "vendor_response_id", "upstream_status", "rule_id"),
    *("error_class", "error_code", "finish_reason", "finish_inferred", "vendor_usage", "counted_input"),
    *("counted_output", "delivered_output", "tokenizer", "bytes_in", "bytes_out", "events_in", "events_out", "notes"),
    "closed_by",
)
FIRST_ROW: tuple[Any, ...] = (
    *("old-1", "r", "t", 1, "فروشگاه", "/v1/chat/completions", True, 1_791_201_600_000_000, "main", "openai", None),
    *("shop", "gpt-4o", "w", 1_791_201_601_000_000, "completed", 1_000_000, 250_000, "gpt-4o", None, None, "c-1", 200),
    *(None, None, None, "stop", False, '{"prompt_tokens":12,"completion_tokens":34}', 12, 34, 34, "o200k_base", 1, 1),
    *(1, 1, None, "writer"),
)


def written(url: str, rows: list[dict[str, Any]]) -> None:
    upgrade(url)
    database = Database(url)
    with database.transaction():
        database.write((), [values_of(row) for row in rows])
    database.close()


# -- migrations -------------------------------------------------------------------------------------------------------


def made_at_the_first_revision(url: str) -> None:
    """A database as the first version left it, with a row."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import NullPool, create_engine

    from proxy.stores import schema

    dialect = "sqlite://" if is_sqlite(url) else "postgresql+psycopg://"
    engine = create_engine(dialect, creator=lambda: connect_raw(url), poolclass=NullPool)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    engine.dispose()
    insert_as_the_first_version_did(url, FIRST_ROW)


def insert_as_the_first_version_did(url: str, row: tuple[Any, ...]) -> None:
    connection = connect_raw(url)
    mark = "?" if is_sqlite(url) else "%s"
    names, marks = ", ".join(FIRST_COLUMNS), ", ".join([mark] * len(FIRST_COLUMNS))
    connection.execute(f"INSERT INTO attempts ({names}) VALUES ({marks})", row)
    connection.close()


@pytest.mark.clause("L1")
def test_a_ledger_of_the_first_version_is_brought_up_to_date_with_its_rows(url: str, tmp_path: Path) -> None:
    """Nothing is lost, what the old rows do not say is null, and an older process writes on beside."""
    made_at_the_first_revision(url)
    upgrade(url)
    database = Database(url)
    assert database.revision() == HEAD
    database.close()
    insert_as_the_first_version_did(url, ("old-2", *FIRST_ROW[1:]))
    rows = list(read_rows(url, tmp_path / "journals"))
    assert [row["attempt_id"] for row in rows] == ["old-1", "old-2"]
    for row in rows:
        assert row["vendor_usage"] == {"prompt_tokens": 12, "completion_tokens": 34}
        assert (row["counted"], row["counted_reasoning"], row["request_bytes"]) == ({"input": 12, "output": 34}, 0, 0)
        usage, cost = row["usage"], row["cost"]
        assert isinstance(usage, dict)
        assert isinstance(cost, dict)
        assert (usage["state"], usage["input"], usage["input_told"]) == (None, None, "absent")
        assert set(cost.values()) == {None}


@pytest.mark.clause("L1")
def test_a_ledger_that_was_not_brought_up_to_date_says_what_to_do(url: str, tmp_path: Path) -> None:
    """Reading never changes a database."""
    made_at_the_first_revision(url)
    with pytest.raises(LedgerUnavailable, match="start `sluice serve` once"):
        list(read_rows(url, tmp_path / "journals"))


# -- pruning ----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("L3")
def test_pruning_takes_out_what_is_old_and_ended_and_nothing_else(url: str, tmp_path: Path) -> None:
    """By tenant and moment; what still runs stays; a second time there is nothing to do."""
    rows = [attempt(at(day), tenant=tenant) for day in (1, 2, 3) for tenant in ("فروشگاه", "商店")]
    running = attempt(at(1), tenant="商店", ending=None, ended_at=None, closed_by=None)
    written(url, [*rows, running])
    wishes = [Wish(round(at(3).timestamp() * 1e6), ("商店",))]
    assert count(url, wishes) == {"商店": 2}
    assert sum(prune(url, wishes)) == 2
    assert list(prune(url, wishes)) == []
    left = [(row["tenant"], row["started_at"][:10], row["ending"]) for row in read_rows(url, tmp_path / "journals")]  # type: ignore[index]
    assert left.count(("商店", "2026-10-03", "completed")) == 1
    assert sum(tenant == "商店" for tenant, _, _ in left) == 2
    assert sum(tenant == "فروشگاه" for tenant, _, _ in left) == 3


@pytest.mark.clause("L3")
def test_a_pruned_text_is_not_left_in_the_file(tmp_path: Path) -> None:
    """SQLite would only unlink it: a tenant's name must not be found in the bytes afterwards."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    written(url, [attempt(at(1), tenant="a-tenant-to-be-forgotten") for _ in range(50)])
    written(url, [attempt(at(2))])
    assert sum(prune(url, [Wish(round(at(5).timestamp() * 1e6), ("a-tenant-to-be-forgotten",))])) == 50
    connection = connect_raw(url)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert b"a-tenant-to-be-forgotten" not in (tmp_path / "ledger.db").read_bytes()


# -- re-pricing -------------------------------------------------------------------------------------------------------


def book(price: int, version: str) -> PriceBook:
    rates = Rates(price, price, price, price, price)
    entry = Price("acme", "m-1", version, "USD", 0, None, rates)
    return PriceBook({"acme": VendorPrices("acme", {"m-1": (entry,)})})


@pytest.mark.clause("L2")
def test_pricing_again_adds_and_never_overwrites(url: str, tmp_path: Path) -> None:
    """Rows beside the first price, once for each version; a report may use the newest, or what was recorded."""
    bare: dict[str, Any] = {"price_version": None, "currency": None, "cost_input": None, "cost_output": None}
    written(url, [attempt(at(1)), attempt(at(2)), attempt(at(3), **bare), ended_early(at(3))])
    place = LiveLedger(url, tmp_path / "journals")
    first = usage_report(place, UsageQuestion(("vendor",)))
    book_of_today = book(1_000_000, "acme/2")
    (dry,) = reprice(url, book_of_today, None, None, 5, dry_run=True)
    assert usage_report(place, UsageQuestion(("vendor",), latest_prices=True)).tables[0].rows == first.tables[0].rows
    (change,) = reprice(url, book_of_today, None, None, 5)
    assert (dry, change.attempts, change.unpriced) == (change, 4, 1)
    assert (change.after, change.own_after) == (3 * 120, 3 * 120 + 105)
    assert reprice(url, book_of_today, None, None, 6) == []
    reprice(url, book(2_000_000, "acme/3"), None, None, 7)
    assert usage_report(place, UsageQuestion(("vendor",))).tables[0].rows == first.tables[0].rows
    latest = usage_report(place, UsageQuestion(("vendor",), latest_prices=True)).tables[0]
    names = [column.name for column in latest.columns]
    (row,) = latest.rows
    assert row[names.index("vendor_cost")] == 2 * 3 * 120


@pytest.mark.clause("L2")
def test_a_price_that_is_taken_back_is_the_newest_again(url: str, tmp_path: Path) -> None:
    """Every step of a mistaken correction is kept, and the last one counts, even by a clock that was set back."""
    written(url, [attempt(at(1), tenant="商店")])
    place = LiveLedger(url, tmp_path / "journals")
    question = UsageQuestion(("tenant",), latest_prices=True)
    costs = []
    for now, price, version in ((5, 1_000_000, "acme/2"), (6, 3_000_000, "acme/3"), (2, 1_000_000, "acme/2")):
        (change,) = reprice(url, book(price, version), None, None, now)
        assert reprice(url, book(price, version), None, None, now) == []
        table = usage_report(place, question).tables[0]
        costs.append((change.before, change.after, table.rows[0][[c.name for c in table.columns].index("vendor_cost")]))
    assert costs == [(450_000, 120, 120), (120, 360, 360), (360, 120, 120)]
    database = Database(url, read_only=True)
    with database.snapshot():
        kept = [(row[1], row[3]) for row in database.repricings()]
    database.close()
    assert kept == [("acme/2", 5), ("acme/3", 6), ("acme/2", 7)]


@pytest.mark.clause("L2")
def test_only_what_is_asked_for_is_priced_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By moment, vendor and model, whatever the batches; what runs, or may still come back, has no figures yet."""
    monkeypatch.setattr(repricing_module, "_BATCH_ROWS", 2)
    started = [round(at(day).timestamp() * 1e6) for day in range(1, 10)]
    rows = [attempt(at(day)) for day in range(1, 8)]
    rows += [attempt(at(2), vendor="جهان"), attempt(at(2), served_model="m-2", model="m-2")]
    rows.append(attempt(at(3), served_model="m-1-of-that-day"))
    rows.append(attempt(at(3), ending=None, ended_at=None, closed_by=None))
    rows.append(attempt(at(3), ending="interrupted", closed_by="inferred"))
    written(url, rows)
    today = book(1_000_000, "acme/2")

    def attempts(since: int | None, until: int | None, **which: Any) -> int:
        return sum(one.attempts for one in reprice(url, today, since, until, 5, dry_run=True, **which))

    assert attempts(started[1], started[4]) == 4
    assert attempts(None, None, vendor="جهان") == attempts(None, None, model="m-2") == 0
    assert attempts(None, None, vendor="acme", model="m-1") == 8
    assert sum(one.attempts for one in reprice(url, today, None, None, 5)) == 8
    assert attempts(None, None) == 0


@pytest.mark.clause("L2")
def test_another_currency_is_told_and_nothing_is_converted(url: str) -> None:
    """What it cost before stays in the currency that it had."""
    written(url, [attempt(at(1), currency="CNY")])
    (change,) = reprice(url, book(1_000_000, "acme/2"), None, None, 5)
    assert (change.currency_before, change.before, change.currency, change.after) == ("CNY", 450_000, "USD", 120)


# -- one report from all places ---------------------------------------------------------------------------------------


@pytest.mark.clause("L4")
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"])
def test_the_same_attempts_give_the_same_report_from_every_place(zone: str, url: str, tmp_path: Path) -> None:
    """Database and Parquet, for every key, over a day on which clocks change."""
    moments = [at(day, hour, 59, 59) for day in (3, 4, 31) for hour in range(0, 24, 3)]
    rows = [
        attempt(moment, (100 + place, place, 0, 20), tenant=f"店{place % 3}") for place, moment in enumerate(moments)
    ]
    rows += [ended_early(at(4, 3)), attempt(at(5), model="m-2", served_model=None, currency="EUR")]
    written(url, rows)
    out = tmp_path / "export"
    export_parquet(url, tmp_path / "journals", out, None, round(at(31).timestamp() * 1e6) + 86_400_000_000)
    for by in (("tenant", "day"), ("model", "hour"), ("week",), ("month", "ending"), ("usage_state", "endpoint"), ()):
        question = UsageQuestion(by, zone=zone)
        live = usage_report(LiveLedger(url, tmp_path / "journals"), question)
        assert live == usage_report(ParquetFolder(out), question)
        assert sum(row[[c.name for c in live.tables[0].columns].index("requests")] for row in live.tables[0].rows) == 26  # type: ignore[misc]


@pytest.mark.clause("L4", "L1")
def test_a_report_counts_what_only_the_journal_holds_once(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drained as open and closed in the journal, or not drained at all, or open for good with a dead writer."""
    monkeypatch.setattr(drain_module, "INTERVAL_S", 3600.0)
    folder = tmp_path / "journals"
    journal = Journal(folder, "w1")
    drain = Drain(url, journal, "instance")
    rows = [opened(f"a-{number}", tenant="ร้าน") for number in range(4)]

    async def work() -> None:
        journal.open(rows[0])
        journal.open(rows[1])
        await journal.close(closed(rows[0]))
        assert drain.cycle(0.0)
        await journal.close(closed(rows[1]))
        journal.open(rows[2])
        await journal.close(closed(rows[2]))
        journal.open(rows[3])

    asyncio.run(work())
    question = UsageQuestion(("tenant", "ending"))
    table = usage_report(LiveLedger(url, folder), question).tables[0]
    assert [(row[1], row[3]) for row in table.rows] == [("completed", 3), (None, 1)]
    journal.finish()
    journal.release()
    table = usage_report(LiveLedger(url, folder), question).tables[0]
    assert [(row[1], row[3]) for row in table.rows] == [("completed", 3), ("interrupted", 1)]
    drain.close()


# -- a full journal ---------------------------------------------------------------------------------------------------


@pytest.mark.clause("L1")
def test_a_full_journal_refuses_new_work_until_the_database_is_back(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the limit, not before; what runs may still end; drained, it takes work again, and nothing was lost."""
    monkeypatch.setattr(drain_module, "INTERVAL_S", 3600.0)
    folder = tmp_path / "journals"
    journal = Journal(folder, "w1")
    drain = Drain(f"sqlite:///{tmp_path}/no-such-folder/ledger.db", journal, "instance")

    async def work() -> None:
        first, second = opened("a-1"), opened("a-2")
        journal.open(first)
        assert not drain.cycle(0.0)
        journal.limit_bytes = journal.waiting_bytes + 1
        assert not journal.is_full
        journal.open(second)
        journal.limit_bytes = journal.waiting_bytes
        with pytest.raises(JournalFull, match=r"ledger\.journal_bytes"):
            journal.open(opened("a-3"))
        await journal.close(closed(first))
        await journal.close(closed(second))
        assert journal.is_full

    asyncio.run(work())
    assert drain.away_since is not None
    back = Drain(url, journal, "instance")
    assert back.cycle(0.0)
    assert (journal.waiting_bytes, journal.is_full) == (0, False)
    journal.open(opened("a-4"))
    assert [row["attempt_id"] for row in read_rows(url, folder)] == ["a-1", "a-2", "a-4"]
    journal.finish()
    journal.release()
    back.close()


@pytest.mark.clause("C1")
def test_readyz_says_what_is_wrong_with_the_ledger() -> None:
    """Away is no reason to stop; a full journal, a disk that refuses and a process that stops are."""
    well = LedgerState(True, False, None, 0, 1000)
    assert readiness(well, stopping=False).text == "ready\n"
    away = readiness(LedgerState(True, False, 1_791_201_600.0, 400, 1000), stopping=False)
    assert away.ready
    assert away.lines[1] == (
        "the ledger's database is away since 2026-10-05T12:00:00.000000Z: 400 of 1000 bytes wait in the journal"
    )
    full = readiness(LedgerState(True, True, 1_791_201_600.0, 1000, 1000), stopping=False)
    assert not full.ready
    assert "journal is full" in full.text
    assert "disk refuses" in readiness(LedgerState(False, False, None, 0, 1000), stopping=False).text
    assert readiness(well, stopping=True).lines == ("not ready", "stopping")


def test_prices_of_the_support_are_per_token() -> None:
    """The amounts above rest on it."""
    assert PRICES == (2_500, 250, 3_000, 10_000)
