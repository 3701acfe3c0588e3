"""The Responses API of the npm package `openai` against the proxy: recorded answers, errors, retries, hang-up.

One small script (tests/clients/node/responses.mjs) asks for all of them in one process (contract D2, W4, W6, W8, E).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.answers import answer
from tests.support.needs import needs
from tests.support.node import Case, check_cases, install, run_recorded, said_by, usual_cases, whole
from tests.support.recorded import answers, complaints, expect_none, failed_otherwise, failures

pytestmark = [pytest.mark.clause("D2", "W4", "W6", "W8", "E"), needs("npm")]

ANSWERS: Final = answers()  # read here, where no loop waits
FAILURES: Final = failures(but="openai")
SCRIPT: Final = "responses.mjs"
EXCEPTIONS: Final[Mapping[int | None, str]] = {
    400: "BadRequestError",
    404: "NotFoundError",
    413: "APIError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    502: "InternalServerError",
    503: "InternalServerError",
    504: "InternalServerError",
    None: "APIError",
}
CASES: Final[Mapping[str, Case]] = {
    **usual_cases(EXCEPTIONS),
    "event by event": Case((answer("안녕", "하세요"),), whole("안녕하세요"), kind="raw"),
}


@pytest.fixture(scope="module", autouse=True)
def npm() -> None:
    install()


async def test_every_recorded_answer_is_read(tmp_path: Path) -> None:
    """Text, reasoning, tool calls, status and usage as they were recorded, from every vendor in every dialect."""
    seen = await run_recorded(tmp_path, SCRIPT, ANSWERS)

    expect_none({each.key: complaints(each, said_by(seen[each.key])) for each in ANSWERS})


async def test_every_recorded_error_is_its_exception(tmp_path: Path) -> None:
    """Before anything was sent the exception is that of the HTTP status; class and code are ours in any case."""
    seen = await run_recorded(tmp_path, SCRIPT, FAILURES, kind="plain", tools=False)

    errors = {key: one["error"] or {} for key, one in seen.items()}
    expect_none({each.key: failed_otherwise(each, errors[each.key]) for each in FAILURES})
    assert [error for error in errors.values() if error["exception"] != EXCEPTIONS[error["status"]]] == []


async def test_every_case_is_what_the_package_should_see(tmp_path: Path) -> None:
    """Texts whole, exceptions by their names, and nothing asked twice that must not be."""
    await check_cases(tmp_path, SCRIPT, CASES)
