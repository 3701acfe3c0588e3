"""What stands before a model, by two ways: a conversation as JSON and text, and TOON; times and bytes, in one run.

    python bench/toon_cost.py                      # the model that `make run-toon` keeps, else a tiny one made here
    python bench/toon_cost.py --model FOLDER       # a Hugging Face folder with a tokenizer and a chat template
    python bench/toon_cost.py --json cost.json --rounds 40

In: a text, cut so that the template and a tokenizer make 512, 4096 and 8192 ids of it: `english`, the documentation
that Python itself ships, and `scripts`, the shipped corpus in eleven scripts (short lines, repeated, so that what
tokenizers remember of words helps them). The way of text: `orjson.loads`, the chat template, the tokenizer, tensors of
ids, mask and positions; nothing is checked. The way of ids: `parse_toon`, `plan`, tensors of ids and positions; all is
checked, and a causal mask needs no tensor. Two tokenizers: the model's own, and the fastest exact one at hand
(quicktok, o200k), a stand-in for the best that a server of text could do; each is held to TOON with as many ids of its
own vocabulary. Rounds are interleaved, so that what disturbs the machine disturbs all alike; medians are told. Out: a
table, and with `--json FILE` the same as JSON. Nothing is downloaded, no model is run.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import tempfile
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import orjson
import quicktok  # type: ignore[import-untyped]  # a binary module without stubs
import torch

from proxy.dialects.toon.format import ToonRequest, parse_toon
from proxy.toon.card import Card
from proxy.toon.corpus import read_corpus
from proxy.toon.model.plan import Plan, plan
from proxy.toon.tiny import write_tokenizer
from proxy.toon.tokenizers import Tokenizer, load_tokenizer

SIZES = (512, 4096, 8192)
KEPT = Path(os.environ.get("TOON_MODELS", ".run/models")) / "smollm2"
#: Of this size, and how many times less the way of ids must cost: against the own tokenizer, against the fastest.
GOAL_SIZE, GOALS = 4096, {"own": 20.0, "fastest": 2.0}
#: What a request has beside its prompt.
ASKED = {"model": "small", "max_tokens": 64, "temperature": 0, "stream": True}

Stages = dict[str, float]
Encode = Callable[[str], Sequence[int]]


@dataclass(frozen=True)
class Prompt:
    """The same prompt in both forms, of as many ids by this tokenizer."""

    size: int
    text: str
    tokenizer: str
    encode: Encode
    chat: bytes
    toon: bytes
    ids: int
    characters: int


class Ways:
    """The two ways to the tensors, told by their stages."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        special = tokenizer.vocabulary.special
        self.card = Card("2.1", 200_000, 16_384, "rope", None, special, 16_384, frozenset())
        self.tensors: tuple[torch.Tensor, ...] = ()

    def text(self, prompt: Prompt) -> Stages:
        clock = Clock()
        body = orjson.loads(prompt.chat)
        clock.stage("parse")
        text = self.tokenizer.render(body["messages"])
        clock.stage("template")
        ids = prompt.encode(text)
        clock.stage("tokenize")
        mask, places = torch.ones((1, len(ids)), dtype=torch.int64), torch.arange(len(ids)).unsqueeze(0)
        self.tensors = (tensor(ids), mask, places)
        clock.stage("tensors")
        return clock.stages

    def ids(self, prompt: Prompt) -> Stages:
        clock = Clock()
        request = parse_toon(prompt.toon)
        assert isinstance(request, ToonRequest), request
        clock.stage("parse")
        planned = plan(request, self.card, self.tokenizer.texts)
        assert isinstance(planned, Plan), planned
        clock.stage("plan")
        assert not planned.sight.needs_mask
        self.tensors = (tensor(planned.ids), tensor(planned.positions))
        clock.stage("tensors")
        return clock.stages


def tensor(values: Sequence[int]) -> torch.Tensor:
    """By the quickest way there is: of a list, `torch.tensor` takes seven times as long."""
    if isinstance(values, range):
        return torch.arange(values.start, values.stop, values.step).unsqueeze(0)
    return torch.frombuffer(array("q", values), dtype=torch.int64).unsqueeze(0)


class Clock:
    def __init__(self) -> None:
        self.stages: Stages = {}
        self._at = time.perf_counter()

    def stage(self, name: str) -> None:
        now = time.perf_counter()
        self.stages[name] = now - self._at
        self._at = now


def prompt_of(size: int, names: tuple[str, str], encode: Encode, tokenizer: Tokenizer, words: str) -> Prompt:
    """As one user's message, the longest text whose ids are not too many."""

    def messages(length: int) -> list[dict[str, str]]:
        return [
            {"role": "system", "content": "Answer from the passages below, in their language."},
            {"role": "user", "content": words[:length]},
        ]

    low, high = 0, min(len(words), 8 * size)
    while high - low > 1:
        middle = (low + high) // 2
        fits = len(encode(tokenizer.render(messages(middle)))) <= size
        low, high = (middle, high) if fits else (low, middle)
    text = tokenizer.render(messages(low))
    ids = encode(text)
    chat = orjson.dumps({**ASKED, "messages": messages(low)})
    return Prompt(size, *names, encode, chat, toon_of(ids), len(ids), len(text))


