"""Rule files changed by a program: what a person wrote stays, to the byte (contract R3)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.errors import RuleError
from proxy.learning.editing import RuleFileEditor
from proxy.learning.values import Draft
from proxy.semantics.rulefile import parse_rule_file
from proxy.stores.rules import default_rules_dir

pytestmark = pytest.mark.clause("R3")

DAY = date(2026, 12, 1)
SHIPPED = sorted(default_rules_dir().glob("*.yaml"))
DRAFT = Draft(
    vendor="acme",
    id="acme.learned",
    when={"status": 418, "match": {"$message": "سهمیه|余额"}},
    then={"class": "rate_limited", "code": "rate_limited"},
    evidence=("recordings/acme/errors/learned-1.jsonl",),
    seen=DAY,
    proof="captured",
    before=None,
    reason="like recordings/acme/errors/rate.jsonl: both say quota",
)
LEARNED = """\
  # like recordings/acme/errors/rate.jsonl: both say quota
  - id: acme.learned
    when: {status: 418, match: {$message: 'سهمیه|余额'}}
    then: {class: rate_limited, code: rate_limited}
    evidence: recordings/acme/errors/learned-1.jsonl
    seen: 2026-12-01
    proof: captured
"""
ACME = """\
# Acme.  Two spaces are meant.
vendor:   acme
finish_reasons: {done: stop,   'fertig': "stop"}   # in German too
use: [ _infra ]

rules:
  # ---- words
  # A day's budget.
  - id: acme.day
    when: {match: {$message: 'per day|प्रति दिन'}}   # Hindi
    then: { class: rate_limited, code: daily_limit_reached }
    evidence: recordings/acme/errors/day.jsonl  # from the forum
    seen: 2026-11-30
    proof: composed

  # ---- statuses
  - id: acme.busy
    when:
      status: [ 503,
                529 ]
    then: {class: model_unavailable, code: overloaded}
    evidence:
    - recordings/acme/errors/busy.jsonl   # 忙
    seen: 2026-11-30
    proof: simulated
  # To do: 402.

fallback: []
"""


def edited(text: str, file: str = "acme.yaml") -> RuleFileEditor:
    return RuleFileEditor(file, text)


def moved(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went and those that came."""
    told = list(difflib.ndiff(before.splitlines(keepends=True), after.splitlines(keepends=True)))
    return [line[2:] for line in told if line[0] == "-"], [line[2:] for line in told if line[0] == "+"]


def ids_of(text: str) -> list[str]:
    return [rule.id for rule in parse_rule_file("acme.yaml", text.replace("\r\n", "\n")).rules]


# ---- the shipped files


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_rule_in_a_shipped_file_adds_its_lines_and_moves_no_other(path: Path) -> None:
    """Behind all, and before each tenth rule."""
    text = path.read_text()
    rules = parse_rule_file(path.name, text).rules
    for before in [None, *(rule.id for rule in rules[::10])]:
        editor = edited(text, path.name)
        editor.add_rule(replace(DRAFT, before=before))
        gone, come = moved(text, editor.text)
        assert gone == []
        assert "".join(come).removeprefix("rules:\n") == LEARNED
        ids = [rule.id for rule in parse_rule_file(path.name, editor.text).rules]
        assert ids.index(DRAFT.id) == (ids.index(before) - 1 if before else len(rules))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_proof_in_a_shipped_file_touches_the_lines_of_its_rule(path: Path) -> None:
    """Evidence that is there already, of an earlier day and no stronger, changes no byte; a new one three keys."""
    text = path.read_text()
    for rule in parse_rule_file(path.name, text).rules[::10]:
        editor = edited(text, path.name)
        editor.prove(rule.id, rule.evidence, date(2020, 1, 1), "composed")
        assert editor.text == text
        editor.prove(rule.id, [*rule.evidence, "recordings/new.jsonl"], date(2099, 1, 1), "captured")
        gone, come = moved(text, editor.text)
        assert {line.split(":")[0].strip() for line in gone} <= {"evidence", "seen", "proof"}
        assert "".join(come).count("recordings/new.jsonl") == 1
        (now,) = (one for one in parse_rule_file(path.name, editor.text).rules if one.id == rule.id)
        assert now.evidence == (*rule.evidence, "recordings/new.jsonl")
        assert (now.seen, now.proof) == (date(2099, 1, 1), "captured")
        again = editor.text
        editor.prove(rule.id, ["recordings/new.jsonl"], date(2098, 1, 1), "simulated")
        assert editor.text == again


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_way_in_a_shipped_file_touches_one_line(path: Path) -> None:
    """Whether the key is there or not; the same again changes nothing."""
    text = path.read_text()
    editor = edited(text, path.name)
    ways: dict[str, object] = {"finish_reasons": {"готово": "stop"}, "heartbeats": ["^: 在吗"]}
    for key, value in (ways if path.stem.startswith("_") else {**ways, "end_mark_trusted": False}).items():
        before = editor.text
        editor.set_way(key, value)
        gone, come = moved(before, editor.text)
        assert len(gone) <= len(come) <= 1
        again = editor.text
        editor.set_way(key, value)
        assert editor.text == again
    old, new = parse_rule_file(path.name, text), parse_rule_file(path.name, editor.text)
    assert new.finish_reasons == {**old.finish_reasons, "готово": "stop"}
    assert [one.pattern for one in new.heartbeats] == [*(one.pattern for one in old.heartbeats), "^: 在吗"]
    assert new.end_mark_trusted is path.stem.startswith("_")


