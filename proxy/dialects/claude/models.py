"""What a Claude model takes, by its name: the API is one, but each generation refuses something else with a 400.

In: a model's name as it is sent. Out: what it takes. Names that tell no generation, other vendors' models behind this
API among them, are taken for older ones, which is what relays have copied. It looks nothing up. (Anthropic's
documentation: "Configurations that each model rejects", the models' migration guides, structured outputs)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_NAME = re.compile(r"claude[-_.](?:(?P<family>[a-z]+)[-_.])?(?P<major>\d{1,2})(?:[-_.](?P<minor>\d{1,2}))?(?!\d)")
_ALWAYS_THINKING = ("fable", "mythos")


@dataclass(frozen=True, slots=True)
class Model:
    """`version` is None where the name tells none."""

    version: tuple[int, int] | None = None
    family: str = ""

    @property
    def thinking(self) -> Literal["none", "budget", "adaptive"]:
        """How it is told to think: not at all, up to a number of tokens, or with an effort."""
        if self.version is None:
            return "budget"
        if self.version < (3, 7):
            return "none"
        return "budget" if self.version < (4, 6) else "adaptive"

    @property
    def thinks_unasked(self) -> bool:
        return self.version is not None and self.version >= (5, 0)

    @property
    def always_thinks(self) -> bool:
        """It refuses to be told not to, and any tool choice that forces a call."""
        return self.thinks_unasked and (self.family in _ALWAYS_THINKING or (self.version or (0, 0)) >= (5, 5))

    @property
    def takes_extra_effort(self) -> bool:
        """The word `xhigh`, between high and max."""
        return self.version is not None and self.version >= (4, 7)

    @property
    def takes_sampling(self) -> bool:
        """Temperature, top_p and top_k."""
        return self.version is None or self.version < (4, 7)

    @property
    def takes_both_samplings(self) -> bool:
        """Temperature and top_p in one request."""
        return self.version is None or self.version < (4, 1)

    @property
    def takes_schemas(self) -> bool:
        """Answers and tool arguments that hold to a schema."""
        return self.version is None or self.version >= (4, 1)

    @property
    def takes_prefix(self) -> bool:
        """A conversation that ends with the beginning of its answer."""
        return self.version is None or self.version < (4, 6)

    @property
    def max_tokens(self) -> int:
        """What is asked for where the client sets no limit, since this API demands one: what every model of the
        generation can give. Chat completions without a limit mean "as long as it takes"."""
        if self.version is None or (3, 5) <= self.version < (3, 7):
            return 8192
        return 4096 if self.version < (3, 5) else 32000


def model_of(name: str) -> Model:
    found = _NAME.search(name.lower())
    if found is None:
        return Model()
    return Model((int(found["major"]), int(found["minor"] or 0)), found["family"] or "")
