"""The vendor simulator: an upstream of any API family that answers with recordings (contract C2).

In: recordings and a speed. Out: a server on which a POST to the path of any family plays the recording that the
request's model names (`vendor/name`, or `name` alone; in the body, or in the path where the family has it there), read
by read, with its timings and its end; `GET …/models` lists them.
Every answer carries `x-sluice-simulated: true` and the recording's name. Never: makes answers up. A recorded stream is
played also to a request that did not ask for one, unless a sibling `NAME-json` was recorded: vendors do that.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from proxy.errors import ConfigError
from proxy.stores.playback import Connection, Hit, play
from proxy.stores.recordings import Read, Recording

__all__ = ["DEMO", "RECORDING_HEADER", "Hit", "Simulator"]

#: Picks a recording whatever the request's model says; for clients that cannot choose the model.
RECORDING_HEADER: Final = "x-sluice-recording"
#: What is played when nobody asks for anything in particular.
DEMO: Final = "demo-many-scripts"
_JSON_SIBLING: Final = "-json"
#: Where the families are asked. The model stands in the path of some.
_KNOWN_PATH: Final = re.compile(
    r"^$|/(chat/completions|completions|messages|responses|embeddings|embed|chat|generation|text-embedding"
    r"|chatcompletion_(pro|v2)|converse(-stream)?)$|/chat/[^/]+$|:(stream)?generateContent$|:batchEmbedContents$",
    re.IGNORECASE,
)
_MODEL_IN_PATH: Final = re.compile(r"/(?:models?|chat)/(?P<model>[^/:]+)(?::\w+|/converse(?:-stream)?)?$")
_STREAM_HEADER: Final = "x-dashscope-sse"
#: A simulator that runs for days forgets its oldest hits, so that it does not grow.
_MAX_HITS: Final = 10_000


class Simulator:
    """`hits` is what it saw, oldest first. `speed` 1 is as recorded, 2 twice as fast, 0 as fast as possible."""

    def __init__(self, recordings: Sequence[Recording], speed: float = 1.0) -> None:
        self.recordings = list(recordings)
        self.speed = speed
        self.hits: list[Hit] = []
        self._by_key = _index(self.recordings)
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()

    async def start(self, host: str = "127.0.0.1", port: int = 0, *, sock: socket.socket | None = None) -> int:
        """Listen, on a socket that is bound already if one is given, and say on which port."""
        loop = asyncio.get_running_loop()
        if sock is not None:
            self._server = await loop.create_server(lambda: Connection(self._serve), sock=sock)
        else:
            self._server = await loop.create_server(lambda: Connection(self._serve), host, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Stop listening and drop what is open; a recording that is being played ends there, without its end."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._connections):
            connection.writer.transport.abort()
        await self._server.wait_closed()
        self._server = None

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def choose(self, hit: Hit) -> Recording:
        """What to answer. Overridden where a test decides by other means."""
        path = urlsplit(hit.path).path.rstrip("/")
        if hit.method == "GET" and path.endswith("/models"):
            return _plain("models", 200, {"object": "list", "data": [_describe(each) for each in self.recordings]})
        if hit.method != "POST" or not self._is_played_at(path):
            return _plain("not-found", 404, _refusal(f"nothing is simulated at {hit.method} {path}"))
        body = _parse_object(hit.body)
        asked = body.get("model") or body.get("Model") or _model_in(path)
        chosen = self._find(hit.headers.get(RECORDING_HEADER)) or self._find(asked) or self._default()
        if chosen is None:
            return _plain("not-found", 404, _refusal("the simulator was started without recordings"))
        if not _asks_stream(hit, path, body) and (chosen.asks_stream or chosen.is_event_stream):
            return self._by_key.get(chosen.key + _JSON_SIBLING, chosen)
        return chosen

    async def answer(self, connection: Connection, hit: Hit) -> bool:
        """Answer one request; True if the connection may serve another."""
        recording = self.choose(hit)
        hit.recording = recording.key
        return await play(recording, connection, hit, self.speed)

    async def _serve(self, connection: Connection) -> None:
        self._connections.add(connection)
        try:
            while (hit := await connection.read_request()) is not None:
                self.hits.append(hit)
                del self.hits[: max(0, len(self.hits) - _MAX_HITS)]
                if not await self.answer(connection, hit):
                    return
        finally:
            self._connections.discard(connection)

    def _is_played_at(self, path: str) -> bool:
        return _KNOWN_PATH.search(path) is not None or any(
            urlsplit(str(each.request.get("path"))).path == path for each in self.recordings
        )

    def _find(self, name: object) -> Recording | None:
        return self._by_key.get(name) if isinstance(name, str) else None

    def _default(self) -> Recording | None:
        return self._by_key.get(DEMO) or next(iter(self.recordings), None)


def _index(recordings: Sequence[Recording]) -> dict[str, Recording]:
    """By `vendor/name`, which must be unique, and by `name`, where the first one given wins."""
    by_key: dict[str, Recording] = {}
    for each in recordings:
        if (twin := by_key.setdefault(each.key, each)) is not each:
            raise ConfigError(str(each.path), 1, f"is called {each.key}, and so is {twin.path}")
    for each in recordings:
        by_key.setdefault(each.name, each)
    return by_key


def _describe(recording: Recording) -> dict[str, object]:
    return {
        "id": recording.key,
        "object": "model",
        "created": 0,
        "owned_by": recording.vendor,
        "obtained": recording.obtained,
        "odd": recording.odd,
    }


def _refusal(message: str) -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": "not_simulated"}}


def _model_in(path: str) -> str | None:
    found = _MODEL_IN_PATH.search(path)
    return unquote(found["model"]) if found is not None else None


def _asks_stream(hit: Hit, path: str, body: dict[str, object]) -> bool:
    """In the body, in the path, or in a header: each family has its own place for it."""
    said = body.get("stream", body.get("Stream"))
    return said is True or (said is None and ("stream" in path.lower() or _STREAM_HEADER in hit.headers))


def _plain(name: str, status: int, body: dict[str, object]) -> Recording:
    """An answer of the simulator itself, in the same form as a recorded one."""
    data = json.dumps(body, ensure_ascii=False).encode()
    headers = (("content-type", "application/json"), ("content-length", str(len(data))))
    return Recording(
        path=Path(name),
        vendor="simulator",
        name=name,
        obtained="simulated",
        odd="",
        request={},
        status=status,
        headers=headers,
        end="close",
        reads=(Read(0.0, data),),
    )


def _parse_object(body: bytes) -> dict[str, object]:
    """The request's fields; none if it is not an object, which a vendor would refuse and a simulator need not."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
