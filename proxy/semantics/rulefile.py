"""One rule file: its YAML text validated against a schema, with every fault told by file, line and reason.

In goes a file's name and text, out comes a frozen `RuleFile`. The schema is pydantic's, closed everywhere: an unknown
key is refused with the nearest valid one. Regular expressions and paths are compiled here, once. It touches no disk.
Contract clauses R1 and R2.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from re import Pattern
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from proxy.canon.verdict import ErrorClass, Phase
from proxy.errors import RuleError
from proxy.semantics.nodes import Lines, parse_yaml
from proxy.semantics.paths import JsonPath, parse_path
from proxy.semantics.rule import Condition, Fallback, Outcome, Rule

# Contract E: only a caller's own mistake keeps a status of its own choice; every other class has one.
CALLER_STATUSES = (400, 404, 413, 415, 422)
_STATUS_FAMILY = re.compile(r"([1-5])xx")
_WORD = re.compile(r"[a-z0-9][a-z0-9_.-]*")


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


def _compile(value: object) -> Pattern[str]:
    """A regular expression, or a list of which any may hold. Each is compiled by itself first, so that a fault is told
    of the one that has it."""
    given = value if isinstance(value, list) else [value]
    expressions = [one for one in given if isinstance(one, str) and one]
    if not given or len(expressions) < len(given):
        raise ValueError("must be a regular expression in quotes, or a list of them")
    for one in expressions:
        try:
            re.compile(one, re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"bad regular expression {one!r}: {error}") from error
    whole = "|".join(f"(?:{one})" for one in expressions) if len(expressions) > 1 else expressions[0]
    return re.compile(whole, re.IGNORECASE)


def _statuses(value: object) -> tuple[range, ...]:
    """429, [500, 502], "5xx", "any"."""
    ranges = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, int) and not isinstance(item, bool) and 100 <= item <= 599:
            ranges.append(range(item, item + 1))
        elif isinstance(item, str) and (family := _STATUS_FAMILY.fullmatch(item)):
            first = int(family.group(1)) * 100
            ranges.append(range(first, first + 100))
        elif item == "any":
            ranges.append(range(0, 1000))
        else:
            raise ValueError(f"{item!r} is not a status: write 429, [500, 502], '5xx' or any")
    if not ranges:
        raise ValueError("an empty list never holds")
    return tuple(ranges)


def as_text(value: object) -> str:
    """How `json:` compares: as text and without case, so that 429 and "429" are one, and null, true are words."""
    if value is None:
        return "null"
    return str(value).lower()


def _words(value: object) -> frozenset[str]:
    items = value if isinstance(value, list) else [value]
    if not items or any(isinstance(item, dict | list) for item in items):
        raise ValueError("must be a value or a list of values")
    return frozenset(as_text(item) for item in items)


def _path(value: object) -> JsonPath:
    return parse_path(value if isinstance(value, str) else str(value))


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _slug(value: object) -> object:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise ValueError(f"{value!r} is not a word of small letters, digits, _ . and -")
    return value


Regex = Annotated[Any, BeforeValidator(_compile)]
Statuses = Annotated[Any, BeforeValidator(_statuses)]
Words = Annotated[Any, BeforeValidator(_words)]
Path = Annotated[Any, BeforeValidator(_path)]
Slug = Annotated[str, BeforeValidator(_slug)]
Texts = Annotated[list[str], BeforeValidator(_listed)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _When(_Strict):
    status: Statuses = None
    header: dict[str, Regex] = Field(default_factory=dict)
    json_: dict[Path, Words] = Field(default_factory=dict, alias="json")
    match: dict[Path, Regex] = Field(default_factory=dict)
    body: Regex = None
    phase: Annotated[list[Annotated[Phase, Field(strict=False)]], BeforeValidator(_listed)] | None = None
    finish: Words = None
    event: Words = None
    comment: Regex = None

    @model_validator(mode="after")
    def _asks_something(self) -> _When:
        if not self.model_fields_set:
            raise ValueError("asks nothing, so it would take every answer")
        return self


class _RetryAfter(_Strict):
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
            raise ValueError(
                _reason(first["type"], first["msg"], ("retry_after", *first["loc"]), first["input"])
            ) from error
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 10**8:
        raise ValueError("must be seconds, or {match: …} or {json: …}")
    return float(value)


class _Then(_Strict):
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


class _Rule(_Strict):
    id: Slug
    when: _When
    then: _Then
    evidence: Texts
    seen: date
    proof: Literal["captured", "simulated", "composed"]


class _Fallback(_Strict):
    status: Statuses
    error_class: Annotated[ErrorClass, Field(strict=False)] = Field(alias="class")


class _File(_Strict):
    vendor: Slug | None = None
    dialect: str | None = None
    dialects: list[str] | None = None
    end_mark_trusted: bool = True
    key_header: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")] | None = None
    request_fields: dict[str, str | Literal[False]] = Field(default_factory=dict)
    finish_reasons: dict[str, Literal["stop", "length", "tool_calls", "content_filter", "error"]] = Field(
        default_factory=dict
    )
    heartbeats: list[Regex] = Field(default_factory=list)
    use: Texts = Field(default_factory=list)
    rules: list[_Rule] = Field(default_factory=list)
    fallback: list[_Fallback] = Field(default_factory=list)


_MODELS_BY_KEY: Mapping[str, type[_Strict]] = {
    "rules": _Rule, "when": _When, "then": _Then, "retry_after": _RetryAfter, "fallback": _Fallback
}  # fmt: skip


def parse_rule_file(file: str, text: str) -> RuleFile:
    """The file as a value. Raises RuleError for its first fault."""
    value, lines = parse_yaml(file, text)
    if not isinstance(value, dict):
        raise RuleError(file, lines.line_of(()), "must be a mapping with keys such as vendor, use and rules")
    try:
        model = _File.model_validate(value)
    except ValidationError as error:
        raise _first_fault(file, error, lines) from error
    stem = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    _check_vendor(file, stem, model, lines)
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
    )


def _check_vendor(file: str, stem: str, model: _File, lines: Lines) -> None:
    if stem.startswith("_"):
        for key in ("vendor", "dialect", "dialects", "use"):
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
    if model.fallback and not stem == "_default":
        raise RuleError(file, lines.line_of(("fallback",)), "fallback: stands in _default.yaml alone")


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
        evidence=tuple(rule.evidence),
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
    place = ".".join(str(step) for step in loc if isinstance(step, str))
    names = [step for step in loc if isinstance(step, str)]
    if kind == "extra_forbidden":
        model = _MODELS_BY_KEY.get(names[-2], _File) if len(names) > 1 else _File
        valid = sorted(info.alias or name for name, info in model.model_fields.items())
        near = difflib.get_close_matches(names[-1], valid, n=1, cutoff=0.0)
        return f"{place}: unknown key; the nearest valid one is {near[0]!r} (of {', '.join(valid)})"
    if kind == "missing":
        return f"{place}: is missing"
    if kind in ("enum", "literal_error"):
        valid = re.findall(r"'([^']+)'", text)
        near = difflib.get_close_matches(str(value), valid, n=1, cutoff=0.0)
        return f"{place}: {value!r} is not known; the nearest valid one is {near[0]!r} (of {', '.join(valid)})"
    return f"{place}: {text.removeprefix('Value error, ')}"
