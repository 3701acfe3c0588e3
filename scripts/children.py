"""What `make run` and `make run-toon` start: `sluice` commands in the background, with their logs in one folder.

In: the words of a command. Out: where it listens. Never: leaves one running, or takes a port that somebody has.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("RUN_DIR", ROOT / ".run")).resolve()
START_S = 120.0
STOP_S = 60.0


class Child:
    """One `sluice` command in the background. A group of its own, so that Ctrl-C reaches it through us, and once."""

    def __init__(self, name: str, *arguments: str, **variables: str) -> None:
        self.name, self.log = name, FOLDER / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "proxy", *arguments],
                cwd=ROOT,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def url(self) -> str:
        """Waits until it says where it listens."""
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            if found := re.search(r" on (http://\S+:\d+)$", self.log.read_text(errors="replace"), re.MULTILINE):
                return found[1]
            time.sleep(0.05)
        raise SystemExit(self.last_words("did not start"))

    def last_words(self, what: str) -> str:
        return f"{self.name} {what}:\n{self.log.read_text(errors='replace')[-2000:]}"

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def port(wanted: int) -> str:
    """The wanted port, or 0 (any free one) if somebody has it."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", wanted))
        except OSError:
            return "0"
    return str(wanted)


def wait(children: Sequence[Child]) -> int:
    """Until one ends, which is a failure; or Ctrl-C."""
    try:
        while all(child.process.poll() is None for child in children):
            time.sleep(0.2)
        print(*(child.last_words("ended") for child in children if child.process.poll() is not None), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopping", flush=True)
        return 0


def stop(children: Sequence[Child]) -> None:
    """The last one first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for child in reversed(children):
        child.stop()
