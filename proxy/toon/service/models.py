"""The models that a service has loaded, each with its tokenizer and its engine (docs/toon.md).

In: a registry whose versions and hashes agree. Out: `ServedModel`s, warm. Loading takes seconds and happens before the
port is said to be open. Never: loads what the registry does not name.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import structlog

from proxy.toon.card import Card
from proxy.toon.engine.constraint import Grammar
from proxy.toon.engine.engine import Engine, limits_for
from proxy.toon.model.loading import load_model
from proxy.toon.registry import ModelEntry, Registry
from proxy.toon.service.streams import Switchboard
from proxy.toon.tokenizers import Tokenizer, load_tokenizer

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServedModel:
    entry: ModelEntry
    card: Card
    tokenizer: Tokenizer
    grammar: Grammar
    engine: Engine
    switchboard: Switchboard


class Models:
    """By name, in the registry's order; the first that speaks a version is the one for it."""

    def __init__(self, models: Mapping[str, ServedModel]) -> None:
        self._models = models

    @classmethod
    def load(cls, registry: Registry, loop: asyncio.AbstractEventLoop) -> Models:
        """Blocks for as long as the weights take to load and the engines to warm up. What is up already is stopped
        where a later one fails."""
        models: dict[str, ServedModel] = {}
        try:
            for name, entry in registry.models.items():
                models[name] = _loaded(entry, registry, loop)
        except BaseException:
            cls(models).stop()
            raise
        return cls(models)

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def named(self, name: str) -> ServedModel | None:
        return self._models.get(name)

    def speaking(self, version: str) -> ServedModel | None:
        return next((model for model in self if model.card.version == version), None)

    def versions(self) -> list[str]:
        return sorted({model.card.version for model in self})

    def stop(self) -> None:
        for model in self:
            model.engine.stop()


def _loaded(entry: ModelEntry, registry: Registry, loop: asyncio.AbstractEventLoop) -> ServedModel:
    begun, settings = time.monotonic(), registry.engine
    decoder = load_model(entry.folder, device=settings.device, dtype=settings.dtype)
    tokenizer = load_tokenizer(entry.tokenizer.folder)
    switchboard = Switchboard(loop)
    limits = limits_for(decoder, settings.cache_mib, settings.rows, settings.waiting)
    engine = Engine(decoder, switchboard.deliver, limits, threads=settings.threads or None)
    loaded_s = time.monotonic() - begun
    engine.start()
    log.info(
        "model is warm",
        model=entry.name,
        version=entry.version,
        device=str(decoder.device),
        dtype=str(decoder.dtype).removeprefix("torch."),
        blocks=limits.blocks,
        loaded_s=round(loaded_s, 2),
        warm_s=round(time.monotonic() - begun - loaded_s, 2),
    )
    grammar = Grammar(tokenizer.source, entry.vocab, entry.eos)
    return ServedModel(entry, entry.card(), tokenizer, grammar, engine, switchboard)
