"""Rule files to a `RuleSet`, or the first fault with file, line and reason.

One file per vendor (`openai.yaml`), and shared files whose names begin with `_`, taken in with `use:`. A vendor's rules
are tried in order: its own, those of the files it uses, those of `_default.yaml`; the fallback table by status
comes last. The language is described for operators at the top of `rules/_default.yaml`. This module touches no disk and
never accepts half a set. Contract clauses R1, R2, E and C4 (`vendor` names a file, which names its dialects).
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection, Mapping
from types import MappingProxyType

from proxy.errors import RuleError
from proxy.semantics.rule import Condition, Fallback, Outcome, Rule, RuleSet, VendorProfile
from proxy.semantics.rulefile import RuleFile, parse_rule_file

__all__ = ["DEFAULT_FILE", "Condition", "Fallback", "Outcome", "Rule", "RuleSet", "VendorProfile", "parse_rule_files"]

DEFAULT_FILE = "_default.yaml"


def parse_rule_files(files: Mapping[str, str], dialects: Collection[str] = ()) -> RuleSet:
    """`files` maps file names to their texts, `dialects` are those that there are (none: any will do). Raises RuleError
    for the first fault, by file name and then by line."""
    parsed = {name: parse_rule_file(name, files[name], dialects) for name in sorted(files)}
    if DEFAULT_FILE not in parsed:
        raise RuleError(DEFAULT_FILE, None, "is missing: it holds the rules for every vendor and the fallback table")
    if not parsed[DEFAULT_FILE].fallback:
        raise RuleError(DEFAULT_FILE, None, "has no `fallback:` table")
    _refuse_same_ids(parsed)
    vendors = {file.vendor: _build_profile(file, parsed) for file in parsed.values() if file.vendor is not None}
    if not vendors:
        raise RuleError(DEFAULT_FILE, None, "stands alone: no file says `vendor:`")
    used = {rule.file for profile in vendors.values() for rule in profile.rules}
    unused = tuple(rule for file in parsed.values() if file.file not in used for rule in file.rules)
    return RuleSet(MappingProxyType(vendors), _hash(files), tuple(sorted(files)), unused)


def _hash(files: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{files[name]}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def _refuse_same_ids(parsed: Mapping[str, RuleFile]) -> None:
    first: dict[str, Rule] = {}
    for file in parsed.values():
        for rule in file.rules:
            if (other := first.setdefault(rule.id, rule)) is not rule:
                raise RuleError(rule.file, rule.line, f"the id {rule.id!r} stands already at {other.file}:{other.line}")


def _build_profile(file: RuleFile, parsed: Mapping[str, RuleFile]) -> VendorProfile:
    assert file.vendor is not None
    shared = [_used_file(file, name, line, parsed) for name, line in file.use]
    default = parsed[DEFAULT_FILE]
    sources = [file, *(used for used in shared if used is not default), default]
    return VendorProfile(
        vendor=file.vendor,
        dialect=file.dialects[0],
        dialects=file.dialects,
        end_mark_trusted=file.end_mark_trusted,
        key_header=file.key_header,
        time_zone=file.time_zone,
        token_route=file.token_route,
        request_fields=MappingProxyType(dict(file.request_fields)),
        # The vendor's own words win over the shared ones.
        finish_reasons=MappingProxyType(
            {k: v for source in reversed(sources) for k, v in source.finish_reasons.items()}
        ),
        heartbeats=tuple(pattern for source in sources for pattern in source.heartbeats),
        rules=tuple(rule for source in sources for rule in source.rules),
        fallback=default.fallback,
        ways=file.ways,
        deadlines=MappingProxyType(dict(file.deadlines)),
    )


def _used_file(file: RuleFile, name: str, line: int | None, parsed: Mapping[str, RuleFile]) -> RuleFile:
    for used in (f"{name}.yaml", f"{name}.yml"):
        if used in parsed and parsed[used].vendor is None:
            return parsed[used]
    shared = [other.stem for other in parsed.values() if other.vendor is None]
    near = difflib.get_close_matches(name, shared, n=1, cutoff=0.0)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise RuleError(file.file, line, f"use: there is no shared file {name}{hint}")
