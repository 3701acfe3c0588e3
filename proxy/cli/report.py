"""`sluice report usage` and `sluice report drift` (contract C3, L4).

In: a configuration file, without the vendors' keys, or an export; what is asked. Out: a report in the form that is
asked. Reads beside a running proxy, takes no lock and writes nothing but the file that `--out` names.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from proxy.books.drift import find_drift
from proxy.books.drift_report import drift_document
from proxy.books.grouping import KEYS
from proxy.books.source import duck_attempts
from proxy.books.usage_report import UsageQuestion, usage_report
from proxy.cli.books import bounds_of, place_of, working
from proxy.cli.ledger import Moment
from proxy.cli.output import Output, output_options, write_document


@click.group()
def report() -> None:
    """What was used and what it costs, by our count and by the vendor's."""


@report.command()
@click.option("--config", type=click.Path(path_type=Path), default="sluice.yaml", show_default=True)
@click.option("--ledger", type=click.Path(path_type=Path), metavar="DIR", help="Read a Parquet export instead.")
@click.option("--by", default="tenant,model", show_default=True, metavar="KEYS", help=f"Of {', '.join(KEYS)}.")
@click.option("--period", metavar="P", help="2026, 2026-Q3, 2026-10, 2026-10-05 or 2026-10-01..2026-10-15.")
@click.option("--since", type=Moment(), metavar="T", help="Attempts that started at T or later.")
@click.option("--until", type=Moment(), metavar="T", help="Attempts that started before T.")
@click.option("--time-zone", "zone", default="UTC", show_default=True, metavar="ZONE", help="Of days and periods.")
@click.option("--tenant", multiple=True, help="Only of this tenant; may be given more than once, as the next two.")
@click.option("--vendor", multiple=True, help="Only of this vendor.")
@click.option("--model", multiple=True, help="Only of this model.")
@click.option("--prices", type=click.Choice(["recorded", "latest"]), default="recorded", show_default=True)
@output_options
def usage(
    config: Path,
    ledger: Path | None,
    by: str,
    period: str | None,
    since: datetime | None,
    until: datetime | None,
    zone: str,
    tenant: tuple[str, ...],
    vendor: tuple[str, ...],
    model: tuple[str, ...],
    prices: str,
    output: Output,
) -> int:
    """Our count, the vendor's, the difference, and the cost by each."""
    first, last, words = bounds_of(period, since, until, zone)
    filters = {name: values for name, values in (("tenant", tenant), ("vendor", vendor), ("model", model)) if values}
    facts = (
        ("period", words),
        ("days of", zone),
        *((name, ", ".join(values)) for name, values in filters.items()),
        ("prices", prices),
    )
    keys = tuple(name.strip() for name in by.split(",") if name.strip())
    try:
        question = UsageQuestion(keys, first, last, zone, filters, prices == "latest", facts)
    except ValueError as error:
        raise click.UsageError(f"--by: {error}") from error
    with working("adding up"):
        document = usage_report(place_of(config, ledger), question)
    write_document(document, output)
    return 0


@report.command()
@click.option("--config", type=click.Path(path_type=Path), default="sluice.yaml", show_default=True)
@click.option("--ledger", type=click.Path(path_type=Path), metavar="DIR", help="Read a Parquet export instead.")
@click.option("--period", metavar="P", help="2026, 2026-Q3, 2026-10, 2026-10-05 or 2026-10-01..2026-10-15.")
@click.option("--since", type=Moment(), metavar="T", help="Attempts that started at T or later.")
@click.option("--until", type=Moment(), metavar="T", help="Attempts that started before T.")
@click.option("--time-zone", "zone", default="UTC", show_default=True, metavar="ZONE", help="Of days and periods.")
@click.option("--vendor", help="Only of this vendor.")
@output_options
def drift(
    config: Path,
    ledger: Path | None,
    period: str | None,
    since: datetime | None,
    until: datetime | None,
    zone: str,
    vendor: str | None,
    output: Output,
) -> int:
    """How a vendor's tokens stand to ours, and since when. Exits 1 if that changed on a day."""
    first, last, words = bounds_of(period, since, until, zone)
    facts = (("period", words), ("days of", zone), *((("vendor", vendor),) if vendor is not None else ()))
    with working("fitting"), duck_attempts(place_of(config, ledger), first, last, vendor) as connection:
        drifts = find_drift(connection, zone)
    write_document(drift_document(drifts, facts), output)
    return 1 if any(one.changes for one in drifts) else 0
