"""How well the difficult vendor is learned.

    .venv/bin/python -m bench.difficult [SEEDS] [--from SEED] [--live [--accept]] [--missed]

For each seed: probe, production, learning, then the held-out half. Prints a line per seed, and the whole. Without
`--live` the drafting and the grouping alone are at work; with it the commands are, over HTTP, some 15 s a seed. A
person names the meaning of what production brought; with `--accept` what `sluice learn` is sure of needs nobody.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.support.difficult import Agreement, agreement
from tests.support.difficult_live import learn_live


def learned_live(seed: int, accept: bool) -> Agreement:
    with tempfile.TemporaryDirectory(prefix="difficult-") as folder:
        return learn_live(Path(folder), seed, accept=accept).agreement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="?", default=30, help="how many seeds")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--missed", action="store_true", help="say which answers were misunderstood")
    parser.add_argument("--live", action="store_true", help="serve, probe and learn it with the commands")
    parser.add_argument("--accept", action="store_true", help="with --live: trust what `sluice learn` is sure of")
    given = parser.parse_args()
    found = []
    for seed in range(given.first, given.first + given.seeds):
        each = learned_live(seed, given.accept) if given.live else agreement(seed)
        found.append(each)
        print(
            f"seed {each.seed:4}  {each.share:6.1%} by {each.rules} rules, {each.lucky} by the status alone", flush=True
        )
        if given.missed:
            print("".join(f"           {line}\n" for line in each.missed), end="")
    right, asked = sum(each.right for each in found), sum(each.asked for each in found)
    lucky = sum(each.lucky for each in found)
    print(f"{len(found)} seeds, {asked} answers: {right / asked:.2%} by rules, {lucky / asked:.2%} by the status alone")


if __name__ == "__main__":
    main()
