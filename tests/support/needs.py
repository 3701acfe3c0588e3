"""What a test needs of the machine: `@needs("postgresql")`, `@needs("npm")`.

What is missing is a skip with one line that says so; with SLUICE_REQUIRE_ALL=1, as in CI, it is a failure.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import psycopg
import pytest

#: Where the tests' PostgreSQL is. The user named there must be allowed to create databases.
POSTGRESQL_URL: Final = os.environ.get("SLUICE_TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/postgres")
REDIS_ADDRESS: Final = ("127.0.0.1", int(os.environ.get("SLUICE_TEST_REDIS_PORT", "6379")))
REQUIRE_ALL: Final = os.environ.get("SLUICE_REQUIRE_ALL") == "1"


def needs(name: str) -> pytest.MarkDecorator:
    """Marks a test, a class or (as `pytestmark`) a module."""
    assert name in _LACKS, f"unknown need {name!r}: {', '.join(_LACKS)}"
    return pytest.mark.needs(name)


def require(name: str) -> None:
    """Skips or fails the test that is running, if what it needs is not there."""
    if lack := lacks(name):
        told = f"needs {name}: {lack}"
        if REQUIRE_ALL:
            pytest.fail(f"{told} (SLUICE_REQUIRE_ALL=1 allows no skip)", pytrace=False)
        pytest.skip(told)


@cache
def lacks(name: str) -> str:
    """What is missing, or "" if all is there. Looked up once."""
    return _LACKS[name]()


def _postgresql() -> str:
    try:
        psycopg.connect(POSTGRESQL_URL, connect_timeout=3).close()
    except psycopg.OperationalError:
        return "no PostgreSQL server lets us in (SLUICE_TEST_POSTGRESQL says where)"
    return ""


def _redis() -> str:
    try:
        with socket.create_connection(REDIS_ADDRESS, timeout=3) as connection:
            connection.sendall(b"PING\r\n")
            return "" if connection.recv(16).startswith(b"+PONG") else "what answers there is no Redis"
    except OSError:
        return "no Redis server answers on 127.0.0.1"


def _program(*names: str) -> Callable[[], str]:
    def look() -> str:
        return "" if any(map(shutil.which, names)) else f"no {' or '.join(names)} on the PATH"

    return look


_LACKS: Final[Mapping[str, Callable[[], str]]] = {
    "postgresql": _postgresql,
    "redis": _redis,
    "npm": _program("npm"),
    "chromium": _program("chromium", "chromium-browser", "google-chrome"),
}
