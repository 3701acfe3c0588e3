"""The client of browsers, in Node and in a real Chromium, before a server that plays scripts on another origin."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web
from playwright.async_api import async_playwright

import proxy.toon
from proxy.toon.text import load_vocabulary
from tests.support.needs import needs
from tests.support.proxy import ROOT
from tests.support.scripts import SCRIPTS, byte_fallback, byte_level
from tests.support.toon_events import TEXT, TEXT_IDS, TRACE, Event, event, events, request, sse, text_portions
from tests.support.upstream import HOST

MODULE: Final = Path(proxy.toon.__file__).with_name("client.mjs")
CASES: Final = ROOT / "tests" / "clients" / "toon_cases.mjs"
Job = Mapping[str, object]
Run = Callable[[str, str, Sequence[Job]], Awaitable[list[Any]]]

ASKED: Final = request()
TOLD: Final = events(ASKED, text_portions())
ERROR: Final = {"code": "overloaded", "message": "Busy.", "param": "/tids", "retryable": True, "retry_after": 3}
ALL: Final = list(TEXT_IDS)


@dataclass(frozen=True, slots=True)
class Case:
    """What the server plays, how it is asked, and what must be seen."""

    body: bytes
    seen: Mapping[str, object]
    kind: str = "streamed"
    request: Mapping[str, Any] = field(default_factory=lambda: ASKED)
    status: int = 200
    media: str = "text/event-stream"
    size: int = 0
    end: str = "close"


def failed(
    code: str | None, *, status: int | None = None, retryable: bool = False, **more: object
) -> dict[str, object]:
    return {"name": "ToonError", "code": code, "status": status, "retryable": retryable, **more}


def whole(told: Sequence[Event] = TOLD, reasons: Sequence[str] = (), **more: Any) -> Case:
    seen = {"ids": ALL, "text": TEXT, "finish": "stop", "stopId": 2, "misplaced": list(reasons), "error": None}
    return Case(sse(told, end=more.pop("line_end", "\n")), seen, **more)


def holed(told: Sequence[Event], count: int, reasons: Sequence[str]) -> Case:
    error = failed("answer_incomplete", status=200, retryable=True)
    return Case(sse(told), {"ids": ALL[:count], "misplaced": list(reasons), "error": error})


def stranger(**changed: Any) -> Event:
    """Stands where the second event does, but for what is changed."""
    return {**event(ASKED, [99], 3), **changed}


def stands(**changed: Any) -> dict[str, Any]:
    return {"pos": {**event(ASKED, [99], 3)["pos"], **changed}}


#: Of another answer, or at no place: what is changed, and why it is dropped.
STRANGERS: Final[Mapping[str, tuple[Event, str]]] = {
    "another version": (stranger(tids={"v": "2.2", "ids": [99]}), "identity"),
    "another trace": (stranger(meta={"trace_id": "trace-0002"}), "identity"),
    "no trace": (stranger(meta=None), "identity"),
    "another base": (stranger(**stands(base="rope")), "identity"),
    "another stride": (stranger(**stands(stride=1)), "identity"),
    "off the grid": (stranger(**stands(offset=122)), "off_grid"),
    "at the prompt": (stranger(**stands(offset=100)), "behind"),
    "far ahead": (stranger(**stands(offset=100 + 3 * 10**9)), "ahead"),
    "beyond integers": (stranger(**stands(offset=2**53)), "shape"),
    "half an offset": (stranger(**stands(offset=121.5)), "shape"),
    "half an id": (stranger(tids={"v": "2.1", "ids": [1.5]}), "shape"),
    "another prompt": (stranger(x_prompt_ids=3), "prompt_ids"),
    "no event": ({"x": 1}, "shape"),
}
WAVE: Final = [load_vocabulary(byte_level()).pieces.index(bytes([byte])) for byte in "👋".encode()]


def plain(body: Event) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


ANSWER: Final = event(ASKED, TEXT_IDS, 0, finish_reason="length", stop_id=None, usage={"prompt_ids": 4})
STRIPPED: Final = request(x_special_tokens="strip")
BIG: Final = 2**53
BEYOND: Final = request(pos={"base": "none", "offset": BIG - 200, "stride": 1})
HALF: Final = sse(TOLD[:2], done=False)

SCRIPTED: Final[Mapping[str, Case]] = {
    "usual": whole(),
    "a byte a read": Case(sse(TOLD[:8] + TOLD[-2:]), {"ids": ALL[:24]}, size=1),
    "seven bytes a read": whole(size=7),
    "CRLF": whole(line_end="\r\n", size=50),
    "CR": whole(line_end="\r", size=50),
    "duplicate": whole([*TOLD[:3], TOLD[1], *TOLD[3:]], ["behind"]),
    **{name: whole([TOLD[0], one, *TOLD[1:]], [reason]) for name, (one, reason) in STRANGERS.items()},
    "half a character": Case(
        sse(events(ASKED, [WAVE[:2], WAVE[2:3]])), {"ids": WAVE[:3], "pieces": ["", "", "\ufffd", ""], "error": None}
    ),
    "finish twice": whole([*TOLD[:-1], TOLD[-2], TOLD[-1]], ["finished"]),
    "gap": holed([*TOLD[:2], *TOLD[3:]], 6, ["ahead"] * (len(TOLD) - 3)),
    "swap": holed([*TOLD[:2], TOLD[3], TOLD[2], *TOLD[4:]], 9, ["ahead"] * (len(TOLD) - 3)),
    "no finish": holed(TOLD[:-2], len(ALL), []),
    "stripped": whole(events(STRIPPED, text_portions(), prompt=3), request=STRIPPED),
    "stripped, unsaid": Case(
        sse(events(STRIPPED, text_portions(), prompt=3)[1:]),
        {"ids": [], "misplaced": ["prompt_ids"] * (len(TOLD) - 1)},
        request=STRIPPED,
    ),
    "cut": Case(HALF, {"ids": ALL[:6], "error": failed("stream_cut", retryable=True)}),
    "reset": Case(HALF, {"ids": ALL[:6], "error": failed("stream_cut", retryable=True)}, end="reset"),
    "broken event": Case(HALF + b"data: {\n\n", {"ids": ALL[:6], "error": failed("malformed_event", status=200)}),
    "error inside": Case(
        HALF + sse([{"error": ERROR}]),
        {"ids": ALL[:6], "error": failed("overloaded", retryable=True, retryAfter=3, param="/tids")},
    ),
    "refused": Case(
        plain({"error": ERROR | {"trace_id": TRACE}}),
        {"error": failed("overloaded", status=503, retryable=True, retryAfter=3, param="/tids", traceId=TRACE)},
        status=503,
        media="application/json",
    ),
    "a page": Case(
        b"<html>", {"error": failed("unexpected_answer", status=502, retryable=True)}, status=502, media="text/html"
    ),
    "no stream": Case(plain(ANSWER), {"error": failed("unexpected_answer", status=200)}, media="application/json"),
    "plain": Case(
        plain(ANSWER),
        {"ids": ALL, "offsets": [112], "text": TEXT, "finish": "length", "stride": 3, "error": None},
        kind="plain",
        media="application/toon+json",
    ),
    "plain, out of place": Case(
        plain({**ANSWER, "pos": {**ANSWER["pos"], "offset": 100}}),
        {"ids": [], "error": failed("answer_misplaced", status=200, retryable=True)},
        kind="plain",
        media="application/toon+json",
    ),
    "beyond": Case(b"", {"error": failed("unsafe_integer", status=400, param="/pos/offset")}, request=BEYOND),
    "a large id": Case(
        b"",
        {"error": failed("unsafe_integer", status=400, param="/tids/ids/1")},
        request=request(tids={"v": "2.1", "ids": [1, BIG]}),
    ),
    "half an id of a request": Case(
        b"",
        {"error": failed("unsafe_integer", status=400, param="/tids/ids/0")},
        request=request(tids={"v": "2.1", "ids": [1.5]}),
    ),
    "no places": Case(
        b"", {"error": failed("unsafe_integer", status=400, param="/pos/offset")}, request={**ASKED, "pos": None}
    ),
    "no ids": Case(b"", {"error": failed("missing_field", status=400, param="/tids/ids")}, request={}),
    "left": Case(HALF, {"ids": ALL[:3], "error": None}, kind="left", end="hang"),
    "aborted": Case(HALF, {"error": {"name": "AbortError", "code": None}}, kind="aborted", end="hang"),
}
#: Those that are refused before anything is sent.
UNSENT: Final = {name for name, case in SCRIPTED.items() if not case.body}


class Server:
    """Plays the case that the path names. `asked` has the request of each, `gone` those whose peer left."""

    def __init__(self) -> None:
        self.asked: dict[str, tuple[Mapping[str, str], Any]] = {}
        self.gone: set[str] = set()
        self.page = ""
        """Another origin with the same files."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        case = SCRIPTED[name]
        self.asked[name] = (dict(request.headers), await request.json())
        response = web.StreamResponse(status=case.status, headers={"content-type": case.media, **_SHARED})
        await response.prepare(request)
        size = case.size or max(len(case.body), 1)
        try:
            for at in range(0, len(case.body), size):
                await response.write(case.body[at : at + size])
                await asyncio.sleep(0)
            if case.end == "reset":
                await asyncio.sleep(0.05)
                assert request.transport is not None
                request.transport.abort()
            elif case.end == "hang":
                await asyncio.sleep(30)
        except (asyncio.CancelledError, ConnectionError):
            self.gone.add(name)
            raise
        return response