# ---- what a person wrote


def test_a_rule_stands_before_the_comment_of_the_one_it_precedes_and_below_its_headings() -> None:
    """As a person would put it."""
    editor = edited(ACME)
    editor.add_rule(replace(DRAFT, before="acme.day"))
    assert editor.text == ACME.replace("  # A day's budget.\n", f"{LEARNED}\n  # A day's budget.\n")
    editor = edited(ACME)
    editor.add_rule(replace(DRAFT, before="acme.busy"))
    assert editor.text == ACME.replace("  - id: acme.busy\n", f"{LEARNED}\n  - id: acme.busy\n")


def test_a_rule_stands_behind_all_with_an_empty_line_where_the_others_have_one() -> None:
    """Before what is said below the rules."""
    editor = edited(ACME)
    editor.add_rule(DRAFT)
    assert editor.text == ACME.replace("  # To do: 402.\n", f"\n{LEARNED}  # To do: 402.\n")
    close = ACME.replace("composed\n\n", "composed\n")
    editor = edited(close)
    editor.add_rule(DRAFT)
    assert editor.text == close.replace("  # To do: 402.\n", f"{LEARNED}  # To do: 402.\n")


def test_a_proof_keeps_comments_and_layout() -> None:
    """One text becomes a list, a list gets longer in its own indentation."""
    editor = edited(ACME)
    editor.prove("acme.day", ["recordings/acme/probes/p-1.jsonl"], DAY, "captured")
    editor.prove("acme.busy", ["recordings/acme/probes/p-2.jsonl"], DAY, "composed")
    expected = (
        ACME.replace(
            "    evidence: recordings/acme/errors/day.jsonl  # from the forum\n"
            "    seen: 2026-11-30\n    proof: composed\n",
            "    evidence:  # from the forum\n      - recordings/acme/errors/day.jsonl\n"
            "      - recordings/acme/probes/p-1.jsonl\n    seen: 2026-12-01\n    proof: captured\n",
        )
        .replace("# 忙\n", "# 忙\n    - recordings/acme/probes/p-2.jsonl\n")
        .replace("2026-11-30\n    proof: simulated", "2026-12-01\n    proof: simulated")
    )
    assert editor.text == expected


def test_ways_are_merged_and_new_keys_stand_beside_their_siblings() -> None:
    """Quotes, spaces and comments of what was there stay."""
    editor = edited(ACME)
    editor.set_way("finish_reasons", {"fertig": "stop", "终": "stop", "done": "length"})
    editor.set_way("use", ["_infra", "_google"])
    editor.set_way("key_header", "api-key")
    editor.set_way("heartbeats", ["^still"])
    head = editor.text.split("\n\n")[0]
    assert head == (
        "# Acme.  Two spaces are meant.\n"
        "vendor:   acme\n"
        "key_header: api-key\n"
        "finish_reasons: {done: length,   'fertig': \"stop\", 终: stop}   # in German too\n"
        "heartbeats: ['^still']\n"
        "use: [ _infra, _google ]"
    )
    assert editor.text.partition("\n\n")[2] == ACME.partition("\n\n")[2]


