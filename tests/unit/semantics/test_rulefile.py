"""Rule files as operators write them: what is taken, and what is refused with file, line and reason."""

from __future__ import annotations

import pytest

from proxy.canon.verdict import ErrorClass, Phase
from proxy.errors import RuleError
from proxy.semantics.rule import StreamWays, UsageWays
from proxy.semantics.ruleset import RuleSet, parse_rule_files

pytestmark = pytest.mark.clause("R2")

DEFAULT = """\
finish_reasons: {stop: stop, max_tokens: length}
rules:
  - id: default.rate
    when: {status: 429}
    then: {class: rate_limited, code: rate_limited}
    evidence: recordings/acme/errors/rate.jsonl
    seen: 2026-11-30
    proof: composed
fallback:
  - {status: 4xx, class: invalid_request}
  - {status: any, class: model_unavailable}
"""
SHARED = """\
rules:
  - id: gateway.page
    when: {body: '<html'}
    then: {class: model_unavailable, code: bad_gateway}
    evidence: recordings/acme/errors/page.jsonl
    seen: 2026-11-30
    proof: simulated
"""
ACME = """\
vendor: acme
dialects: [openai, anthropic]
end_mark_trusted: false
finish_reasons: {fertig: stop, max_tokens: stop}
heartbeats: ['^PROCESSING']
use: [_gateway]
rules:
  - id: acme.balance
    when:
      status: [402, 5xx]
      header: {X-Error: quota}
      json: {error.code: [30001, null, true], 'details[0].reason': NO_MONEY}
      match: {$message: ['余额', balance]}
      phase: [head, first]
    then:
      class: auth_failure
      code: insufficient_balance
      message: Top the account up.
    evidence: [recordings/acme/errors/a.jsonl, recordings/acme/errors/b.jsonl]
    seen: 2026-11-30
    proof: captured
"""


def parse(acme: str = ACME, default: str = DEFAULT, **more: str) -> RuleSet:
    return parse_rule_files({"acme.yaml": acme, "_default.yaml": default, "_gateway.yaml": SHARED, **more})


def refused(acme: str = ACME, default: str = DEFAULT, **more: str) -> str:
    with pytest.raises(RuleError) as raised:
        parse(acme, default, **more)
    return str(raised.value)


def test_a_vendor_gets_its_own_rules_then_the_used_ones_then_the_default() -> None:
    """The order of the files is the order in which rules are tried."""
    assert [rule.id for rule in parse().profile("acme").rules] == ["acme.balance", "gateway.page", "default.rate"]


def test_what_a_vendor_file_says_is_in_its_profile() -> None:
    """Dialects, the end mark, heartbeats, and finish reasons, of which the vendor's own win."""
    profile = parse().profile("acme")
    assert (profile.dialect, profile.dialects, profile.end_mark_trusted) == ("openai", ("openai", "anthropic"), False)
    assert profile.finish_reasons == {"stop": "stop", "max_tokens": "stop", "fertig": "stop"}
    assert [pattern.pattern for pattern in profile.heartbeats] == ["^PROCESSING"]


def test_the_ways_of_a_vendor_are_in_its_profile() -> None:
    """How it speaks its usual dialect, and deadlines; nothing said is the dialect's own."""
    keys = """\
end_mark: never
untrusted_finishes: STOP
text_mode: final_repeat
usage: {at: [x_acme.usage, 'choices[0].usage'], scope: increments, reasoning: outside, cache: absent}
deadlines: {first_byte: 300, stall: 0.5}
"""
    profile = parse(ACME.replace("end_mark_trusted: false\n", keys)).profile("acme")
    ways = profile.ways
    assert (ways.end_mark, ways.text_mode, set(ways.untrusted_finishes)) == ("never", "final_repeat", {"stop"})
    assert [path.text for path in ways.usage.at] == ["x_acme.usage", "choices[0].usage"]
    assert (ways.usage.scope, ways.usage.reasoning, ways.usage.cache) == ("increments", "outside", "absent")
    assert profile.deadlines == {"first_byte": 300.0, "stall": 0.5}
    assert (parse().profile("acme").ways, parse().profile("acme").deadlines) == (StreamWays(), {})


