"""Requests of token ids, and folders of models that are there for their files alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final


def toon(
    ids: Sequence[int] = (5, 6, 7),
    *,
    version: str = "2.1",
    mask_type: str = "causal",
    scope: str = "full",
    fallback: str = "none",
    base: str = "rope",
    offset: int = 0,
    stride: int = 1,
    **more: object,
) -> dict[str, object]:
    """A request; `more` stands beside its four parts."""
    return {
        "tids": {"v": version, "ids": list(ids)},
        "mask": {"type": mask_type, "scope": scope, "fallback": fallback},
        "pos": {"base": base, "offset": offset, "stride": stride},
        "meta": {"trace_id": "trace-0001"},
        **more,
    }


REQUEST: Final = toon()


def made_models(folder: Path, *, model: str = "tiny") -> Path:
    """The registry of one tiny model, under this name; its weights are random."""
    from proxy.toon.tiny import make_tiny  # which needs the extra, as most tests do not

    registry = make_tiny(folder / "tiny") / "toon.yaml"
    registry.write_text(registry.read_text().replace("tiny:", f'"{model}":', 1))
    return registry
