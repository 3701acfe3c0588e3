"""How fast the engine writes: alone, for many at once, for those who come and go; what a known beginning saves.

    python bench/toon_engine.py                       # seeded random weights of the shape of SmolLM2-135M
    python bench/toon_engine.py --model FOLDER        # a Hugging Face folder
    python bench/toon_engine.py --config 1b --device cuda --dtype bfloat16

In: a model, real or random (what it says does not matter for how fast). Out: a table, and with `--json FILE` the same
as JSON. First small batches in double precision are held to single answers on the same device; then rounds of all
shapes are interleaved, so that what disturbs the machine disturbs them alike, and medians are told; beside them the
quickest step of one stream and of eight, which a busy machine moves least. `--manager` runs transformers' own
continuous batching beside it, over random weights. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

from proxy.toon.engine.core import Told
from proxy.toon.engine.engine import Engine, limits_for
from proxy.toon.engine.job import Failure, Job, Piece, Ticket
from proxy.toon.model.loading import choose_device, choose_dtype, decoder_of, load_model, named_of
from proxy.toon.model.masks import Sight, View
from proxy.toon.model.plan import Plan
from proxy.toon.model.step import Decoder
from proxy.toon.model.weights import Weights

#: hidden, between, layers, heads, heads of keys, vocabulary
CONFIGS = {
    "tiny": (64, 128, 2, 4, 2, 512),
    "135m": (576, 1536, 30, 9, 3, 49152),
    "1b": (2048, 8192, 16, 32, 8, 128256),
}


def main() -> None:
    args = _arguments()
    torch.set_num_threads(args.threads)
    print(f"equality on {args.device}: {_equality(args.device)}", flush=True)
    decoder, module = _decoder(args)
    bench = Bench(decoder, args)
    results: dict[str, object] = {
        "model": args.model.name if args.model else f"random, as {args.config}",
        "device": str(decoder.device),
        "dtype": str(decoder.dtype),
        "threads": args.threads,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "load": os.getloadavg()[0],
    }
    results |= bench.first_ids()
    manager = Manager(module, args.ids) if module is not None else None
    results |= bench.rounds(manager)
    if manager is not None:
        manager.stop()
    results["load_after"] = os.getloadavg()[0]
    for name, value in results.items():
        print(f"{name:44} {value:.3f}" if isinstance(value, float) else f"{name:44} {value}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--config", choices=CONFIGS, default="135m")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ids", type=int, default=48, help="ids of each answer")
    parser.add_argument("--prompt", type=int, default=64, help="ids of each prompt")
    parser.add_argument("--cache-mib", type=int, default=2048)
    parser.add_argument("--manager", action="store_true", help="run transformers' continuous batching too")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _config(name: str) -> LlamaConfig:
    hidden, between, layers, heads, kv_heads, vocab = CONFIGS[name]
    return LlamaConfig(
        hidden_size=hidden,
        intermediate_size=between,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        vocab_size=vocab,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )


def _decoder(args: argparse.Namespace) -> tuple[Decoder, LlamaForCausalLM | None]:
    if args.model:
        return load_model(args.model, device=args.device, dtype=args.dtype), None
    device = choose_device(args.device)
    module = _random(_config(args.config), device, choose_dtype(args.dtype, device))
    return decoder_of(module.config, Weights(named_of(module), device, join=True)), module if args.manager else None


def _random(config: LlamaConfig, device: torch.device, dtype: torch.dtype) -> LlamaForCausalLM:
    torch.manual_seed(0)
    with torch.device(device):
        return LlamaForCausalLM(config).to(dtype).eval()


def _ids(count: int, vocab: int, seed: object) -> list[int]:
    return random.Random(str(seed)).choices(range(vocab), k=count)


def _job(ids: list[int], max_tokens: int) -> Job:
    """Greedy, and nothing stops it: what is measured is as long as was asked for."""
    count = len(ids)
    sight = Sight(View(count=count, most=count + max_tokens))
    return Job(Plan(ids, list(range(count)), sight, count, 1, count, 1, 0), max_tokens)


@dataclass
class Heard:
    """When which ids came, from the engine's thread."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    first: dict[Ticket, float] = field(default_factory=dict)
    ids: dict[Ticket, list[int]] = field(default_factory=dict)
    ended: set[Ticket] = field(default_factory=set)
    counts: list[tuple[float, int]] = field(default_factory=list)

    def deliver(self, told: Told) -> None:
        now = time.perf_counter()
        with self.changed:
            for ticket, item in told:
                if isinstance(item, Failure):
                    raise SystemExit(f"an answer failed: {item}")
                self.first.setdefault(ticket, now)
                self.ids.setdefault(ticket, []).extend(item.ids)
                if item.finish is not None:
                    self.ended.add(ticket)
            self.counts.append((now, sum(len(item.ids) for _, item in told if isinstance(item, Piece))))
            self.changed.notify_all()

    def wait(self, tickets: Sequence[Ticket]) -> float:
        with self.changed:
            self.changed.wait_for(lambda: self.ended.issuperset(tickets))
        return time.perf_counter()


