"""Usage of the Gemini family: `usageMetadata` in our vocabulary (contract L2).

In: the object of one chunk; the family sends it with every chunk, cumulative, so the last one counts. Out: `Usage`.
Candidates and thoughts are apart there and one output here; what the vendor's own tools put into the prompt is input.
Cached tokens are part of the prompt. (facts of vendors, 4)
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure


def read_usage(vendor: Mapping[str, object]) -> Usage:
    prompt, total = figure(vendor, "promptTokenCount"), figure(vendor, "totalTokenCount")
    tools = figure(vendor, "toolUsePromptTokenCount")
    candidates, thoughts = figure(vendor, "candidatesTokenCount"), figure(vendor, "thoughtsTokenCount")
    asked = None if prompt is None else prompt + (tools or 0)
    derived = {"input"} if prompt is not None and tools else set()
    added = 0
    if candidates is not None or thoughts is not None:
        added = thoughts or 0
        answered = (candidates or 0) + added
    elif asked is not None and total is not None and total >= asked:
        derived.add("output")
        answered = total - asked  # before the first token of an answer, and where none was made
    else:
        answered = None
    return Usage(
        asked,
        answered,
        figure(vendor, "cachedContentTokenCount"),
        None,
        thoughts,
        reasoning_added=added,
        derived=frozenset(derived),
        total=total,
    )