def texts() -> dict[str, str]:
    """Each long enough for any size."""
    lines = [line for group in zip(*read_corpus().values(), strict=False) for line in group]
    scripts = "\n".join(lines)
    return {
        "english": "\n".join(topics.values()),
        "scripts": "\n".join([scripts] * (1 + 8 * max(SIZES) // len(scripts))),
    }


def toon_of(ids: Sequence[int]) -> bytes:
    request = {
        "tids": {"v": "2.1", "ids": list(ids)},
        "mask": {"type": "causal", "scope": "full", "fallback": "none"},
        "pos": {"base": "rope", "offset": 0, "stride": 1},
        "meta": {"source": "retrieval", "trace_id": "trace-0001"},
        **ASKED,
    }
    return orjson.dumps(request)


def measured(ways: Ways, prompts: Sequence[Prompt], rounds: int) -> list[dict[str, Any]]:
    """Both ways of each prompt in each round, in turn; the first rounds are for warming up."""
    seen: list[dict[str, list[Stages]]] = [{"text": [], "toon": []} for _ in prompts]
    gc.collect()
    gc.disable()
    for number in range(rounds + 3):
        for prompt, runs in zip(prompts, seen, strict=True):
            text, toon = ways.text(prompt), ways.ids(prompt)
            if number >= 3:
                runs["text"].append(text)
                runs["toon"].append(toon)
    gc.enable()
    return [row_of(prompt, runs) for prompt, runs in zip(prompts, seen, strict=True)]


def row_of(prompt: Prompt, seen: Mapping[str, Sequence[Stages]]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, runs in seen.items():
        stages = {stage: statistics.median(run[stage] for run in runs) * 1e3 for stage in runs[0]}
        totals = [sum(run.values()) * 1e3 for run in runs]
        told[name] = {"ms": statistics.median(totals), "best_ms": min(totals), "stages_ms": stages}
    return {
        "size": prompt.size,
        "prompt": prompt.text,
        "tokenizer": prompt.tokenizer,
        "ids": prompt.ids,
        "characters": prompt.characters,
        "chat_bytes": len(prompt.chat),
        "toon_bytes": len(prompt.toon),
        **told,
        "times_cheaper": told["text"]["ms"] / told["toon"]["ms"],
        "times_cheaper_best": told["text"]["best_ms"] / told["toon"]["best_ms"],
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| prompt | tokenizer | ids | chat, bytes | TOON, bytes | by text, ms | by ids, ms | times | of the best |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = [row["prompt"], row["tokenizer"], row["ids"], row["chat_bytes"], row["toon_bytes"]]
        cells += [stages_of(row["text"]), stages_of(row["toon"])]
        cells += [f"{row['times_cheaper']:.1f}", f"{row['times_cheaper_best']:.1f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def stages_of(told: Mapping[str, Any]) -> str:
    stages = ", ".join(f"{name} {ms:.3f}" for name, ms in told["stages_ms"].items())
    return f"**{told['ms']:.3f}** ({stages})"


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    told = []
    for row in rows:
        if (row["size"], row["prompt"]) == (GOAL_SIZE, "english"):
            least, times = GOALS[row["tokenizer"]], row["times_cheaper"]
            verdict = "met" if times >= least else "MISSED"
            told.append(
                f"{GOAL_SIZE} ids, {row['tokenizer']} tokenizer: {times:.1f} times, wanted {least:.0f}: {verdict}"
            )
    return told


def tokenizer_of(folder: Path | None) -> tuple[str, Tokenizer]:
    if folder is None and (KEPT / "tokenizer.json").is_file():
        folder = KEPT
    if folder is not None:
        return folder.name, load_tokenizer(folder)
    with tempfile.TemporaryDirectory() as made:
        write_tokenizer(Path(made))
        return "tiny (512 ids)", load_tokenizer(Path(made))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a Hugging Face folder")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path, help="a file for the figures")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    name, tokenizer = tokenizer_of(asked.model)
    encoders: dict[str, Encode] = {
        "own": tokenizer.encode,
        "fastest": quicktok.get_encoding("o200k_base").encode_ordinary,
    }
    prompts = [
        prompt_of(size, (text, who), encode, tokenizer, words)
        for text, words in texts().items()
        for size in SIZES
        for who, encode in encoders.items()
    ]
    rows = measured(Ways(tokenizer), prompts, asked.rounds)
    print(f"own tokenizer: {name}; {asked.rounds} rounds, medians; {platform.machine()}, {os.cpu_count()} cores\n")
    print(table(rows), "", *goals(rows), sep="\n")
    if asked.json is not None:
        asked.json.write_text(json.dumps({"own": name, "rounds": asked.rounds, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
