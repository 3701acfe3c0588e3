"""`sluice replay --difficult SEED`: what may stand beside it (contract C2, C3). Served it is in tests/learning."""

from __future__ import annotations

import pytest

from proxy.__main__ import run

pytestmark = pytest.mark.clause("C2", "C3")


@pytest.mark.parametrize(
    "words",
    [[], ["recordings/deepseek", "--difficult", "7"], ["--difficult", "7", "--trace"]],
    ids=["neither", "both", "trace"],
)
def test_either_recordings_or_a_seed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is told in words, before anything is served."""
    assert run(["replay", *words]) == 2
    assert "give either recordings, as PATH..., or --difficult SEED" in capsys.readouterr().err


@pytest.mark.parametrize("seed", ["seven", "-1"])
def test_a_seed_is_a_number(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Zero or more."""
    assert run(["replay", "--difficult", seed]) == 2
    assert "--difficult" in capsys.readouterr().err
