#!/usr/bin/env python3
"""How long a usage report takes and how much memory, over an export of Parquet and over SQLite.

    PYTHONPATH=. .venv/bin/python bench/reports.py --attempts 10000000 [--repriced] [--sqlite 1000000] [--work DIR]
        [--json FILE]

Makes a year of that many attempts (`bench/year.py`, seeded; a year that `--work` holds already is taken as it is), then
runs `sluice report usage` in a process of its own for each question: wall time from start to end and CPU time, the
interpreter's own start included, and the process's peak memory. Before each a run whose time is not counted, so that
files are in the page cache: what is measured is the report. With `--repriced` every attempt of the export has been
priced again, at twice its price, which `--prices latest` must find for each. Exits 1 if a report over Parquet takes
more than 10 s or 1 GiB.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from bench.year import Year
from proxy.stores.ledger_rows import COLUMNS, COST_COLUMNS
from proxy.stores.schema import upgrade

GOAL_S, GOAL_MIB = 10.0, 1024.0
QUESTIONS = (
    ("--by", "tenant,model", "--format", "html"),
    ("--by", "tenant,model,day", "--time-zone", "Europe/Berlin", "--format", "csv"),
    ("--by", "tenant,model,day", "--time-zone", "Europe/Berlin", "--prices", "latest", "--format", "csv"),
    ("--by", "vendor,hour", "--time-zone", "Asia/Kathmandu", "--format", "json"),
    ("--by", "month,ending,usage_state", "--format", "xlsx"),
)
_BATCH_ROWS = 10_000


@dataclass(frozen=True)
class Measured:
    """One report: over how many attempts, seconds from start to end and of the processors (which a busy machine makes
    longer by less), peak memory, bytes that came out."""

    place: str
    attempts: int
    question: str
    wall_s: float
    cpu_s: float
    peak_mib: float
    bytes: int


def measure(place: str, attempts: int, arguments: tuple[str, ...], repeat: int) -> Measured:
    """The median times of `repeat` runs after one that is not counted (of that one alone if `repeat` is 0), and the
    largest memory of all."""
    runs = [_run(arguments) for _ in range(repeat + 1)]
    question = " ".join(arguments[arguments.index("--by") :])
    wall, cpu = (sorted(run[place] for run in runs[1:] or runs)[repeat // 2] for place in (0, 1))
    peak = max(run[2] for run in runs)
    return Measured(place, attempts, question, round(wall, 2), round(cpu, 2), round(peak, 1), runs[0][3])


def _run(arguments: tuple[str, ...]) -> tuple[float, float, float, int]:
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "proxy", "report", "usage", *arguments], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"sluice report usage {' '.join(arguments)}: exit code {process.returncode}")
        cpu = usage.ru_utime + usage.ru_stime
        return wall, cpu, usage.ru_maxrss / 1024, out.seek(0, os.SEEK_END)


def make_year(folder: Path, attempts: int, seed: int) -> int:
    """The export, unless it is there; how many attempts it holds."""
    if not any((folder / "attempts").glob("*/*.parquet")):
        Year(seed, attempts, frozenset(), folder).run()
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT count(*) FROM '{folder}/attempts/*/*.parquet'").fetchone()
    assert found is not None, "a count has a row"
    return int(found[0])


def reprice_year(folder: Path) -> None:
    """As an export writes it that has one re-pricing for each attempt; one that is there is taken as it is."""
    target, beside = folder / "repricings.parquet", folder / ".repricings"
    if target.exists():
        return
    doubled = ", ".join(f"2 * {name} AS {name}" for name in COST_COLUMNS)
    with duckdb.connect(config={"threads": 1, "memory_limit": "1GB"}) as connection:
        connection.execute(
            "COPY (SELECT attempt_id, vendor || '/again' AS price_version, coalesce(price_tier, '') AS price_tier, "
            f"started_at AS repriced_at, coalesce(currency, 'USD') AS currency, {doubled}, day, true AS newest "
            f"FROM read_parquet('{folder}/attempts/*/*.parquet', hive_types = {{'day': DATE}}) "
            f"ORDER BY day, started_at, attempt_id) TO '{beside}' (FORMAT parquet, COMPRESSION zstd)"
        )
    beside.replace(target)


def make_sqlite(export: Path, folder: Path, attempts: int) -> tuple[Path, int]:
    """A ledger of the first `attempts` of the export, and a configuration that names it."""
    folder.mkdir(parents=True, exist_ok=True)
    database, config = folder / "ledger.db", folder / "sluice.yaml"
    config.write_text(
        f'auth: {{mode: none}}\nledger: {{url: "sqlite:///{database}"}}\n'
        'upstreams:\n  main: {vendor: openai, base_url: "https://api.example.test/v1", api_key: "${KEY}"}\n'
        "models:\n  shop: [{upstream: main, model: gpt-4o}]\n"
    )
    if not database.exists():
        upgrade(f"sqlite:///{database}")
        with closing(sqlite3.connect(database)) as lite, lite:
            marks = ", ".join("?" * len(COLUMNS))
            for rows in _batches(export, attempts):
                lite.executemany(f"INSERT INTO attempts ({', '.join(COLUMNS)}) VALUES ({marks})", rows)
    with closing(sqlite3.connect(database)) as lite:
        return config, int(lite.execute("SELECT count(*) FROM attempts").fetchone()[0])


def _batches(export: Path, attempts: int) -> Iterator[list[tuple[object, ...]]]:
    left = attempts
    with duckdb.connect() as connection:
        for file in sorted((export / "attempts").glob("*/*.parquet")):
            reading = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM '{file}' LIMIT {left}")
            while rows := reading.fetchmany(_BATCH_ROWS):
                left -= len(rows)
                yield rows
            if left <= 0:
                return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=10_000_000)
    parser.add_argument("--sqlite", type=int, default=0, metavar="ROWS", help="also over SQLite with so many attempts")
    parser.add_argument("--repriced", action="store_true", help="every attempt of the export is priced again")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--work", type=Path, help="where the year lies, or is put to stay")
    parser.add_argument("--json", type=Path, help="write the figures there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
        work = given.work or Path(scratch) / "year"
        count = make_year(work, given.attempts, given.seed)
        if given.repriced:
            reprice_year(work)
        found = [measure("Parquet", count, ("--ledger", str(work), *one), given.repeat) for one in QUESTIONS]
        if given.sqlite:
            config, count = make_sqlite(work, Path(scratch) / "lite", given.sqlite)
            found += [measure("SQLite", count, ("--config", str(config), *one), given.repeat) for one in QUESTIONS]
    print("| place | attempts | `sluice report usage` | wall | CPU | peak memory | output |")
    print("|---|--:|---|--:|--:|--:|--:|")
    for one in found:
        sizes = f"{one.wall_s:.2f} s | {one.cpu_s:.2f} s | {one.peak_mib:.0f} MiB | {one.bytes:,} bytes"
        print(f"| {one.place} | {one.attempts:,} | `{one.question}` | {sizes} |")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n", encoding="utf-8")
    missed = [one for one in found if one.place == "Parquet" and (one.wall_s > GOAL_S or one.peak_mib > GOAL_MIB)]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