def _equality(device: str) -> str:
    """A batch of rows of mixed lengths against each alone, in double precision."""
    where = choose_device(device)
    module = _random(_config("tiny"), where, torch.float64)
    decoder = decoder_of(module.config, Weights(named_of(module), where, join=True))
    jobs = [_job(_ids(count, 512, count), 20 + count % 7) for count in (1, 5, 17, 40, 64, 130, 300)]
    heard = Heard()
    engine = Engine(decoder, heard.deliver, limits_for(decoder, 64))
    engine.start()
    together = [engine.submit(job) for job in jobs]
    heard.wait(together)
    for ticket, job in zip(together, jobs, strict=True):
        single = engine.submit(job)
        heard.wait([single])
        if heard.ids[single] != heard.ids[ticket]:
            raise SystemExit("a row of a batch is not what it is alone")
    engine.stop()
    return f"{len(jobs)} rows of a batch are as each alone, read again in part from the cache"


class Bench:
    def __init__(self, decoder: Decoder, args: argparse.Namespace) -> None:
        self._decoder, self._args = decoder, args
        self._vocab = decoder.shape.vocab
        self._seed = 0
        self._quickest: dict[int, float] = {}

    def first_ids(self) -> dict[str, object]:
        """Eight prompts at once: before anything ran in this process, and with an engine that is warm."""
        jobs = [_job(_ids(128, self._vocab, f"first{at}"), 2) for at in range(8)]
        told: dict[str, object] = {}
        for name, is_warming in (("cold", False), ("warm", True)):
            heard = Heard()
            engine = self._engine(heard, is_warming=is_warming)
            began = time.perf_counter()
            tickets = [engine.submit(job) for job in jobs]
            heard.wait(tickets)
            waits = sorted(heard.first[ticket] - began for ticket in tickets)
            told |= {f"8 prompts of 128, {name}: first id median s": statistics.median(waits)}
            told |= {f"8 prompts of 128, {name}: first id last s": waits[-1]}
            engine.stop()
        return told

    def _engine(self, heard: Heard, *, is_warming: bool = True) -> Engine:
        limits = limits_for(self._decoder, self._args.cache_mib)
        engine = Engine(self._decoder, heard.deliver, limits, is_warming=is_warming, threads=self._args.threads)
        engine.start()
        return engine

    def rounds(self, manager: Manager | None) -> dict[str, object]:
        heard = Heard()
        engine = self._engine(heard)
        seen: dict[str, list[float]] = {}
        for _ in range(self._args.rounds):
            single, single_writing = self._speed(engine, heard, 1)
            eight, eight_writing = self._speed(engine, heard, 8)
            mixed = self._mixed(engine, heard)
            miss, hit = self._known(engine, heard)
            told = {
                "1 stream writing, ids per second": single_writing,
                "8 equal streams writing, ids per second": eight_writing,
                "8 equal streams writing / 1 stream writing": eight_writing / single_writing,
                "1 stream, ids per second": single,
                "8 equal streams, ids per second": eight,
                "8 equal streams / 1 stream": eight / single,
                "12 mixed streams, ids per second": mixed,
                "12 mixed streams / 1 stream": mixed / single,
                "first id of 512, unknown, s": miss,
                "first id of 512, known, s": hit,
                "unknown / known": miss / hit,
            }
            if manager is not None:
                other = manager.speed([self._fresh(self._args.prompt) for _ in range(8)], self._args.ids)
                told["transformers' manager, 8 streams, ids per second"] = other
                told["8 equal streams / transformers' manager"] = eight / other
            for name, value in told.items():
                seen.setdefault(name, []).append(value)
        engine.stop()
        if not seen:
            return {}
        one, eight = self._quickest[1], self._quickest[8]
        quickest = {"1 stream, quickest step, ms": 1000 * one, "8 equal streams, quickest step, ms": 1000 * eight}
        medians = {name: statistics.median(values) for name, values in seen.items()}
        return {**medians, **quickest, "8 / 1, by their quickest steps": 8 * one / eight}

    def _fresh(self, count: int) -> list[int]:
        """Ids that nobody has sent before: nothing of them is cached."""
        self._seed += 1
        return _ids(count, self._vocab, self._seed)

    def _speed(self, engine: Engine, heard: Heard, streams: int) -> tuple[float, float]:
        """Prompts included, and from when every stream has its first id."""
        jobs = [_job(self._fresh(self._args.prompt), self._args.ids) for _ in range(streams)]
        began = time.perf_counter()
        tickets = [engine.submit(job) for job in jobs]
        heard.counts.clear()
        ended = heard.wait(tickets)
        written = max(heard.first[ticket] for ticket in tickets)
        later = sum(count for at, count in heard.counts if at > written)
        full = [at for at, count in heard.counts if count == streams]
        gaps = [after - before for before, after in pairwise(full)]
        self._quickest[streams] = min([*gaps, self._quickest.get(streams, math.inf)])
        return streams * self._args.ids / (ended - began), later / (ended - written)

    def _mixed(self, engine: Engine, heard: Heard) -> float:
        """Twelve of mixed lengths; each comes when those before it have had a few ids."""
        chance, tickets, ids, began = random.Random(1), [], 0, time.perf_counter()
        for _ in range(12):
            count = chance.randrange(self._args.ids // 2, self._args.ids * 3 // 2)
            tickets.append(engine.submit(_job(self._fresh(chance.randrange(8, 2 * self._args.prompt)), count)))
            ids += count
            with heard.changed:
                heard.changed.wait_for(lambda: len(heard.ids.get(tickets[-1], ())) >= 3)
        return ids / (heard.wait(tickets) - began)

    def _known(self, engine: Engine, heard: Heard) -> tuple[float, float]:
        ids, waits = self._fresh(512), []
        for last in (1, 2):
            began = time.perf_counter()
            ticket = engine.submit(_job([*ids[:-1], last], 1))
            heard.wait([ticket])
            waits.append(heard.first[ticket] - began)
        return waits[0], waits[1]


class Manager:
    """transformers' own continuous batching over the same weights."""

    def __init__(self, module: LlamaForCausalLM, ids: int) -> None:
        module.set_attn_implementation("sdpa")
        sampling = GenerationConfig(do_sample=False, max_new_tokens=ids, eos_token_id=-1, pad_token_id=0)
        config = ContinuousBatchingConfig(num_blocks=256, max_batch_tokens=512)
        self._manager = module.init_continuous_batching(generation_config=sampling, continuous_batching_config=config)
        self._manager.start()

    def speed(self, prompts: Sequence[list[int]], count: int) -> float:
        """Ids per second, prompts included."""
        began, made = time.perf_counter(), 0
        for ids in prompts:
            self._manager.add_request(ids, max_new_tokens=count)
        for _ in prompts:
            output = self._manager.get_result(timeout=120)
            if output is None or output.error:
                raise SystemExit(f"transformers' manager gave nothing: {output}")
            made += len(output.generated_tokens)
        return made / (time.perf_counter() - began)

    def stop(self) -> None:
        """Its thread would keep the process alive."""
        self._manager.stop(block=True)


if __name__ == "__main__":
    main()
