"""Fuzz the whole pipeline: `scripts/fuzz --seconds 600`.

With atheris (`pip install atheris`) coverage guides what is tried next, and what it learned is kept in `.run/fuzz`;
without it, bytes are made up by a seeded generator, which finds less in the same time but needs nothing. Either way
one input is one `target.check`. A finding ends the run with exit code 1 (atheris: 77) and prints the plan, which is all
that a regression test needs.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import time
import traceback
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CORPUS: Final = ROOT / ".run" / "fuzz"
MAX_BYTES: Final = 2_000
#: Sizes of made-up inputs: a plan's settings take some 20 bytes, each event some 20 more.
SIZES: Final = (10, 40, 120, 400, 1_200)


def made_up(seed: int) -> bytes:
    """The input that this seed stands for."""
    chance = random.Random(seed)
    return chance.randbytes(chance.choice(SIZES))


def run_seeded(first: int, seconds: float, count: int | None = None) -> int:
    """Tries seeds in their order. Returns the exit code."""
    from fuzz.target import check

    end = time.monotonic() + seconds
    seed = first
    while time.monotonic() < end and (count is None or seed < first + count):
        try:
            check(made_up(seed))
        except Exception:  # noqa: BLE001  # whatever it is, it is what we are looking for
            traceback.print_exc()
            print(f"found by seed {seed}", file=sys.stderr)
            return 1
        seed += 1
    print(f"{seed - first} inputs, nothing found")
    return 0


def run_guided(seconds: float, seed: int) -> None:
    """Hands over to libFuzzer, which ends the process. What it learned last time is where it begins."""
    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]  # only where one fuzzes for long

    with atheris.instrument_imports(include=["proxy"]):
        from fuzz.target import check

    CORPUS.mkdir(parents=True, exist_ok=True)
    if not any(CORPUS.iterdir()):
        for number in range(200):
            (CORPUS / f"seed-{number}").write_bytes(made_up(number))
    flags = [f"-max_total_time={int(seconds)}", f"-seed={seed or 1}", f"-max_len={MAX_BYTES}", "-timeout=60"]
    atheris.Setup([sys.argv[0], *flags, f"-artifact_prefix={CORPUS.parent}/", str(CORPUS)], check)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--count", type=int, help="at most so many inputs; implies --seeded")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeded", action="store_true", help="do not use atheris, even where it is installed")
    options = parser.parse_args()
    if options.seeded or options.count is not None or importlib.util.find_spec("atheris") is None:
        return run_seeded(options.seed, options.seconds, options.count)
    run_guided(options.seconds, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
