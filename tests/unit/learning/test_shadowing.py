"""Which rules can never decide: what is named is shadowed, and what may still be reached is not named (contract R4)."""

from __future__ import annotations

import pytest

from proxy.learning.shadowing import _parts, find_shadowed
from proxy.semantics.ruleset import RuleSet, parse_rule_files

pytestmark = pytest.mark.clause("R4")

DEFAULT = "fallback:\n  - {status: any, class: model_unavailable}\n"


def a_rule(name: str, when: str) -> str:
    return f"  - id: {name}\n    when: {when}\n    then: {{class: rate_limited, code: {name}}}\n"


def shadows(rules: RuleSet) -> list[tuple[str, str]]:
    return [(shadow.rule.id, shadow.by.id) for shadow in find_shadowed(rules)]


def shadowed(earlier: str, later: str) -> bool:
    """Does the first condition leave nothing for the second?"""
    text = "vendor: acme\nrules:\n" + a_rule("first", earlier) + a_rule("second", later)
    found = shadows(parse_rule_files({"acme.yaml": text, "_default.yaml": DEFAULT}))
    assert found in ([], [("second", "first")])
    return bool(found)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("{status: 4xx}", "{status: [402, 429]}"),
        ("{status: any}", "{status: 429, match: {$message: '余额'}}"),
        ("{status: [429, 5xx]}", "{status: 503, phase: head}"),
        ("{phase: [head, first, mid, end]}", "{body: busy}"),
        ("{phase: [first, mid]}", "{phase: mid, status: 429}"),
        ("{event: [error, fehler]}", "{event: ERROR}"),
        ("{finish: [error, network_error]}", "{finish: network_error, status: 200}"),
        ("{json: {error.code: [1113, 1114]}}", "{json: {error.code: 1113, error.type: quota}}"),
        ("{match: {$code: '^quota$'}}", "{json: {$code: [QUOTA]}}"),
        ("{match: {$code: '^11[0-9]{2}$'}}", "{json: {$code: [1113, '1114']}}"),
        ("{match: {$message: 'balance|quota'}}", "{match: {$message: 'quota'}}"),
        ("{match: {$message: [balance, quota]}}", "{match: {$message: ['quota', 'no balance left']}}"),
        ("{match: {$message: 'quot'}}", "{match: {$message: 'your (daily )?QUOTA.{0,30}exceeded'}}"),
        ("{match: {$message: '余额|欠费'}}", "{match: {$message: '账户欠费'}}"),
        ("{match: {$message: '\\bquota\\b'}}", "{match: {$message: '\\bquota\\b'}, status: 429}"),
        ("{match: {$message: 'too \\w+ requests'}}", "{match: {$message: 'too many requests'}}"),
        ("{body: 'rate limit'}", "{body: 'rate limit(ed)?'}"),
        ("{comment: 'HTTP_STATUS'}", "{comment: '^HTTP_STATUS/429'}"),
        ("{header: {X-Error: quota}}", "{header: {x-error: 'quota'}, status: 429}"),
    ],
)
def test_a_narrower_condition_behind_a_wider_one_is_shadowed(earlier: str, later: str) -> None:
    """Each kind of condition, by itself and beside others; never the other way round."""
    assert shadowed(earlier, later)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("{status: [400, 403]}", "{status: 4xx}"),
        ("{status: any}", "{match: {$message: busy}}"),
        ("{status: 429, phase: head}", "{status: 429}"),
        ("{event: error}", "{phase: mid}"),
        ("{finish: error}", "{finish: network_error}"),
        ("{json: {error.code: 1113}}", "{json: {error.code: [1113, 1114]}}"),
        ("{json: {error.code: 1113}}", "{json: {code: 1113}}"),
        ("{match: {$code: 'true'}}", "{json: {$code: true}}"),
        ("{match: {$code: '\\d'}}", "{json: {$code: 12345678901234567890}}"),
        ("{match: {$message: 'quota'}}", "{match: {$code: 'quota'}}"),
        ("{match: {$message: '^quota'}}", "{match: {$message: 'quota'}}"),
        ("{match: {$message: '\\bquota\\b'}}", "{match: {$message: 'quota'}}"),
        ("{match: {$message: 'quota(?! left)'}}", "{match: {$message: 'quota'}}"),
        ("{match: {$message: '(?-i:quota)'}}", "{match: {$message: 'quota'}}"),
        ("{match: {$message: 'b20'}}", "{match: {$message: '\\u6b20\\u8d39'}}"),
        ("{match: {$message: '41'}}", "{match: {$message: '\\x41'}}"),
        ("{match: {$message: 'letter'}}", "{match: {$message: '\\N{DEVANAGARI LETTER KA}'}}"),
        ("{match: {$message: '12'}}", "{match: {$message: '\\012'}}"),
        ("{match: {$message: '(?#see (1)quota'}}", "{match: {$message: 'quota(?#or (2)'}}"),
        ('{match: {$message: "\\\\s|b"}}', '{match: {$message: "(?x:a # )\\n | b )"}}'),
        ("{match: {$message: 'quota'}}", "{match: {$message: 'quota|balance'}}"),
        ("{match: {$message: 'quota'}}", "{match: {$message: '(quota)?.*busy'}}"),
        ("{match: {$message: 'quotas'}}", "{match: {$message: 'quotas?'}}"),
        ("{match: {$message: 'quotas'}}", "{match: {$message: 'quotas{0,1}'}}"),
        ("{match: {$message: '2,3'}}", "{match: {$message: 'a{2,3}'}}"),
        ("{match: {$message: 'ab'}}", "{match: {$message: 'a.b'}}"),
        ("{match: {$message: 'dd'}}", "{match: {$message: '\\d\\d'}}"),
        ("{match: {$message: 'quota'}}", "{match: {$message: '[quota]'}}"),
        ("{match: {$message: 'a b'}}", "{match: {$message: '(?x)a b'}}"),
        ("{body: busy}", "{match: {$message: busy}}"),
        ("{header: {x-error: quota}}", "{header: {x-reason: quota}}"),
        ("{comment: '429'}", "{status: 429}"),
    ],
)
def test_a_condition_that_may_still_hold_is_not_named(earlier: str, later: str) -> None:
    """Less than the earlier one asks, or more than can be read from an expression: no false alarm."""
    assert not shadowed(earlier, later)


