"""A supervisor whose workers need nothing else of Sluice: `python -m tests.support.supervised --behave well`.

Each worker answers every connection with its process id. What else it does is its behaviour:
`well` stops when asked · `deaf` ignores SIGTERM · `refuses` cannot start · `breaks` ends unready with a traceback.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from proxy.cli.listening import bind, url_of
from proxy.cli.metrics_folder import fresh_metrics_folder
from proxy.cli.supervisor import Supervisor
from proxy.cli.worker_process import RunWorker
from proxy.config import Auth, LedgerSettings, Listen, Settings
from proxy.errors import LedgerUnavailable


def settings(shutdown_s: float) -> Settings:
    ledger = LedgerSettings("sqlite:////nowhere/ledger.db", Path("nowhere"), Path("nowhere"))
    bare = Settings(Listen("127.0.0.1", 0), Auth("none"), ledger, None, {}, {}, "test")
    return replace(bare, shutdown_s=shutdown_s)


def well(
    settings: Settings,
    *,
    sock: socket.socket,
    worker: int,
    on_ready: Callable[[], None],
    parent_alive_fd: int | None,
    metrics_dir: Path | None,
) -> int:
    assert parent_alive_fd is not None
    assert metrics_dir is not None
    assert metrics_dir.is_dir()
    stop, stopped = socket.socketpair()
    stop.setblocking(False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(stop.fileno())
    sock.listen()
    on_ready()
    while True:
        readable, _, _ = select.select([sock.fileno(), stopped.fileno(), parent_alive_fd], [], [])
        if sock.fileno() not in readable:
            return 0
        connection, _ = sock.accept()
        connection.sendall(b"%d" % os.getpid())
        connection.close()


def deaf(settings: Settings, *, sock: socket.socket, on_ready: Callable[[], None], **_: object) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sock.listen()
    on_ready()
    while True:
        signal.pause()


def refuses(settings: Settings, **_: object) -> int:
    raise LedgerUnavailable("the ledger is not there")


def breaks(settings: Settings, **_: object) -> int:
    raise RuntimeError("a bug")


BEHAVIOURS: dict[str, RunWorker] = {"well": well, "deaf": deaf, "refuses": refuses, "breaks": breaks}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--behave", choices=BEHAVIOURS, default="well")
    parser.add_argument("--shutdown-s", type=float, default=10.0)
    parser.add_argument("--grace-s", type=float, default=10.0)
    options = parser.parse_args()
    reserved = bind("127.0.0.1", 0, shared=True)
    with fresh_metrics_folder() as metrics_dir:
        print("metrics in", metrics_dir, file=sys.stderr, flush=True)
        supervisor = Supervisor(
            settings(options.shutdown_s),
            BEHAVIOURS[options.behave],
            reserved=reserved,
            workers=options.workers,
            metrics_dir=metrics_dir,
            on_death=lambda pid: print("buried", pid, file=sys.stderr, flush=True),
            grace_s=options.grace_s,
        )
        return supervisor.run(lambda: print("listening on", url_of(reserved), file=sys.stderr, flush=True))


if __name__ == "__main__":
    sys.exit(main())
