"""One compressed read brought an error and, in a further piece of what it inflated to, one more event of plain text:
the text was passed on although the stream was over, and told before the error (found by the fuzzer)."""

from __future__ import annotations

import gzip
from typing import Final

import pytest

from proxy.canon.ending import Ending
from tests.support.answers import ROLE, events, say
from tests.support.cuts import one_by_one
from tests.support.pipelines import SSE, run

#: How much one piece of an inflated read holds; what is behind it comes in another.
PIECE_BYTES: Final = 65_536


@pytest.mark.clause("W2", "W6")
def test_what_is_behind_the_error_is_not_told() -> None:
    """The error is the last event, whatever else its read brought and however the bytes were cut."""
    head = events([ROLE, *map(say, ("سلام", " 你好", " नमस्ते।")), b'{"error":{"message":"overloaded","code":503}}'])
    padding = b": " + b"x" * (PIECE_BYTES - len(head) - 4) + b"\n\n"
    packed = gzip.compress(head + padding + events([say("behind")]), mtime=0)
    headers = {**SSE, "content-encoding": "gzip"}
    whole, cut = run([packed], headers=headers), run(one_by_one(packed), headers=headers)
    assert whole.client == cut.client
    assert whole.closing.ending is Ending.VENDOR_ERROR
    assert whole.facts.events_in == cut.facts.events_in
    assert b"behind" not in whole.client
