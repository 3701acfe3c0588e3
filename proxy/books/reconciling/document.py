"""A reconciliation as a report: what is not explained first, then why, then where (contract C3, L4).

In: a `Reconciliation`. Out: a `Document`. Nothing is computed here but sums of what is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta

from proxy.books.document import (
    Cell,
    Chart,
    ChartKind,
    Column,
    Document,
    Formula,
    Headline,
    Kind,
    Series,
    Table,
)
from proxy.books.finding import Finding, Reason
from proxy.books.reconciling.result import Reconciliation

#: What a person reads for each reason.
WORDS = {
    Reason.MATCHED: "matched",
    Reason.MISSING_HERE: "missing here",
    Reason.MISSING_THERE: "missing there",
    Reason.PRICED_DIFFERENTLY: "priced differently",
    Reason.ROUNDED: "rounded",
    Reason.CACHED: "cached",
    Reason.INTERRUPTED: "interrupted",
    Reason.RETRIED: "retried",
    Reason.DAY_EDGE: "clock skew at the day's edge",
    Reason.TIME_ZONE: "days of another time zone",
    Reason.COUNTED_DIFFERENTLY: "counted differently",
    Reason.ESTIMATED: "estimated",
    Reason.OTHER: "no tokens",
    Reason.UNEXPLAINED: "unexplained",
}
_ABOUT = {
    Reason.MATCHED: "invoice and ledger agree",
    Reason.MISSING_HERE: "on the invoice, and no attempt of ours",
    Reason.MISSING_THERE: "attempts of ours that the invoice leaves out",
    Reason.PRICED_DIFFERENTLY: "the same tokens at another price than ours",
    Reason.ROUNDED: "less than the digits that the invoice is written with",
    Reason.CACHED: "the same tokens, another part of them read from or written to a cache",
    Reason.INTERRUPTED: "attempts that ended early and whose usage never came",
    Reason.RETRIED: "one request charged more than once",
    Reason.DAY_EDGE: "booked on the day before or after",
    Reason.TIME_ZONE: "the invoice is cut into days in another zone than expected",
    Reason.COUNTED_DIFFERENTLY: "the vendor's tokens for the same text changed",
    Reason.ESTIMATED: "no usage in the answers: our own count stands in",
    Reason.OTHER: "charges for what is no tokens",
    Reason.UNEXPLAINED: "nothing explains it",
}


def reconcile_document(result: Reconciliation, drift: Sequence[Finding] = ()) -> Document:
    """`drift` are findings that change nothing between invoice and ledger, but should be known."""
    question, currency = result.question, result.currency
    facts = (
        ("vendor", question.vendor),
        ("period", f"{question.first_day} to {question.last_day}"),
        ("days of", result.zone),
        ("lines", f"{result.invoice_lines} on the invoice, {result.lines_outside} of other days"),
        ("joined", f"{result.matched_requests} by request id, the rest by model and day"),
    )
    return Document(
        name="reconcile",
        title=f"{question.vendor}: invoice and ledger",
        facts=facts,
        headlines=_headlines(result),
        tables=(_bridge(result), _findings(result, drift), _days(result)),
        charts=_charts(result),
        notes=_notes(result, currency),
    )


def _headlines(result: Reconciliation) -> tuple[Headline, ...]:
    currency = result.currency
    is_clean = not result.unexplained and not result.unexplained_tokens
    tone = "good" if is_clean else "bad"
    if currency is None:
        return (
            Headline("unexplained_tokens", "Unexplained tokens", result.unexplained_tokens, tone=tone),
            Headline("invoice_tokens", "Tokens on the invoice", result.invoice.tokens),
            Headline("ledger_tokens", "Tokens in the ledger", result.ledger.tokens),
        )
    return (
        Headline("unexplained", "Unexplained", result.unexplained, Kind.MONEY, currency, tone),
        Headline("invoice", "Invoice", result.invoice.amount, Kind.MONEY, currency),
        Headline("ledger", "Ledger, by the vendor's usage", result.ledger.amount, Kind.MONEY, currency),
        Headline("counted", "Ledger, by our count", result.counted.amount, Kind.MONEY, currency),
        Headline("difference", "Difference", result.invoice.amount - result.ledger.amount, Kind.MONEY, currency),
        Headline("unexplained_tokens", "Unexplained tokens", result.unexplained_tokens, tone=tone),
    )


def _bridge(result: Reconciliation) -> Table:
    """From the ledger's sum to the invoice's, a step for each reason."""
    steps: dict[Reason, list[int]] = defaultdict(lambda: [0, 0, 0])
    for entry in result.entries:
        step = steps[entry.reason]
        step[0] += entry.requests
        step[1] += sum(entry.tokens)
        step[2] += entry.amount
    rows: list[tuple[Cell, ...]] = [
        (WORDS[reason], *steps[reason], _ABOUT[reason])
        for reason in Reason
        if reason in steps and reason is not Reason.MATCHED
    ]
    columns = (
        Column("reason", "Why"),
        Column("requests", "Requests", Kind.INTEGER, total=True),
        Column("tokens", "Tokens", Kind.INTEGER, total=True),
        Column("amount", "Amount", Kind.MONEY, currency=result.currency, total=True),
        Column("about", "Means"),
    )
    about = "What lies between the ledger and the invoice: invoice minus ledger, by reason."
    return Table("bridge", "From the ledger to the invoice", columns, rows, totals=True, about=about)


def _findings(result: Reconciliation, drift: Sequence[Finding]) -> Table:
    columns = (
        Column("reason", "Why"),
        Column("model", "Model"),
        Column("first_day", "From", Kind.DAY),
        Column("last_day", "To", Kind.DAY),
        Column("requests", "Requests", Kind.INTEGER),
        Column("tokens", "Tokens", Kind.INTEGER),
        Column("amount", "Amount", Kind.MONEY, currency=result.currency),
        Column("detail", "Detail"),
        Column("places", "Such as"),
    )
    ordered = sorted((*result.findings, *drift), key=_weight)
    rows: list[tuple[Cell, ...]] = [
        (
            WORDS[one.reason],
            one.model,
            one.first_day,
            one.last_day,
            one.requests,
            one.tokens,
            one.amount,
            one.detail,
            ", ".join(one.places),
        )
        for one in ordered
        if one.reason is not Reason.MATCHED
    ]
    about = "Invoice minus ledger. What is to be expected comes last."
    return Table("findings", "Findings", columns, rows, about=about)


_TO_BE_EXPECTED = (Reason.INTERRUPTED, Reason.ESTIMATED, Reason.ROUNDED, Reason.OTHER)


def _weight(finding: Finding) -> tuple[bool, bool, int, int, str, date, str]:
    """What nobody explains first, what is to be expected last, and the dear before the cheap."""
    return (
        finding.reason is not Reason.UNEXPLAINED,
        finding.reason in _TO_BE_EXPECTED,
        -abs(finding.amount),
        -abs(finding.tokens),
        finding.model or "",
        finding.first_day,
        finding.detail,
    )


def _days(result: Reconciliation) -> Table:
    currency = result.currency
    columns = (
        Column("model", "Model"),
        Column("day", "Day", Kind.DAY),
        Column("invoice_requests", "Requests, invoice", Kind.INTEGER, total=True),
        Column("ledger_requests", "Requests, ledger", Kind.INTEGER, total=True),
        Column("invoice_tokens", "Tokens, invoice", Kind.INTEGER, total=True),
        Column("ledger_tokens", "Tokens, ledger", Kind.INTEGER, total=True),
        Column(
            "tokens_difference",
            "Difference",
            Kind.INTEGER,
            formula=Formula("minus", ("invoice_tokens", "ledger_tokens")),
            total=True,
        ),
        Column("invoice_amount", "Amount, invoice", Kind.MONEY, currency=currency, total=True),
        Column("ledger_amount", "Amount, ledger", Kind.MONEY, currency=currency, total=True),
        Column(
            "amount_difference",
            "Difference",
            Kind.MONEY,
            currency=currency,
            formula=Formula("minus", ("invoice_amount", "ledger_amount")),
            total=True,
        ),
        Column("unexplained", "Unexplained", Kind.MONEY, currency=currency, total=True),
        Column("unexplained_tokens", "Unexplained tokens", Kind.INTEGER, total=True),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            row.group,
            row.day,
            row.invoice.requests,
            row.ledger.requests or 0,
            row.invoice.tokens,
            row.ledger.tokens,
            row.invoice.tokens - row.ledger.tokens,
            row.invoice.amount,
            row.ledger.amount,
            row.invoice.amount - row.ledger.amount,
            row.unexplained,
            row.unexplained_tokens,
        )
        for row in result.days
    ]
    return Table("days", "By model and day", columns, rows, totals=True)


def _charts(result: Reconciliation) -> tuple[Chart, ...]:
    question = result.question
    days = [question.first_day + timedelta(days=n) for n in range((question.last_day - question.first_day).days + 1)]
    is_money = result.currency is not None
    unit = result.currency or "tokens"
    theirs: dict[date, int] = defaultdict(int)
    ours: dict[date, int] = defaultdict(int)
    for row in result.days:
        theirs[row.day] += row.invoice.amount if is_money else row.invoice.tokens
        ours[row.day] += row.ledger.amount if is_money else row.ledger.tokens
    reasons: dict[Reason, int] = defaultdict(int)
    for entry in result.entries:
        reasons[entry.reason] += entry.amount if is_money else sum(entry.tokens)
    shown = [reason for reason in Reason if reasons.get(reason)]
    scale = 1e9 if is_money else 1
    by_day = Chart(
        "by_day",
        "Invoice and ledger by day",
        ChartKind.LINE,
        tuple(map(str, days)),
        (
            Series("invoice", tuple(theirs[day] / scale for day in days)),
            Series("ledger", tuple(ours[day] / scale for day in days)),
        ),
        unit,
    )
    if not shown:
        return (by_day,)
    by_reason = Chart(
        "by_reason",
        "What lies between them",
        ChartKind.BAR,
        tuple(WORDS[reason] for reason in shown),
        (Series("invoice minus ledger", tuple(reasons[reason] / scale for reason in shown)),),
        unit,
    )
    return by_day, by_reason


def _notes(result: Reconciliation, currency: str | None) -> tuple[str, ...]:
    notes = []
    if result.open_attempts:
        notes.append(
            f"{result.open_attempts} attempts around this period are still open: run this again when they end."
        )
    for other, count in result.other_currencies:
        notes.append(f"{count} attempts are priced in {other} and cannot be compared with an invoice in {currency}.")
    if result.lines_outside:
        notes.append(f"{result.lines_outside} lines are of days outside of the period and were left alone.")
    if result.invoice.requests is None:
        notes.append("The invoice counts no requests, so attempts that are missing are told by their tokens alone.")
    return tuple(notes)
