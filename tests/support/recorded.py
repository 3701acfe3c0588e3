"""Every recorded answer behind an upstream of its own, for clients that ask a running proxy for each of them.

In: recordings. Out: a proxy that has a model named after each recording, with an upstream of its vendor and dialect
behind it, and what a client must make of the answer. Never: asks a recorded answer of a model that has none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from proxy.canon.usage import Usage
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.stores.playback import Hit
from proxy.stores.recordings import Recording, load_recording
from proxy.stores.simulator import Simulator
from tests.support.decoders import Said
from tests.support.pipelines import RECORDINGS, recordings, shipped_rules
from tests.support.proxy import ROOT, Proxy, running_proxy

HOST: Final = "127.0.0.1"
#: Silence that ends a recording which hangs; long beside what a busy machine needs for an answer, short for a test.
IDLE_S: Final = 3.0
#: What ids that we make hold in the recordings' `expect`.
MADE: Final = "5eed"
#: How many are asked at once.
_AT_ONCE: Final = 8
#: Answers to what the proxy asks of no vendor: that each event repeat the whole text.
_NEVER_ASKED: Final = ("dashscope/whole-text-each-time", "dashscope/translator-repeats-all")
_BASE: Final = "/v1"
_Seen = TypeVar("_Seen")


def dialect_of(recording: Recording) -> str:
    """The name of the grammar that the recorded vendor answered in."""
    return recording.dialect or shipped_rules().vendors[recording.vendor].dialect


@cache
def answers() -> tuple[Recording, ...]:
    """All recorded answers of vendors' chats, in whatever dialect; embeddings are no answer to a chat."""
    return tuple(each for each in recordings() if dialect_of(each) != "embeddings" and each.key not in _NEVER_ASKED)


@cache
def failures(*, but: str = "") -> tuple[Recording, ...]:
    """All recorded errors, but for those of vendors whose usual dialect is `but`."""
    found = (load_recording(path) for path in sorted(RECORDINGS.glob("*/errors/*.jsonl")))
    return tuple(each for each in found if dialect_of(each) not in ("embeddings", but))


class RecordedUpstream(Simulator):
    """Plays the recording that the request's path begins with."""

    def __init__(self, played: Iterable[Recording]) -> None:
        super().__init__(list(played), speed=0)
        self.port = 0

    def choose(self, hit: Hit) -> Recording:
        return self._by_key[hit.path.partition(_BASE)[0].removeprefix("/")]

    def base_url(self, recording: Recording) -> str:
        return f"http://{HOST}:{self.port}/{recording.key}{_BASE}"


@asynccontextmanager
async def recorded_proxy(
    folder: Path, played: Sequence[Recording], upstream: RecordedUpstream | None = None
) -> AsyncIterator[Proxy]:
    """The models are called as the recordings are: `vendor/name`. `upstream`, if the test wants to see what it was
    asked, is started and stopped here."""
    upstream = upstream or RecordedUpstream(played)
    upstream.port = await upstream.start(HOST)
    sections = {each.key: _section(each, upstream.base_url(each)) for each in played}
    urls = {key: str(section["base_url"]) for key, section in sections.items()}
    try:
        async with running_proxy(folder, urls, upstreams=sections, rules=str(ROOT / "rules")) as proxy:
            yield proxy
    finally:
        await upstream.stop()


def _section(recording: Recording, base_url: str) -> dict[str, object]:
    # Some clients always say how long an answer may be, and this vendor has no word for it.
    drops = recording.vendor == "tencent_hunyuan"
    return {
        "vendor": recording.vendor,
        "unsupported": "drop" if drops else "refuse",
        "base_url": base_url,
        "api_key": "sk-ours-0123456789abcdef",
        "deadlines": {"idle": IDLE_S},
        "after_finish_s": 1.0,
        "dialect": dialect_of(recording),
    }


async def ask_all(played: Sequence[Recording], ask: Callable[[Recording], Awaitable[_Seen]]) -> dict[str, _Seen]:
    """What a client made of each, a few at once."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(recording: Recording) -> _Seen:
        async with turn:
            return await ask(recording)

    said = await asyncio.gather(*map(one, played))
    return {recording.key: each for recording, each in zip(played, said, strict=True)}


def asks_stream(recording: Recording) -> bool:
    """Is the answer one to a client that asked for a stream? Some families say so in a header that is not recorded."""
    body = recording.request.get("body")
    is_told = isinstance(body, dict) and isinstance(body.get("stream"), bool)
    return recording.asks_stream or not (is_told or recording.name.endswith("-json"))


def wants_tools(recording: Recording) -> bool:
    return "tool_calls" in recording.expect


def wanted(recording: Recording) -> dict[str, Any]:
    """What any client must see, as far as the recording says it: fields of `Said`. Usage is in our vocabulary."""
    expect = recording.expect
    told: dict[str, Any] = {name: expect[name] for name in ("text", "reasoning", "refusal") if name in expect}
    if isinstance(calls := expect.get("tool_calls"), list):
        told["calls"] = [(call["id"], call["name"], call["arguments"]) for call in calls]
    if expect["ending"] == "completed":
        told["finish"] = expect["finish_reason"]
        if isinstance(vendor := expect.get("usage"), dict) and (usage := _usage(recording, vendor)).is_whole:
            told["usage"] = (usage.input, usage.output)
    return told


def _usage(recording: Recording, vendor: Mapping[str, object]) -> Usage:
    sent = recording.request.get("body")
    return VENDOR_DIALECTS[dialect_of(recording)].reader(sent if isinstance(sent, dict) else {}).usage(vendor)


def expect_none(found: Mapping[str, Sequence[str]]) -> None:
    """Fails with a line for each complaint, if there are any, after the key of its recording."""
    lines = [f"{key}: {complaint}" for key, complaints in found.items() for complaint in complaints]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def complaints(recording: Recording, said: Said, **other: object) -> list[str]:
    """Where a client saw something else than it should; empty if nowhere. `other` is what this client's grammar says
    otherwise."""
    want = {**wanted(recording), **other}
    is_whole = recording.expect["ending"] == "completed"
    found = []
    if is_whole != (said.error is None):
        found.append(f"error: {said.error}")
    if said.error is not None and not is_whole:
        found += failed_otherwise(recording, said.error)
    seen = {name: getattr(said, name) for name in ("text", "reasoning", "refusal", "finish", "usage")}
    found += [
        f"{name}: wanted {want[name]!r}, saw {value!r}"
        for name, value in seen.items()
        if value != want.get(name, value)
    ]
    if "calls" in want and _comparable(want["calls"], said.calls) != _comparable(said.calls, said.calls):
        found.append(f"calls: wanted {want['calls']}, saw {said.calls}")
    return found


def failed_otherwise(recording: Recording, error: Mapping[str, object]) -> list[str]:
    """Where an error, as the client was told it, is another than the recording says."""
    found = []
    for name, field in (("class", "type"), ("code", "code")):
        want = recording.expect.get(name, error.get(field))
        if error.get(field) != want and not (isinstance(want, list) and error.get(field) in want):
            found.append(f"{name}: wanted {want}, saw {error.get(field)}")
    return found


def _comparable(calls: Iterable[tuple[str, str, str]], seen: Sequence[tuple[str, str, str]]) -> list[object]:
    """Ids that we made hold the recordings' seed and differ each time; arguments are equal as JSON."""
    own = [identity for identity, _, _ in seen]
    return [
        (own[at] if MADE in identity and at < len(own) else identity, name, json.loads(arguments))
        for at, (identity, name, arguments) in enumerate(calls)
    ]
