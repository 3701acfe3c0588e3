"""Where the ledger will lie, made ready before anything is started (contract C3, C4).

In: the ledger's settings and the configuration file's name. Out: folders that are there and can be written in, or one
`ConfigError` that names the key and says what to do. Never: open a database, or touch what a ledger already holds.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from proxy.config import LedgerSettings
from proxy.errors import ConfigError
from proxy.stores.ledger_sql import is_sqlite, sqlite_path


def make_ready(ledger: LedgerSettings, config_file: str) -> None:
    """Makes the folders of the SQLite file and of the journals, and writes in both to see that it can be done."""
    if is_sqlite(ledger.url):
        database = Path(sqlite_path(ledger.url))
        with _told(config_file, "ledger.url", database):
            _prove_folder(database.parent)
            if database.exists():
                _prove_file(database)
    with _told(config_file, "ledger.journal_dir", ledger.journal_dir):
        _prove_folder(ledger.journal_dir)


@contextlib.contextmanager
def _told(config_file: str, key: str, place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        reason = f"{place} cannot be written: {problem.strerror}"
        what_to_do = "name another place, or let the proxy's user write there"
        raise ConfigError(config_file, None, f"{key}: {reason}; {what_to_do}") from problem


def _prove_folder(folder: Path) -> None:
    with contextlib.suppress(FileExistsError):  # if it is a file, the next line has the better word for it
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"ledger")


def _prove_file(file: Path) -> None:
    with file.open("r+b"):  # opened for writing, and left as it is
        pass
