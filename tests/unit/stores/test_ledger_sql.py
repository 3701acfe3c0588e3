"""The driver's connections to a ledger: what several processes over one new file must survive (contract L1)."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from proxy.stores.ledger_sql import connect_raw


@pytest.mark.clause("L1")
def test_a_connection_waits_for_the_neighbour_that_is_making_the_file(tmp_path: Path) -> None:
    """SQLite refuses at once to switch a file to WAL that another holds locked, however long its busy time is."""
    file = tmp_path / "دفتر.db"
    neighbour = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    neighbour.execute("BEGIN EXCLUSIVE")
    letting_go = threading.Timer(0.2, lambda: neighbour.execute("COMMIT"))
    letting_go.start()

    connection = connect_raw(f"sqlite:///{file}")

    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    letting_go.join()
    neighbour.close()
    connection.close()
