"""The npm package `@anthropic-ai/sdk` against the proxy: every vendor's recorded answers, errors, retries, hang-up.

One small script (tests/clients/node/anthropic.mjs) asks for all of them in one process (contract D1, W4, W6, W8, E).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from proxy.stores.recordings import Recording
from tests.support.answers import answer
from tests.support.needs import needs
from tests.support.node import Case, check_cases, install, run_recorded, said_by, usual_cases
from tests.support.recorded import answers, complaints, expect_none, failed_otherwise, failures

pytestmark = [pytest.mark.clause("D1", "W4", "W6", "W8", "E"), needs("npm")]

ANSWERS: Final = answers()  # read here, where no loop waits
FAILURES: Final = failures(but="openai")
SCRIPT: Final = "anthropic.mjs"
EXCEPTIONS: Final[Mapping[int | None, str]] = {
    400: "BadRequestError",
    404: "NotFoundError",
    413: "ContentTooLargeError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    502: "InternalServerError",
    503: "ServiceUnavailableError",
    504: "GatewayTimeoutError",
    None: "APIError",
}
CASES: Final[Mapping[str, Case]] = {
    **usual_cases(EXCEPTIONS),
    "models": Case((answer("!"),), {"error": None}, kind="models", asked=0),
    "count": Case((answer("!"),), {"error": None}, kind="count", asked=0),
}


@pytest.fixture(scope="module", autouse=True)
def npm() -> None:
    install()


def in_its_words(recording: Recording) -> dict[str, object]:
    """A refusal is text to this API, and a stop reason."""
    refusal = recording.expect.get("refusal")
    return {"text": refusal, "refusal": "", "finish": "content_filter"} if refusal else {}


async def test_every_recorded_answer_is_read(tmp_path: Path) -> None:
    """Text, thinking, tool calls, stop reason and usage as they were recorded, from every vendor in every dialect."""
    seen = await run_recorded(tmp_path, SCRIPT, ANSWERS, root=True)

    found = {each.key: complaints(each, said_by(seen[each.key]), **in_its_words(each)) for each in ANSWERS}
    expect_none(found)


async def test_every_recorded_error_is_its_exception(tmp_path: Path) -> None:
    """Before anything was sent the exception is that of the HTTP status; class and code are ours in any case."""
    seen = await run_recorded(tmp_path, SCRIPT, FAILURES, root=True, kind="plain", tools=False)

    errors = {key: one["error"] or {} for key, one in seen.items()}
    expect_none({each.key: failed_otherwise(each, errors[each.key]) for each in FAILURES})
    assert [error for error in errors.values() if error["exception"] != EXCEPTIONS[error["status"]]] == []


async def test_every_case_is_what_the_package_should_see(tmp_path: Path) -> None:
    """Texts whole, exceptions by their names, and nothing asked twice that must not be; models and a count of tokens
    cost nothing at a vendor."""
    await check_cases(tmp_path, SCRIPT, CASES, root=True)
