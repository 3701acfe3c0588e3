"""Log probabilities of the Gemini family in the form of chat completions.

In: the `logprobsResult` of a candidate: the chosen tokens, and beside them the likeliest ones of each step. Out: what
stands under `logprobs` of a choice there, or None where nothing of it can be read.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.dialects.parts import objects
from proxy.dialects.payload import as_mapping, as_text


def read_logprobs(result: object) -> dict[str, object] | None:
    told = as_mapping(result)
    steps = [list(objects(step.get("candidates"))) for step in objects(told.get("topCandidates"))]
    content: list[dict[str, object]] = []
    for number, chosen in enumerate(objects(told.get("chosenCandidates"))):
        likeliest = steps[number] if number < len(steps) else []
        content.append({**_token(chosen), "top_logprobs": [_token(token) for token in likeliest]})
    return {"content": content} if content else None


def _token(candidate: Mapping[str, object]) -> dict[str, object]:
    token, logprob = as_text(candidate.get("token")), candidate.get("logProbability")
    is_number = isinstance(logprob, int | float) and not isinstance(logprob, bool)
    return {
        "token": token,
        "logprob": logprob if is_number else 0.0,  # protobuf leaves out every number that is 0
        "bytes": list(token.encode("utf-8", "surrogatepass")),
    }
