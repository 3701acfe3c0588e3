"""One ledger over both databases: what is written, what is read, who is dead."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, NullPool, create_engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from proxy.errors import LedgerUnavailable
from proxy.stores import drain as drain_module
from proxy.stores import schema
from proxy.stores.drain import Drain
from proxy.stores.journal import Journal
from proxy.stores.ledger_db import Ledger
from proxy.stores.ledger_read import read_json, read_rows
from proxy.stores.ledger_sql import Database, connect_raw, is_sqlite
from proxy.stores.schema import HEAD, metadata, upgrade
from proxy.stores.segments import encode_line, hold_lock, list_segments, segment_of
from tests.support.needs import needs
from tests.support.rows import STARTED, closed, opened

pytestmark = pytest.mark.clause("L1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The drain thread of a test sleeps: the test says when a round is due."""
    monkeypatch.setattr(drain_module, "INTERVAL_S", 3600.0)


class Worker:
    """A journal and its drain, whose thread is the test."""

    def __init__(self, url: str, folder: Path, name: str = "w1") -> None:
        self.journal = Journal(folder, name)
        self.drain = Drain(url, self.journal, "instance")

    def round(self, now: float = 0.0) -> bool:
        return self.drain.cycle(now)

    def die(self) -> None:
        """As by `kill -9`: the lock goes, nothing else happens."""
        self.journal.finish()
        self.journal.release()

    def stop(self) -> None:
        self.journal.finish()
        self.drain.finish()
        self.journal.release()


@pytest.fixture
def worker(url: str, folder: Path) -> Iterator[Callable[..., Worker]]:
    made: list[Worker] = []

    def make(name: str = "w1", where: Path = folder) -> Worker:
        made.append(Worker(url, where, name))
        return made[-1]

    yield make
    for each in made:
        each.journal.finish()
        each.drain.finish()


def endings(url: str, folder: Path) -> dict[str, object]:
    return {str(row["attempt_id"]): row["ending"] for row in read_rows(url, folder)}


def in_database(url: str) -> dict[str, object]:
    """What stands in the database alone."""
    connection = connect_raw(url)
    try:
        return dict(connection.execute("SELECT attempt_id, ending FROM attempts").fetchall())
    finally:
        connection.close()


async def test_a_row_is_read_at_once_and_the_same_before_and_after_it_is_drained(url: str, folder: Path) -> None:
    """Readers see journal and database; draining changes no byte of what they read, and stopping leaves no file."""
    ledger = Ledger.start(url, folder, "host", "0")
    first, second = opened("a1", tenant="فروشگاه"), opened("a2", started_at=STARTED - 1)
    ledger.open(first)
    ledger.open(second)
    await ledger.close(closed(first, notes={"filter": {"hate": "low"}}, vendor_usage=b'{"total": 1.50}'))
    assert endings(url, folder) == {"a1": "completed", "a2": None}
    before = list(read_json(url, folder))
    assert ledger.drain.cycle(0.0)
    assert in_database(url) == {"a1": "completed", "a2": None}
    assert list(read_json(url, folder)) == before
    await ledger.close(closed(second))
    await ledger.stop()
    assert os.listdir(folder) == []
    assert endings(url, folder) == {"a2": "completed", "a1": "completed"}
    assert b'"vendor_usage":{"total": 1.50}' in list(read_json(url, folder))[1]


@pytest.mark.clause("C5")
async def test_rows_come_by_start_then_id_within_the_span_asked_for(
    url: str, folder: Path, worker: Callable[..., Worker]
) -> None:
    """The order is that of start and then id by code point, drained or not; `since` is in the span, `until` is not."""
    one = worker()
    for attempt_id, start in [("b", 2), ("B", 2), ("é", 2), ("a-1", 2), ("a1", 2), ("late", 3), ("early", 1)]:
        one.journal.open(opened(attempt_id, started_at=STARTED + start))
        if attempt_id in ("B", "late"):
            one.round()
    assert list(endings(url, folder)) == ["early", "B", "a-1", "a1", "b", "é", "late"]
    since, until = (datetime.fromtimestamp(STARTED + start, UTC) for start in (2, 3))
    assert [row["attempt_id"] for row in read_rows(url, folder, since, until)] == ["B", "a-1", "a1", "b", "é"]


