"""What `sluice probe` prints of a vendor's words (contract C3)."""

from __future__ import annotations

import pytest

from proxy.cli.probe import _subject
from proxy.cli.probe_show import Shown, show_drift
from proxy.config.settings import Secret, UpstreamSettings
from proxy.learning.drift import Drift
from tests.support.pipelines import shipped_rules


@pytest.mark.clause("C3")
def test_a_vendor_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A control character of its own is shown as what it is; the joiners of its script stay."""
    one = UpstreamSettings("main", "openai", "https://api.example.invalid/v1", Secret("some-key"))
    shown = Shown("main", _subject(one, shipped_rules(), "m"), as_json=False)
    show_drift(shown, [Drift("plain 1", "shape", "می\u200cرود", "\x1b]0;ours\x07\u202e")], [])
    out = capsys.readouterr().out
    assert "shape plain 1: می\u200cرود -> \\u001b]0;ours\\u0007\\u202e" in out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
