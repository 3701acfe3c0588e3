"""What an answer says in a header alone is kept too: a rule may have to rest on it (contract E, R1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.canon.verdict import Observation, Phase
from proxy.stores.inbox import Inbox
from proxy.stores.recordings import find_recordings

pytestmark = pytest.mark.clause("E", "R1")


def test_two_answers_that_differ_in_a_telling_header_alone_are_two(tmp_path: Path) -> None:
    """With that header, and with no other that is not allowed; ids still make no difference."""
    inbox = Inbox(tmp_path, [])
    for reason, request_id in (("drum", "r-1"), ("vase", "r-2"), ("drum", "r-3")):
        headers = {"content-type": "text/plain", "x-acme-reason": reason, "x-request-id": request_id}
        seen = Observation("acme", Phase.HEAD, 418, headers, "آرام باش".encode())
        inbox.keep(seen, upstream="main", trace_id="t", at=1_795_996_800.0)
    inbox.close()
    kept = find_recordings([tmp_path])
    assert sorted(one.header("x-acme-reason") for one in kept) == ["drum", "vase"]
    assert {name for one in kept for name, _ in one.headers} == {"content-type", "x-acme-reason"}
