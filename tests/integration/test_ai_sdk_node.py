"""The npm package `ai` over `@ai-sdk/openai-compatible` against the proxy: recorded answers, errors, cuts, hang-up.

One small script (tests/clients/node/ai.mjs) asks for all of them in one process. This package decides by the status
alone what it asks again, and never inside a stream; so only what may be retried is given a retry (contract W4, W6, W8,
E).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from proxy.stores.recordings import Recording
from tests.support.needs import needs
from tests.support.node import Case, case_of, check_cases, install, run_script, said_by, usual_cases
from tests.support.recorded import answers, complaints, expect_none, recorded_proxy

pytestmark = [pytest.mark.clause("W4", "W6", "W8", "E"), needs("npm")]

# Read here, where no loop waits. This package puts the choices of an answer into one text, so it is asked for one.
ANSWERS: Final = tuple(each for each in answers() if "choices" not in each.expect)
SCRIPT: Final = "ai.mjs"
EXCEPTIONS: Final[Mapping[int | None, str]] = {
    **dict.fromkeys((400, 429, 502, 503, 504), "APICallError"),
    None: "Object",
}
#: Two seconds lie between its tries.
_RETRIED: Final = ("slow down", "overloaded")
CASES: Final[Mapping[str, Case]] = {
    name: case if name in _RETRIED else replace(case, retries=0, asked=1)
    for name, case in usual_cases(EXCEPTIONS).items()
    if name != "cured"
}


@pytest.fixture(scope="module", autouse=True)
def npm() -> None:
    install()


def in_its_words(recording: Recording) -> dict[str, object]:
    """A refusal is text to this package, and a finish reason."""
    refusal = recording.expect.get("refusal")
    return {"text": refusal, "refusal": "", "finish": "content_filter"} if refusal else {}


def asked(recording: Recording) -> dict[str, object]:
    """It refuses calls of tools that it was not given."""
    calls = recording.expect.get("tool_calls")
    return {**case_of(recording), "tools": [call["name"] for call in calls] if isinstance(calls, list) else None}


async def test_every_recorded_answer_is_read(tmp_path: Path) -> None:
    """Text, reasoning, tool calls, finish and usage as they were recorded, from every vendor in every dialect."""
    async with recorded_proxy(tmp_path, ANSWERS) as proxy:
        seen = await run_script(SCRIPT, proxy.base_url, [asked(each) for each in ANSWERS])

    expect_none({each.key: complaints(each, said_by(seen[each.key]), **in_its_words(each)) for each in ANSWERS})


async def test_every_case_is_what_the_package_should_see(tmp_path: Path) -> None:
    """Texts whole, `APICallError` with our status and code before a stream, our error as it is inside one."""
    await check_cases(tmp_path, SCRIPT, CASES)