_KINDS: Final = {"html": "text/html", "mjs": "text/javascript", "json": "application/json"}
#: A page of another origin may ask and read.
_SHARED: Final = {
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "authorization, content-type",
    "access-control-expose-headers": "x-trace-id",
}


async def _allow(_: web.Request) -> web.Response:
    return web.Response(status=204, headers=_SHARED)


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Server, str]]:
    server, application = Server(), web.Application()
    files = {
        "page.html": "<!doctype html>",
        "client.mjs": MODULE.read_text(),
        "cases.mjs": CASES.read_text(),
        "tokenizer.json": byte_level().to_str(),
    }

    async def file(request: web.Request) -> web.Response:
        name = request.match_info["file"]
        return web.Response(text=files[name], content_type=_KINDS[name.partition(".")[2]], headers=_SHARED)

    application.router.add_post("/{name}/v1/completions/toon", server.answer)
    application.router.add_options("/{any:.*}", _allow)
    application.router.add_get("/{file}", file)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    for _ in range(2):
        await web.TCPSite(runner, HOST, 0).start()
    server.page, address = (f"http://{HOST}:{at[1]}" for at in runner.addresses)
    try:
        yield server, address
    finally:
        await runner.cleanup()


async def in_node(_origin: str, address: str, jobs: Sequence[Job]) -> list[Any]:
    command = ["node", str(CASES), str(MODULE), address]
    process = await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1)
    try:
        async with asyncio.timeout(40):
            printed, _ = await process.communicate(json.dumps(jobs).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    found = json.loads(printed)
    assert isinstance(found, list)
    return found


async def in_chromium(origin: str, address: str, jobs: Sequence[Job]) -> list[Any]:
    """In an empty page of another origin, which imports the module from the server."""
    path = next(one for one in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if one is not None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        page = await browser.new_page()
        await page.goto(f"{origin}/page.html")
        found = await page.evaluate(
            """async ([address, jobs]) => {
                const toon = await import(`${address}/client.mjs`);
                const { runCases, cutEverywhere, textsOf } = await import(`${address}/cases.mjs`);
                const functions = { runCases, cutEverywhere };
                const out = [];
                for (const { job, args } of jobs) {
                    out.push(job === "textsOf" ? textsOf(toon, ...args) : await functions[job](toon, address, ...args));
                }
                return out;
            }""",
            [address, list(jobs)],
        )
        await browser.close()
    assert isinstance(found, list)
    return found


WHERE = [
    pytest.param(in_node, id="node", marks=needs("npm")),
    pytest.param(in_chromium, id="chromium", marks=needs("chromium")),
]


@pytest.mark.parametrize("run", WHERE)
async def test_each_scripted_answer_is_seen_as_it_is(run: Run) -> None:
    """Ids, text on whole characters, what is dropped and told, each failure as one error; leaving hangs up."""
    cases = [
        {"name": name, "kind": case.kind, "request": case.request, "apiKey": "key-1"} for name, case in SCRIPTED.items()
    ]
    async with serving() as (server, address):
        (seen,) = await run(server.page, address, [{"job": "runCases", "args": [cases]}])
    for name, case in SCRIPTED.items():
        check(name, case, seen[name])
    assert server.gone >= {"left", "aborted"}
    assert set(server.asked) == set(SCRIPTED) - UNSENT
    headers, body = server.asked["usual"]
    found = {key.lower(): value for key, value in headers.items()}
    assert (found["content-type"], found["accept"]) == ("application/toon+json", "text/event-stream")
    assert found["authorization"] == "Bearer key-1"
    assert body == {**ASKED, "stream": True}
    assert server.asked["plain"][1]["stream"] is False


def check(name: str, case: Case, seen: dict[str, Any]) -> None:
    seen["text"] = "".join(seen["pieces"])
    wanted = dict(case.seen)
    error = wanted.pop("error", seen["error"])
    assert {key: seen[key] for key in wanted} == wanted, name
    if isinstance(error, dict):
        assert seen["error"] is not None, name
        assert {key: seen["error"][key] for key in error} == error, name
    else:
        assert seen["error"] is None, name
    if "misplaced" in wanted:
        assert seen["told"] == wanted["misplaced"], name
    assert "pieces" in wanted or not any("\ufffd" in piece for piece in seen["pieces"]), name


@pytest.mark.parametrize("run", WHERE)
async def test_cuts_change_nothing(run: Run) -> None:
    """Every stream cut in two at every byte, and byte by byte, in each line end; every answer's ids cut everywhere."""
    told = [f": hello\nevent: x\ndata: {text}\n\n" for text in (SCRIPTS["persian"], SCRIPTS["emoji"])]
    told += ["data: {}\n\ndata:a\ndata: b\n\nid: 4\n\ndata\n\n", "\ufeffdata: 你\n\ndata: [DONE]"]
    streams = [text.replace("\n", end) for text in told for end in ("\n", "\r\n", "\r")]
    async with serving() as (server, address):
        (wrong,) = await run(server.page, address, [{"job": "cutEverywhere", "args": [streams, ALL, TEXT]}])
    assert wrong == []


@pytest.mark.parametrize("run", WHERE)
async def test_ids_are_the_same_text_as_in_python(run: Run) -> None:
    """Tokenizers of both kinds, ten scripts, special tokens skipped and kept, halves, and ids that nobody knows."""
    jobs, wanted = [], []
    for tokenizer in (byte_level(), byte_fallback()):
        portions = [tokenizer.encode(text).ids for text in (*SCRIPTS.values(), "\ufeffسلام\ufeff")]
        portions += [ids[: len(ids) // 2] for ids in portions] + [[0, 1, 2, 10**9], [300, 200, 40, 3]]
        vocabulary = load_vocabulary(tokenizer)
        for keep in (False, True):
            jobs.append({"job": "textsOf", "args": [json.loads(tokenizer.to_str()), portions, keep]})
            wanted.append([vocabulary.text_of(ids, keep_special=keep) for ids in portions])
    async with serving() as (server, address):
        assert await run(server.page, address, jobs) == wanted
