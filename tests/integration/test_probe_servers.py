"""Servers that imitate vendors and that nobody here wrote, behind the running proxy with the shipped rules.

What they know of each vendor's envelopes is their authors' own: nine vendors of llmock, two of llm-katan. An answer
must arrive whole, and each failure must get its class (contract E, W5, W6).
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.client import Reply
from tests.support.proxy import ROOT, Proxy, chat, running_proxy
from tests.support.servers import KATAN_KEY, katan, llmock, script

pytestmark = [pytest.mark.clause("E", "W6")]

SAID: Final = "سلام، 你好 👩‍👩‍👧 नमस्ते 🇮🇷"
#: Where llmock has each vendor's API.
LLMOCK: Final = {
    "anthropic": "/anthropic/v1",
    "cohere": "/cohere/v2",
    "gemini": "/gemini/v1beta",
    "groq": "/groq/openai/v1",
    "mistral": "/mistral/v1",
    "openai": "/v1",
    "perplexity": "/perplexity/v1",
    "together": "/together/v1",
    "xai": "/xai/v1",
}
KATAN: Final = {"anthropic": "/v1", "openai": "/v1"}
#: What a vendor's plain refusal with this status means. Some say 408 and 504 beside their word for a fault of theirs.
CLASSES: Final[Mapping[int, set[str]]] = {
    400: {"invalid_request"},
    401: {"auth_failure"},
    402: {"auth_failure"},
    403: {"auth_failure"},
    404: {"model_unavailable"},
    408: {"upstream_timeout", "model_unavailable"},
    413: {"invalid_request"},
    422: {"invalid_request"},
    429: {"rate_limited"},
    500: {"model_unavailable"},
    502: {"model_unavailable"},
    503: {"model_unavailable"},
    504: {"upstream_timeout", "model_unavailable"},
    529: {"model_unavailable"},
}
CONTEXT_WINDOW: Final = 2000
every_llmock = pytest.mark.parametrize("vendor", sorted(LLMOCK))
every_katan = pytest.mark.parametrize("vendor", sorted(KATAN))


@pytest.fixture(scope="module")
def mocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llmock(tmp_path_factory.mktemp("llmock"), "--context-window", str(CONTEXT_WINDOW)) as url:
        yield url


@pytest.fixture(scope="module")
def echoing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with katan(tmp_path_factory.mktemp("katan")) as url:
        yield url


#: What llm-katan can be told to do, and what that means.
FAILURES: Final[Mapping[str, tuple[str, set[str]]]] = {
    "--rate-limit-after": ("1", CLASSES[429]),
    "--timeout-after": ("1", CLASSES[504]),
    "--error-rate": ("1", CLASSES[500]),
}


@pytest.fixture(scope="module", params=sorted(FAILURES))
def failing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, set[str]]]:
    """A server that fails from its second request on at the latest, and the classes of that."""
    value, classes = FAILURES[request.param]
    with katan(tmp_path_factory.mktemp("failing"), request.param, value) as url:
        yield url, classes


@asynccontextmanager
async def before(folder: Path, url: str, places: Mapping[str, str], key: str = KATAN_KEY) -> AsyncIterator[Proxy]:
    """A proxy whose models are called as the vendors are."""
    urls = {vendor: url + place for vendor, place in places.items()}
    sections = {vendor: {"vendor": vendor, "base_url": base, "api_key": key} for vendor, base in urls.items()}
    await asyncio.to_thread(copy_rules, folder / "rules", places)
    async with running_proxy(folder, urls, upstreams=sections, rules="rules") as proxy:
        yield proxy


def copy_rules(folder: Path, vendors: Iterable[str]) -> None:
    """The shipped rules of these vendors. Reading all of them would be most of the time that a test takes."""
    folder.mkdir()
    for file in (*(ROOT / "rules").glob("_*.yaml"), *(ROOT / "rules" / f"{vendor}.yaml" for vendor in vendors)):
        shutil.copy(file, folder)


def only(places: Mapping[str, str], vendor: str) -> dict[str, str]:
    return {vendor: places[vendor]}


async def ask(proxy: Proxy, vendor: str, said: str = "سلام", **more: Any) -> Reply:
    return await proxy.ask(chat(said, **{"model": vendor, "max_tokens": 200, **more}))


def error_of(reply: Reply) -> dict[str, Any]:
    """Of an HTTP error, or of the last event behind some text."""
    error = (reply.json if reply.status >= 400 else reply.events[-1]).get("error")
    assert isinstance(error, dict), reply.body
    return error


# ---- llmock ------------------------------------------------------------------------------------------------------


@pytest.mark.clause("W4", "W5")
@every_llmock
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
async def test_an_answer_arrives_whole(tmp_path: Path, mocked: str, vendor: str, stream: bool) -> None:
    """Every letter, one finish, the end mark, and the row with the vendor's usage."""
    await asyncio.to_thread(script, mocked, {"type": "reply", "text": SAID})
    async with before(tmp_path, mocked, only(LLMOCK, vendor)) as proxy:
        reply = await ask(proxy, vendor, stream=stream)
        row = await proxy.row()

    assert (reply.status, reply.text, reply.is_done) == (200, SAID, stream)
    assert (row["ending"], row["finish_reason"], row["vendor"]) == ("completed", "stop", vendor)


