"""`sluice reconcile`: a vendor's invoice against the ledger, explained line by line (contract C3).

In: a vendor, the files of its export, a period. Out: a report whose first figure is what nothing explains. Exits 0 when
that is within the tolerance, 1 when it is over, 2 when it could not be told. Writes nothing but the file that `--out`
names.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import click

from proxy.books.drift import counted_differently, find_drift
from proxy.books.invoices import FORMS, read_invoices
from proxy.books.reconciling.document import reconcile_document
from proxy.books.reconciling.engine import reconcile as compare
from proxy.books.reconciling.result import DEFAULT_SKEW, MARGIN, Question, Reconciliation
from proxy.books.source import duck_attempts
from proxy.cli.books import period_of, place_of, working
from proxy.cli.output import Output, output_options, write_document
from proxy.config import load_config
from proxy.metering.money import parse_money
from proxy.stores.rules import default_rules_dir, load_rules

_TOLERANCE = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)", re.ASCII)


class Tolerance(click.ParamType[tuple[str, str]]):
    """An amount of the invoice's currency, or a share of the invoice."""

    name = "amount"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        found = _TOLERANCE.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is neither an amount such as 5.00 nor a share such as 0.5%", param, ctx)
        return found[1], found[2]


@click.command("reconcile")
@click.option("--config", type=click.Path(path_type=Path), default="sluice.yaml", show_default=True)
@click.option("--ledger", type=click.Path(path_type=Path), metavar="DIR", help="Read a Parquet export instead.")
@click.option("--vendor", required=True, help="As the configuration's upstreams name it.")
@click.option(
    "--invoice",
    "invoices",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The vendor's own export; may be given more than once (usage and costs).",
)
@click.option("--form", "invoice_form", type=click.Choice(FORMS), help="What the files are, if they do not show it.")
@click.option("--mapping", type=click.Path(path_type=Path), metavar="FILE", help="Columns of any other CSV or JSON.")
@click.option("--period", required=True, metavar="P", help="2026-10, 2026-Q3, 2026-10-01..2026-10-15.")
@click.option("--time-zone", "zone", metavar="ZONE", help="Of the invoice's days, if neither it nor the rules say.")
@click.option("--skew", type=click.IntRange(0, 86_400), metavar="S", help="How far clocks may be apart. Default: 900.")
@click.option("--tolerance", type=Tolerance(), default="0.1%", show_default=True, metavar="A", help="5.00, or 0.5%.")
@output_options
def reconcile(
    config: Path,
    ledger: Path | None,
    vendor: str,
    invoices: tuple[Path, ...],
    invoice_form: str | None,
    mapping: Path | None,
    period: str,
    zone: str | None,
    skew: int | None,
    tolerance: tuple[str, str],
    output: Output,
) -> int:
    """Hold a vendor's invoice against the ledger, and explain what differs."""
    place = place_of(config, ledger)
    invoice = read_invoices(invoices, vendor, form=invoice_form, mapping=mapping)
    assumed = zone or invoice.time_zone or _zone_of(config if ledger is None else None, vendor) or "UTC"
    span = period_of(period, assumed)
    if zone is not None:
        invoice = invoice.in_zone(zone)
    question = Question(
        vendor,
        span.first_day,
        span.last_day,
        assumed,
        DEFAULT_SKEW if skew is None else timedelta(seconds=skew),
    )
    margin = MARGIN // timedelta(microseconds=1)
    with working("comparing"), duck_attempts(place, span.since - margin, span.until + margin, vendor) as connection:
        try:
            result = compare(connection, invoice, question)
        except ValueError as error:
            raise click.UsageError(f"--invoice: {error}") from error
        bounds = question.span(result.zone)
        drift = counted_differently(find_drift(connection, result.zone), bounds.since, bounds.until, result.zone)
    write_document(reconcile_document(result, drift), output)
    return 1 if is_over(result, tolerance) else 0


def is_over(result: Reconciliation, tolerance: tuple[str, str]) -> bool:
    """Is more unexplained than may be? Of an invoice without money, in tokens."""
    is_money = result.currency is not None
    figure, mark = tolerance
    unexplained = result.unexplained if is_money else result.unexplained_tokens
    whole = abs(result.invoice.amount if is_money else result.invoice.tokens)
    if mark:
        return Decimal(unexplained) > Decimal(figure) / 100 * whole
    return unexplained > (parse_money(figure) if is_money else Decimal(figure))


def _zone_of(config: Path | None, vendor: str) -> str | None:
    """What the vendor's rule file says of its dates."""
    folder = load_config(config, secrets=False).rules_dir if config is not None else None
    rules = load_rules(folder or default_rules_dir())
    profile = rules.vendors.get(vendor)
    zone = None if profile is None else profile.time_zone
    return None if zone is None else getattr(zone, "key", None)
