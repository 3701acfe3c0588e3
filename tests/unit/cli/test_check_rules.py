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
    """Rules, vendors and recordings are counted."""
    result = called("--rules", project / "rules")
    assert result.return_value == 0
    assert "1 rules for 1 vendors, 1 recordings replayed" in result.output
    assert "0 verdicts differ" in result.output


@pytest.mark.clause("R4")
def test_a_verdict_that_moved_exits_1_and_is_named(project: Path) -> None:
    """An edit that gives a recorded answer another class is told with the recording."""
    edit(project, "class: rate_limited", "class: model_unavailable")
    result = called("--rules", project / "rules")
    assert result.return_value == 1
    assert f"{PLACE} is model_unavailable (rate_limited), expected rate_limited" in result.output


@pytest.mark.clause("R4")
def test_a_code_that_moved_is_a_difference(project: Path) -> None:
    """Programs rely on codes."""
    edit(project, "code: rate_limited", "code: slow_down")
    result = called("--rules", project / "rules", "--json")
    assert json.loads(result.output)["differences"] == [
        {"recording": PLACE, "reason": "has the code slow_down, expected rate_limited", "rule": "acme.rate"}
    ]


@pytest.mark.clause("R4")
def test_evidence_that_an_earlier_rule_takes_is_a_difference(project: Path) -> None:
    """A rule that never decides its own evidence proves nothing."""
    first = RULE.split("rules:\n")[1].replace("acme.rate", "acme.first").replace("status: 429", "status: 4xx")
    edit(project, "rules:\n", "rules:\n" + first.replace(PLACE, "recordings/acme/errors/other.jsonl"))
    result = called("--rules", project / "rules")
    assert result.return_value == 1
    assert f"{PLACE} is taken by acme.first, not by acme.rate" in result.output
    assert "recordings/acme/errors/other.jsonl is not there" in result.output


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
