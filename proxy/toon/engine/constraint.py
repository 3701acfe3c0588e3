"""Answers that obey a JSON Schema: which ids may come next, so that nothing else can be written.

In: a schema, and the ids chosen. Out: for each step which ids are allowed, and whether the text is complete. A schema
that cannot be enforced as a whole is refused before any model works, rather than enforced in part. llguidance does the
work: it says what it cannot do, and needs a twentieth of a millisecond per id. Never: repairs a text.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import torch
from llguidance import LLMatcher, LLTokenizer
from torch import Tensor

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

#: White space between the parts of a text: enough to indent, and so little that an answer cannot get lost in it.
#: `lenient` would skip what cannot be enforced; a schema may say so itself, and is overruled.
_OPTIONS: Final[JsonCompileOptions] = {"whitespace_pattern": "[ \\n\\t]{0,24}", "lenient": False}
_NOTHING_MORE: Final = frozenset({"NotStopped", "NoExtension", "NoExtensionBias", "EndOfSentence"})


class UnenforceableSchema(ValueError):
    """Says in words what of the schema cannot be enforced."""


class ConstraintBroken(Exception):
    """No id is left, or an id was chosen that was not allowed: this answer cannot go on."""


class Grammar:
    """What a model's tokenizer is for constraints; made once per model (a second for 49,000 ids), used by any thread.
    `tokenizer` is the text of its `tokenizer.json`, `vocab` the model's, which may have more ids than that.
    `ValueError` for a tokenizer of a kind that llguidance does not know."""

    def __init__(self, tokenizer: str, vocab: int, eos: Collection[int]) -> None:
        self._tokenizer = LLTokenizer(tokenizer, n_vocab=vocab, eos_token=sorted(eos) or None)

    def constraint(self, schema: object) -> Constraint:
        """Of one job. `UnenforceableSchema` where that cannot be."""
        if not isinstance(schema, dict):
            raise UnenforceableSchema("The schema must be a JSON object.")
        try:
            grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=_OPTIONS)
        except RecursionError as error:
            raise UnenforceableSchema("The schema is nested too deeply.") from error
        except ValueError as error:
            raise UnenforceableSchema(str(error)) from error
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise UnenforceableSchema(_reason(matcher))
        return Constraint(matcher)


class Constraint:
    """The state of one answer. Belongs to one row; not for two threads at once."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    @property
    def is_complete(self) -> bool:
        """Nothing can follow: the text is whole."""
        return self._matcher.is_stopped() and not self._matcher.is_error()

    def allowed(self) -> Tensor:
        """A bool for each id of the vocabulary; those that end the answer are allowed where the text may end."""
        biases = bytearray(self._matcher.compute_logit_bias())
        if self._matcher.is_error() or self._matcher.stop_reason() not in _NOTHING_MORE:
            raise ConstraintBroken(_reason(self._matcher))
        return torch.frombuffer(biases, dtype=torch.uint8) != 0

    def take(self, chosen: int) -> None:
        if not self._matcher.consume_token(chosen):
            raise ConstraintBroken(_reason(self._matcher))


def _reason(matcher: LLMatcher) -> str:
    """Without the parser's own state, which follows."""
    told = " ".join(matcher.get_error().partition("<state>")[0].split())
    return told[:300] or f"the grammar stopped: {matcher.stop_reason()}"
