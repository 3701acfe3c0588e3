"""`sluice check-rules`: exit codes and what it tells (contract C3, R4)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from proxy.__main__ import run
from proxy.cli.check_rules import check_rules

ROOT = Path(__file__).resolve().parents[3]
PLACE = "recordings/acme/errors/rate.jsonl"
RULE = """\
vendor: acme
rules:
  - id: acme.rate
    when: {status: 429}
    then: {class: rate_limited, code: rate_limited}
    evidence: recordings/acme/errors/rate.jsonl
    seen: 2026-11-30
    proof: simulated
"""
DEFAULT = "fallback:\n  - {status: any, class: model_unavailable}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A rules folder and a recording beside it."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "_default.yaml").write_text(DEFAULT)
    (tmp_path / "rules" / "acme.yaml").write_text(RULE)
    source = ROOT / "recordings" / "openai_compatible" / "errors" / "oc-rate-word.jsonl"
    head, *reads = source.read_text().split("\n")
    fields = {**json.loads(head), "vendor": "acme", "name": "errors/rate", "obtained": "simulated"}
    place = tmp_path / PLACE
    place.parent.mkdir(parents=True)
    place.write_text("\n".join([json.dumps(fields), *reads]))
    return tmp_path


def called(*arguments: str | Path) -> Result:
    return CliRunner().invoke(check_rules, [str(one) for one in arguments], standalone_mode=False)


def edit(project: Path, old: str, new: str) -> None:
    file = project / "rules" / "acme.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.clause("C3")
def test_a_good_set_exits_0(project: Path) -> None:
    """Rules, vendors and recordings are counted; that nothing was accepted yet is told, and is no failure."""
    result = called("--rules", project / "rules")
    assert result.return_value == 0
    assert "1 rules for 1 vendors, 1 recordings replayed" in result.output
    assert "no verdicts.lock yet" in result.output
    assert result.output.endswith("nothing is wrong\n")


@pytest.mark.clause("R4")
def test_a_verdict_that_moved_exits_1_and_is_named(project: Path) -> None:
    """An edit that gives a recorded answer another class is told with the recording."""
    edit(project, "class: rate_limited", "class: model_unavailable")
    result = called("--rules", project / "rules")
    assert result.return_value == 1
    assert f"{PLACE} is model_unavailable (rate_limited), expected rate_limited, by acme.rate" in result.output


@pytest.mark.clause("R4")
def test_a_code_that_moved_is_a_difference(project: Path) -> None:
    """Programs rely on codes."""
    edit(project, "code: rate_limited", "code: slow_down")
    result = called("--rules", project / "rules", "--json")
    assert json.loads(result.output)["differences"] == [
        {
            "recording": PLACE,
            "reason": "has the code slow_down, expected rate_limited, by acme.rate",
            "rule": "acme.rate",
        }
    ]


@pytest.mark.clause("R4")
def test_evidence_that_an_earlier_rule_takes_is_a_difference(project: Path) -> None:
    """A rule that never decides its own evidence proves nothing."""
    first = RULE.split("rules:\n")[1].replace("acme.rate", "acme.first").replace("status: 429", "status: 4xx")
    edit(project, "rules:\n", "rules:\n" + first.replace(PLACE, "recordings/acme/errors/other.jsonl"))
    result = called("--rules", project / "rules")
    assert result.return_value == 1
    assert f"{PLACE} is taken by acme.first, not by acme.rate" in result.output
    assert "recordings/acme/errors/other.jsonl is not there; acme.first names it as its evidence" in result.output
    assert "acme.rate (acme.yaml:9) decides no recording" in result.output
    assert "acme.rate (acme.yaml:9) never decides: acme.first (acme.yaml:3) takes all of it before" in result.output


@pytest.mark.clause("R1")
def test_composed_evidence_is_listed_as_unproven(project: Path) -> None:
    """It is no reason to fail."""
    edit(project, "proof: simulated", "proof: composed")
    result = called("--rules", project / "rules", "--json")
    assert (result.return_value, json.loads(result.output)["unproven"]) == (0, ["acme.rate"])


@pytest.mark.clause("C3")
def test_a_file_that_does_not_validate_exits_2(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With file, line and reason on standard error, and no traceback."""
    edit(project, "status: 429", "status: many")
    assert run(["check-rules", "--rules", str(project / "rules")]) == 2
    assert "acme.yaml:4: rules.when.status: 'many' is not a status" in capsys.readouterr().err


@pytest.mark.clause("C3")
def test_without_recordings_only_the_files_are_checked(project: Path) -> None:
    """As in an installed package, which carries none."""
    shutil.rmtree(project / "recordings")
    result = called("--rules", project / "rules")
    assert (result.return_value, "nothing was replayed" in result.output) == (0, True)