@every_llmock
async def test_a_refusal_gets_the_class_that_it_means(tmp_path: Path, mocked: str, vendor: str) -> None:
    """Each status in each vendor's envelope; a wait that is asked for is passed on."""
    async with before(tmp_path, mocked, only(LLMOCK, vendor)) as proxy:
        for status, classes in CLASSES.items():
            await asyncio.to_thread(script, mocked, {"type": "fail", "status": status, "retry_after": 7})
            reply = await ask(proxy, vendor)
            error = error_of(reply)
            assert error["type"] in classes, (status, reply.body)
            assert error["code"] != "unmapped", (status, reply.body)
            assert error["upstream"]["status"] == status
            assert error["retry_after"] in (7, None)
            assert (error["retry_after"] == 7) is (reply.headers.get("retry-after") == "7")
            assert error["retry_after"] == 7 or status != 429


@every_llmock
async def test_a_prompt_longer_than_the_window_is_the_callers_mistake(tmp_path: Path, mocked: str, vendor: str) -> None:
    """In the words that the server's authors know of each vendor."""
    await asyncio.to_thread(script, mocked)
    async with before(tmp_path, mocked, only(LLMOCK, vendor)) as proxy:
        reply = await ask(proxy, vendor, "سلام دنیا " * CONTEXT_WINDOW)

    # Cohere says it otherwise than this server thinks, so there only the class can be told.
    assert (reply.status, error_of(reply)["type"]) == (400, "invalid_request")
    assert error_of(reply)["code"] == "context_length_exceeded" or vendor == "cohere"


@pytest.mark.clause("W5")
@every_llmock
@pytest.mark.parametrize(
    ("kind", "codes"),
    [("disconnect", {"stream_cut"}), ("truncate", {"stream_cut"}), ("malformed", {"malformed_event"})],
)
async def test_a_stream_that_breaks_is_never_taken_for_whole(
    tmp_path: Path, mocked: str, vendor: str, kind: str, codes: set[str]
) -> None:
    """An error event behind what came, and no end mark."""
    fault = {"type": "stream_fault", "kind": kind, "after_chunks": 4}
    await asyncio.to_thread(script, mocked, {"type": "reply", "text": SAID * 20}, fault)
    async with before(tmp_path, mocked, only(LLMOCK, vendor)) as proxy:
        reply = await ask(proxy, vendor)
        row = await proxy.row()

    assert not reply.is_done
    assert error_of(reply)["code"] in codes
    assert row["error_code"] in codes


# ---- llm-katan ---------------------------------------------------------------------------------------------------


@pytest.mark.clause("W4", "W5", "L2")
@every_katan
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
async def test_an_echo_comes_back(tmp_path: Path, echoing: str, vendor: str, stream: bool) -> None:
    """Its pieces are cut every four characters, also inside what a reader takes for one letter."""
    async with before(tmp_path, echoing, only(KATAN, vendor)) as proxy:
        reply = await ask(proxy, vendor, SAID, stream=stream)
        row = await proxy.row()

    assert (reply.status, reply.is_done) == (200, stream)
    assert SAID in reply.text
    assert (row["ending"], row["finish_reason"]) == ("completed", "stop")
    assert row["vendor_usage"] is not None


@every_katan
async def test_its_refusals_are_understood(tmp_path: Path, echoing: str, vendor: str) -> None:
    """A wrong key is ours and nobody's to retry; a field of the wrong type is the caller's."""
    (tmp_path / "wrong").mkdir()
    async with before(tmp_path, echoing, only(KATAN, vendor)) as proxy:
        typed = await ask(proxy, vendor, temperature="warm")
    async with before(tmp_path / "wrong", echoing, only(KATAN, vendor), key="not-that-key-at-all") as proxy:
        refused = await ask(proxy, vendor)

    assert (typed.status, error_of(typed)["type"]) == (400, "invalid_request")
    assert (refused.status, error_of(refused)["code"]) == (502, "invalid_credential")
    assert refused.headers["x-should-retry"] == "false"
    assert b"not-that-key" not in refused.body


@every_katan
async def test_its_failures_are_understood(tmp_path: Path, failing: tuple[str, set[str]], vendor: str) -> None:
    """As it says them, whatever the vendor that it imitates would say."""
    url, classes = failing
    async with before(tmp_path, url, only(KATAN, vendor)) as proxy:
        await ask(proxy, vendor)
        reply = await ask(proxy, vendor)

    assert error_of(reply)["type"] in classes