def test_what_a_person_said_of_figures_stays_beside_what_was_learned() -> None:
    """Whose they are, which are wrong, where a second scale stands: a program that finds a place changes none of it."""
    said = "usage: {source: relay,  untrusted: [reasoning], billed: {input: 'charged.in'}}   # 中转\n"
    editor = edited(ACME.replace("use: [ _infra ]", said + "use: [ _infra ]"))
    editor.set_way("usage", {"at": ["x_acme.usage"], "scope": "final"})
    usage = parse_rule_file("acme.yaml", editor.text).ways.usage
    assert (usage.source, usage.scope, *usage.untrusted) == ("relay", "final", "reasoning")
    assert "source: relay,  untrusted: [reasoning], billed: {input: 'charged.in'}" in editor.text
    assert "# 中转" in editor.text


def test_a_rule_that_is_too_long_for_its_line_opens_up() -> None:
    """Level by level, as the long ones of the shipped files. What breaks a line is escaped, also in a reason."""
    long = {"status": [400, "5xx"], "match": {"$message": ["余额不足" * 12, "it's\nover" * 9], "errors[*].code": "^a"}}
    editor = edited("vendor: acme\nrules: []   # none yet\n")
    editor.add_rule(
        replace(DRAFT, when=long, evidence=("a/1.jsonl", "a/2.jsonl"), reason="first\n- id: x\x00 " + "語" * 110)
    )
    assert editor.text == (
        "vendor: acme\n"
        "rules:   # none yet\n"
        "  # first - id: x\n"
        f"  # {'語' * 110}\n"
        "  - id: acme.learned\n"
        "    when:\n"
        "      status: [400, '5xx']\n"
        "      match:\n"
        "        $message:\n"
        f"          - '{'余额不足' * 12}'\n"
        '          - "' + "it's\\x0aover" * 9 + '"\n'
        "        'errors[*].code': '^a'\n"
        "    then: {class: rate_limited, code: rate_limited}\n"
        "    evidence:\n"
        "      - a/1.jsonl\n"
        "      - a/2.jsonl\n"
        "    seen: 2026-12-01\n"
        "    proof: captured\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vendor: acme\n", f"vendor: acme\nrules:\n{LEARNED}"),
        ("vendor: acme", f"vendor: acme\nrules:\n{LEARNED[:-1]}"),
        ("vendor: acme\nrules: []", f"vendor: acme\nrules:\n{LEARNED[:-1]}"),
        ("vendor: acme\nuse: [_infra]\n# the end\n", f"vendor: acme\nuse: [_infra]\nrules:\n{LEARNED}# the end\n"),
        ("vendor: acme\nrules: [\n]\nfallback: []\n", f"vendor: acme\nrules:\n{LEARNED}fallback: []\n"),
        ("vendor: acme\n\n# table\nfallback: []\n", f"vendor: acme\n\nrules:\n{LEARNED}# table\nfallback: []\n"),
        ("\ufeffvendor: acme\r\nrules: []\r\n", "\ufeffvendor: acme\r\nrules:\r\n" + LEARNED.replace("\n", "\r\n")),
        ("---\nvendor: acme\n...\n", f"---\nvendor: acme\nrules:\n{LEARNED}...\n"),
    ],
)  # fmt: skip
def test_a_first_rule(text: str, expected: str) -> None:
    """In a file without rules, with an empty list, without an end to its last line, from Windows."""
    editor = edited(text)
    editor.add_rule(DRAFT)
    assert editor.text == expected