SHARED = "rules:\n" + a_rule("shared.rate", "{status: 429}")


@pytest.mark.parametrize(
    ("other", "found"), [("status: 4xx", [("shared.rate", "acme.all")]), ("status: 500", [])], ids=["all", "one"]
)
def test_a_shared_rule_is_shadowed_only_where_it_is_so_for_every_vendor(
    other: str, found: list[tuple[str, str]]
) -> None:
    """One vendor's own rule may well take all of what a shared one is there for at others."""
    acme = "vendor: acme\nuse: [_shared]\nrules:\n" + a_rule("acme.all", "{status: 429}")
    beta = "vendor: beta\nuse: [_shared]\nrules:\n" + a_rule("beta.all", f"{{{other}}}")
    files = {"acme.yaml": acme, "beta.yaml": beta, "_shared.yaml": SHARED, "_default.yaml": DEFAULT}

    assert shadows(parse_rule_files(files)) == found


def test_a_long_file_is_compared_rule_by_rule() -> None:
    """Each expression is taken apart once: of 400 rules the last, shadowed by the first, is found."""
    rules = "".join(a_rule(f"acme.r{i}", f"{{match: {{$message: 'अर्थ{i}x|कोड {i}y'}}}}") for i in range(400))
    text = "vendor: acme\nrules:\n" + rules + a_rule("acme.last", "{match: {$message: 'कोड 0y!'}}")
    _parts.cache_clear()

    assert shadows(parse_rule_files({"acme.yaml": text, "_default.yaml": DEFAULT})) == [("acme.last", "acme.r0")]
    assert _parts.cache_info().misses == 401