@pytest.mark.clause("C3")
def test_the_folder_may_be_named_by_a_configuration(project: Path) -> None:
    """`--config` checks what that proxy would load."""
    config = project / "sluice.yaml"
    config.write_text(
        "rules: rules\nauth: {mode: none}\nledger: {url: 'sqlite:///ledger.db'}\n"
        "upstreams: {main: {vendor: acme, base_url: 'http://127.0.0.1:1/v1', api_key: k}}\n"
        "models: {m: [{upstream: main, model: m}]}\n"
    )
    result = called("--config", config)
    assert result.return_value == 0
    assert "1 rules for 1 vendors" in result.output


LOCKED = f"""\
sluice verdicts 1
# What becomes of each recording by these rules; rewritten by `sluice check-rules --accept`.
{PLACE}: vendor_error, rate_limited rate_limited, 429, retry after 2 s, rule acme.rate
"""


def accepted(project: Path) -> Path:
    """The lock file of a project whose verdicts have been accepted."""
    assert called("--rules", project / "rules", "--accept").return_value == 0
    return project / "rules" / "verdicts.lock"


def add_recording(project: Path, name: str) -> None:
    head, *reads = (project / PLACE).read_text().split("\n")
    fields = {**json.loads(head), "name": f"errors/{name}"}
    (project / PLACE).with_name(f"{name}.jsonl").write_text("\n".join([json.dumps(fields), *reads]))


@pytest.mark.clause("R4")
def test_accepting_writes_the_lock_and_says_so(project: Path) -> None:
    """Once accepted, a run compares, and nothing has moved."""
    result = called("--rules", project / "rules", "--accept")
    lock = project / "rules" / "verdicts.lock"
    assert (result.return_value, lock.read_text()) == (0, LOCKED)
    assert f"accepted 1 verdicts: {lock} is written" in result.output
    again = called("--rules", project / "rules")
    assert again.return_value == 0
    assert "verdicts against verdicts.lock: 0 changed, 0 new, 0 vanished" in again.output


@pytest.mark.clause("R4")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("code: rate_limited", "code: slow_down", "rate_limited slow_down, 429, retry after 2 s, rule acme.rate"),
        ("class: rate_limited", "class: auth_failure", "auth_failure rate_limited, 502, no retry, rule acme.rate"),
        ("id: acme.rate", "id: acme.slow", "rate_limited rate_limited, 429, retry after 2 s, rule acme.slow"),
        (
            "code: rate_limited",
            "code: rate_limited, retry_after: 300",
            "rate_limited rate_limited, 429, no retry for 300 s, rule acme.rate",
        ),
        (
            "code: rate_limited",
            "code: rate_limited, retryable: false",
            "rate_limited rate_limited, 429, no retry for 2 s, rule acme.rate",
        ),
    ],
    ids=["code", "class", "rule", "wait", "retryable"],
)
def test_whatever_moved_of_a_verdict_is_shown_old_and_new(project: Path, old: str, new: str, told: str) -> None:
    """With the rule that decides; a run that only looks leaves the lock as it is."""
    lock = accepted(project)
    edit(project, old, new)
    result = called("--rules", project / "rules")
    assert result.return_value == 1
    assert "verdicts against verdicts.lock: 1 changed, 0 new, 0 vanished" in result.output
    before = "    - vendor_error, rate_limited rate_limited, 429, retry after 2 s, rule acme.rate"
    assert f"  changed: {PLACE}\n{before}\n    + vendor_error, {told}\n" in result.output
    assert lock.read_text() == LOCKED


@pytest.mark.clause("R4")
def test_new_and_vanished_recordings_are_told_apart(project: Path) -> None:
    """Until they are accepted, and then they are no fault any more."""
    add_recording(project, "بسرعة")
    accepted(project)
    (project / PLACE).with_name("بسرعة.jsonl").unlink()
    add_recording(project, "慢一点")
    result = called("--rules", project / "rules", "--json")
    report = json.loads(result.output)
    assert result.return_value == 1
    assert [move["recording"] for move in report["new"]] == ["recordings/acme/errors/慢一点.jsonl"]
    assert [move["recording"] for move in report["vanished"]] == ["recordings/acme/errors/بسرعة.jsonl"]
    assert (report["changed"], report["new"][0]["old"], report["vanished"][0]["new"]) == ([], None, None)
    assert report["new"][0]["new"]["rule"] == "acme.rate"
    told = called("--rules", project / "rules", "--accept")
    assert told.return_value == 0
    assert "  new: recordings/acme/errors/慢一点.jsonl" in told.output
    assert called("--rules", project / "rules").return_value == 0


