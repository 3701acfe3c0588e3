"""A request for embeddings in each family's own API.

In: the canonical request (one message per text). Out: the vendor's body, and what could not be said in it. Cohere wants
to know what the vectors are for and OpenAI's API cannot say it: `input_type` passes, and is `search_document` by
default.
"""

from __future__ import annotations

from proxy.canon.request import Request
from proxy.dialects.base import Losses, Ways


def send_openai(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    losses.extra(request, "dimensions")
    return _said({"model": model, "input": _texts(request), "dimensions": request.extra.get("dimensions")})


def send_gemini(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    losses.extra(request, "dimensions", "task_type")
    name = model if model.startswith("models/") else f"models/{model}"
    return {
        "requests": [
            _said(
                {
                    "model": name,
                    "content": {"parts": [{"text": text}]},
                    "outputDimensionality": request.extra.get("dimensions"),
                    "taskType": request.extra.get("task_type"),
                }
            )
            for text in _texts(request)
        ]
    }


def send_cohere(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    losses.extra(request, "dimensions", "input_type", "truncate")
    return _said(
        {
            "model": model,
            "texts": _texts(request),
            "input_type": request.extra.get("input_type", "search_document"),
            "embedding_types": ["float"],
            "output_dimension": request.extra.get("dimensions"),
            "truncate": request.extra.get("truncate"),
        }
    )


def send_ollama(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    losses.extra(request, "dimensions", "truncate", "keep_alive", "options")
    known = {name: request.extra.get(name) for name in ("dimensions", "truncate", "keep_alive", "options")}
    return _said({"model": model, "input": _texts(request), **known})


def send_dashscope(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    losses.extra(request, "dimensions", "text_type")
    parameters = {"dimension": request.extra.get("dimensions"), "text_type": request.extra.get("text_type")}
    return {"model": model, "input": {"texts": _texts(request)}, "parameters": _said(parameters)}


def _texts(request: Request) -> list[str]:
    return [message.text for message in request.messages]


def _said(fields: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}