async def test_draining_the_same_bytes_again_changes_nothing(
    url: str, folder: Path, worker: Callable[..., Worker]
) -> None:
    """A drain that lost its place begins again, and no row is there twice or different."""
    one = worker()
    row = opened("a1")
    one.journal.open(row)
    one.journal.open(opened("a2"))
    await one.journal.close(closed(row))
    one.round()
    before = list(read_json(url, folder))
    again = Drain(url, one.journal, "instance")
    again.cycle(0.0)
    again.close()
    assert again.rows == 1
    assert list(read_json(url, folder)) == before
    assert in_database(url) == {"a1": "completed", "a2": None}


async def test_the_first_close_of_an_attempt_stays(url: str, folder: Path, worker: Callable[..., Worker]) -> None:
    """Two closes in a journal (a disk failed in between) make one row with the first one's ending."""
    one = worker()
    row = opened("a1")
    one.journal.open(row)
    first = one.journal.close(closed(row, ending="client_gone"))
    second = one.journal.close(closed(row, ending="completed"))
    await asyncio.gather(first, second)
    assert endings(url, folder) == {"a1": "client_gone"}
    one.round()
    assert in_database(url) == {"a1": "client_gone"}


async def test_what_a_dead_writer_left_is_drained_and_its_open_attempts_are_interrupted(
    url: str, folder: Path, worker: Callable[..., Worker]
) -> None:
    """The next worker takes a released lock over; until then readers already say the same, byte by byte."""
    dead = worker("w1")
    done, cut, drained = opened("a1"), opened("a2", started_at=STARTED + 1), opened("a3", started_at=STARTED + 2)
    dead.journal.open(drained)
    dead.round()
    dead.journal.open(done)
    dead.journal.open(cut)
    await dead.journal.close(closed(done))
    assert endings(url, folder) == {"a1": "completed", "a2": None, "a3": None}
    dead.die()
    told = list(read_json(url, folder))
    assert endings(url, folder) == {"a1": "completed", "a2": "interrupted", "a3": "interrupted"}
    worker("w2").round()
    assert in_database(url) == endings(url, folder)
    assert list(read_json(url, folder)) == told
    assert {segment.writer for segment in list_segments(folder)} == {"w2"}
    _, row, _ = read_rows(url, folder)
    assert (row["error_class"], row["error_code"]) == ("model_unavailable", "interrupted")


async def test_a_living_writer_is_never_interrupted_by_its_neighbour(
    url: str, folder: Path, worker: Callable[..., Worker]
) -> None:
    """A rolling restart: the new boot starts beside the old one, whose attempts go on and end as they end."""
    old, new = worker("w1-old"), worker("w1-new")
    row = opened("a1")
    old.journal.open(row)
    old.round()
    for moment in (0.0, 100.0, 1000.0):
        new.round(moment)
    assert endings(url, folder) == in_database(url) == {"a1": None}
    await old.journal.close(closed(row))
    old.stop()
    new.round(2000.0)
    assert endings(url, folder) == in_database(url) == {"a1": "completed"}


async def test_a_late_close_by_the_real_writer_wins_over_an_inferred_end(
    url: str, tmp_path: Path, worker: Callable[..., Worker]
) -> None:
    """A writer on another host was cut off until its lease ran out; when it is back its own word counts."""
    far, near = worker("far", tmp_path / "far"), worker("near", tmp_path / "near")
    row = opened("a1")
    far.journal.open(row)
    far.round()
    expire(url, "far")
    near.round(0.0)
    near.round(61.0)
    assert in_database(url) == {"a1": "interrupted"}
    await far.journal.close(closed(row, ending="client_gone"))
    assert endings(url, tmp_path / "far") == {"a1": "client_gone"}
    far.round(100.0)
    assert in_database(url) == {"a1": "client_gone"}


def expire(url: str, writer: str) -> None:
    connection = connect_raw(url)
    connection.execute(f"UPDATE writers SET lease_until = 1, seen_at = 1 WHERE writer = '{writer}'")
    connection.close()


