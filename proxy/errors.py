"""The few exceptions that somebody catches.

Traffic never raises: what either side sends becomes a value (an `Observation`, an `Ending`). These are for those who
can act: the operator who wrote a wrong key (`ConfigError`, `RuleError`), the pipeline that must end one stream
(`LimitExceeded`), and the pump that must not send `[DONE]` (`LedgerUnavailable`).
"""

from __future__ import annotations


class SluiceError(Exception):
    """Base of all, for the command line: its text says what, where and what to do."""


class ConfigError(SluiceError):
    """A wrong configuration. `file` and `line` (1-based, None if unknown) say where, `reason` what to do."""

    def __init__(self, file: str, line: int | None, reason: str) -> None:
        self.file, self.line, self.reason = file, line, reason
        super().__init__(f"{file}:{line}: {reason}" if line is not None else f"{file}: {reason}")


class RuleError(ConfigError):
    """A wrong rule file; the last good set stays in force (contract R2)."""


class LimitExceeded(SluiceError):
    """A stage was given more than its limit: `what` (a word), `limit` and `seen` in bytes. Ends one stream."""

    def __init__(self, what: str, limit: int, seen: int) -> None:
        self.what, self.limit, self.seen = what, limit, seen
        super().__init__(f"{what} is longer than {limit} bytes")


class InvoiceError(SluiceError):
    """A vendor's export that cannot be read. `problems` are (place, reason), the first ones of many."""

    def __init__(self, file: str, problems: tuple[tuple[str, str], ...]) -> None:
        self.file, self.problems = file, problems
        super().__init__("\n".join(f"{place}: {reason}" for place, reason in problems))


class LedgerUnavailable(SluiceError):
    """The ledger cannot make a row durable: no `[DONE]` may be sent (contract L1)."""


class JournalFull(LedgerUnavailable):
    """The database is away for so long that no more may be written for it: new work would go unbilled."""
