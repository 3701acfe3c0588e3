"""The lock of accepted verdicts: read back as written, and refused where it is broken (contract R4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.learning.verdict_lock import LOCK_NAME, Judged, dump_lock, parse_lock, read_lock, write_lock

pytestmark = pytest.mark.clause("R4")

VERDICTS = {
    "recordings/acme/سلام.jsonl": Judged("completed"),
    "recordings/acme/blocked.jsonl": Judged("completed", "content_blocked", "content_filter"),
    "recordings/acme/cut: twice.jsonl": Judged("stream_cut", "upstream_timeout", "stream_cut", 504, True),
    "recordings/acme/errors/day.jsonl": Judged(
        "vendor_error", "rate_limited", "daily_limit", 429, False, 86400.0, "acme.day"
    ),
    "recordings/acme/errors/rate.jsonl": Judged(
        "vendor_error", "rate_limited", "rate_limited", 429, True, 1.25, "acme.rate"
    ),
    "recordings/acme/errors/太长.jsonl": Judged(
        "vendor_error", "invalid_request", "too_long", 400, rule="acme.context"
    ),
}
TEXT = """\
sluice verdicts 1
# What becomes of each recording by these rules; rewritten by `sluice check-rules --accept`.
recordings/acme/blocked.jsonl: completed, content_blocked content_filter
recordings/acme/cut: twice.jsonl: stream_cut, upstream_timeout stream_cut, 504, retry, no rule
recordings/acme/errors/day.jsonl: vendor_error, rate_limited daily_limit, 429, no retry for 86400 s, rule acme.day
recordings/acme/errors/rate.jsonl: vendor_error, rate_limited rate_limited, 429, retry after 1.25 s, rule acme.rate
recordings/acme/errors/太长.jsonl: vendor_error, invalid_request too_long, 400, no retry, rule acme.context
recordings/acme/سلام.jsonl: completed
"""


def test_a_person_can_read_it() -> None:
    """One sorted line per recording, in words."""
    assert dump_lock(VERDICTS) == TEXT


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """In any script; nothing else is left in the folder, and there is no lock before one is written."""
    path = tmp_path / LOCK_NAME
    assert read_lock(path) is None
    write_lock(path, {"recordings/old.jsonl": Judged("completed")})
    write_lock(path, VERDICTS)
    assert read_lock(path) == VERDICTS
    assert [file.name for file in tmp_path.iterdir()] == [LOCK_NAME]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("verdicts 1", "verdicts 2", ":1: must begin with 'sluice verdicts 1'"),
        ("# What", "<<<<<<< What", ":2: is no `RECORDING: VERDICT`"),
        ("429, no retry for 86400 s, rule acme.day", "429, no ret", ":5: is no `RECORDING: VERDICT`"),
        ("rule acme.rate", "rule", ":6: is no `RECORDING: VERDICT`"),
        ("سلام.jsonl", "blocked.jsonl", ":8: recordings/acme/blocked.jsonl stands twice"),
    ],
    ids=["another format", "a conflict left in", "half a line", "no rule's name", "a recording twice"],
)
def test_a_broken_file_is_told_by_its_line(old: str, new: str, told: str) -> None:
    """And what to do about it."""
    assert old in TEXT
    with pytest.raises(ConfigError, match="check-rules --accept") as raised:
        parse_lock("rules/verdicts.lock", TEXT.replace(old, new))
    assert str(raised.value).startswith("rules/verdicts.lock" + told)


def test_a_file_that_is_no_text_is_told_by_its_line(tmp_path: Path) -> None:
    """Also a folder in its place is an error, not a traceback."""
    path = tmp_path / LOCK_NAME
    path.write_bytes(b"sluice verdicts 1\n\xff: completed\n")
    with pytest.raises(ConfigError, match=r"verdicts\.lock:2: is not UTF-8"):
        read_lock(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_lock(tmp_path)
    with pytest.raises(ConfigError, match="cannot be written"):
        write_lock(tmp_path / "nowhere" / LOCK_NAME, VERDICTS)


def test_a_name_that_no_line_can_hold_is_refused() -> None:
    """Rather than a file that cannot be read back."""
    with pytest.raises(ConfigError, match="line break"):
        dump_lock({"recordings/two\nlines.jsonl": Judged("completed")})
