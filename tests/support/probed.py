"""A vendor to be probed: it answers healthy questions by repeating them, and refuses the others as it is told to.

Both are the product's simulator underneath, so every answer says that it is simulated. `said` maps a cause to what is
answered; a cause that is not in it is answered as if nothing were wrong.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from proxy.__main__ import run
from proxy.stores.playback import Connection, Hit
from proxy.stores.recordings import End, Read, Recording
from proxy.stores.simulator import Simulator
from tests.support.proxy import ROOT

KEY: Final = "sk-live-9f3Kq7Zt2Lm8Xw5Rb1Vn6"
MODEL: Final = "acme-large"
LONG_CHARS: Final = 5000
#: Three lines make a vendor known, here as for an operator.
THREE_LINES: Final = "vendor: acme\ndialects: [openai]\nuse: [_infra]\n"


@dataclass(frozen=True, slots=True)
class Said:
    """One refusal. `cut` are the places at which its body is cut into reads."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: tuple[int, ...] = ()

    def play(self) -> Recording:
        data = self.body if isinstance(self.body, bytes) else json.dumps(self.body, ensure_ascii=False).encode()
        edges = (0, *self.cut, len(data))
        reads = tuple(Read(number * _APART_S, data[a:b]) for number, (a, b) in enumerate(pairwise(edges)))
        headers = {"content-type": "application/json", **self.headers}
        return replace(_PLAIN, status=self.status, headers=tuple(headers.items()), reads=reads)


#: Reads come so far apart that each is seen as one.
_APART_S: Final = 0.004
_CUTS: Final = 4
_PLAIN: Final = Recording(
    path=Path("acme.jsonl"),
    vendor="acme",
    name="answer",
    obtained="simulated",
    odd="",
    request={},
    status=200,
    headers=(("content-type", "application/json"),),
    end="close",
    reads=(),
)

Decide = Callable[[Hit], Said | None]


class ProbedVendor(Simulator):
    """`decide` is asked first; None from it lets the usual answer be given.
    `end` is how streams end, `head_delay_s` the silence before every head."""

    def __init__(self, said: Mapping[str, Said]) -> None:
        super().__init__([], speed=1)
        self.said = dict(said)
        self.decide: Decide = lambda _hit: None
        self.end: End = "close"
        self.head_delay_s = 0.0
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def choose(self, hit: Hit) -> Recording:
        said = self.decide(hit) or self.said.get(cause_of(hit) or "")
        return said.play() if said is not None else _healthy(hit, self.end)

    async def answer(self, connection: Connection, hit: Hit) -> bool:
        if self.head_delay_s and await connection.wait_gone(self.head_delay_s):
            hit.gone_at = connection.gone_at
            hit.over.set()
            return False
        return await super().answer(connection, hit)


# ---- what it says ----------------------------------------------------------------------------------------------------


def cause_of(hit: Hit) -> str | None:
    """What is wrong with the request."""
    key = hit.headers.get("authorization", "").removeprefix("Bearer ")
    if key != KEY:
        return "wrong-key" if key else "no-key"
    try:
        body = json.loads(hit.body)
    except ValueError:
        return "broken-json"
    messages = body.get("messages")
    if messages is None:
        return "missing-field"
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        return "wrong-type"
    if body["model"] != MODEL:
        return "unknown-model"
    text = messages[-1]["content"]
    return "too-long" if len(text) > LONG_CHARS else "moderation" if "kill" in text or "杀" in text else None


def _healthy(hit: Hit, end: End) -> Recording:
    body = json.loads(hit.body)
    text = body["messages"][-1]["content"] if isinstance(body.get("messages"), list) else "سلام"
    text = text if isinstance(text, str) else "سلام"
    if body.get("stream") is not True:
        return replace(_PLAIN, reads=(Read(0.0, json.dumps(_whole(text)).encode()),))
    pieces = [text[at : at + 12] for at in range(0, len(text), 12)]
    events = [_event({"role": "assistant", "content": ""}), *(_event({"content": piece}) for piece in pieces)]
    finish = "length" if body.get("max_tokens") == 16 else "stop"
    events += [_event({}, finish), json.dumps({**_HEAD, "choices": [], "usage": _usage(text)}), "[DONE]"]
    data = "".join(f"data: {event}\n\n" for event in events).encode()
    inside = [at + 1 for at, byte in enumerate(data) if byte >= 0xC0][:_CUTS]  # behind the first byte of a letter
    edges = (0, data.index(b"content") + 60, *inside, len(data))
    reads = tuple(Read(number * _APART_S, data[a:b]) for number, (a, b) in enumerate(pairwise(edges)))
    return replace(_PLAIN, headers=(("content-type", "text/event-stream"),), reads=reads, end=end)


_HEAD: Final[Mapping[str, object]] = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}


def _event(delta: Mapping[str, object], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({**_HEAD, "choices": [choice]}, ensure_ascii=False)


def _whole(text: str) -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _usage(text)}


def _usage(text: str) -> dict[str, int]:
    return {"prompt_tokens": len(text), "completion_tokens": len(text), "total_tokens": 2 * len(text)}


def refusals(**more: Said) -> dict[str, Said]:
    """Errors in words of this vendor's own, which no shipped rule knows."""
    return {
        "wrong-key": Said(403, {"fehler": {"code": "K-17", "message": "Der Riegel klemmt."}}),
        "no-key": Said(403, {"fehler": {"code": "K-16", "message": "Kein Riegel."}}),
        "unknown-model": Said(500, {"error": {"code": "M-40", "message": "این نام در دفتر نیست."}}),
        "broken-json": Said(503, {"error": {"code": "B-1", "message": "读不懂。"}}),
        "missing-field": Said(503, {"error": {"code": "B-2", "message": "少了一项。"}}),
        "wrong-type": Said(503, {"error": {"code": "B-3", "message": "類型不符。"}}),
        "too-long": Said(500, {"error": {"code": "L-9", "message": "पाठ बहुत बड़ा है।"}}),
        "moderation": Said(500, {"error": {"code": "P-5", "message": "🕊️ не сейчас"}}),
        **more,
    }


@asynccontextmanager
async def probed_vendor(said: Mapping[str, Said] | None = None) -> AsyncIterator[ProbedVendor]:
    vendor = ProbedVendor(refusals() if said is None else said)
    vendor.port = await vendor.start()
    try:
        yield vendor
    finally:
        await vendor.stop()


def write_project(folder: Path, base_url: str, *, key: str | None = KEY, **upstream: object) -> Path:
    """An operator's folder: a configuration, the shared rules, and three lines for the vendor. JSON is YAML."""
    rules = folder / "rules"
    rules.mkdir()
    for path in (ROOT / "rules").glob("_*.yaml"):
        (rules / path.name).write_text(path.read_text())
    (rules / "acme.yaml").write_text(THREE_LINES)
    main: dict[str, object] = {"vendor": "acme", "base_url": base_url, **({"api_key": key} if key else {}), **upstream}
    config = {
        "auth": {"mode": "none"},
        "ledger": {"url": "sqlite:///ledger.db"},
        "rules": "rules",
        "upstreams": {"main": main},
        "models": {"large": [{"upstream": "main", "model": MODEL}]},
    }
    file = folder / "sluice.yaml"
    file.write_text(json.dumps(config))
    return file


async def probe(config: Path, *words: str, yes: bool = True) -> int:
    """`sluice probe main` in a thread, as the vendor runs in this one's loop; its exit code."""
    options = ["--config", str(config), "--pause", "0", "--long-tokens", "2000", *(["--yes"] if yes else [])]
    return await asyncio.to_thread(run, ["probe", "main", *options, *words])
