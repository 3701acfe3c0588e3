"""The first and last steps of a worker process: the child's side of a fork (contract C1).

In: what the supervisor prepared before the fork. Out: the process's exit code. Never: return into the supervisor's
code, or run its clean-up: the folders and sockets there are the parent's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, Protocol

from proxy.config import Settings
from proxy.errors import SluiceError

FAILED: Final = 1
CANNOT: Final = 2
_PR_SET_PDEATHSIG: Final = 1


class RunWorker(Protocol):
    """Runs one worker until it is told to stop (`proxy.app.run_worker`). `parent_alive_fd` reads as ended when the
    parent is dead; that is then the same call to stop as the SIGTERM which may come with it, not a second one."""

    def __call__(
        self,
        settings: Settings,
        *,
        sock: socket.socket,
        worker: int,
        on_ready: Callable[[], None],
        parent_alive_fd: int | None,
        metrics_dir: Path | None,
    ) -> int: ...


def run_child(
    run_worker: RunWorker,
    settings: Settings,
    *,
    sock: socket.socket,
    worker: int,
    ready_fd: int,
    parent_alive_fd: int,
    metrics_dir: Path,
    let_go: Callable[[], None],
) -> NoReturn:
    """Runs a worker as this process's whole rest of life. `let_go` closes what is the parent's alone."""
    code = FAILED
    try:
        let_go()
        # A group of its own: Ctrl-C in a terminal goes to a whole group, and the worker would hear it twice, once from
        # the terminal and once from its parent. Twice means at once.
        os.setpgid(0, 0)
        _ask_for_parent_death_signal()
        code = run_worker(
            settings,
            sock=sock,
            worker=worker,
            on_ready=lambda: _tell(ready_fd),
            parent_alive_fd=parent_alive_fd,
            metrics_dir=metrics_dir,
        )
    except SluiceError as problem:
        print(f"sluice: worker {worker}: {problem}", file=sys.stderr)
        code = CANNOT
    except BaseException:  # noqa: BLE001  (the last frame of this process: told here or nowhere)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _tell(ready_fd: int) -> None:
    os.write(ready_fd, b".")
    os.close(ready_fd)


def _ask_for_parent_death_signal() -> None:
    """Linux only, and only a second string to the pipe: it also reaches a worker that does not read the pipe yet."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
