"""`sluice` commands as processes of their own, run to their end: what they exit with and print (contract C3)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.proxy import ROOT

_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Done:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """With `--json`: its one object."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


def sluice(folder: Path, *words: str) -> Done:
    """Temporary files of the command go to `folder`."""
    command = [sys.executable, "-m", "proxy", *words]
    env = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=_PATIENCE_S, check=False)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
