"""A PostgreSQL database of a test's own, and a wire to it that the test can cut.

`own_database` makes an empty database and drops it; `Wire` is a TCP forwarder to it, in the test's event loop. Cut, it
refuses and resets; silent, it accepts and keeps to itself whatever is sent, until it is mended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote
from uuid import uuid4

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.support.needs import POSTGRESQL_URL

_READ: Final = 65536


@contextmanager
def own_database() -> Iterator[str]:
    """The name of a new database, dropped at the end with whoever is still connected."""
    name = f"sluice_{uuid4().hex[:12]}"
    with psycopg.connect(POSTGRESQL_URL, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield name
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _server() -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": "5432", "user": "postgres", **conninfo_to_dict(POSTGRESQL_URL)}


def url_of(name: str, port: int | None = None) -> str:
    """The URL of a database, by way of a local port if one is named."""
    server = _server()
    password = f":{quote(server['password'])}" if server.get("password") else ""
    host = f"{server['host']}:{server['port']}" if port is None else f"127.0.0.1:{port}"
    return f"postgresql://{quote(server['user'])}{password}@{host}/{name}"


def terminate(name: str) -> int:
    """Ends every connection to the database, at whatever it is; how many there were."""
    with psycopg.connect(POSTGRESQL_URL, autocommit=True) as admin:
        ended = admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        return len(ended.fetchall())


def allow_connections(name: str, *, allowed: bool) -> None:
    """As an administrator does before maintenance."""
    with psycopg.connect(POSTGRESQL_URL, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {str(allowed).lower()}".encode())


class Wire:
    """Forwards a local `port` to the tests' PostgreSQL. `broken` counts connections that it has reset."""

    def __init__(self) -> None:
        self.port = 0
        self.broken = 0
        self._listener: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        #: How many bytes still go to the database before all is cut; None is without end.
        self._fuse: int | None = None

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.cut()

    async def mend(self) -> None:
        """As if nothing had been. What was held back while it was silent goes on its way."""
        self._fuse = None
        self._flows.set()
        if self._listener is None:
            self._listener = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
            self.port = self._listener.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Refuse new connections and reset those there are."""
        self._flows.set()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for writer in list(self._open):
            self.broken += 1
            writer.transport.abort()

    def cut_after(self, size: int) -> None:
        """Cut when so many more bytes have gone to the database: in the middle of whatever is being said."""
        self._fuse = size

    def hush(self) -> None:
        """Accept, and let nothing through either way."""
        self._flows.clear()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = _server()
        try:
            back, there = await asyncio.open_connection(server["host"], int(server["port"]))
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, there}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, there, outgoing=True))
                both.create_task(self._pass_on(back, writer, outgoing=False))
        finally:
            self._open -= {writer, there}

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, outgoing: bool) -> None:
        """Until either side ends: then the other is ended too."""
        with contextlib.suppress(OSError):
            while blob := await source.read(_READ):
                await self._flows.wait()
                if outgoing and self._fuse is not None:
                    if len(blob) > self._fuse:
                        target.write(blob[: self._fuse])
                        await target.drain()
                        await self.cut()
                        return
                    self._fuse -= len(blob)
                target.write(blob)
                await target.drain()
        target.close()
