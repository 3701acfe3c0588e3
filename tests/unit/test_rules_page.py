"""docs/rules.md is true: its files parse, its conditions hold where it says, its commands print what it shows."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from proxy.__main__ import run
from proxy.canon.verdict import ErrorClass, Observation, Phase
from proxy.learning.verdict_lock import parse_lock
from proxy.semantics import rule_models
from proxy.semantics.classifier import classify
from proxy.semantics.kinds import Strict
from proxy.semantics.paths import SAID, parse_path
from proxy.semantics.rule import RuleSet
from proxy.semantics.ruleset import parse_rule_files
from proxy.semantics.verdicts import STATUS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
DEFAULT = "fallback:\n  - {status: any, class: model_unavailable}\n"
SHARED = "rules: []\n"


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(kind: str, text: str = PAGE) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def first_cells(title: str) -> list[str]:
    """The code in the first column of a section's tables."""
    return re.findall(r"^\| `([^`]+)` \|", section(title), re.MULTILINE)


def parse(acme: str = "vendor: acme\n", default: str = DEFAULT) -> RuleSet:
    return parse_rule_files({"acme.yaml": acme, "_default.yaml": default, "_infra.yaml": SHARED})


def a_rule(when: str, then: str = "class: rate_limited, code: seen") -> str:
    return f"vendor: acme\nrules:\n  - id: acme.seen\n    when: {{{when}}}\n    then: {{{then}}}\n"


@pytest.mark.clause("R1")
@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.split("\n")[0])
def test_every_file_that_is_shown_is_valid(block: str) -> None:
    """A vendor's file, one rule, the table at the end of the shared one."""
    if block.startswith("fallback:"):
        assert len(parse(default=block).profile("acme").fallback) == 3
    else:
        text = block if block.startswith("vendor:") else f"vendor: acme\nrules:\n{block}"
        assert len(parse(text).profile("acme").rules) == 1


JSON_429 = {"error": {"code": 1305, "message": "رصيد"}}
#: For each condition of the page, an answer for which it holds, and one for which it does not.
ANSWERS: dict[str, tuple[Observation, Observation]] = {
    "status: 429": (
        Observation("acme", Phase.FIRST, 200, payload={"error": {"code": 429}}),
        Observation("acme", Phase.HEAD, 500, payload={"error": {"code": 429}}),
    ),
    "status: [402, '5xx']": (Observation("acme", Phase.HEAD, 503), Observation("acme", Phase.HEAD, 403)),
    "json: {error.code: 1305}": (
        Observation("acme", Phase.HEAD, 400, payload={"error": {"code": "1305"}}),
        Observation("acme", Phase.HEAD, 400, payload={"error": {"code": 13055}}),
    ),
    "json: {$code: [1305, 1312]}": (
        Observation("acme", Phase.HEAD, 400, payload={"errcode": 1312}),
        Observation("acme", Phase.HEAD, 400, payload={"message": "1312"}),
    ),
    "match: {$message: 'balance'}": (
        Observation("acme", Phase.HEAD, 400, payload={"msg": "Your BALANCE is 0"}),
        Observation("acme", Phase.HEAD, 400, payload={"choices": [{"delta": {"content": "balance"}}]}),
    ),
    "match: {$message: ['欠费', 'رصيد', 'overdue']}": (
        Observation("acme", Phase.HEAD, 400, payload=JSON_429),
        Observation("acme", Phase.HEAD, 400, payload={"error": {"message": "नमस्ते"}}),
    ),
    "header: {x-error: 'quota'}": (
        Observation("acme", Phase.HEAD, 400, {"x-error": "no Quota left"}),
        Observation("acme", Phase.HEAD, 400, body=b"quota"),
    ),
    "body: '<title>Blocked'": (
        Observation("acme", Phase.HEAD, 403, body=b"<html><title>Blocked</title></html>"),
        Observation("acme", Phase.HEAD, 403, body=b'{"message": "<title>Blocked"}'),
    ),
    "phase: head": (Observation("acme", Phase.HEAD, 200), Observation("acme", Phase.MID, 200)),
    "finish: network_error": (
        Observation("acme", Phase.MID, 200, finish="network_error"),
        Observation("acme", Phase.MID, 200, finish="stop"),
    ),
    "event: error": (
        Observation("acme", Phase.MID, 200, event="error"),
        Observation("acme", Phase.MID, 200, event="message"),
    ),
    "comment: 'HTTP_STATUS/429'": (
        Observation("acme", Phase.MID, 200, comments=("HTTP_STATUS/429",)),
        Observation("acme", Phase.MID, 200, comments=("HTTP_STATUS/200",)),
    ),
}


@pytest.mark.clause("R1")
def test_every_condition_of_the_page_is_tried() -> None:
    """And the page has every condition that there is."""
    shown = first_cells("Conditions")
    assert sorted(shown) == sorted(ANSWERS)
    assert {condition.split(":")[0] for condition in shown} == set(keys_of(rule_models.WhenModel))


@pytest.mark.clause("R1")
@pytest.mark.parametrize("condition", ANSWERS)
def test_a_condition_holds_where_the_page_says(condition: str) -> None:
    """And does not where it does not say so."""
    profile = parse(a_rule(condition)).profile("acme")
    assert [classify(profile, answer, 0.0).mapped for answer in ANSWERS[condition]] == [True, False]


