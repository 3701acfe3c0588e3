"""What the tests of the token route share: models of a few kilobytes, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toon_models import TinyModels


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    return TinyModels(tmp_path_factory.mktemp("tiny-models"))


@pytest.fixture(scope="session")
def tiny_folder(tiny_models: TinyModels) -> Path:
    """A Llama in double precision, with a `toon.yaml`."""
    return tiny_models.folder()
