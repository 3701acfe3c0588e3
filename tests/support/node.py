"""The npm packages of tests/clients/node, driven by its scripts: cases in, what each package saw out.

The packages are installed as the lock file has them, once, where nobody did it before.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from proxy.stores.recordings import Recording
from tests.support.answers import ROLE, SCRIPTS, USAGE, answer, broken_off, completion, plain, say, vendor_error
from tests.support.decoders import Said
from tests.support.proxy import PATIENCE_S, ROOT, running_proxy
from tests.support.recorded import asks_stream, recorded_proxy, wants_tools
from tests.support.upstream import Play, ReplayUpstream, play_events

CLIENTS: Final = ROOT / "tests" / "clients" / "node"
Seen = dict[str, Any]
TOKENS: Final = [USAGE["prompt_tokens"], USAGE["completion_tokens"]]
_ERROR_EVENT: Final = b'{"error":{"message":"?","code":"server_error"}}'


@dataclass(frozen=True, slots=True)
class Case:
    """What the upstream plays, how it is asked, what must come, and how often the upstream is asked."""

    plays: tuple[Play, ...]
    wanted: Mapping[str, object]
    kind: str = "streamed"
    retries: int = 1
    asked: int = 1


def install() -> None:
    """`npm ci`, if a package is missing, by one process at a time. Blocks: call it where no loop waits."""
    named = json.loads((CLIENTS / "package.json").read_text())["dependencies"]
    with (CLIENTS / "package-lock.json").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not all((CLIENTS / "node_modules" / name / "package.json").is_file() for name in named):
            command = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
            subprocess.run(command, cwd=CLIENTS, check=True, timeout=50)


async def run_script(name: str, base_url: str, cases: Sequence[Mapping[str, object]]) -> dict[str, Seen]:
    """What the script `name` saw of each case, by the case's name."""
    process = await asyncio.create_subprocess_exec(
        "node", str(CLIENTS / name), base_url, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE_S * 2):
            printed, _ = await process.communicate(json.dumps(cases).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    lines = [json.loads(line) for line in printed.decode().split("\n")[:-1]]
    return {line["name"]: line for line in lines}


def case_of(recording: Recording) -> dict[str, object]:
    """The case that asks for one recorded answer."""
    return {
        "name": recording.key,
        "model": recording.key,
        "kind": "streamed" if asks_stream(recording) else "plain",
        "retries": 0,
        "tools": wants_tools(recording),
    }


def said_by(seen: Seen) -> Said:
    """What a script saw, as the decoders have it. Usage may be the two figures, or an object of chat completions."""
    usage = seen["usage"]
    if isinstance(usage, dict):
        usage = (usage["prompt_tokens"], usage["completion_tokens"])
    return Said(
        text=seen["text"],
        reasoning=seen["reasoning"],
        refusal=seen["refusal"],
        calls=[(identity, name, arguments) for identity, name, arguments in seen["calls"] or ()],
        finish=seen["finish"],
        usage=tuple(usage) if usage is not None else None,
        error=seen["error"],
    )


async def run_recorded(
    folder: Path, script: str, played: Sequence[Recording], *, root: bool = False, **how: object
) -> dict[str, Seen]:
    """What the script saw of each recording. `root`: its package adds `/v1` to the base URL itself. `how` changes all
    cases."""
    async with recorded_proxy(folder, played) as proxy:
        base_url = proxy.base_url.removesuffix("/v1") if root else proxy.base_url
        return await run_script(script, base_url, [{**case_of(each), **how} for each in played])


def whole(text: str) -> dict[str, object]:
    return {"text": text, "finish": "stop", "usage": TOKENS, "error": None}


def failed(exception: str, status: int | None, code: str, text: str = "") -> dict[str, object]:
    return {"text": text, "error": {"exception": exception, "status": status, "code": code}}


def usual_cases(exceptions: Mapping[int | None, str]) -> dict[str, Case]:
    """What every package must make of an upstream: texts, errors before the first byte and after it, hang-up. With a
    retry allowed, only what may be is asked again. `exceptions` names what is thrown for each HTTP status, and (None)
    for an error inside a stream."""
    error = vendor_error
    hours, second = [("retry-after", "7200")], [("retry-after", "1")]
    half = broken_off("سلام ")

    def midway(code: str) -> dict[str, object]:
        return failed(exceptions[None], None, code, "سلام ")

    def refused(status: int, code: str) -> dict[str, object]:
        return failed(exceptions[status], status, code)

    return {
        **{name: Case((answer(*pieces),), whole("".join(pieces))) for name, pieces in SCRIPTS.items()},
        "plain": Case((plain(completion("你好 👋🏽")),), whole("你好 👋🏽"), kind="plain"),
        "our key": Case((error(401, "invalid_api_key", "No."),), refused(502, "invalid_credential")),
        "no money": Case((error(429, "insufficient_quota", "Pay."),), refused(502, "insufficient_quota")),
        "slow down for hours": Case(
            (error(429, "rate_limit_exceeded", "Slow.", headers=hours),), refused(429, "rate_limited")
        ),
        "slow down": Case(
            (error(429, "rate_limit_exceeded", "Slow.", headers=second), answer("안녕")), whole("안녕"), asked=2
        ),
        "blocked": Case((error(400, "content_policy_violation", "No."),), refused(400, "content_filter")),
        "too long": Case((error(400, "context_length_exceeded", "?"),), refused(400, "context_length_exceeded")),
        "overloaded": Case((error(503, "server_error", "Busy."),), refused(503, "server_error"), asked=2),
        "no answer": Case((Play([]),), refused(504, "stream_cut"), kind="plain", asked=2),
        "cured": Case(
            (Play(end="reset"), error(500, "server_error", "?"), answer("你好")), whole("你好"), retries=2, asked=3
        ),
        "error midway": Case((play_events(ROLE, say("سلام "), _ERROR_EVENT),), midway("server_error")),
        "end midway": Case((broken_off("سلام ", end="close"),), midway("stream_cut")),
        "cut midway": Case((half,), midway("stream_cut")),
        "reset midway": Case((broken_off("سلام ", end="reset"),), midway("stream_cut")),
        "silence": Case((Play(half.reads, end="hang"),), midway("idle_timeout")),
        "left": Case((Play(half.reads, end="hang"),), {"text": "سلام ", "error": None}, kind="left"),
    }


async def check_cases(folder: Path, script: str, cases: Mapping[str, Case], *, root: bool = False) -> None:
    """Runs the cases, each before an upstream of its own, and asserts what is seen, asked and written down."""
    async with AsyncExitStack() as stack:
        upstreams = {name: await stack.enter_async_context(ReplayUpstream(*case.plays)) for name, case in cases.items()}
        urls = {name: upstream.base_url for name, upstream in upstreams.items()}
        idle = {"deadlines": {"idle": 0.5}}
        proxy = await stack.enter_async_context(running_proxy(folder, urls, upstream=idle))
        base_url = proxy.base_url.removesuffix("/v1") if root else proxy.base_url
        seen = await run_script(script, base_url, [_described(name, case) for name, case in cases.items()])
        rows = await proxy.rows(sum(case.asked for case in cases.values()))
        asked = {name: len(upstream.hits) for name, upstream in upstreams.items()}
        gone = upstreams["left"].hits[0].gone_at

    assert asked == {name: case.asked for name, case in cases.items()}
    for name, case in cases.items():
        _check_error(seen[name], [row for row in rows if row["upstream"] == name])
        assert {field: seen[name][field] for field in case.wanted} == case.wanted, name
    assert gone is not None
    assert [row["ending"] for row in rows if row["upstream"] == "left"] == ["client_gone"]


def _described(name: str, case: Case) -> dict[str, object]:
    return {"name": name, "model": name, "kind": case.kind, "retries": case.retries, "tools": None}


def _check_error(seen: Seen, rows: Iterable[Mapping[str, object]]) -> None:
    """Class and trace id are those of a row of the case; what is left of the error is what the case wants. Some
    packages keep of an error inside a stream what they know, and that has no trace id."""
    if (error := seen["error"]) is not None:
        trace_id, error_class = error.pop("trace_id"), error.pop("type")
        assert error_class in [row["error_class"] for row in rows if trace_id in (row["trace_id"], None)]
        assert error.pop("message")
