"""The difficult vendor: a simulated upstream of the OpenAI family whose error habits are hidden (contract C2, R1).

In: a seed, and requests to `…/chat/completions` or `…/models`. Out: answers in that seed's habits (see
`difficult_habits`), each marked as simulated. Learning is tested on it: what is learned from the answers that it shows
must hold for `held_out`, which it never shows. A key is asked for (`KEY`), a model (`MODELS`), a request that can be
read, not too long, not about what `_FORBIDDEN` names, and not too many at once. What no caller can bring about (debt,
overload, …) is had by the model `fine:CAUSE`, or by the header `x-sluice-cause`. Never: tells the cause otherwise.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, deque
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from proxy.metering.prompt import read_prompt
from proxy.metering.tokens import TokenCounter, load_counter
from proxy.stores.difficult_answers import VENDOR, Asked, error_answer, healthy_answer
from proxy.stores.difficult_habits import Habits, draw_habits
from proxy.stores.difficult_words import Cause
from proxy.stores.playback import Hit
from proxy.stores.recordings import Read, Recording
from proxy.stores.simulator import Simulator

__all__ = ["KEY", "MODELS", "Cause", "DifficultServer", "DifficultVendor"]

KEY: Final = "difficult-key"
MODELS: Final = ("fine", "fine-large")
CAUSE_HEADER: Final = "x-sluice-cause"
#: More good requests than this within so many seconds are too many.
RATE_LIMIT, RATE_WINDOW_S = 40, 2.0
LONGEST_PROMPT: Final = 16_000
_FORBIDDEN: Final = re.compile(r"bomb|explosive|weapon|poison|kill|suicide|杀|炸弹|بمب|हत्या", re.IGNORECASE)
_counter: Final = cache(load_counter)


class DifficultVendor:
    """One seed's vendor. The same seed answers the same: the n-th variant of a cause is always the same answer."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.habits: Habits = draw_habits(seed)

    def answer(self, cause: Cause, variant: int, asked: Asked | None = None) -> Recording:
        """The n-th variant that callers may see."""
        return self._variant(cause, variant, asked or Asked(), self.habits.table[cause].shown, "shown")

    def held_out(self, cause: Cause, count: int = 12) -> list[Recording]:
        """Variants in words that no caller ever sees, asked for as a stream and as a plain answer in turn."""
        held = self.habits.table[cause].held
        return [
            self._variant(cause, number, Asked(f"m-{number}", stream=number % 2 == 0), held, "held")
            for number in range(count)
        ]

    def serve(self, asked: Asked, counter: TokenCounter, number: int) -> Recording:
        """An answer that is well."""
        return healthy_answer(self.habits.ways, asked, random.Random(f"{self.seed} well {number}"), counter.count)

    def _variant(self, cause: Cause, number: int, asked: Asked, wordings: tuple[str, ...], half: str) -> Recording:
        rng = random.Random(f"{self.seed} {cause} {half} {number}")
        wording = wordings[number % len(wordings)]
        return error_answer(self.habits, self.habits.table[cause], wording, asked, rng)


class DifficultServer(Simulator):
    """The vendor behind a socket."""

    def __init__(self, vendor: DifficultVendor, speed: float = 1.0) -> None:
        super().__init__([], speed)
        self.vendor = vendor
        self._counter = _counter()  # read here, where no loop waits
        self._given: Counter[Cause | None] = Counter()
        self._recent: deque[float] = deque(maxlen=RATE_LIMIT)

    def choose(self, hit: Hit) -> Recording:
        path = urlsplit(hit.path).path.rstrip("/")
        asked, cause = self._read(hit)
        if cause is None and hit.method == "GET" and path.endswith("/models"):
            return _models()
        number = self._given[cause]
        self._given[cause] += 1
        if cause is None:
            return self.vendor.serve(asked, self._counter, number)
        return self.vendor.answer(cause, number, asked)

    def _read(self, hit: Hit) -> tuple[Asked, Cause | None]:
        """What is asked, and why it is refused; None if it is not."""
        body = _parse(hit.body)
        asked = _asked(body) if isinstance(body, dict) else Asked()
        cause = _named_cause(hit, asked) or _wrong_key(hit)
        if cause is None and hit.method == "POST":
            cause = _wrong_body(body, asked) or self._wrong_time(hit.at)
        return asked, cause

    def _wrong_time(self, now: float) -> Cause | None:
        is_full = len(self._recent) == RATE_LIMIT and now - self._recent[0] < RATE_WINDOW_S
        if not is_full:
            self._recent.append(now)
        return Cause.RATE_LIMITED if is_full else None


def _parse(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _asked(body: dict[str, object]) -> Asked:
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    return Asked(
        model=str(body.get("model", "")),
        stream=body.get("stream") is True,
        prompt=read_prompt(body).text if isinstance(body.get("messages"), list) else "",
        max_tokens=limit if isinstance(limit, int) else None,
    )


def _named_cause(hit: Hit, asked: Asked) -> Cause | None:
    name = hit.headers.get(CAUSE_HEADER) or asked.model.partition(":")[2]
    return Cause(name) if name in list(Cause) else None


def _wrong_key(hit: Hit) -> Cause | None:
    given = hit.headers.get("authorization", "").removeprefix("Bearer").strip()
    if not given:
        return Cause.NO_KEY
    return None if given == KEY else Cause.WRONG_KEY


def _wrong_body(body: object, asked: Asked) -> Cause | None:
    if not isinstance(body, dict):
        return Cause.MALFORMED_JSON
    if not {"model", "messages"} <= body.keys() or body["messages"] == []:
        return Cause.MISSING_FIELD
    numbers = [body.get(name) for name in ("temperature", "top_p", "max_tokens", "max_completion_tokens")]
    is_typed = isinstance(body["model"], str) and isinstance(body["messages"], list)
    is_typed = is_typed and all(isinstance(message, dict) for message in body["messages"])
    if not is_typed or not all(number is None or isinstance(number, int | float) for number in numbers):
        return Cause.WRONG_TYPE
    if asked.model not in MODELS:
        return Cause.UNKNOWN_MODEL
    if len(asked.prompt) > LONGEST_PROMPT:
        return Cause.TOO_LONG
    return Cause.MODERATED if _FORBIDDEN.search(asked.prompt) else None


def _models() -> Recording:
    listed = [{"id": name, "object": "model", "created": 1_790_000_000, "owned_by": VENDOR} for name in MODELS]
    return Recording(
        path=Path(VENDOR, "models.jsonl"),
        vendor=VENDOR,
        name="models",
        obtained="simulated",
        odd="",
        request={"method": "GET", "path": "/v1/models"},
        status=200,
        headers=(("content-type", "application/json"),),
        end="close",
        reads=(Read(0.0, json.dumps({"object": "list", "data": listed}).encode()),),
    )
