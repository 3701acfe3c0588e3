"""Small random models for the tests of the token route, each made once per run and shared: nobody writes into them."""

from __future__ import annotations

from pathlib import Path

from proxy.toon.tiny import Family, make_tiny


class TinyModels:
    """Makes a model where it is first asked for. Double precision, so that equal answers do not hang on a rounding."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(
        self, family: Family = "llama", *, version: str = "2.1", seed: int = 0, dtype: str = "float64", vocab: int = 512
    ) -> Path:
        """A Hugging Face folder, with a `toon.yaml` that names it `tiny`."""
        folder = self._root / f"{family}-{version}-{seed}-{dtype}-{vocab}"
        if not (folder / "toon.yaml").is_file():
            make_tiny(folder, family=family, version=version, seed=seed, dtype=dtype, vocab=vocab)
        return folder
