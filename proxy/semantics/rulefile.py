"""One rule file: its YAML text validated against a schema, with every fault told by file, line and reason.

In goes a file's name and text, out comes a frozen `RuleFile`. The schema is pydantic's, closed everywhere: an unknown
key is refused with the nearest valid one. Regular expressions and paths are compiled here, once. It touches no disk.
Contract clauses R1 and R2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from re import Pattern

from pydantic import ValidationError

from proxy.errors import RuleError
from proxy.semantics.complaints import nearest
from proxy.semantics.nodes import Lines, parse_yaml
from proxy.semantics.rule import (
    Condition,
    Fallback,
    Outcome,
    Rule,
    StreamWays,
    UsageWays,
)
from proxy.semantics.rule_models import FileModel, RetryAfterModel, RuleModel, ThenModel, told

__all__ = ["RuleFile", "parse_rule_file"]


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
    time_zone: tzinfo | None
    token_route: str | None


_OF_ONE_VENDOR = (
    *("vendor", "dialect", "dialects", "use", "end_mark", "end_mark_trusted", "untrusted_finishes", "text_mode"),
    *("key_header", "request_fields", "usage", "deadlines", "time_zone", "token_route"),
)


def parse_rule_file(file: str, text: str, dialects: Collection[str] = ()) -> RuleFile:
    """The file as a value. Raises RuleError for its first fault. `dialects` are those that there are; none: any do."""
    value, lines = parse_yaml(file, text)
    if not isinstance(value, dict):
        raise RuleError(file, lines.line_of(()), "must be a mapping with keys such as vendor, use and rules")
    try:
        model = FileModel.model_validate(value)
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
        time_zone=model.time_zone,
        token_route=model.token_route,
        request_fields={name: own or None for name, own in model.request_fields.items()},
        finish_reasons=model.finish_reasons,
        heartbeats=tuple(model.heartbeats),
        use=tuple((name, lines.line_of(("use", i))) for i, name in enumerate(model.use)),
        rules=tuple(_build_rule(file, rule, lines.line_of(("rules", i))) for i, rule in enumerate(model.rules)),
        fallback=tuple(Fallback(row.status, row.error_class) for row in model.fallback),
        ways=_build_ways(model),
        deadlines={name: value for name, value in model.deadlines if value is not None},
    )


def _build_ways(model: FileModel) -> StreamWays:
    usage = model.usage
    return StreamWays(
        end_mark=model.end_mark,
        untrusted_finishes=frozenset(word.lower() for word in model.untrusted_finishes),
        text_mode=model.text_mode,
        usage=UsageWays(
            tuple(usage.at),
            usage.scope,
            usage.reasoning,
            usage.cache,
            usage.unit,
            usage.source,
            frozenset(usage.untrusted),
            usage.billed.input,
            usage.billed.output,
        ),
    )


def _check_vendor(file: str, stem: str, model: FileModel, lines: Lines) -> None:
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


def _check_dialects(file: str, model: FileModel, lines: Lines, known: Collection[str]) -> None:
    key = "dialects" if model.dialects else "dialect"
    for position, name in enumerate(model.dialects or filter(None, [model.dialect])):
        if known and name not in known:
            line = lines.line_of((key, position))
            raise RuleError(file, line, f"{key}: {name!r} is not known; {nearest(name, known)}")
    if known and (route := model.token_route) is not None and route not in known:
        line = lines.line_of(("token_route",))
        routes = [name for name in known if name.startswith("toon.")]
        raise RuleError(file, line, f"token_route: {route!r} is not known; {nearest(route, routes)}")


def _build_rule(file: str, rule: RuleModel, line: int) -> Rule:
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


def _build_outcome(then: ThenModel) -> Outcome:
    wait = then.retry_after
    return Outcome(
        error_class=then.error_class,
        code=then.code,
        status=then.status,
        retryable=then.retryable,
        retry_after=wait if isinstance(wait, float) else None,
        retry_after_match=wait.match if isinstance(wait, RetryAfterModel) else None,
        retry_after_json=wait.json_ if isinstance(wait, RetryAfterModel) else None,
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
    return f"{'.'.join(names)}: {told(kind, text, names, value)}"
