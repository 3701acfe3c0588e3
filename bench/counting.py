#!/usr/bin/env python3
"""What counting costs: its share of the proxy's CPU where answers come in bursts, and by script.

    .venv/bin/python bench/counting.py [--streams 1500] [--rounds 3]

A vendor of its own sends 256 events at once to `sluice serve`, for many streams; the same again with counting taken out
of the process, and once without a stream for what starting costs. CPU is that of the proxy's processes. Beside it: what
a thousand tokens cost in ten scripts, counted on the spot.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import aiohttp

from proxy.metering.tokens import load_counter

_EVENTS = 256
_WORDS = (" the", " stream", " of", " words", " goes", " on", ",", " and", " on", " until", " it", " ends", ".")
#: Sentences of everyday text, one for each script.
SCRIPTS = {
    "Latin": "The quick brown fox jumps over the lazy dog, and then it rests in the sun. ",
    "Cyrillic": "Съешь же ещё этих мягких французских булок, да выпей чаю. ",
    "Greek": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία και πάω για ύπνο. ",
    "Arabic": "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. ",
    "Persian": "هر روز صبح با صدای پرندگان از خواب بیدار می‌شوم و چای می‌نوشم. ",
    "Hebrew": "דג סקרן שט בים מאוכזב ולפתע מצא לו חברה. ",
    "Devanagari": "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले। ",
    "Chinese": "天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。",
    "Japanese": "いろはにほへと散りぬるを我が世誰ぞ常ならむ。",
    "Korean": "다람쥐 헌 쳇바퀴에 타고파 하는 마음을 누가 알까. ",
}
#: Runs the proxy with nothing counted.
_WITHOUT = """
import proxy.app as app
app.Counting.count_now = lambda self, pieces: 0
app.Counting.prompt = lambda self, body, size: lambda: 0
from proxy.__main__ import main
main()
"""


def burst() -> bytes:
    """A whole answer in one write."""
    head = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    events = [head + b'{"role":"assistant","content":""},"finish_reason":null}]}\n\n']
    for number in range(_EVENTS):
        word = _WORDS[number % len(_WORDS)].encode()
        events.append(head + b'{"content":"' + word + b'"},"finish_reason":null}]}\n\n')
    events.append(head + b'{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    body = b"".join(events)
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body) + body


async def vendor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    answer = burst()
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(answer)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def ask(port: int, streams: int) -> None:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "سلام، tell me of streams."}]}
    gate = asyncio.Semaphore(16)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one() -> None:
            async with gate, session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as reply:
                assert (await reply.read()).endswith(b"data: [DONE]\n\n"), "every stream is whole"

        await asyncio.gather(*(one() for _ in range(streams)))


async def run(streams: int, counting: bool, folder: Path) -> float:
    """CPU seconds of the proxy's processes."""
    server = await asyncio.start_server(vendor, "127.0.0.1", 0)
    upstream = server.sockets[0].getsockname()[1]
    port = free_port()
    config = folder / "sluice.yaml"
    config.write_text(
        f'auth: {{mode: none}}\nledger: {{url: "sqlite:///{folder}/{time.time_ns()}.db"}}\n'
        f'upstreams: {{main: {{vendor: openai, base_url: "http://127.0.0.1:{upstream}/v1"}}}}\n'
        "models: {m: [{upstream: main, model: m}]}\n"
    )
    command = [sys.executable, *(("-m", "proxy") if counting else ("-c", _WITHOUT))]
    process = subprocess.Popen(  # noqa: ASYNC220  (before anything is asked)
        [*command, "serve", "--config", str(config), "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert process.stderr is not None, "piped"
    while b"listening" not in await asyncio.to_thread(process.stderr.readline):
        if process.poll() is not None:
            raise SystemExit("the proxy did not start")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if streams:
        await ask(port, streams)
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(process.wait)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    server.close()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def share(streams: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
        folder = Path(scratch)
        idle = asyncio.run(run(0, True, folder))
        pairs = [
            (asyncio.run(run(streams, True, folder)) - idle, asyncio.run(run(streams, False, folder)) - idle)
            for _ in range(rounds)
        ]
    with_it, without = median(one for one, _ in pairs), median(one for _, one in pairs)
    per_event = 1e6 / (streams * (_EVENTS + 2))
    print(f"burst of {_EVENTS}: {with_it * per_event:.2f} us of CPU for an event, {without * per_event:.2f} without")
    print(f"counting is {100 * (with_it - without) / with_it:.1f} % of the proxy's CPU")


def scripts() -> None:
    counter = load_counter()
    for name, text in SCRIPTS.items():
        text = text * 50
        tokens = counter.count(text)
        begun = time.perf_counter()
        for _ in range(20):
            counter.count(text)
        taken = (time.perf_counter() - begun) / 20
        print(f"{name:<11} {1e9 * taken / tokens:>6.0f} ns a token, {len(text) / tokens:.1f} characters each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    scripts()
    share(asked.streams, asked.rounds)


if __name__ == "__main__":
    main()
