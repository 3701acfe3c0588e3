"""What a text event costs in the pipeline, by the vendor's dialect and the client's: CPU, as ratios in one run.

    .venv/bin/python bench/dialects.py [--rounds N]

Streams of one text in each vendor's framing go through whole pipelines, one event per read and many per read. Rounds
are interleaved, medians told, and each figure also as a ratio to chat completions on both sides. No socket: what
aiohttp and the kernel cost is the same for all, and bench/RESULTS.md has it beside peers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import time
import zlib
from collections.abc import Callable, Mapping

from proxy.canon.ending import Ending, Stop
from proxy.canon.usage import Count
from proxy.pipeline import Asked, Pipeline, Setup
from proxy.stores.rules import default_rules_dir, load_rules

EVENTS = 400
PIECES = [f" word{number % 37}" for number in range(EVENTS)]
CLIENTS = ("chat", "messages", "responses")


def sse(value: object, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def openai() -> list[bytes]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "fp"}

    def delta(said: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": said, "logprobs": None, "finish_reason": finish}
        return sse({**head, "choices": [choice]})

    usage = {"prompt_tokens": 9, "completion_tokens": EVENTS, "total_tokens": 9 + EVENTS}
    said = [delta({"content": piece}) for piece in PIECES]
    last = [delta({}, "stop"), sse({**head, "choices": [], "usage": usage}), b"data: [DONE]\n\n"]
    return [delta({"role": "assistant", "content": ""}), *said, *last]


def anthropic() -> list[bytes]:
    message: dict[str, object] = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "m",
        "stop_reason": None,
    }
    usage = {"input_tokens": 9, "output_tokens": 1}

    def event(kind: str, **fields: object) -> bytes:
        return sse({"type": kind, **fields}, kind)

    return [
        event("message_start", message={**message, "usage": usage}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *(event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece}) for piece in PIECES),
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": EVENTS}),
        event("message_stop"),
    ]


def gemini() -> list[bytes]:
    def event(text: str, finish: str | None = None) -> bytes:
        candidate: dict[str, object] = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        usage = {"promptTokenCount": 9, "candidatesTokenCount": EVENTS, "totalTokenCount": 9 + EVENTS}
        value = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"}
        return b"data: " + json.dumps(value).encode() + b"\r\n\r\n"

    return [*(event(piece) for piece in PIECES[:-1]), event(PIECES[-1], "STOP")]


def bedrock() -> list[bytes]:
    def frame(kind: str, value: object) -> bytes:
        named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
        headers = b"".join(
            bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(told)) + told.encode()
            for name, told in named.items()
        )
        payload = json.dumps(value).encode()
        prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
        body = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
        return body + struct.pack(">I", zlib.crc32(body))

    def text(piece: str) -> bytes:
        return frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}, "p": "abcdef"})

    usage = {"inputTokens": 9, "outputTokens": EVENTS, "totalTokens": 9 + EVENTS}
    last = [frame("messageStop", {"stopReason": "end_turn"}), frame("metadata", {"usage": usage})]
    return [frame("messageStart", {"role": "assistant"}), *map(text, PIECES), *last]


def ollama() -> list[bytes]:
    def line(text: str, **more: object) -> bytes:
        value = {"model": "m", "created_at": "2026-11-30T00:00:00Z", "message": {"role": "assistant", "content": text}}
        return json.dumps({**value, "done": False, **more}).encode() + b"\n"

    done = line("", done=True, done_reason="stop", prompt_eval_count=9, eval_count=EVENTS)
    return [*map(line, PIECES), done]


def responses() -> list[bytes]:
    response = {"id": "r1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}
    item = {"type": "message", "id": "i1", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    whole = {**part, "text": "".join(PIECES)}
    usage = {"input_tokens": 9, "output_tokens": EVENTS, "total_tokens": 9 + EVENTS}
    where = {"item_id": "i1", "output_index": 0, "content_index": 0}

    def event(kind: str, **fields: object) -> bytes:
        return sse({"type": f"response.{kind}", **fields}, f"response.{kind}")

    done = {**item, "status": "completed", "content": [whole]}
    return [
        event("created", response=response),
        event("output_item.added", output_index=0, item=item),
        event("content_part.added", **where, part=part),
        *(event("output_text.delta", **where, delta=piece) for piece in PIECES),
        event("output_text.done", **where, text=whole["text"]),
        event("output_item.done", output_index=0, item=done),
        event("completed", response={**response, "status": "completed", "output": [done], "usage": usage}),
    ]


VENDORS: Mapping[str, tuple[str, str, Callable[[], list[bytes]]]] = {
    "openai": ("openai", "text/event-stream", openai),
    "anthropic": ("anthropic", "text/event-stream", anthropic),
    "responses": ("openai", "text/event-stream", responses),
    "gemini": ("gemini", "text/event-stream", gemini),
    "bedrock": ("bedrock", "application/vnd.amazon.eventstream", bedrock),
    "ollama": ("ollama", "application/x-ndjson", ollama),
}


def run(setup: Setup, asked: Asked, content_type: str, reads: list[bytes]) -> float:
    """CPU seconds of one stream; it must come out whole."""
    began = time.process_time()
    pipeline = Pipeline(setup, asked)
    pipeline.head(200, {"content-type": content_type})
    out = [pipeline.feed(data, 0.0) for data in reads if not pipeline.over]
    closing = pipeline.finish(Stop.EOF, 0.0)
    out += [closing.tail, pipeline.seal(Count(9, EVENTS))]
    spent = time.process_time() - began
    assert closing.ending is Ending.COMPLETED and b"word36" in b"".join(out)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    rules = load_rules(default_rules_dir())
    spent: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(rounds):
        for dialect, (vendor, content_type, make) in VENDORS.items():
            events = make()
            whole = b"".join(events)
            reads = {"paced": events, "burst": [whole[at : at + 65536] for at in range(0, len(whole), 65536)]}
            setup = Setup(rules.profile(vendor), "main", "m", "trace", "5eed" * 6, 0.0, dialect=dialect)
            for client in CLIENTS:
                for shape, pieces in reads.items():
                    asked = Asked(True, usage=True, client=client, body={"model": "m"})
                    cost = min(run(setup, asked, content_type, pieces) for _ in range(3))
                    spent.setdefault((dialect, client, shape), []).append(cost)
    print("| vendor to client | paced, us per event | ratio | burst, us per event | ratio |\n|---|--:|--:|--:|--:|")
    for dialect in VENDORS:
        for client in CLIENTS:
            cells = []
            for shape in ("paced", "burst"):
                cost = statistics.median(spent[dialect, client, shape])
                base = statistics.median(spent["openai", "chat", shape])
                cells.append(f"{cost / EVENTS * 1e6:.2f} | {cost / base:.2f}")
            print(f"| {dialect} to {client} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
