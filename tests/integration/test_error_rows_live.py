"""Every recorded error through the running proxy, asked for as a stream and as a plain answer (contract E, W6).

The class and the code are the recordings'; what they become on the wire (status, `x-should-retry`, `Retry-After`,
`error.upstream`) is reckoned here from the contract's table, not from our verdicts. One proxy serves all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from proxy.stores.recordings import Recording
from tests.support.client import BodyEnd, Reply
from tests.support.pipelines import shipped_rules
from tests.support.proxy import Proxy, Row, chat
from tests.support.recorded import ask_all, expect_none, failures, recorded_proxy

pytestmark = [pytest.mark.clause("E", "W6"), pytest.mark.timeout(120)]

ROWS: Final = failures()  # read here, where no loop waits
#: Rules that know better than their class.
NOT_RETRIED: Final = {rule.id for rule in shipped_rules().all_rules() if rule.then.retryable is False}
#: The status of each class where the error is an HTTP answer: the contract's table. Ours at the vendor is 502.
STATUS: Final = {
    "auth_failure": {502},
    "rate_limited": {429},
    "content_blocked": {400},
    "upstream_timeout": {504},
    "model_unavailable": {503},
    "invalid_request": {400, 404, 413, 415, 422},
}
NEVER_RETRIED: Final = ("auth_failure", "content_blocked", "invalid_request")
LONGEST_WAIT_S: Final = 60


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
async def test_every_error_is_told_as_the_contract_says(tmp_path: Path, stream: bool) -> None:
    """Behind any text an error is the stream's last event; anywhere else, and for a plain answer, it is a status."""
    assert len(ROWS) > 450
    async with recorded_proxy(tmp_path, ROWS) as proxy:
        replies = await ask_all(ROWS, lambda row: ask(proxy, row, stream))
        ledger = {row["upstream"]: row for row in await proxy.rows(len(ROWS))}

    expect_none({row.key: list(wrong(row, replies[row.key], ledger[row.key], stream)) for row in ROWS})


async def ask(proxy: Proxy, row: Recording, stream: bool) -> Reply:
    return await proxy.ask(chat(stream=stream, model=row.key), timeout_s=60.0)


def wrong(row: Recording, reply: Reply, ledger: Row, stream: bool) -> Iterator[str]:
    """What is not as it should be, in words."""
    is_event = stream and row.expect["phase"] == "mid"
    error = event_error(reply) if is_event else reply.json.get("error")
    if reply.end is not BodyEnd.WHOLE or not isinstance(error, dict):
        yield f"no error, or a body that is not whole: {reply.status} {reply.end} {reply.body[:300]!r}"
        return
    error_class, wait = error["type"], error["retry_after"]
    if error_class not in as_list(row.expect["class"]) or error["code"] not in as_list(
        row.expect.get("code", error["code"])
    ):
        yield f"wanted {row.expect['class']} {row.expect.get('code')}, was told {error_class} {error['code']}"
    if not is_right_wait(row, error_class, wait):
        yield f"retry_after is {wait}, the vendor said {row.expect.get('retry_after')}"
    if error["upstream"]["status"] != row.status or error["upstream"]["name"] != row.key:
        yield f"upstream is {error['upstream']}, its status was {row.status}"
    if error["retryable"] is not may_be_retried(row, error_class, wait, ledger["rule_id"] in NOT_RETRIED):
        yield f"retryable is {error['retryable']} at {error_class} and a wait of {wait} s"
    if (ledger["error_class"], ledger["error_code"], ledger["upstream_status"]) != (
        error_class,
        error["code"],
        row.status,
    ):
        yield f"the ledger says {ledger['error_class']} {ledger['error_code']} {ledger['upstream_status']}"
    if ledger["ending"] != "vendor_error" and error["code"] != "stream_cut":
        yield f"the ledger's ending is {ledger['ending']}"
    yield from wrong_head(reply, error, is_event)


def wrong_head(reply: Reply, error: dict[str, Any], is_event: bool) -> Iterator[str]:
    """The status and the headers, which must say what the body says."""
    if error["trace_id"] != reply.headers["x-trace-id"]:
        yield "the trace id is another than the header's"
    if is_event:
        if reply.status != 200 or reply.is_done or not reply.text:
            yield f"an error event behind text: {reply.status} {reply.body!r}"
        return
    told = (reply.headers.get("x-should-retry"), reply.headers.get("retry-after"))
    wait = error["retry_after"]
    if told != (("false", "true")[error["retryable"]], None if wait is None else str(wait)):
        yield f"the headers {told} are not what the body says: {error}"
    if reply.status not in STATUS[error["type"]]:
        yield f"the status {reply.status} is not that of {error['type']}"


def event_error(reply: Reply) -> object:
    """Of the last event; no event before it has one."""
    *before, last = reply.events
    return last.get("error") if not any("error" in event for event in before) else None


def is_right_wait(row: Recording, error_class: str, wait: int | None) -> bool:
    """The vendor's own, in whole seconds; some wait for every limit, and none for what waiting does not cure."""
    told = row.expect.get("retry_after")
    if isinstance(told, int | float):
        return wait == math.ceil(told)
    return wait is None if error_class in NEVER_RETRIED else wait is not None or error_class != "rate_limited"


def may_be_retried(row: Recording, error_class: str, wait: int | None, is_refused: bool) -> bool:
    """By the contract; a vendor's own `x-should-retry: false` and a rule that knows better are heard."""
    if error_class in NEVER_RETRIED or is_refused or row.header("x-should-retry").lower() == "false":
        return False
    return wait is None or wait <= LONGEST_WAIT_S


def as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
