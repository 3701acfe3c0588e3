"""Profiles of vendors with ways of their own, for transcripts: what a rule file's top-level keys say.

In: the YAML lines of those keys. Out: the profile of a vendor that has them, and no rules but the shipped ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from proxy.semantics.rule import VendorProfile
from proxy.semantics.rulefile import parse_rule_file
from tests.support.pipelines import shipped_rules


@cache
def profile_with(keys: str, *, dialect: str = "openai") -> VendorProfile:
    """`openai_compatible` with these keys, speaking this dialect."""
    file = parse_rule_file("acme.yaml", f"vendor: acme\ndialect: {dialect}\n{keys}\n")
    return replace(
        shipped_rules().vendors["openai_compatible"],
        dialect=dialect,
        dialects=(dialect,),
        end_mark_trusted=file.end_mark_trusted,
        ways=file.ways,
        deadlines=file.deadlines,
    )