@pytest.mark.clause("R4")
def test_accepting_does_not_hide_what_is_wrong_with_the_rules(project: Path) -> None:
    """A recording that expects something else stays a fault."""
    accepted(project)
    edit(project, "class: rate_limited", "class: model_unavailable")
    assert called("--rules", project / "rules", "--accept").return_value == 1
    result = called("--rules", project / "rules", "--json")
    assert (result.return_value, json.loads(result.output)["changed"]) == (1, [])


@pytest.mark.clause("R4")
def test_a_rule_that_nothing_reaches_or_that_is_shadowed_is_a_fault(project: Path) -> None:
    """Each with its file and line, in the text and for programs."""
    more = (
        RULE.split("rules:\n")[1].replace("acme.rate", "acme.late").replace("status: 429", "status: 429, phase: head")
    )
    file = project / "rules" / "acme.yaml"
    file.write_text(file.read_text() + more)
    result = called("--rules", project / "rules", "--json")
    report = json.loads(result.output)
    assert result.return_value == 1
    assert report["unreached"] == [{"rule": "acme.late", "place": "acme.yaml:9", "reason": "decides no recording"}]
    assert [fault["rule"] for fault in report["shadowed"]] == ["acme.late"]


@pytest.mark.clause("R4")
def test_a_shared_file_that_no_vendor_uses_is_a_fault(project: Path) -> None:
    """Its rules are valid and decide nothing, with or without recordings; a `use:` mends it."""
    shared = (
        RULE.split("\n", 1)[1].replace("acme.rate", "shared.rate").replace("429", "420").replace("acme/errors", "x")
    )
    (project / "rules" / "_shared.yaml").write_text(shared)
    result = called("--rules", project / "rules")
    assert result.return_value == 1
    assert "shared.rate (_shared.yaml:2) stands in a shared file that no vendor's `use:` names" in result.output
    edit(project, "rules:\n", "use: [_shared]\nrules:\n")
    assert "stands in a shared file" not in called("--rules", project / "rules").output


@pytest.mark.clause("R1")
def test_a_rule_without_evidence_is_a_fault(project: Path) -> None:
    """Though it decides, nobody has seen that it should."""
    edit(project, RULE[RULE.index("    evidence:") :], "")
    result = called("--rules", project / "rules")
    assert result.return_value == 1
    assert "1 rules have no evidence\n  acme.rate (acme.yaml:3) has no evidence\n" in result.output


@pytest.mark.clause("C3")
def test_a_broken_lock_exits_2_and_can_be_made_anew(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with file, line and what to do."""
    lock = accepted(project)
    lock.write_text(LOCKED + "=======\n")
    assert run(["check-rules", "--rules", str(project / "rules")]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"sluice: {lock}:4: is no `RECORDING: VERDICT`")
    assert told.count("\n") == 1
    accepted(project)
    assert lock.read_text() == LOCKED


@pytest.mark.clause("R4")
def test_a_lock_made_anew_holds_all_that_the_broken_one_named(tmp_path: Path) -> None:
    """A copy of the rules without recordings: those that no rule names are replayed because the lock names them, also
    where a merge has left it with conflicts and carriage returns."""
    rules = shutil.copytree(ROOT / "rules", tmp_path / "rules")
    lock = rules / "verdicts.lock"
    whole = lock.read_text()
    first, remark, *rest = whole.split("\n")
    lock.write_text("\r\n".join(["<<<<<<< ours", first, remark, *rest[:9], "=======", *rest[5:], ">>>>>>> theirs"]))

    assert called("--rules", rules, "--accept").return_value == 0
    assert lock.read_text() == whole


@pytest.mark.clause("C3")
def test_nothing_replayed_is_nothing_to_accept(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And verdicts that were accepted elsewhere have not vanished because their recordings are not here."""
    accepted(project)
    shutil.rmtree(project / "recordings")
    assert run(["check-rules", "--rules", str(project / "rules"), "--accept"]) == 2
    assert "nothing was replayed" in capsys.readouterr().err
    assert called("--rules", project / "rules").return_value == 0


@pytest.mark.clause("R4")
def test_a_run_says_the_same_twice(project: Path) -> None:
    """Byte for byte, so that it can be compared."""
    accepted(project)
    runs = [called("--rules", project / "rules", "--json").output for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.clause("R4")
def test_the_shipped_rules_are_sound() -> None:
    """Nothing moved since the last accepted run, every rule is reached, none is shadowed, each has its evidence."""
    result = called("--rules", ROOT / "rules", "--json")
    report = json.loads(result.output)
    wrong = ("changed", "new", "vanished", "differences", "unreached", "shadowed", "without_evidence")
    assert {kind: report[kind] for kind in wrong if report[kind]} == {}
    assert (result.return_value, report["compared"]) == (0, True)
