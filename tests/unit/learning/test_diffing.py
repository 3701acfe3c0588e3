"""Diffs for a person: which lines go and come, in colours on a terminal alone (contracts R3, C3)."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from proxy.learning.diffing import diff_of, print_diff

pytestmark = pytest.mark.clause("R3", "C3")

BEFORE = "vendor: acme\n# می‌ماند\nrules:\n  - id: a\n    seen: 2026-11-30\n"
AFTER = BEFORE.replace("2026-11-30", "2026-12-01") + "    message: '余额'\n"


def shown(diff: str, *, terminal: bool) -> str:
    file = io.StringIO()
    print_diff(
        Console(file=file, force_terminal=terminal, width=20, color_system="standard" if terminal else None), diff
    )
    return file.getvalue()


def test_a_diff_shows_what_goes_and_what_comes() -> None:
    """With three lines around it, and the file's name."""
    assert diff_of("rules/acme.yaml", BEFORE, AFTER) == (
        "--- rules/acme.yaml\n+++ rules/acme.yaml\n@@ -2,4 +2,5 @@\n # می‌ماند\n rules:\n   - id: a\n"
        "-    seen: 2026-11-30\n+    seen: 2026-12-01\n+    message: '余额'\n"
    )
    assert diff_of("rules/acme.yaml", BEFORE, BEFORE) == ""
    assert diff_of("a.yaml", BEFORE, BEFORE.replace("\n", "\r\n")) == "a.yaml: only line ends change\n"


def test_a_diff_has_colours_on_a_terminal_alone() -> None:
    """Piped it is plain text, whatever the width; text in brackets is text."""
    diff = diff_of("a.yaml", "x: [bold]\n", f"x: [bold red]{'长' * 40}\n")
    assert shown(diff, terminal=False) == diff
    coloured = shown(diff, terminal=True)
    assert "\x1b[31m-x: [bold]\x1b[0m" in coloured
    assert f"\x1b[32m+x: [bold red]{'长' * 40}\x1b[0m" in coloured


def test_a_vendor_cannot_write_on_the_terminal() -> None:
    """Control characters are shown, not obeyed; joiners inside words stay."""
    assert "+a: \\u001b[2J\\u202e👩‍👧 क्‍ष" in diff_of("a.yaml", "a:\n", "a: \x1b[2J\u202e👩‍👧 क्‍ष\n")
