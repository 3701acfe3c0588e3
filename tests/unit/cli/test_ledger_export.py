"""`sluice ledger export`."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from proxy.__main__ import run
from proxy.config import load_config
from proxy.stores.journal import Journal
from tests.support.rows import STARTED, USAGE, closed, opened

CONFIG: Final = """
listen: {host: 127.0.0.1, port: 8080}
auth: {mode: none}
ledger: {url: "sqlite:///ledger.db"}
rules: rules
upstreams:
  main: {vendor: openai, base_url: "https://api.openai.com/v1", api_key: "sk-secret"}
models:
  gpt-4o: [{upstream: main, model: gpt-4o-2024-11-20}]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose ledger holds three attempts: two completed, one of a dead writer."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "openai.yaml").touch()
    path = tmp_path / "sluice.yaml"
    path.write_text(CONFIG)
    journal = Journal(load_config(path).ledger.journal_dir, "w1")
    for number, tenant in enumerate(["فروشگاه", "商店", 'cut, "short"']):
        row = opened(f"a{number}", tenant=tenant, started_at=STARTED + number)
        journal.open(row)
        if number < 2:
            journal.close_now(closed(row))
    journal.finish()
    journal.release()
    return path


def export(config: Path, *options: str) -> list[str]:
    return ["ledger", "export", "--config", str(config), *options]


@pytest.mark.clause("C3", "C5", "L4")
def test_jsonl_is_one_object_per_attempt_and_the_same_bytes_each_time(
    config: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Lines in the order of their start, in UTF-8, ended by a line feed."""
    assert run(export(config)) == 0
    first = capfdbinary.readouterr().out
    rows = [json.loads(line) for line in first.split(b"\n")[:-1]]
    assert [(row["attempt_id"], row["tenant"], row["ending"]) for row in rows] == [
        ("a0", "فروشگاه", "completed"),
        ("a1", "商店", "completed"),
        ("a2", 'cut, "short"', "interrupted"),
    ]
    assert rows[0]["vendor_usage"] == USAGE
    assert run(export(config)) == 0
    assert capfdbinary.readouterr().out == first


@pytest.mark.clause("C3", "C5")
def test_csv_has_a_line_of_names_and_the_counts_apart(config: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Null is empty, truth is a word, an object is its JSON text."""
    assert run(export(config, "--format", "csv", "--json")) == 0
    told = capfdbinary.readouterr()
    rows = list(csv.DictReader(io.StringIO(told.out.decode(), newline="")))
    assert [row["tenant"] for row in rows] == ["فروشگاه", "商店", 'cut, "short"']
    assert (rows[0]["counted_input"], rows[0]["counted_output"], rows[0]["streamed"]) == ("12", "34", "true")
    assert (json.loads(rows[0]["vendor_usage"]), rows[2]["vendor_usage"]) == (USAGE, "")
    assert json.loads(told.err) == {"rows": 3}


@pytest.mark.clause("C3")
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--since", "2026-03-01T12:00:01Z"], ["a1", "a2"]),
        (["--until", "2026-03-01T12:00:01Z"], ["a0"]),
        (["--since", "2026-03-01T15:30:01+03:30", "--until", "2026-03-01T12:00:02"], ["a1"]),
        (["--since", "2026-03-01", "--until", "2026-03-02"], ["a0", "a1", "a2"]),
        (["--since", "2026-03-02"], []),
    ],
)
def test_a_span_holds_its_start_and_not_its_end(
    config: Path, options: list[str], found: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Moments have any zone, or are UTC; a day is its first moment."""
    assert run(export(config, *options)) == 0
    lines = capfdbinary.readouterr().out.split(b"\n")[:-1]
    assert [json.loads(line)["attempt_id"] for line in lines] == found


@pytest.mark.clause("C3")
def test_finance_needs_no_key_of_a_vendor(
    config: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and headers may name variables that only the proxy's own environment has; the ledger's URL may not."""
    monkeypatch.delenv("SLUICE_TEST_UNSET", raising=False)
    lacking = CONFIG.replace('"sk-secret"', '"${SLUICE_TEST_UNSET}", headers: {x-key: "${SLUICE_TEST_UNSET}"}')
    config.write_text(lacking)
    assert run(export(config, "--until", "2026-03-01T12:00:01Z")) == 0
    assert json.loads(capfdbinary.readouterr().out)["tenant"] == "فروشگاه"
    config.write_text(lacking.replace("ledger.db", "${SLUICE_TEST_UNSET}.db"))
    assert run(export(config)) == 2
    assert b"ledger.url: the environment variable SLUICE_TEST_UNSET is not set" in capfdbinary.readouterr().err


@pytest.mark.clause("C3")
def test_what_cannot_be_done_is_told_with_its_reason_and_exit_code_two(
    config: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A wrong moment, a missing configuration, Parquet without a folder, a broken database."""
    assert run(export(config, "--since", "2026-03-02", "--until", "2026-03-01T23:00:00Z")) == 2
    said = b"--since 2026-03-02T00:00:00 is later than --until 2026-03-01T23:00:00+00:00"
    assert said in capfdbinary.readouterr().err
    assert run(export(config, "--since", "yesterday")) == 2
    assert b"'yesterday' is no moment" in capfdbinary.readouterr().err
    assert run(export(config.with_name("other.yaml"))) == 2
    assert b"other.yaml" in capfdbinary.readouterr().err
    assert run(export(config, "--format", "parquet")) == 2
    assert b"--format parquet and --out DIR go together" in capfdbinary.readouterr().err
    config.with_name("ledger.db").write_bytes(b"this is no database at all" * 100)
    assert run(export(config)) == 2
    told = capfdbinary.readouterr()
    assert b"not a database" in told.err
    assert told.out == b""


def test_a_reader_that_has_enough_is_no_failure(config: Path) -> None:
    """`| head` ends the export without a word of complaint."""
    command = [sys.executable, "-m", "proxy", *export(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0