def test_a_file_in_json_stays_json() -> None:
    """What is in flow style gets flow style; JSON is YAML, and so is what comes out."""
    rule = '{"id": "acme.a", "when": {"status": 1}, "then": {"class": "rate_limited", "code": "a"}}'.replace("1", "418")
    editor = edited(f'{{"vendor": "acme", "rules": [{rule}]}}\n')
    editor.add_rule(replace(DRAFT, before="acme.a"))
    editor.add_rule(replace(DRAFT, id="acme.last"))
    editor.prove("acme.a", ["a.jsonl"], DAY, "captured")
    editor.prove("acme.a", ["b.jsonl"], DAY, "captured")
    editor.set_way("end_mark_trusted", False)
    assert ids_of(editor.text) == ["acme.learned", "acme.a", "acme.last"]
    assert parse_rule_file("acme.yaml", editor.text).rules[1].evidence == ("a.jsonl", "b.jsonl")
    assert editor.text.startswith('{"vendor": "acme", end_mark_trusted: false, "rules": [{id: acme.learned, ')


def test_a_list_at_the_margin_gets_its_rule_at_the_margin() -> None:
    """And wide dashes stay wide."""
    text = "vendor: acme\nrules:\n-   id: acme.a\n    when: {status: 418}\n    then: {class: rate_limited, code: a}\n"
    editor = edited(text)
    editor.add_rule(replace(DRAFT, evidence=()))
    assert editor.text == text + (
        "# like recordings/acme/errors/rate.jsonl: both say quota\n"
        "-   id: acme.learned\n"
        "    when: {status: 418, match: {$message: 'سهمیه|余额'}}\n"
        "    then: {class: rate_limited, code: rate_limited}\n"
    )


# ---- what is refused