async def test_a_lease_that_runs_is_believed_and_one_that_ran_out_is_judged_only_by_who_was_not_cut_off_itself(
    url: str, tmp_path: Path, worker: Callable[..., Worker]
) -> None:
    """After an outage of the database every lease has run out: nobody is called dead before one lease's time."""
    far, near = worker("far", tmp_path / "far"), worker("near", tmp_path / "near")
    far.journal.open(opened("a1"))
    far.round()
    near.round(0.0)
    near.round(100.0)
    assert in_database(url) == {"a1": None}, "its lease runs"
    expire(url, "far")
    late = worker("late", tmp_path / "late")
    late.round(100.0)
    late.round(159.0)
    assert in_database(url) == {"a1": None}, "`late` has not renewed for a whole lease yet"
    late.round(170.0)
    assert in_database(url) == {"a1": "interrupted"}


async def test_a_reader_elsewhere_tells_a_writer_with_an_expired_lease_as_dead(
    url: str, tmp_path: Path, worker: Callable[..., Worker]
) -> None:
    """Without its journal a writer is known by its lease alone, and lived until it last renewed."""
    far = worker("far", tmp_path / "far")
    far.journal.open(opened("a1"))
    far.round()
    assert endings(url, tmp_path / "near") == {"a1": None}
    expire(url, "far")
    assert endings(url, tmp_path / "near") == {"a1": "interrupted"}


async def test_the_database_may_be_away_while_rows_are_closed(
    url: str, folder: Path, worker: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closes go on into the journal; when the database is back all is drained, each row once."""
    one = worker()
    rows = [opened() for _ in range(3)]
    one.journal.open(rows[0])
    one.round()

    def away(*_: object, **__: object) -> None:
        raise LedgerUnavailable("the database is away")

    with monkeypatch.context() as outage:
        outage.setattr(Database, "write", away)
        await one.journal.close(closed(rows[0]))
        for row in rows[1:]:
            one.journal.open(row)
            await one.journal.close(closed(row))
        assert not one.round()
        assert not one.drain.reachable
    assert list(in_database(url).values()) == [None]
    assert one.round()
    assert list(in_database(url).values()) == ["completed"] * 3


async def test_a_drained_segment_is_deleted_when_the_next_has_begun(
    url: str, folder: Path, worker: Callable[..., Worker]
) -> None:
    """The folder holds what is in use; how far the deleted one was drained is forgotten too."""
    one = worker()
    one.journal._segment_bytes = 1000
    for _ in range(5):
        row = opened()
        one.journal.open(row)
        await one.journal.close(closed(row))
    assert len(list_segments(folder)) > 2
    one.round()
    assert [segment.number for segment in list_segments(folder)] == [one.journal.sealed()]
    database = Database(url)
    assert list(database.progress()) == [list_segments(folder)[0].name]
    database.close()
    assert len(in_database(url)) == 5


async def test_a_torn_last_line_of_a_dead_writer_is_dropped_at_every_byte(
    url: str, folder: Path, worker: Callable[..., Worker]
) -> None:
    """After a power cut the row is what its whole lines say: without its close it is interrupted, never lost."""
    expected: dict[str, object] = {}
    size, missing = 1, 0
    while missing <= size:
        attempt_id = f"missing-{missing:04d}"
        dead = worker(attempt_id)
        row = opened(attempt_id)
        dead.journal.open(row)
        await dead.journal.close(closed(row))
        dead.die()
        path = segment_of(folder, attempt_id, 1).path
        whole = path.read_bytes()
        size = len(whole) - whole.rindex(b"\n", 0, -1) - 1
        path.write_bytes(whole[: len(whole) - missing])
        expected[attempt_id] = "interrupted" if missing else "completed"
        missing += 1 if missing < 3 else 150
    assert endings(url, folder) == expected
    worker("next").round()
    assert in_database(url) == expected


async def test_a_journal_of_a_newer_program_stays_where_it_is(
    url: str, folder: Path, worker: Callable[..., Worker]
) -> None:
    """Its lines may mean what we do not know: a newer worker will drain it."""
    one = worker()
    os.close(hold_lock(folder, "newer"))
    path = segment_of(folder, "newer", 1).path
    path.write_bytes(encode_line(b"h", b'{"journal":2}') + encode_line(b"o", b'{"what":1}'))
    assert one.round()
    assert path.exists()


def test_many_processes_may_bring_the_database_up_to_date_at_once(url: str) -> None:
    """One does it, the others wait and find it done; the tables are those that the code writes to."""
    errors: list[BaseException] = []

    def start() -> None:
        try:
            upgrade(url)
        except LedgerUnavailable as error:
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    engine = create_engine(
        "sqlite://" if is_sqlite(url) else "postgresql+psycopg://", creator=lambda: connect_raw(url), poolclass=NullPool
    )
    with engine.connect() as connection:
        assert schema.current_revision(connection) == HEAD
        for table in metadata.sorted_tables:
            found = inspect(connection).get_columns(table.name)
            assert [column["name"] for column in found] == list(table.columns.keys())
            assert [column["nullable"] for column in found] == [column.nullable for column in table.columns]
    engine.dispose()


def test_a_migration_that_fails_half_way_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it or nothing, on both databases; the next start does it."""
    run = schema._run_migrations

    def fail(connection: Connection) -> None:
        run(connection)
        raise SQLAlchemyError("the server is going down")

    with monkeypatch.context() as failing:
        failing.setattr(schema, "_run_migrations", fail)
        with pytest.raises(LedgerUnavailable):
            upgrade(url)
    database = Database(url)
    assert not database.has_tables()
    upgrade(url)
    assert database.has_tables()
    database.close()


def test_a_newer_database_is_left_alone(url: str) -> None:
    """An older worker that starts again in a rolling upgrade neither fails nor goes back."""
    upgrade(url)
    connection = connect_raw(url)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    upgrade(url)
    assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]
    connection.close()