def test_ways_are_those_of_the_usual_dialect() -> None:
    """In another dialect of the vendor all is as its family does it."""
    profile = parse(ACME.replace("use: [", "text_mode: cumulative\nuse: [")).profile("acme")
    assert profile.speaking("openai") is profile
    assert profile.speaking("anthropic").ways == StreamWays()
    assert profile.speaking("anthropic").rules == profile.rules


@pytest.mark.parametrize(
    ("line", "told", "right"),
    [
        ("end_mark: sometimes", "end_mark: 'sometimes' is not known; ", "sent"),
        ("text_mode: delte", "text_mode: 'delte' is not known; ", "delta"),
        ("untrusted_finish: [STOP]", "untrusted_finish: unknown key; ", "untrusted_finishes"),
        ("untrusted_finishes: [STOP]", "untrusted_finishes: with end_mark_trusted: false nothing would ever end", ""),
        ("usage: {scop: final}", "usage.scop: unknown key; ", "scope"),
        ("usage: {scope: incremental}", "usage.scope: 'incremental' is not known; ", "increments"),
        ("usage: {reasoning: outsite}", "usage.reasoning: 'outsite' is not known; ", "outside"),
        ("usage: {at: ['x..usage']}", "usage.at: 'x..usage' is not a path", ""),
        ("usage: {at: [$message]}", "usage.at: $message is no place", "x_acme.usage"),
        ("usage: {unit: charakters}", "usage.unit: 'charakters' is not known; ", "characters"),
        ("usage: {source: relais}", "usage.source: 'relais' is not known; ", "relay"),
        ("usage: {untrusted: [raisoning]}", "usage.untrusted: 'raisoning' is not known; ", "reasoning"),
        ("usage: {billed: {inputs: a}}", "usage.billed.inputs: unknown key; ", "input"),
        ("usage: {billed: {input: 'a[*].b'}}", "usage.billed.input: a[*].b may stand for several places", "billed"),
        ("deadlines: {frist_byte: 3}", "deadlines.frist_byte: unknown key; ", "first_byte"),
        ("deadlines: {stall: -1}", "deadlines.stall: ", "0"),
        ("deadlines: {total: 90000}", "deadlines.total: ", "86400"),
        ("deadlines: {idle: .nan}", "deadlines.idle: ", ""),
    ],
)
def test_a_wrong_way_is_refused_by_line_and_word(line: str, told: str, right: str) -> None:
    """An unknown word names the nearest right one."""
    complaint = refused(ACME.replace("finish_reasons:", f"{line}\nfinish_reasons:"))
    start = f"acme.yaml:4: {told}"
    assert complaint.startswith(start)
    assert right in complaint.removeprefix(start)


def test_what_figures_are_worth_is_said_of_the_usual_dialect_but_who_counts_of_all() -> None:
    """A relay makes figures up whatever it is asked in; units, places and wrong figures are of one API."""
    keys = "usage: {source: relay, unit: characters, untrusted: [input, reasoning], billed: {output: a.b}}\n"
    profile = parse(ACME.replace("end_mark_trusted: false\n", keys)).profile("acme")
    usual, other = profile.ways.usage, profile.speaking("responses").ways.usage
    assert (usual.source, usual.unit, set(usual.untrusted)) == ("relay", "characters", {"input", "reasoning"})
    assert (usual.billed_input, usual.billed_output and usual.billed_output.text) == (None, "a.b")
    assert other == UsageWays(source="relay")
    assert profile.speaking(profile.dialect) is profile


@pytest.mark.parametrize("line", ["end_mark: sent", "text_mode: delta", "usage: {scope: final}", "key_header: x-key"])
def test_a_shared_file_has_no_ways(line: str) -> None:
    """They would be of no vendor, so they are refused rather than passed over."""
    assert f"{line.partition(':')[0]}: a shared file" in refused(_gateway=f"{line}\n{SHARED}")


