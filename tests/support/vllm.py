"""A stand-in for a vLLM server, for the fields of `/v1/completions` that the token route uses, as vLLM documents them.

`prompt` is a list of ids; `return_token_ids` puts `token_ids` into each choice (the delta's, in a stream) and
`prompt_token_ids` into the first; `stop_reason` is the stop id of the request that stopped it, which is the last of the
ids, for a stop id is generated like any other; `logprobs` are in the form of OpenAI's completions, its tokens as
`token_id:N` where that is asked for; usage comes in a chunk of its own where `include_usage` is. A wrong type is a 400
in its envelope. The "model" answers the id n with n + 1, so that every answer is known.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

EOS: Final = 2
CONTEXT: Final = 512


class Vllm:
    """`asked` are the bodies that came; `returns_ids` is False for a server older than `return_token_ids`."""

    def __init__(self, *, returns_ids: bool = True, eos_after: int | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self.left = 0
        self._returns_ids, self._eos_after = returns_ids, eos_after

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Its base URL."""
        app = web.Application()
        app.router.add_post("/v1/completions", self._completions)
        runner = web.AppRunner(app, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        finally:
            await runner.cleanup()

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        prompt = body["prompt"]
        if not isinstance(prompt, list) or not all(type(one) is int for one in prompt):
            return _refused(f"Invalid type for prompt: {type(prompt).__name__}")
        if len(prompt) + body["max_tokens"] > CONTEXT:
            told = f"This model's maximum context length is {CONTEXT} tokens. However, you requested more."
            return _refused(told)
        if not body.get("stream"):
            ids, finish, stop = self._made(body)
            return web.json_response(self._whole(body, ids, finish, stop))
        return await self._stream(request, body)

    def _made(self, body: dict[str, Any]) -> tuple[list[int], str, int | None]:
        stops = {EOS, *(body.get("stop_token_ids") or ())}
        ids: list[int] = []
        last = body["prompt"][-1]
        while len(ids) < body["max_tokens"]:
            last = EOS if len(ids) == self._eos_after else last + 1
            ids.append(last)
            if last in stops:
                return ids, "stop", last if last != EOS else None
        return ids, "length", None

    async def _stream(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        ids, finish, stop = self._made(body)
        try:
            for at, one in enumerate(ids):
                is_last = at == len(ids) - 1
                choice = self._choice(body, [one], finish if is_last else None, stop if is_last else None)
                if at == 0 and "token_ids" in choice:
                    choice["prompt_token_ids"] = body["prompt"]
                await response.write(_event({**_HEAD, "choices": [choice]}))
                await asyncio.sleep(0)
        except (ConnectionError, asyncio.CancelledError):
            self.left += 1
            raise
        if (body.get("stream_options") or {}).get("include_usage"):
            await response.write(_event({**_HEAD, "choices": [], "usage": _usage(body, ids)}))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def _whole(self, body: dict[str, Any], ids: list[int], finish: str, stop: int | None) -> dict[str, Any]:
        choice = self._choice(body, ids, finish, stop)
        if "token_ids" in choice:
            choice["prompt_token_ids"] = body["prompt"]
        return {**_HEAD, "choices": [choice], "usage": _usage(body, ids)}

    def _choice(self, body: dict[str, Any], ids: list[int], finish: str | None, stop: int | None) -> dict[str, Any]:
        text = "".join(f" {one}" for one in ids)
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "stop_reason": stop}
        if body.get("return_token_ids") and self._returns_ids:
            choice["token_ids"] = ids
        if body.get("logprobs") is not None:
            by_id = body.get("return_tokens_as_token_ids")
            names = [f"token_id:{one}" if by_id else f" {one}" for one in ids]
            choice["logprobs"] = {
                "text_offset": list(range(len(ids))),
                "tokens": names,
                "token_logprobs": [-0.25] * len(ids),
                "top_logprobs": [{name: -0.25} for name in names],
            }
        return choice


_HEAD: Final = {"id": "cmpl-7", "object": "text_completion", "created": 1_790_000_000, "model": "big"}


def _usage(body: dict[str, Any], ids: list[int]) -> dict[str, Any]:
    asked = len(body["prompt"])
    return {"prompt_tokens": asked, "completion_tokens": len(ids), "total_tokens": asked + len(ids)}


def _event(value: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % json.dumps(value).encode()


def _refused(message: str) -> web.Response:
    error = {"message": message, "type": "BadRequestError", "param": None, "code": 400}
    return web.json_response({"error": error}, status=400)