async def test_a_reader_beside_a_drain_misses_no_row_and_sees_none_twice(url: str, folder: Path) -> None:
    """Read while rows are written, drained and their segments deleted: whatever was closed before is there, once."""
    ledger = Ledger.start(url, folder, "host", "0")
    ledger.journal._segment_bytes = 3000
    done: list[str] = []
    stop = threading.Event()
    faults: list[object] = []

    def read() -> None:
        while not stop.is_set():
            known = set(done)
            seen = [row["attempt_id"] for row in read_rows(url, folder) if row["ending"] == "completed"]
            if not known <= set(seen) or len(seen) != len(set(seen)):
                faults.append((known - set(seen), len(seen)))

    def drain() -> None:
        while not stop.is_set():
            ledger.drain.cycle(time.monotonic())

    threads = [threading.Thread(target=read), threading.Thread(target=drain)]
    for thread in threads:
        thread.start()
    for _ in range(150):
        row = opened()
        ledger.open(row)
        await ledger.close(closed(row))
        done.append(row.attempt_id)
    stop.set()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    await ledger.stop()
    assert faults == []
    assert len(endings(url, folder)) == 150


async def test_the_start_refuses_a_file_that_is_no_database(tmp_path: Path) -> None:
    """What cannot be repaired by waiting is told at start."""
    (tmp_path / "ledger.db").write_bytes(b"no database, but long enough to be looked at" * 100)
    with pytest.raises(LedgerUnavailable, match="not a database"):
        Ledger.start(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "journal", "host", "0")


@needs("postgresql")
async def test_a_postgresql_that_is_away_does_not_hold_the_start_up(tmp_path: Path) -> None:
    """Rows are durable in the journal without it; stopping leaves them for the next start."""
    ledger = Ledger.start("postgresql://postgres@127.0.0.1:9/none", tmp_path, "host", "0")
    row = opened("a1")
    ledger.open(row)
    await ledger.close(closed(row))
    await ledger.stop()
    assert len(list_segments(tmp_path)) == 1
    with pytest.raises(LedgerUnavailable):
        list(read_rows("postgresql://postgres@127.0.0.1:9/none", tmp_path))


def test_without_any_database_the_journals_alone_are_read(tmp_path: Path) -> None:
    """Before the first drain there is no file of SQLite's yet; nothing at all is an empty ledger."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    assert list(read_rows(url, tmp_path / "journal")) == []
    journal = Journal(tmp_path / "journal", "w1")
    journal.open(opened("a1"))
    assert endings(url, tmp_path / "journal") == {"a1": None}
    assert not (tmp_path / "ledger.db").exists()
    journal.finish()
    journal.release()
