"""What the contract's tests of the ledger share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest

from tests.support.needs import POSTGRESQL_URL, needs


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs("postgresql"))])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of its own."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ledger.db"
        return
    name = f"sluice_{uuid4().hex[:12]}"
    with psycopg.connect(POSTGRESQL_URL, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}".encode())
        yield f"{POSTGRESQL_URL}?options={quote(f'-csearch_path={name}')}"
        admin.execute(f"DROP SCHEMA {name} CASCADE".encode())
