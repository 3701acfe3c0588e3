"""One rule file: its YAML text validated against a schema, with every fault told by file, line and reason.

In goes a file's name and text, out comes a frozen `RuleFile`. The schema is pydantic's, closed everywhere: an unknown
key is refused with the nearest valid one. Regular expressions and paths are compiled here, once. It touches no disk.
Contract clauses R1 and R2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from re import Pattern
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from proxy.canon.usage import Place
from proxy.canon.verdict import ErrorClass, Phase
from proxy.errors import RuleError
from proxy.semantics.complaints import nearest, unknown_key, wrong_value
from proxy.semantics.kinds import (
    FieldName,
    FinishWords,
    HeaderName,
    Path,
    Places,
    Regex,
    Seconds,
    Slug,
    Statuses,
    Strict,
    Texts,
    Words,
    as_text,
    listed,
)
from proxy.semantics.nodes import Lines, parse_yaml
from proxy.semantics.rule import (
    Condition,
    EndMark,
    Fallback,
    Outcome,
    Rule,
    StreamWays,
    TextMode,
    UsageScope,
    UsageWays,
)

__all__ = ["CALLER_STATUSES", "RuleFile", "as_text", "parse_rule_file"]

# Contract E: only a caller's own mistake keeps a status of its own choice; every other class has one.
CALLER_STATUSES = (400, 404, 413, 415, 422)


@dataclass(frozen=True, slots=True)
class RuleFile:
    """One file as written. `vendor` is None for a shared file; `use` keeps the line of each name."""

    file: str
    stem: str
    vendor: str | None
    dialects: tuple[str, ...]
    end_mark_trusted: bool
    key_header: str | None
    request_fields: Mapping[str, str | None]
    finish_reasons: Mapping[str, str]
    heartbeats: tuple[Pattern[str], ...]
    use: tuple[tuple[str, int], ...]
    rules: tuple[Rule, ...]
    fallback: tuple[Fallback, ...]
    ways: StreamWays
    deadlines: Mapping[str, float]


class _When(Strict):
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
    def _asks_something(self) -> _When:
        if not self.model_fields_set:
            raise ValueError("asks nothing, so it would take every answer")
        return self


class _RetryAfter(Strict):
    match: Regex = None
    json_: Path = Field(default=None, alias="json")

    @model_validator(mode="after")
    def _names_one(self) -> _RetryAfter:
        if (self.match is None) == (self.json_ is None):
            raise ValueError("has either match or json")
        if self.match is not None and not self.match.groupindex.keys() & {"seconds", "length", "date"}:
            raise ValueError("match needs a group (?P<seconds>…), (?P<length>…) or (?P<date>…)")
        return self


def _retry_after(value: object) -> object:
    if isinstance(value, dict):
        try:
            return _RetryAfter.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            names = ["retry_after", *(step for step in first["loc"] if isinstance(step, str))]
            inside = "".join(f"{name}: " for name in names[1:])
            raise ValueError(inside + _told(first["type"], first["msg"], names, first["input"])) from error
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 10**8:
        raise ValueError("must be seconds, or {match: …} or {json: …}")
    return float(value)


class _Then(Strict):
    error_class: Annotated[ErrorClass, Field(strict=False)] = Field(alias="class")
    code: Slug
    status: int | None = None
    retryable: bool | None = None
    retry_after: Annotated[Any, BeforeValidator(_retry_after)] = None
    message: str | None = None

    @model_validator(mode="after")
    def _keeps_the_contract(self) -> _Then:
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


class _Rule(Strict):
    id: Slug
    when: _When
    then: _Then
    evidence: Texts | None = None
    seen: date | None = None
    proof: Literal["captured", "simulated", "composed"] | None = None

    @model_validator(mode="after")
    def _proves_all_or_nothing(self) -> _Rule:
        parts = {"evidence": self.evidence, "seen": self.seen, "proof": self.proof}
        missing = " and ".join(name for name, value in parts.items() if not value)
        if missing and any(parts.values()):
            raise ValueError(f"{missing} missing: evidence, seen and proof stand together or not at all")
        return self


class _Fallback(Strict):
    status: Statuses
    error_class: Annotated[ErrorClass, Field(strict=False)] = Field(alias="class")


class _Usage(Strict):
    at: Places = Field(default_factory=list)
    scope: UsageScope | None = None
    reasoning: Place | None = None
    cache: Place | None = None


class _Deadlines(Strict):
    connect: Seconds | None = None
    first_byte: Seconds | None = None
    stall: Seconds | None = None
    idle: Seconds | None = None
    total: Seconds | None = None


class _File(Strict):
    vendor: Slug | None = None
    dialect: str | None = None
    dialects: list[str] | None = None
    end_mark: EndMark | None = None
    end_mark_trusted: bool = True
    untrusted_finishes: FinishWords = Field(default_factory=list)
    text_mode: TextMode = "delta"
    key_header: HeaderName | None = None
    request_fields: dict[str, FieldName] = Field(default_factory=dict)
    finish_reasons: dict[str, Literal["stop", "length", "tool_calls", "content_filter", "error"]] = Field(
        default_factory=dict
    )
    heartbeats: list[Regex] = Field(default_factory=list)
    usage: _Usage = _Usage()
    deadlines: _Deadlines = _Deadlines()
    use: Texts = Field(default_factory=list)
    rules: list[_Rule] = Field(default_factory=list)
    fallback: list[_Fallback] = Field(default_factory=list)


_MODELS_BY_KEY: Mapping[str, type[Strict]] = {
    "rules": _Rule, "when": _When, "then": _Then, "retry_after": _RetryAfter, "fallback": _Fallback,
    "usage": _Usage, "deadlines": _Deadlines,
}  # fmt: skip


# What only a vendor's own file says; `finish_reasons`, `heartbeats` and `rules` may be shared.
_OF_ONE_VENDOR = (
    *("vendor", "dialect", "dialects", "use", "end_mark", "end_mark_trusted", "untrusted_finishes", "text_mode"),
    *("key_header", "request_fields", "usage", "deadlines"),
)


def parse_rule_file(file: str, text: str, dialects: Collection[str] = ()) -> RuleFile:
    """The file as a value. Raises RuleError for its first fault. `dialects` are those that there are; none: any do."""
    value, lines = parse_yaml(file, text)
    if not isinstance(value, dict):
        raise RuleError(file, lines.line_of(()), "must be a mapping with keys such as vendor, use and rules")
    try:
        model = _File.model_validate(value)
    except ValidationError as error:
        raise _first_fault(file, error, lines) from error
    stem = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    _check_vendor(file, stem, model, lines)
    _check_dialects(file, model, lines, dialects)
    return RuleFile(
        file=file,
        stem=stem,
        vendor=model.vendor,
        dialects=tuple(model.dialects or [model.dialect or "openai"]),
        end_mark_trusted=model.end_mark_trusted,
        key_header=model.key_header,
        request_fields={name: own or None for name, own in model.request_fields.items()},
        finish_reasons=model.finish_reasons,
        heartbeats=tuple(model.heartbeats),
        use=tuple((name, lines.line_of(("use", i))) for i, name in enumerate(model.use)),
        rules=tuple(_build_rule(file, rule, lines.line_of(("rules", i))) for i, rule in enumerate(model.rules)),
        fallback=tuple(Fallback(row.status, row.error_class) for row in model.fallback),
        ways=_build_ways(model),
        deadlines={name: value for name, value in model.deadlines if value is not None},
    )


def _build_ways(model: _File) -> StreamWays:
    usage = model.usage
    return StreamWays(
        end_mark=model.end_mark,
        untrusted_finishes=frozenset(word.lower() for word in model.untrusted_finishes),
        text_mode=model.text_mode,
        usage=UsageWays(tuple(usage.at), usage.scope, usage.reasoning, usage.cache),
    )


def _check_vendor(file: str, stem: str, model: _File, lines: Lines) -> None:
    if stem.startswith("_"):
        for key in _OF_ONE_VENDOR:
            if key in model.model_fields_set:
                raise RuleError(file, lines.line_of((key,)), f"{key}: a shared file (its name begins with _) has none")
    elif model.vendor is None:
        raise RuleError(
            file, 1, f"vendor is missing; write `vendor: {stem}` (shared files have names that begin with _)"
        )
    elif model.vendor != stem:
        raise RuleError(file, lines.line_of(("vendor",)), f"vendor: must be {stem!r}, as the file is called")
    if model.dialect is not None and model.dialects is not None:
        raise RuleError(file, lines.line_of(("dialects",)), "has both dialect and dialects")
    if model.dialects == []:
        raise RuleError(file, lines.line_of(("dialects",)), "dialects: must not be empty")
    if model.untrusted_finishes and not model.end_mark_trusted and model.end_mark != "never":
        reason = "with end_mark_trusted: false nothing would ever end an answer; leave one of the two out"
        raise RuleError(file, lines.line_of(("untrusted_finishes",)), f"untrusted_finishes: {reason}")
    if model.fallback and not stem == "_default":
        raise RuleError(file, lines.line_of(("fallback",)), "fallback: stands in _default.yaml alone")


def _check_dialects(file: str, model: _File, lines: Lines, known: Collection[str]) -> None:
    key = "dialects" if model.dialects else "dialect"
    for position, name in enumerate(model.dialects or filter(None, [model.dialect])):
        if known and name not in known:
            line = lines.line_of((key, position))
            raise RuleError(file, line, f"{key}: {name!r} is not known; {nearest(name, known)}")


def _build_rule(file: str, rule: _Rule, line: int) -> Rule:
    when, then = rule.when, rule.then
    return Rule(
        id=rule.id,
        file=file,
        line=line,
        when=Condition(
            status=when.status,
            header=tuple((name.lower(), pattern) for name, pattern in when.header.items()),
            json=tuple(when.json_.items()),
            match=tuple(when.match.items()),
            body=when.body,
            phase=frozenset(when.phase) if when.phase else None,
            finish=when.finish,
            event=when.event,
            comment=when.comment,
        ),
        then=_build_outcome(then),
        evidence=tuple(rule.evidence or ()),
        seen=rule.seen,
        proof=rule.proof,
    )


def _build_outcome(then: _Then) -> Outcome:
    wait = then.retry_after
    return Outcome(
        error_class=then.error_class,
        code=then.code,
        status=then.status,
        retryable=then.retryable,
        retry_after=wait if isinstance(wait, float) else None,
        retry_after_match=wait.match if isinstance(wait, _RetryAfter) else None,
        retry_after_json=wait.json_ if isinstance(wait, _RetryAfter) else None,
        message=then.message,
    )


def _first_fault(file: str, error: ValidationError, lines: Lines) -> RuleError:
    """pydantic tells all faults by model; a person reads from the top, so the first by line is told. A missing key
    comes last: where there is an unknown one as well, it is that one, misspelt."""
    faults = []
    for found in error.errors(include_url=False):
        loc = tuple(step for step in found["loc"] if step != "[key]")
        reason = _reason(found["type"], found["msg"], loc, found["input"])
        faults.append((found["type"] == "missing", lines.line_of(loc), reason))
    _, line, reason = min(faults)
    return RuleError(file, line, reason)


def _reason(kind: str, text: str, loc: tuple[str | int, ...], value: object) -> str:
    names = [step for step in loc if isinstance(step, str)]
    return f"{'.'.join(names)}: {_told(kind, text, names, value)}"


def _told(kind: str, text: str, names: Sequence[str], value: object) -> str:
    if kind != "extra_forbidden":
        return wrong_value(kind, text, value)
    here = _MODELS_BY_KEY.get(names[-2], _File) if len(names) > 1 else _File
    elsewhere = {f"under `{key}`": _keys_of(model) for key, model in _MODELS_BY_KEY.items()}
    return unknown_key(names[-1], _keys_of(here), {**elsewhere, "at the top of the file": _keys_of(_File)})


def _keys_of(model: type[Strict]) -> list[str]:
    return sorted(info.alias or name for name, info in model.model_fields.items())
