"""A client of the token-native route (docs/toon.md): ids in, ids out, each at its proved place, and as text if wanted.

    async with ToonClient("http://127.0.0.1:8080", "key", tokenizer="models/smollm2") as client:
        async with client.stream({"tids": {"v": "2.1", "ids": [123, 456]}, …}) as stream:
            async for chunk in stream:
                print(chunk.text, end="")

In: requests as mappings, dataclasses or `ToonRequest`. What is wrong with one is said before it is sent, in the words
of the server. Out: answers, or chunks of one; what stands out of place is dropped, kept in `misplaced` and told to
`on_misplaced` (`proxy.toon.placing` says what is in place). Raises `ToonError` alone: for a refusal, for a stream that
ends without `[DONE]`, and for an answer of which ids are missing. Leaving the `async with` of a stream hangs up, and
the model stops. Needs no torch and no extra.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import MEDIA_TYPE, ToonRequest, parse_toon
from proxy.toon.placing import Misplaced
from proxy.toon.reading import StreamReader, ToonAnswer, ToonChunk, ToonError, cut, read_answer, read_refusal
from proxy.toon.text import Source, Vocabulary, load_vocabulary

__all__ = ["Misplaced", "ToonAnswer", "ToonChunk", "ToonClient", "ToonError", "ToonStream", "ask"]

_PATH: Final = "/v1/completions/toon"
_EVENT_STREAM: Final = "text/event-stream"
#: A model may think for long before its first id: only the connection has a deadline. `asyncio.timeout` sets others.
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10)
_CUTS: Final = (aiohttp.ClientError, OSError, TimeoutError)

#: A request: a mapping as in docs/toon.md, a dataclass with those fields (None: left out), or `ToonRequest`.
Asked = Any


class ToonClient:
    """`base_url` with or without `/v1`. `tokenizer` (see `proxy.toon.text.Source`) is read at the first request, in a
    thread. One client for many requests, also at the same time."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        tokenizer: Source | Vocabulary | None = None,
        on_misplaced: Callable[[Misplaced], object] | None = None,
    ) -> None:
        self._url = base_url.rstrip("/").removesuffix("/v1") + _PATH
        self._headers = {"content-type": MEDIA_TYPE}
        if api_key is not None:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._tokenizer = tokenizer
        self._on_misplaced = on_misplaced
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Hangs up all that is open."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def complete(self, request: Asked) -> ToonAnswer:
        """The whole answer at once."""
        body, parsed = _body(request, stream=False)
        vocabulary = await self._vocabulary()
        async with await self._post(body, f"{MEDIA_TYPE}, application/json") as response:
            answer = read_answer(await _all_of(response), parsed, vocabulary)
        if isinstance(answer, ToonError):
            raise answer
        return answer

    def stream(self, request: Asked) -> ToonStream:
        """The answer as it is made. Nothing is sent before its first chunk is asked for."""
        body, parsed = _body(request, stream=True)
        return ToonStream(self, body, parsed, self._on_misplaced)

    async def _vocabulary(self) -> Vocabulary | None:
        if self._tokenizer is not None and not isinstance(self._tokenizer, Vocabulary):
            self._tokenizer = await asyncio.to_thread(load_vocabulary, self._tokenizer)
        return self._tokenizer

    async def _post(self, body: bytes, accept: str) -> aiohttp.ClientResponse:
        """The response, if it is an answer."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT, connector=aiohttp.TCPConnector(limit=0))
        headers = {**self._headers, "accept": accept}
        try:
            # A redirect would take the key elsewhere.
            response = await self._session.post(self._url, data=body, headers=headers, allow_redirects=False)
        except _CUTS as error:
            told = f"{self._url} cannot be reached: {error}."
            raise ToonError(None, "connection_failed", told, retryable=True) from error
        if response.status == 200 and (accept != _EVENT_STREAM or response.content_type == _EVENT_STREAM):
            return response
        async with response:
            raise read_refusal(response.status, response.headers, await _all_of(response))


class ToonStream(AsyncIterator[ToonChunk]):
    """One streamed answer. `misplaced` are the events that were dropped. Whoever may leave before the end uses it with
    `async with`, or calls `aclose`: an iterator that is only left hangs up when it is collected."""

    def __init__(
        self, client: ToonClient, body: bytes, request: ToonRequest, tell: Callable[[Misplaced], object] | None
    ) -> None:
        self._client, self._body, self._request, self._tell = client, body, request, tell
        self._reader: StreamReader | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._ready: deque[ToonChunk] = deque()
        self._closed = False

    @property
    def misplaced(self) -> Sequence[Misplaced]:
        return () if self._reader is None else self._reader.misplaced

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Hangs up, if the answer has not ended."""
        self._closed = True
        if self._response is not None:
            self._response.close()
            self._response = None

    async def __anext__(self) -> ToonChunk:
        """What came before a failure is handed out before it is raised."""
        while not self._ready:
            if self._closed:
                raise StopAsyncIteration
            reader = self._reader or await self._open()
            if not reader.over:
                await self._read(reader)
            elif reader.failure is not None:
                await self.aclose()
                raise reader.failure
            else:
                self._leave()
        return self._ready.popleft()

    async def _open(self) -> StreamReader:
        vocabulary = await self._client._vocabulary()
        self._response = await self._client._post(self._body, _EVENT_STREAM)
        self._reader = StreamReader(self._request, vocabulary, self._tell)
        return self._reader

    def _leave(self) -> None:
        """The answer is whole: the connection may serve the next request."""
        self._closed = True
        if self._response is not None:
            self._response.release()
            self._response = None

    async def _read(self, reader: StreamReader) -> None:
        assert self._response is not None, "opened with the reader"
        try:
            read = await self._response.content.readany()
        except _CUTS as error:
            await self.aclose()
            raise cut(f"the connection broke ({error!r})") from error
        self._ready += reader.feed(read) if read else reader.finish()


def ask(base_url: str, request: Asked, api_key: str | None = None, *, tokenizer: Source | None = None) -> ToonAnswer:
    """One answer where no event loop runs: a script, a notebook's cell, a shell."""

    async def once() -> ToonAnswer:
        async with ToonClient(base_url, api_key, tokenizer=tokenizer) as client:
            return await client.complete(request)

    return asyncio.run(once())


def _body(request: Asked, *, stream: bool) -> tuple[bytes, ToonRequest]:
    """What is sent, and what it means. Raises what the server would say to it."""
    body = msgspec.json.encode({**_fields(request), "stream": stream})
    parsed = parse_toon(body)
    if isinstance(parsed, BadRequest):
        raise ToonError(parsed.status, parsed.code, parsed.message, param=parsed.param)
    return body, parsed


def _fields(request: Asked) -> Mapping[str, object]:
    if isinstance(request, ToonRequest):
        fields = msgspec.to_builtins(request)
        passed = fields.pop("passed")
        return {**fields, **passed}
    if is_dataclass(request) and not isinstance(request, type):
        return {name: value for name, value in asdict(request).items() if value is not None}
    if isinstance(request, Mapping):
        return request
    raise TypeError(f"a request is a mapping, a dataclass or a ToonRequest, not {type(request).__name__}")


async def _all_of(response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.read()
    except _CUTS as error:
        raise cut(f"the connection broke ({error!r})") from error