def test_a_rule_keeps_where_it_was_written_and_what_proves_it() -> None:
    """File, line, evidence, date and proof stand in the rule."""
    rule = parse().profile("acme").rules[0]
    assert (rule.file, rule.line, rule.proof, str(rule.seen)) == ("acme.yaml", 8, "captured", "2026-11-30")
    assert rule.evidence == ("recordings/acme/errors/a.jsonl", "recordings/acme/errors/b.jsonl")
    assert rule.when.phase == frozenset((Phase.HEAD, Phase.FIRST))
    assert rule.then.error_class is ErrorClass.AUTH_FAILURE


def test_a_rule_may_stand_without_any_proof() -> None:
    """Evidence, date and proof may be left out together, for a meaning that nobody has seen at work yet."""
    bare = ACME[: ACME.index("    evidence: [recordings/acme")]
    rule = parse(bare).profile("acme").rules[0]
    assert (rule.id, rule.evidence, rule.seen, rule.proof) == ("acme.balance", (), None, None)


def test_equal_texts_are_one_version_and_any_edit_is_another() -> None:
    """`version` is a hash of the texts."""
    assert parse().version == parse().version
    assert parse().version != parse(ACME + "# a remark\n").version


def test_an_unknown_vendor_is_told_the_nearest_name() -> None:
    """A misspelt vendor is a RuleError that names the right one."""
    with pytest.raises(RuleError, match="did you mean 'acme'"):
        parse().profile("acmee")
    with pytest.raises(RuleError, match="known are acme"):
        parse().profile("zzz")


def edited(old: str, new: str, text: str = ACME) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("when:", "wenn:", "9: rules.wenn: unknown key; the nearest valid one is 'when'"),
        ("      status:", "      statuz:", "10: rules.when.statuz: unknown key; the nearest valid one is 'status'"),
        ("      code: ins", "      kode: ins", "17: rules.then.kode: unknown key; the nearest valid one is 'code'"),
        ("use: [", "uses: [", "6: uses: unknown key; the nearest valid one is 'use'"),
        ("[402, 5xx]", "[402, 6xx]", "10: rules.when.status: '6xx' is not a status"),
        ("[402, 5xx]", "4290", "10: rules.when.status: 4290 is not a status"),
        ("[402, 5xx]", "[]", "10: rules.when.status: an empty list never holds"),
        ("['余额', balance]", "'(unclosed'", "13: rules.when.match.$message: bad regular expression '(unclosed'"),
        ("['余额', balance]", "['ok', '[']", "13: rules.when.match.$message: bad regular expression '['"),
        ("['余额', balance]", "17", "13: rules.when.match.$message: must be a regular expression"),
        ("$message", "$massage", "13: rules.when.match.$massage: unknown name '$massage'"),
        ("error.code:", "error..code:", "12: rules.when.json.error..code: 'error..code' is not a path"),
        ("[30001, null, true]", "{a: 1}", "12: rules.when.json.error.code: must be a value or a list of values"),
        ("[head, first]", "[heads]", "14: rules.when.phase: 'heads' is not known; the nearest valid one is 'head'"),
        (
            "auth_failure",
            "auth_failures",
            "16: rules.then.class: 'auth_failures' is not known; the nearest valid one is 'auth_failure'",
        ),
        ("insufficient_balance", "Insufficient Balance", "17: rules.then.code: 'Insufficient Balance' is not a word"),
        ("insufficient_balance", "unmapped", "15: rules.then: code: 'unmapped' is kept for answers that no rule knows"),
        (
            "message: Top",
            "status: 400\n      message: Top",
            "15: rules.then: status: auth_failure has a status of its own",
        ),
        (
            "message: Top",
            "retryable: true\n      message: Top",
            "15: rules.then: retryable: auth_failure is never retried",
        ),
        ("message: Top", "retry_after: -1\n      message: Top", "18: rules.then.retry_after: must be seconds"),
        ("message: Top", "retry_after: {match: x}\n      message: Top", "18: rules.then.retry_after"),
        ("seen: 2026-11-30", "seen: yesterday", "20: rules.seen: "),
        ("proof: captured", "proof: seen", "21: rules.proof: 'seen' is not known"),
        ("    proof: captured\n", "", "8: rules: proof missing: evidence, seen and proof stand together or not at all"),
        ("    seen: 2026-11-30\n    proof: captured\n", "", "8: rules: seen and proof missing: "),
        ("vendor: acme\n", "", "1: vendor is missing; write `vendor: acme`"),
        ("vendor: acme", "vendor: acmee", "1: vendor: must be 'acme', as the file is called"),
        ("_gateway", "_gatewai", "6: use: there is no shared file _gatewai; did you mean _gateway?"),
        ("fertig: stop", "fertig: done", "4: finish_reasons.fertig: 'done' is not known"),
        ("dialects:", "dialect: openai\ndialects:", "3: has both dialect and dialects"),
        ("[openai, anthropic]", "[]", "2: dialects: must not be empty"),
        ("end_mark_trusted: false", "end_mark_trusted: 'no'", "3: end_mark_trusted: "),
        ("acme.balance", "default.rate", "8: the id 'default.rate' stands already at _default.yaml:3"),
        ("      phase:", "      status: 429\n      phase:", "14: the key 'status' stands twice"),
        ("use: [_gateway]", "use: [_gateway", "7: is not YAML: "),
        ("use: [_gateway]", "use: *nowhere", "6: is not YAML: "),
        ("heartbeats: [", "heartbeats: &a [*a, ", "5: holds itself"),
        (
            "use: [_gateway]",
            "fallback: [{status: 500, class: model_unavailable}]",
            "6: fallback: stands in _default.yaml alone",
        ),
    ],
)
def test_a_fault_is_told_by_file_line_and_reason(old: str, new: str, told: str) -> None:
    """Each wrong edit of a good file is refused where it was made."""
    assert refused(edited(old, new)).startswith(f"acme.yaml:{told}")


