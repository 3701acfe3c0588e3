"""The last accepted verdicts, `rules/verdicts.lock`: one line per recording, for `check-rules` and for a review (R4).

In: the file's text, or what a run made of each recording. Out: verdicts by recording, or the file, written whole or not
at all. The first line says the format, `#` begins a remark, the rest is sorted: two runs differ in the lines of what
moved and in nothing else.

    recordings/acme/errors/rate.jsonl: vendor_error, rate_limited rate_limited, 429, retry after 20 s, rule acme.rate

Never: judges anything. A line that is none is a ConfigError with its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proxy.errors import ConfigError
from proxy.stores.whole_file import write_whole

LOCK_NAME: Final = "verdicts.lock"
_FIRST: Final = "sluice verdicts 1"
_REMARK: Final = "# What becomes of each recording by these rules; rewritten by `sluice check-rules --accept`."
_LINE: Final = re.compile(
    r"(?P<ending>[a-z_]+)"
    r"(?:, (?P<class>[a-z_]+) (?P<code>\S+))?"
    r"(?:, (?P<status>\d{3}), (?P<no>no )?retry(?: (?:after|for) (?P<wait>\d+(?:\.\d+)?) s)?, "
    r"(?:no rule|rule (?P<rule>\S+)))?"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one recording: the ending; class and code if something was wrong; and of a verdict the client's
    status, whether and after how many seconds to retry, and the rule that decided (None: no rule did)."""

    ending: str
    error_class: str | None = None
    code: str | None = None
    status: int | None = None
    retryable: bool = False
    retry_after: float | None = None
    rule: str | None = None

    def __str__(self) -> str:
        parts = [self.ending]
        if self.error_class is not None:
            parts.append(f"{self.error_class} {self.code}")
        if self.status is not None:
            parts += [str(self.status), self._retry(), f"rule {self.rule}" if self.rule else "no rule"]
        return ", ".join(parts)

    def _retry(self) -> str:
        words = "retry" if self.retryable else "no retry"
        if self.retry_after is None:
            return words
        seconds = f"{self.retry_after:.3f}".rstrip("0").rstrip(".")
        return f"{words} {'after' if self.retryable else 'for'} {seconds} s"


def read_lock(path: Path) -> Mapping[str, Judged] | None:
    """The accepted verdicts by recording; None if there is no such file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(str(path), None, f"cannot be read: {error.strerror}") from error
    try:
        return parse_lock(str(path), data.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), data[: error.start].count(b"\n") + 1, "is not UTF-8") from error


def named_in(path: Path) -> frozenset[str]:
    """The recordings that a lock names, however broken it is: after a merge with conflicts the rest is still there."""
    try:
        lines = path.read_bytes().decode(errors="replace").split("\n")
    except OSError:
        return frozenset()
    parted = (line.rstrip("\r").rpartition(": ") for line in lines if not line.startswith("#"))
    return frozenset(place for place, colon, words in parted if colon and _parse_words(words) is not None)


def parse_lock(file: str, text: str) -> Mapping[str, Judged]:
    """The verdicts that a lock file's text holds."""
    first, *lines = text.split("\n")
    if first != _FIRST:
        raise ConfigError(file, 1, f"must begin with {_FIRST!r}: {_ADVICE}")
    verdicts: dict[str, Judged] = {}
    for number, line in enumerate(lines, start=2):
        if not line or line.startswith("#"):
            continue
        place, colon, words = line.rpartition(": ")
        judged = _parse_words(words) if colon else None
        if judged is None:
            raise ConfigError(file, number, f"is no `RECORDING: VERDICT`: {_ADVICE}")
        if place in verdicts:
            raise ConfigError(file, number, f"{place} stands twice: {_ADVICE}")
        verdicts[place] = judged
    return verdicts


_ADVICE: Final = "take the file's last good version back, or make it anew with `sluice check-rules --accept`"


def _parse_words(words: str) -> Judged | None:
    if (found := _LINE.fullmatch(words)) is None:
        return None
    status, wait = found["status"], found["wait"]
    return Judged(
        ending=found["ending"],
        error_class=found["class"],
        code=found["code"],
        status=int(status) if status else None,
        retryable=status is not None and found["no"] is None,
        retry_after=float(wait) if wait else None,
        rule=found["rule"],
    )


def dump_lock(verdicts: Mapping[str, Judged]) -> str:
    """The text of a lock file. Raises ConfigError for a recording whose name no line can hold."""
    for place in verdicts:
        if "\n" in place or place.startswith("#"):
            raise ConfigError(place, None, "a recording's path must not have a line break, or begin with #")
    lines = [f"{place}: {verdicts[place]}" for place in sorted(verdicts)]
    return "\n".join([_FIRST, _REMARK, *lines, ""])


def write_lock(path: Path, verdicts: Mapping[str, Judged]) -> None:
    """Written whole and renamed into place, so that nobody reads half of it."""
    text = dump_lock(verdicts)
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise ConfigError(str(path), None, f"cannot be written: {error.strerror}") from error