@pytest.mark.clause("R1")
@pytest.mark.parametrize("words", first_cells("What a rule says"))
def test_whatever_a_rule_may_say_is_valid(words: str) -> None:
    """Each key of `then` with the rest that it needs."""
    whole = {"class": "invalid_request" if words.startswith("status") else "model_unavailable", "code": "seen"}
    then = yaml.safe_load(f"{{{words}}}")
    assert isinstance(then, dict)
    text = yaml.safe_dump({**whole, **then}, allow_unicode=True, default_flow_style=True, width=1000).strip()
    assert parse(a_rule("status: 429", text[1:-1])).profile("acme").rules[0].id == "acme.seen"


@pytest.mark.clause("R1")
@pytest.mark.parametrize("words", first_cells("A vendor's file"))
def test_every_key_of_a_vendors_file_is_valid(words: str) -> None:
    """As the page writes it."""
    text = words if words.startswith("vendor") else f"vendor: acme\n{words}"
    assert parse(f"{text}\n").profile("acme").vendor == "acme"


def keys_of(model: type[Strict]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


@pytest.mark.clause("R1")
def test_every_key_of_the_language_is_on_the_page() -> None:
    """None is left for an operator to find in the source."""
    code = " ".join(re.findall(r"`([^`\n]+)`", PAGE)) + " ".join(blocks("yaml"))
    one = rule_models
    models: list[type[Strict]] = [one.FileModel, one.RuleModel, one.WhenModel, one.ThenModel, one.FallbackModel]
    models += [one.RetryAfterModel, one.UsageModel, one.BilledModel, one.DeadlinesModel]
    keys = [key for model in models for key in keys_of(model)]
    assert [key for key in keys if not re.search(rf"(?<!\w){key}\b", code)] == []


@pytest.mark.clause("R1")
@pytest.mark.parametrize(
    ("path", "payload"),
    [
        ("error.code", {"error": {"code": "七"}}),
        ("detail[0].msg", {"detail": [{"msg": "七"}, {"msg": "八"}]}),
        ("errors[*].reason", {"errors": [{"reason": "七"}]}),
        ("[0].error.code", [{"error": {"code": "七"}}]),
        ("$", "七"),
    ],
)
def test_a_path_leads_where_the_page_says(path: str, payload: object) -> None:
    """Every one of the table, but for those that look everywhere."""
    assert parse_path(path).select(payload) == ["七"]
    assert set(first_cells("Paths")) == {
        "error.code",
        "detail[0].msg",
        "errors[*].reason",
        "[0].error.code",
        "$",
        *SAID,
    }


@pytest.mark.clause("E")
def test_the_classes_are_those_of_the_contract() -> None:
    """With the caller's status; a credential that is ours is 502."""
    rows = re.findall(r"^\| `(\w+)` \|.*?\| (\d{3}).*?\|", section("How an answer is judged"), re.MULTILINE)
    assert {name: int(status) for name, status in rows} == {str(one): STATUS[one] for one in ErrorClass}


@pytest.mark.clause("R4")
def test_the_lock_that_is_shown_is_one() -> None:
    """Line by line."""
    (lines,) = blocks("text", section("What check-rules finds"))
    assert len(parse_lock("verdicts.lock", f"sluice verdicts 1\n{lines}")) == 2


# -- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the rules, accepted as they are, beside the recordings; the working folder."""
    shutil.copytree(ROOT / "rules", tmp_path / "rules")
    (tmp_path / "recordings").symlink_to(ROOT / "recordings")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a text with what it prints, and each edit, in order."""
    for kind, block in re.findall(r"^```(console|diff)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if kind == "diff":
            yield "edit", block
        else:
            for part in block.split("$ ")[1:]:
                command, _, printed = part.partition("\n")
                yield command, printed


def printed_by(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    if command.startswith("sluice "):
        run(shlex.split(command)[1:])
        captured = capsys.readouterr()
        return captured.out + captured.err
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout


def is_shown(printed: str, shown: str) -> bool:
    """`…` stands for the rest of a word, and alone on a line for any lines."""
    lines = ["(?:.*\n)*" if line == "…\n" else re.escape(line).replace("…", r"\S+") for line in shown.splitlines(True)]
    return re.fullmatch("".join(lines), printed) is not None


@pytest.mark.clause("R4")
def test_the_worked_example_goes_as_it_is_told(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Find a code, change its class, see what moves, accept it; then nothing moves any more."""
    assert run(["check-rules", "--rules", "rules", "--accept"]) == 0
    capsys.readouterr()
    commands = 0
    for step, text in steps(section("Change the meaning of one code")):
        if step == "edit":
            old, new = (line[1:] for line in text.splitlines())
            file = checkout / "rules" / "zhipu.yaml"
            assert file.read_text().count(old) == 1
            file.write_text(file.read_text().replace(old, new))
        else:
            printed = printed_by(step, capsys)
            assert is_shown(printed, text), f"{step}\n{printed}"
            commands += 1
    assert commands == 4
    assert run(["check-rules", "--rules", "rules"]) == 0


@pytest.mark.clause("R2")
def test_a_refusal_reads_as_it_is_told(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A class misspelt in the file of the example."""
    file = checkout / "rules" / "zhipu.yaml"
    file.write_text(file.read_text().replace("class: rate_limited", "class: rate_limit", 1))
    ((command, shown),) = steps(section("A file that is refused"))
    printed = printed_by(command, capsys)
    assert is_shown(printed, shown), printed


def test_the_readme_shows_the_same_example() -> None:
    """What `check-rules` prints stands there as it stands on the page."""
    shown = blocks("console", section("Change the meaning of one code"))[1]
    assert shown.split("\n", 2)[2] in (ROOT / "README.md").read_text(encoding="utf-8")