def test_a_rule_that_asks_nothing_is_refused() -> None:
    """It would take every answer."""
    text = edited("when: {status: 429}", "when: {}", DEFAULT)
    assert refused(default=text) == "_default.yaml:4: rules.when: asks nothing, so it would take every answer"


def test_of_many_faults_the_first_is_told() -> None:
    """A person reads a file from the top."""
    text = edited("proof: captured", "proof: seen", edited("status: [402, 5xx]", "status: [7]"))
    assert refused(text).startswith("acme.yaml:10: ")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"acme.yaml": ACME}, "_default.yaml: is missing"),
        ({"_default.yaml": DEFAULT.split("fallback:")[0]}, "_default.yaml: has no `fallback:` table"),
        ({"_default.yaml": DEFAULT}, "_default.yaml: stands alone"),
        ({"_default.yaml": ""}, "_default.yaml:1: is empty"),
        ({"_default.yaml": "- a list\n"}, "_default.yaml:1: must be a mapping"),
        ({"_default.yaml": DEFAULT, "_x.yaml": "vendor: x\n"}, "_x.yaml:1: vendor: a shared file"),
        ({"_default.yaml": DEFAULT, "x.yaml": "vendor: x\nrules: [{seen: 2026-13-99}]\n"}, "x.yaml:2: '2026-13-99' "),
        ({"_default.yaml": DEFAULT, "x.yaml": "vendor: \x00\n"}, "x.yaml:1: is not YAML: the character U+0000 "),
        ({"_default.yaml": DEFAULT, "x.yaml": "vendor: " + "[" * 5000}, "x.yaml"),
    ],
)
def test_a_set_that_is_not_whole_is_refused(files: dict[str, str], told: str) -> None:
    """Half a set is never accepted."""
    with pytest.raises(RuleError) as raised:
        parse_rule_files(files)
    assert str(raised.value).startswith(told)


def test_a_status_is_the_callers_only_for_its_own_mistakes() -> None:
    """Contract E gives every other class one status."""
    good = edited("class: rate_limited", "class: invalid_request, status: 422", DEFAULT)
    assert parse(default=good).profile("acme").rules[-1].then.status == 422
    bad = edited("class: rate_limited", "class: invalid_request, status: 418", DEFAULT)
    assert "status: must be one of 400, 404, 413, 415, 422" in refused(default=bad)
