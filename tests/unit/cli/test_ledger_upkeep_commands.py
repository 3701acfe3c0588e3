"""`sluice ledger prune` and `reprice`, and the commands of docs/ledger.md."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.__main__ import run
from proxy.config import load_config
from proxy.server.readiness import readiness
from proxy.stores import drain
from proxy.stores.ledger_db import LedgerState
from proxy.stores.ledger_read import read_rows
from proxy.stores.ledger_sql import Database
from proxy.stores.metrics import Metrics
from proxy.stores.schema import upgrade
from tests.support.books import at, attempt, values_of
from tests.unit.cli.test_books import CONFIG

pytestmark = pytest.mark.clause("C3", "L3")
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
KEPT = 'ledger: {url: "sqlite:///ledger.db", retention: {days: 36500, tenants: {trial: 1}}}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Three attempts of each of two tenants, in October."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", "secret")
    (tmp_path / "sluice.yaml").write_text(CONFIG)
    url = f"sqlite:///{tmp_path}/ledger.db"
    upgrade(url)
    database = Database(url)
    rows: list[dict[str, Any]] = [
        attempt(at(day), tenant=tenant, vendor="openai", model="gpt-4o", served_model="gpt-4o")
        for day in (1, 2, 3)
        for tenant in ("trial", "商店")
    ]
    with database.transaction():
        database.write((), [values_of(row) for row in rows])
    database.close()
    yield tmp_path


def left(folder: Path) -> dict[object, int]:
    found: dict[object, int] = {}
    for row in read_rows(f"sqlite:///{folder}/ledger.db", folder / "ledger.db-journals"):
        found[row["tenant"]] = found.get(row["tenant"], 0) + 1
    return found


def test_pruning_looks_first_and_then_takes_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run changes nothing; a tenant's rows before a day go, and are counted."""
    before = ["ledger", "prune", "--before", "2026-10-03", "--tenant", "trial", "--json"]
    assert run([*before, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out) == {"would_go": 2, "tenants": {"trial": 2}}
    assert left(folder) == {"trial": 3, "商店": 3}
    assert run([*before, "--yes"]) == 0
    assert json.loads(capsys.readouterr().out) == {"gone": 2, "tenants": {"trial": 2}}
    assert left(folder) == {"trial": 1, "商店": 3}


def test_pruning_by_retention_keeps_to_each_tenants_days(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tenant with days of its own, and the others by the rest."""
    (folder / "sluice.yaml").write_text(CONFIG.replace('ledger: {url: "sqlite:///ledger.db"}', KEPT))
    assert run(["ledger", "prune", "--yes"]) == 0
    assert capsys.readouterr().out == "3 attempts are gone\n  trial: 3\n"
    assert left(folder) == {"商店": 3}


def test_pruning_without_anybody_to_ask_does_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor without a moment, nor of what is to come."""
    assert run(["ledger", "prune", "--before", "2026-10-03"]) == 2
    assert "nobody is there to be asked" in capsys.readouterr().err
    assert run(["ledger", "prune"]) == 2
    assert "ledger.retention" in capsys.readouterr().err
    assert run(["ledger", "prune", "--before", "2999-01-01", "--yes"]) == 2
    assert "in the future" in capsys.readouterr().err
    assert left(folder) == {"trial": 3, "商店": 3}


class Somebody(io.StringIO):
    """A terminal at which somebody answers."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code", "kept"), [("y\n", 0, 1), ("n\n", 2, 3), ("\n", 2, 3)])
def test_pruning_asks_whoever_is_there(
    answer: str,
    code: int,
    kept: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With how many would go and from before when; anything but a yes leaves all of them."""
    monkeypatch.setattr("sys.stdin", Somebody(answer))
    assert run(["ledger", "prune", "--before", "2026-10-03", "--tenant", "商店"]) == code
    told = capsys.readouterr()
    assert "Take 2 attempts from before 2026-10-03T00:00:00.000000Z out of the ledger" in told.out + told.err
    assert left(folder) == {"trial": 3, "商店": kept}


@pytest.mark.parametrize(
    ("retention", "options", "gone"),
    [
        ("{tenants: {trial: 1}}", [], {"trial": 3}),  # without days for all, the others are kept
        ("{days: 1}", [], {"trial": 3, "商店": 3}),
        ("{days: 1, tenants: {trial: 36500}}", [], {"商店": 3}),
        ("{days: 1, tenants: {trial: 36500}}", ["--tenant", "trial"], {}),
        ("{days: 1, tenants: {trial: 36500}}", ["--tenant", "商店"], {"商店": 3}),
        ("{days: 36500, tenants: {trial: 1}}", ["--tenant", "商店", "--tenant", "trial"], {"trial": 3}),
        ("{days: 1}", ["--vendor", "openai", "--tenant", "trial"], {"trial": 3}),
        ("{days: 1}", ["--vendor", "another"], {}),
    ],
)
def test_a_tenants_own_days_go_before_the_days_of_all(
    retention: str, options: list[str], gone: dict[str, int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether they are more or fewer; options narrow what the configuration allows, and never widen it."""
    kept = f'ledger: {{url: "sqlite:///ledger.db", retention: {retention}}}'
    (folder / "sluice.yaml").write_text(CONFIG.replace('ledger: {url: "sqlite:///ledger.db"}', kept))
    assert run(["ledger", "prune", "--dry-run", "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out) == {"would_go": sum(gone.values()), "tenants": gone}
    assert run(["ledger", "prune", "--yes", "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out) == {"gone": sum(gone.values()), "tenants": gone}
    assert left(folder) == {tenant: 3 for tenant in ("trial", "商店") if tenant not in gone}
    assert run(["ledger", "prune", *options]) == 0  # nothing is left to be asked about
    assert capsys.readouterr().out == "0 attempts are gone\n"


def test_a_dry_run_says_what_would_go_by_tenant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For a reader, and without being asked."""
    assert run(["ledger", "prune", "--before", "2026-10-02T12:00:01Z", "--dry-run"]) == 0
    assert capsys.readouterr().out == "4 attempts would go\n  trial: 2\n  商店: 2\n"
    assert left(folder) == {"trial": 3, "商店": 3}


@pytest.mark.parametrize("command", ["prune --before 2026-10-03 --yes", "reprice"])
def test_a_database_that_is_away_is_told_with_exit_code_two(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, no traceback."""
    away = CONFIG.replace("sqlite:///ledger.db", "postgresql://nobody@127.0.0.1:1/none")
    (folder / "sluice.yaml").write_text(away)
    assert run(["ledger", *shlex.split(command)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("sluice: the ledger's database ")
    assert "Traceback" not in told


def test_pricing_again_says_what_changed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By price; a second time there is nothing to do; a folder that is none is named."""
    prices = folder / "prices"
    prices.mkdir()
    text = "vendor: openai\ncurrency: USD\nsource: s\nseen: 2026-12-01\nproof: contract\nmodels:\n  gpt-4o:\n"
    (prices / "openai.yaml").write_text(f"{text}    prices: [{{from: 2026-01-01, input: '1', output: '1'}}]\n")
    command = ["ledger", "reprice", "--prices", "prices", "--period", "2026-10"]
    assert run([*command, "--dry-run"]) == 0
    assert "6 attempts would be priced again" in capsys.readouterr().out
    assert run([*command, "--json"]) == 0
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert (change["attempts"], change["after"], change["currency"]) == (6, 6 * 120_000, "USD")
    assert run(command) == 0
    assert capsys.readouterr().out.startswith("0 attempts are priced again")
    assert run(["ledger", "reprice", "--prices", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [line for block in re.findall(r"```sh\n(.*?)\n```", PAGE, re.DOTALL) for line in block.splitlines()]
)
def test_a_command_of_the_page_runs(command: str, folder: Path) -> None:
    """As it stands there; where it needs the retention of the page, with that."""
    (folder / "sluice.yaml").write_text(CONFIG.replace('ledger: {url: "sqlite:///ledger.db"}', KEPT))
    assert run(shlex.split(command)[1:]) == 0


def test_what_readyz_says_on_the_page_is_what_it_says() -> None:
    """While the database is away, and when the journal is full."""
    limit, noon = 1 << 30, 1_791_201_600.0
    away = readiness(LedgerState(True, False, noon, 393_216, limit), stopping=False)
    full = readiness(LedgerState(True, True, noon, limit, limit), stopping=False)
    assert re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) == [away.text, full.text]
    assert (away.ready, full.ready) == (True, False)
    assert drain.STUCK_S == 5  # "for five seconds"


def test_the_metrics_of_the_page_are_those_of_the_ledger() -> None:
    """All of them."""
    metrics = Metrics()
    metrics.ledger(LedgerState(True, False, None, 0, 1), 0)
    exposed = set(re.findall(r"^(sluice_ledger_\w+) ", metrics.render()[0].decode(), re.MULTILINE))
    assert set(re.findall(r"^\| `(sluice_ledger_\w+)` \|", PAGE, re.MULTILINE)) == exposed


def test_the_configuration_of_the_page_is_one(folder: Path) -> None:
    """Put in the place of the ledger that the other tests have."""
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "sluice.yaml").write_text(CONFIG.replace('ledger: {url: "sqlite:///ledger.db"}\n', shown))
    ledger = load_config(folder / "sluice.yaml").ledger
    assert (ledger.journal_bytes, ledger.retention_days, ledger.tenant_days) == (1 << 30, 400, {"trial": 30})
    assert ledger.journal_dir == folder / "ledger-journals"


def test_an_export_from_the_middle_of_a_day_leaves_that_day_whole(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later moment narrows the days that are written, and never a day that was written before."""
    export = ["ledger", "export", "--format", "parquet", "--out", "export", "--json"]
    assert run(export) == 0
    day = folder / "export" / "attempts" / "day=2026-10-02" / "attempts.parquet"
    whole = day.read_bytes()
    assert json.loads(capsys.readouterr().err)["rows"] == 6
    assert run([*export, "--since", "2026-10-02T23:59:59Z"]) == 0
    assert json.loads(capsys.readouterr().err)["days"] == {"2026-10-02": 2, "2026-10-03": 2}
    assert day.read_bytes() == whole