@pytest.mark.parametrize(
    ("change", "line", "reason"),
    [
        (lambda one: one.add_rule(replace(DRAFT, id="acme.day")), 9, "the id 'acme.day' is there already"),
        (
            lambda one: one.add_rule(replace(DRAFT, before="acme.dai")),
            None,
            "has no rule 'acme.dai' of its own; the nearest is 'acme.day'",
        ),
        (
            lambda one: one.prove("acme.bussy", ["a"], DAY, "captured"),
            None,
            "has no rule 'acme.bussy' of its own; the nearest is 'acme.busy'",
        ),
        (
            lambda one: one.add_rule(replace(DRAFT, when={"statuz": 418})),
            29,
            "rules.when.statuz: unknown key; the nearest valid one is 'status'",
        ),
        (lambda one: one.set_way("finish_reasons", {"x": "halt"}), 3, "finish_reasons.x: 'halt' is not known"),
        (lambda one: one.set_way("finish_reasons", "stop"), 3, "finish_reasons: stop does not fit what stands there"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(change: object, line: int | None, reason: str) -> None:
    """With the file, the line where there is one, and the reason."""
    editor = edited(ACME)
    assert callable(change)
    with pytest.raises(RuleError) as refused:
        change(editor)
    assert (refused.value.file, refused.value.line) == ("acme.yaml", line)
    assert refused.value.reason.startswith(reason)
    assert editor.text == ACME


def test_what_stands_at_an_alias_is_left_alone() -> None:
    """Its text stands for something else too; what has an anchor is changed where it stands."""
    text = (
        "vendor: acme\n"
        "finish_reasons: &words {done: stop}\n"
        "rules:\n"
        "  - id: acme.a\n"
        "    when: &all {status: 418}\n"
        "    then: {class: rate_limited, code: a}\n"
        "    evidence: &proof [a.jsonl]\n"
        "    seen: 2026-11-30\n"
        "    proof: composed\n"
        "  - id: acme.b\n"
        "    when: *all\n"
        "    then: {class: rate_limited, code: b}\n"
        "    evidence: *proof\n"
        "    seen: 2026-11-30\n"
        "    proof: composed\n"
    )
    editor = edited(text)
    with pytest.raises(RuleError, match=r"acme\.yaml:13: stands at an alias"):
        editor.prove("acme.b", ["b.jsonl"], DAY, "captured")
    with pytest.raises(RuleError, match="too unusual"):  # it would prove the other rule too
        editor.prove("acme.a", ["b.jsonl"], DAY, "captured")
    editor.add_rule(DRAFT)
    editor.set_way("finish_reasons", {"終": "stop"})
    assert editor.text == text.replace("{done: stop}", "{done: stop, 終: stop}") + LEARNED


def test_a_file_that_is_not_valid_is_refused() -> None:
    """Before anything is changed, with its line."""
    with pytest.raises(RuleError, match=r"acme\.yaml:2: rulez: unknown key"):
        edited("vendor: acme\nrulez: []\n")


# ---- any layout


PIECES = st.sampled_from(["", " ", "  ", "   "])
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
COMMENTS = st.sampled_from(["", "# ملاحظه", "# ---- 段落", "# - id: no.rule", "#"])


@st.composite
def files(draw: st.DrawFn) -> str:
    """A rule file as different hands lay it out."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    dash, gap = draw(PIECES), draw(st.sampled_from([" ", "   "]))
    lines = [draw(COMMENTS), "vendor: acme"]
    lines += draw(
        st.sampled_from(
            [[], ["use:", "- _infra  # 基"], ["heartbeats: [ 'a', ]"], ["finish_reasons:", "    done: stop"]]
        )
    )
    count = draw(st.integers(0, 4))
    lines += ["rules:" if count else draw(st.sampled_from(["rules: []", "rules: [ ]  # خالی", ""])), ""]
    for number in range(count):
        inside = dash + " " + " " * len(gap)
        if above := draw(COMMENTS):
            lines += [draw(PIECES) + above]
        lines += [f"{dash}-{gap}id: acme.r{number}{draw(PIECES)}"]
        lines += draw(
            st.sampled_from(
                [[f"{inside}when: {{status: 418}}"], [f"{inside}when:", f"{inside} status:", f"{inside} - 418"]]
            )
        )
        lines += [f"{inside}then: {{class: rate_limited, code: a}}  # 码"]
        lines += [f"{inside}{line}" for line in draw(st.sampled_from([
            (), ("evidence: a.jsonl", "seen: 2026-11-30", "proof: composed"),
            ("proof: 'composed'", "evidence:", " - a.jsonl # x", "", " - b.jsonl", "seen: 2026-11-30"),
        ]))]  # fmt: skip
        lines += [""] * draw(st.integers(0, 1))
    lines += [draw(COMMENTS)]
    return newline.join(lines) + draw(st.sampled_from(["", newline]))


@given(files(), st.integers(0, 4), WORDS, WORDS)
@example("vendor: acme\nrules: []", 0, "\ud7ff\u2028", "#")
def test_any_layout_keeps_its_lines(text: str, place: int, said: str, reason: str) -> None:
    """Whatever the hand and the vendor's words: the old lines are all there in their order, the new rule reads back as
    it was meant, and a second time changes nothing."""
    old = ids_of(text)
    before = f"acme.r{place}" if place < len(old) else None
    editor = edited(text)
    editor.add_rule(replace(DRAFT, before=before, when={"json": {"error.code": said}}, reason=reason))
    assert _is_subsequence(text, editor.text)
    assert ids_of(editor.text) == [*old[:place], DRAFT.id, *old[place:]]
    (rule,) = (one for one in parse_rule_file("acme.yaml", editor.text).rules if one.id == DRAFT.id)
    ((_, words),) = rule.when.json
    assert words == {said.lower()}
    editor.set_way("finish_reasons", {said: "stop"})
    for one in old:
        editor.prove(one, ["b.jsonl", "c.jsonl"], DAY, "captured")
    proved: Mapping[str, set[str]] = {
        one.id: set(one.evidence) for one in parse_rule_file("acme.yaml", editor.text).rules
    }
    assert all(proved[one] >= {"b.jsonl", "c.jsonl"} for one in old)
    again = editor.text
    editor.set_way("finish_reasons", {said: "stop"})
    for one in old:
        editor.prove(one, ["c.jsonl"], DAY, "simulated")
    assert editor.text == again
    assert ("\r\n" in editor.text) == ("\r\n" in text)


def _is_subsequence(before: str, after: str) -> bool:
    """Every old line, in order; an empty list may have opened up."""
    lines = iter(line.rstrip() for line in after.split("\n"))
    return all(
        line in lines for line in (one.rstrip() for one in before.split("\n")) if not line.startswith("rules: [")
    )
