"""What `/readyz` says (contract C1): may new requests come, and what is wrong with the ledger.

In: how the ledger is, and whether the process is stopping. Out: yes or no, and a line for each thing that an operator
should know. A database that is away is no reason to stop taking work: the journals keep what it will need.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.stores.ledger_db import LedgerState
from proxy.stores.ledger_rows import rfc3339


@dataclass(frozen=True, slots=True)
class Readiness:
    """`lines` are whole; the first is `ready` or `not ready`."""

    ready: bool
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


def readiness(ledger: LedgerState, *, stopping: bool) -> Readiness:
    reasons = []
    if stopping:
        reasons.append("stopping")
    if not ledger.writable:
        reasons.append("the ledger's disk refuses rows")
    if ledger.full:
        reasons.append("the ledger's journal is full: bring its database back, or raise ledger.journal_bytes")
    ready = not reasons
    lines = ["ready" if ready else "not ready", *reasons]
    if ledger.away_since is not None:
        since = rfc3339(round(ledger.away_since * 1_000_000))
        waiting = f"{ledger.waiting_bytes} of {ledger.limit_bytes} bytes wait in the journal"
        lines.append(f"the ledger's database is away since {since}: {waiting}")
    return Readiness(ready, tuple(lines))
