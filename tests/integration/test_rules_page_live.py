"""docs/rules.md tried as a new operator would: its shell blocks, in order, against the vendor that it starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.proxy import ROOT
from tests.support.upstream import find_refusing_port

PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
#: Background jobs end with the script, whatever happens.
BEGIN = "set -eu\ntrap 'kill $(jobs -p)' EXIT\n"
READY = "for _ in $(seq 100); do curl -s http://127.0.0.1:{port}/v1/models >/dev/null && break; sleep 0.1; done\n"


def shell_blocks() -> str:
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.clause("R1", "R3", "C3")
@pytest.mark.timeout(180)  # a dozen commands, each of which loads the tokenizer
def test_the_page_teaches_a_vendor_from_three_lines(tmp_path: Path) -> None:
    """Probe, write, watch, learn: every command exits 0, the operator's comment stays, and nothing has moved."""
    port = find_refusing_port()
    script = shell_blocks().replace("8391", str(port))
    script = re.sub(r"(replay .*&\n)", lambda found: found[1] + READY.format(port=port), script)
    shutil.copytree(ROOT / "rules", tmp_path / "rules")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", BEGIN + script], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    written = (tmp_path / "try" / "rules" / "difficult.yaml").read_text(encoding="utf-8")
    assert written.startswith("# Ask before you edit this file: it is everybody's.\nvendor: difficult\n")
    assert written.count("proof: simulated") >= 5
    assert "answers compared, 0 moved" in done.stdout
