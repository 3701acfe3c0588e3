#!/usr/bin/env python3
"""What counting costs: its share of the proxy's CPU where answers come in bursts, and by script.

    .venv/bin/python bench/counting.py [--streams 1500] [--rounds 3]

A vendor of its own sends 256 events at once to `sluice serve`, for many streams; the same again with counting taken out
of the process, in turn. CPU is that of the proxy's processes once they have served a few streams; the share is that of
each pair of runs, their median and range. Beside it: what a thousand tokens cost in ten scripts, counted on the spot;
and what the counts of one stream cost alone, again and again, and after something else has had the caches.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import aiohttp

from proxy.metering.meter import short_texts
from proxy.metering.prompt import read_prompt
from proxy.metering.tokens import load_counter

_EVENTS = 256
_WARM_UP = 200
#: More than a processor keeps near.
_CACHES_BYTES = 64 << 20
_MESSAGES = [{"role": "user", "content": "سلام، tell me of streams."}]
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
app.Counting.count_now = lambda self, texts: [0] * len(texts)
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


def cpu_of(pid: int) -> float:
    """CPU seconds so far of a process and of those that it has started, in steps of a hundredth."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()  # a name may hold blanks; what follows has none
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = map(int, file.read().split())
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(map(cpu_of, children))


async def ask(port: int, streams: int) -> None:
    body = {"model": "m", "stream": True, "messages": _MESSAGES}
    gate = asyncio.Semaphore(16)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one() -> None:
            async with gate, session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as reply:
                assert (await reply.read()).endswith(b"data: [DONE]\n\n"), "every stream is whole"

        await asyncio.gather(*(one() for _ in range(streams)))


async def run(streams: int, counting: bool, folder: Path) -> float:
    """CPU seconds that the proxy's processes take for so many streams."""
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
    await ask(port, _WARM_UP)
    before = cpu_of(process.pid)
    await ask(port, streams)
    spent = cpu_of(process.pid) - before
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(process.wait)
    process.stderr.close()
    server.close()
    return spent


def share(streams: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
        folder = Path(scratch)
        pairs = []
        for number in range(rounds):  # who goes first takes turns: the machine may be on its way to be slower or faster
            first = asyncio.run(run(streams, number % 2 == 0, folder))
            second = asyncio.run(run(streams, number % 2 == 1, folder))
            pairs.append((first, second) if number % 2 == 0 else (second, first))
    with_it, without = median(one for one, _ in pairs), median(one for _, one in pairs)
    per_event = 1e6 / (streams * (_EVENTS + 2))
    shares = sorted(100 * (one - other) / one for one, other in pairs)
    print(f"burst of {_EVENTS}: {with_it * per_event:.2f} us of CPU for an event, {without * per_event:.2f} without")
    over = f"{shares[0]:.1f} to {shares[-1]:.1f} over {rounds} pairs"
    print(f"counting is {median(shares):.1f} % of the proxy's CPU ({over})")


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


def parts() -> None:
    """Of one stream of the burst: what finding out that it is short, and counting it and its prompt, cost alone."""
    counter = load_counter()
    pieces = [_WORDS[number % len(_WORDS)] for number in range(_EVENTS)]
    answer, asked = "".join(pieces), read_prompt({"messages": _MESSAGES}).text
    work: dict[str, Callable[[], object]] = {
        "joining the pieces": lambda: short_texts([pieces]),
        "counting the answer": lambda: counter.count(answer),
        "counting the prompt": lambda: counter.count(asked),
    }
    for name, one in work.items():
        warm, cold = (1e6 * median(_times(one, clear)) for clear in (False, True))
        print(f"{name:<20} {warm:>6.1f} us, {cold:.1f} with cold caches")


def _times(work: Callable[[], object], clear: bool) -> list[float]:
    other = bytearray(_CACHES_BYTES)
    times = []
    for _ in range(100):
        if clear:
            other[::64] = bytes(len(other) // 64)
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    scripts()
    parts()
    share(asked.streams, asked.rounds)


if __name__ == "__main__":
    main()
