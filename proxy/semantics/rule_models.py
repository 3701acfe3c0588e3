"""The keys of a rule file, as pydantic models: which there are, of what kind, and what must stand together.

In: plain values of a YAML file. Out: a `FileModel`, or pydantic's errors, which `rulefile` tells with file and line.
Closed everywhere: an unknown key is an error. Contract clauses R1 and E.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from proxy.canon.usage import Place
from proxy.canon.verdict import ErrorClass, Phase
from proxy.semantics.complaints import unknown_key, wrong_value
from proxy.semantics.kinds import (
    FieldName,
    FinishWords,
    HeaderName,
    OnePlace,
    Path,
    Places,
    Regex,
    Seconds,
    Slug,
    Statuses,
    Strict,
    Texts,
    TimeZone,
    Words,
    listed,
)
from proxy.semantics.rule import EndMark, TextMode, UsageScope, UsageSource, UsageUnit

# Contract E: only a caller's own mistake keeps a status of its own choice; every other class has one.
CALLER_STATUSES = (400, 404, 413, 415, 422)


class WhenModel(Strict):
    status: Statuses = None
    header: dict[str, Regex] = Field(default_factory=dict)
    json_: dict[Path, Words] = Field(default_factory=dict, alias="json")
    match: dict[Path, Regex] = Field(default_factory=dict)
    body: Regex = None
    phase: Annotated[list[Annotated[Phase, Field(strict=False)]], BeforeValidator(listed)] | None = None
    finish: Words = None
    event: Words = None
    comment: Regex = None

    @model_validator(mode="after")
    def _asks_something(self) -> WhenModel:
        if not self.model_fields_set:
            raise ValueError("asks nothing, so it would take every answer")
        return self


class RetryAfterModel(Strict):
    match: Regex = None
    json_: Path = Field(default=None, alias="json")

    @model_validator(mode="after")
    def _names_one(self) -> RetryAfterModel:
        if (self.match is None) == (self.json_ is None):
            raise ValueError("has either match or json")
        if self.match is not None and not self.match.groupindex.keys() & {"seconds", "length", "date"}:
            raise ValueError("match needs a group (?P<seconds>…), (?P<length>…) or (?P<date>…)")
        return self


def _retry_after(value: object) -> object:
    if isinstance(value, dict):
        try:
            return RetryAfterModel.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            names = ["retry_after", *(step for step in first["loc"] if isinstance(step, str))]
            inside = "".join(f"{name}: " for name in names[1:])
            raise ValueError(inside + told(first["type"], first["msg"], names, first["input"])) from error
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 10**8:
        raise ValueError("must be seconds, or {match: …} or {json: …}")
    return float(value)


class ThenModel(Strict):
    error_class: Annotated[ErrorClass, Field(strict=False)] = Field(alias="class")
    code: Slug
    status: int | None = None
    retryable: bool | None = None
    retry_after: Annotated[Any, BeforeValidator(_retry_after)] = None
    message: str | None = None

    @model_validator(mode="after")
    def _keeps_the_contract(self) -> ThenModel:
        if self.status is not None:
            if self.error_class is not ErrorClass.INVALID_REQUEST:
                raise ValueError(f"status: {self.error_class} has a status of its own (contract E)")
            if self.status not in CALLER_STATUSES:
                raise ValueError(f"status: must be one of {', '.join(map(str, CALLER_STATUSES))}")
        never = (ErrorClass.AUTH_FAILURE, ErrorClass.CONTENT_BLOCKED, ErrorClass.INVALID_REQUEST)
        if self.retryable and self.error_class in never:
            raise ValueError(f"retryable: {self.error_class} is never retried (contract E)")
        if self.code == "unmapped":
            raise ValueError("code: 'unmapped' is kept for answers that no rule knows")
        return self


class RuleModel(Strict):
    id: Slug
    when: WhenModel
    then: ThenModel
    evidence: Texts | None = None
    seen: date | None = None
    proof: Literal["captured", "simulated", "composed"] | None = None

    @model_validator(mode="after")
    def _proves_all_or_nothing(self) -> RuleModel:
        parts = {"evidence": self.evidence, "seen": self.seen, "proof": self.proof}
        missing = " and ".join(name for name, value in parts.items() if not value)
        if missing and any(parts.values()):
            raise ValueError(f"{missing} missing: evidence, seen and proof stand together or not at all")
        return self


class FallbackModel(Strict):
    status: Statuses
    error_class: Annotated[ErrorClass, Field(strict=False)] = Field(alias="class")


class BilledModel(Strict):
    input: OnePlace | None = None
    output: OnePlace | None = None


class UsageModel(Strict):
    at: Places = Field(default_factory=list)
    scope: UsageScope | None = None
    reasoning: Place | None = None
    cache: Place | None = None
    unit: UsageUnit = "tokens"
    source: UsageSource = "vendor"
    untrusted: list[Literal["input", "output", "cache_read", "cache_write", "reasoning"]] = Field(default_factory=list)
    billed: BilledModel = Field(default_factory=BilledModel)


class DeadlinesModel(Strict):
    connect: Seconds | None = None
    first_byte: Seconds | None = None
    stall: Seconds | None = None
    idle: Seconds | None = None
    total: Seconds | None = None


class FileModel(Strict):
    vendor: Slug | None = None
    dialect: str | None = None
    dialects: list[str] | None = None
    end_mark: EndMark | None = None
    end_mark_trusted: bool = True
    untrusted_finishes: FinishWords = Field(default_factory=list)
    text_mode: TextMode = "delta"
    key_header: HeaderName | None = None
    time_zone: TimeZone = None
    token_route: str | None = None
    request_fields: dict[str, FieldName] = Field(default_factory=dict)
    finish_reasons: dict[str, Literal["stop", "length", "tool_calls", "content_filter", "error"]] = Field(
        default_factory=dict
    )
    heartbeats: list[Regex] = Field(default_factory=list)
    usage: UsageModel = UsageModel()
    deadlines: DeadlinesModel = DeadlinesModel()
    use: Texts = Field(default_factory=list)
    rules: list[RuleModel] = Field(default_factory=list)
    fallback: list[FallbackModel] = Field(default_factory=list)


_MODELS_BY_KEY: Mapping[str, type[Strict]] = {
    "rules": RuleModel, "when": WhenModel, "then": ThenModel, "retry_after": RetryAfterModel, "fallback": FallbackModel,
    "usage": UsageModel, "billed": BilledModel, "deadlines": DeadlinesModel,
}  # fmt: skip


# What only a vendor's own file says; `finish_reasons`, `heartbeats` and `rules` may be shared.


def told(kind: str, text: str, names: Sequence[str], value: object) -> str:
    if kind != "extra_forbidden":
        return wrong_value(kind, text, value)
    here = _MODELS_BY_KEY.get(names[-2], FileModel) if len(names) > 1 else FileModel
    elsewhere = {f"under `{key}`": keys_of(model) for key, model in _MODELS_BY_KEY.items()}
    return unknown_key(names[-1], keys_of(here), {**elsewhere, "at the top of the file": keys_of(FileModel)})


def keys_of(model: type[Strict]) -> list[str]:
    return sorted(info.alias or name for name, info in model.model_fields.items())
