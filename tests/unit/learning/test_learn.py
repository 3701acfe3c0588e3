"""`sluice learn`: from the inbox to rules with their evidence (contracts C3, E, R1, R3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from proxy.__main__ import run
from proxy.canon.verdict import ErrorClass
from proxy.cli import learn as command
from proxy.cli.check_rules import check_rules
from proxy.errors import SluiceError
from proxy.learning import learning as module
from proxy.learning.drafting import Proposal
from proxy.learning.learning import Learner
from proxy.learning.replaying import replay
from proxy.learning.values import Draft
from proxy.semantics.rule import RuleSet
from proxy.stores.recordings import load_recording
from proxy.stores.rules import load_rules
from tests.support.inboxes import ALIKE, KNOWN, RULES, STRANGE, Project, make_project, record

pytestmark = pytest.mark.clause("C3", "R1", "R3")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "پروژه")


def learn(project: Project, *arguments: str, said: str = "") -> Result:
    given = ["--inbox", str(project.inbox), "--rules", str(project.rules), *arguments]
    return CliRunner().invoke(command.learn, given, input=said, standalone_mode=False)


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_is_terminal", lambda: True)


def rules_of(project: Project) -> RuleSet:
    return load_rules(project.rules)


def written_rules(project: Project) -> str:
    """What stands behind the rule that a person wrote, which is as it was."""
    text = project.rule_file.read_text()
    before = RULES.format(vendor=project.vendor)
    assert text.startswith(before)
    return text.removeprefix(before)


# ---- without a person


def test_what_is_surely_like_a_known_answer_becomes_a_rule(project: Project) -> None:
    """With its evidence; the inbox is empty then, check-rules finds the set sound, a second run has nothing to do."""
    project.keep(ALIKE, times=57)
    (kept,) = project.kept()
    result = learn(project, "--accept")
    assert (result.return_value, project.kept()) == (0, [])
    place = f"recordings/acme/errors/learned-{kept.recording.name}.jsonl"
    assert written_rules(project).splitlines()[1:] == [
        "  - id: acme.daily-limit-reached",
        "    when: {json: {$code: [E18]}}",
        "    then: {class: rate_limited, code: daily_limit_reached}",
        f"    evidence: {place}",
        "    seen: 2026-11-30",
        "    proof: captured",
    ]
    assert written_rules(project).startswith("  # From the inbox; like recordings/acme/errors/quota.jsonl (")
    evidence = load_recording(project.folder / place)
    assert evidence.expect == {"class": ["rate_limited"], "phase": "head", "code": "daily_limit_reached"}
    assert (evidence.obtained, evidence.basis, evidence.reads) == (
        "captured", kept.recording.basis, kept.recording.reads,
    )  # fmt: skip
    facts = replay(rules_of(project).profile("acme"), evidence)
    assert (facts.rule_id, facts.error_class) == ("acme.daily-limit-reached", "rate_limited")
    assert "57 times, first 2026-11-30, last 2026-11-30 00:00 UTC" in result.output
    assert "status 418, code E18: سهمیه‌ی ماهانه" in result.output
    checked = CliRunner().invoke(check_rules, ["--rules", str(project.rules)], standalone_mode=False)
    assert checked.return_value == 0
    after = project.texts()
    assert learn(project, "--accept").return_value == 0
    assert project.texts() == after


def test_what_is_like_nothing_is_left_for_a_person(project: Project) -> None:
    """It is shown, and stays where it is: exit 1."""
    project.keep(STRANGE, times=3)
    before = project.texts()
    result = learn(project, "--accept")
    assert result.return_value == 1
    assert "code Q-7: चाँद आज छिपा हुआ है" in result.output
    assert "0 learned, 1 still open" in result.output
    assert project.texts() == before


def test_without_a_person_and_without_accept_nothing_is_written(project: Project) -> None:
    """The proposal is shown as a diff, and nothing asks."""
    project.keep(ALIKE)
    before = project.texts()
    result = learn(project)
    assert result.return_value == 1
    assert "+    then: {class: rate_limited, code: daily_limit_reached}" in result.output
    assert project.texts() == before


def test_an_empty_inbox_is_nothing_to_do(project: Project) -> None:
    """Also where there is no folder yet."""
    result = learn(project, "--accept")
    assert result.return_value == 0
    assert result.output == "0 answers in the inbox: 0 groups that no rule knew, 0 learned, 0 still open\n"


def test_what_a_rule_knows_by_now_is_told_and_goes_with_accept(project: Project) -> None:
    """Somebody wrote the rule by hand meanwhile."""
    project.keep(KNOWN, times=2)
    assert "1 answers are known by now:" in learn(project).output
    assert len(project.kept()) == 1
    assert learn(project, "--accept").return_value == 0
    assert project.kept() == []
    assert written_rules(project) == ""


def test_other_wordings_of_one_error_are_one_group_and_one_rule(project: Project) -> None:
    """The most frequent is the example; at most a few become evidence, and all of them are known afterwards."""
    months = ["فروردین", "خرداد", "تیر", "مهر", "آبان", "آذر", "دی"]
    for number, month in enumerate(months):
        message = f"{ALIKE['error']['message']} ({month})"
        project.keep({"error": {"code": "E18", "message": message}}, times=number + 1)
    result = learn(project, "--accept")
    assert (result.return_value, project.kept()) == (0, [])
    assert "28 times, 7 wordings" in result.output
    assert result.output.count("- id: acme.") == 1
    (rule,) = rules_of(project).profile("acme").rules[1:]
    assert len(rule.evidence) == module.MAX_EVIDENCE
    assert len(list((project.recordings / "acme" / "errors").glob("learned-*"))) == module.MAX_EVIDENCE


def test_a_program_gets_one_object(project: Project) -> None:
    """The same facts, and nothing is asked or changed without --accept."""
    project.keep(ALIKE, times=2)
    project.keep(STRANGE)
    project.keep(KNOWN)
    told = json.loads(learn(project, "--json").output)
    assert [one["rule"] for one in told["known_now"]] == ["acme.quota"]
    alike, strange = told["groups"]
    assert (alike["count"], alike["example"]["code"], alike["fate"]) == (2, "E18", "open")
    assert (alike["guess"]["class"], alike["guess"]["sure"]) == ("rate_limited", True)
    assert "+  - id: acme.daily-limit-reached" in alike["diff"]
    assert (strange["example"]["message"], strange["fate"]) == ("चाँद आज छिपा हुआ है", "open")
    told = json.loads(learn(project, "--json", "--accept").output)
    assert [(one["fate"], len(one["recordings"])) for one in told["groups"]] == [("written", 1), ("open", 0)]
    assert told["known_now_deleted"] == 1


# ---- with a person


@pytest.mark.usefixtures("at_a_terminal")
def test_a_person_chooses_class_and_code(project: Project) -> None:
    """A word that is no class is asked again, a code that is no code is refused with its reason; the rule is shown and
    then written."""
    project.keep(STRANGE, times=3)
    result = learn(project, said="c\nhalt\nauth_failure\nKein Wort!\nc\nauth_failure\nmoon_hidden\nw\n")
    assert result.return_value == 0
    assert "'halt' is not one of" in result.output
    assert "'Kein Wort!' is not a word of small letters" in result.output
    assert "proposed: auth_failure (moon_hidden); as you say" in result.output
    assert "  # From the inbox.\n  - id: acme.moon-hidden\n" in written_rules(project)
    assert project.kept() == []


@pytest.mark.usefixtures("at_a_terminal")
def test_a_person_skips_deletes_and_quits(project: Project) -> None:
    """What was not decided stays; what follows a rule that knows it is not asked any more."""
    project.keep(KNOWN)
    project.keep(ALIKE, times=9)
    project.keep(STRANGE, times=5)
    project.keep({"error": {"code": "Z", "message": "물고기가 노래한다"}}, times=3)
    project.keep({"error": {"code": "Y", "message": "ปลาร้องเพลง"}}, times=2)
    result = learn(project, said="y\ns\nd\nq\n")
    assert result.return_value == 1
    assert "0 learned, 3 still open" in result.output
    assert [one.count for one in project.kept()] == [9, 3, 2]
    assert "3/4" in result.output and "4/4" not in result.output
    assert written_rules(project) == ""
    assert learn(project, said="w\nd\nd\n").return_value == 0
    assert project.kept() == []


@pytest.mark.usefixtures("at_a_terminal")
def test_who_interrupts_the_question_has_changed_nothing(project: Project) -> None:
    """End of input, or Ctrl-C."""
    project.keep(ALIKE)
    before = project.texts()
    assert isinstance(learn(project, said="").exception, click.Abort)
    assert project.texts() == before


# ---- what must not happen


def test_a_rule_that_would_move_a_verdict_is_refused_by_name(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should drafting ever give one: which recording, from what to what. Nothing is written."""
    project.keep(ALIKE)

    def too_general(*_: object, **__: object) -> Proposal:
        when, then = {"status": 418}, {"class": "auth_failure", "code": "x"}
        draft = Draft("acme", "acme.all", when, then, (), date(2026, 12, 1), "captured", "acme.quota", "")
        return Proposal((draft,))

    monkeypatch.setattr(module, "draft_rules", too_general)
    before = project.texts()
    result = learn(project, "--accept")
    assert result.return_value == 1
    assert (
        "recordings/acme/errors/quota.jsonl: rate_limited (daily_limit_reached) by acme.quota, "
        "would be auth_failure (x) by acme.all"
    ) in result.output
    assert project.texts() == before


def test_a_recording_that_no_rule_knew_may_get_the_meaning_that_it_should_have(project: Project) -> None:
    """A probe left it there, and nobody wrote its rule."""
    record(project, "probed", {"error": {"code": "E18", "message": "خرید کنید"}}, "rate_limited", "daily_limit_reached")
    project.keep(ALIKE)
    assert learn(project, "--accept").return_value == 0
    probed = load_recording(project.recordings / "acme" / "errors" / "probed.jsonl")
    assert replay(rules_of(project).profile("acme"), probed).error_class == "rate_limited"


STEPS = ["dump_recording", "write_rule_text", "remove"]


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_is_killed_between_two_steps_is_finished_by_the_next(
    project: Project, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before the evidence, before the rule, before the inbox entry goes: in the end all is as it should be."""
    project.keep(ALIKE)
    whole = make_project(project.folder.with_name("whole"))
    whole.keep(ALIKE)
    assert learn(whole, "--accept").return_value == 0

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, step, killed)
        assert isinstance(learn(project, "--accept").exception, KeyboardInterrupt | click.Abort)
    assert len(project.kept()) == 1
    assert learn(project, "--accept").return_value == 0
    assert project.texts() == whole.texts()


def test_a_hand_edit_meanwhile_is_not_overwritten(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file changed after it was read: refused, and the edit stays."""
    project.keep(ALIKE)
    learner = Learner(project.rules, project.recordings, date(2026, 12, 1))
    (group,) = learner.survey(project.kept()).groups
    lesson = learner.propose(group, ErrorClass.RATE_LIMITED, "slow_down")
    edited = project.rule_file.read_text() + "# Von Hand.\n"
    project.rule_file.write_text(edited)
    with pytest.raises(SluiceError, match=r"acme\.yaml: was changed by somebody else meanwhile"):
        learner.write(lesson)
    assert (project.rule_file.read_text(), len(project.kept())) == (edited, 1)
    assert learn(project, "--accept").return_value == 0
    assert project.rule_file.read_text().endswith("# Von Hand.\n")


def test_a_file_from_windows_keeps_its_line_ends(project: Project) -> None:
    """Every line of it, the new ones too; its mode stays as well."""
    project.rule_file.write_bytes(project.rule_file.read_bytes().replace(b"\n", b"\r\n"))
    project.rule_file.chmod(0o640)
    project.keep(ALIKE)
    assert learn(project, "--accept").return_value == 0
    raw = project.rule_file.read_bytes()
    assert b"acme.daily-limit-reached" in raw
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert project.rule_file.stat().st_mode & 0o777 == 0o640


def test_what_nothing_can_be_learned_from_is_named(project: Project) -> None:
    """A good answer that strayed into the inbox, and one of a vendor without rules."""
    project.keep(ALIKE)
    (kept,) = project.kept()
    head, read = kept.recording.path.read_text().splitlines()
    fields = json.loads(head)
    fine = json.dumps({**fields, "response": {"status": 204, "headers": []}})
    other = json.dumps({**fields, "vendor": "beta"})
    kept.recording.path.with_name("fine.jsonl").write_text(fine)
    kept.recording.path.with_name("other.jsonl").write_text(f"{other}\n{read}\n")
    result = learn(project, "--accept")
    assert result.return_value == 1
    assert "Nothing can be learned from these" in result.output
    assert sorted(one.recording.path.stem for one in project.kept()) == ["fine", "other"]


# ---- what could not be done


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def test_a_configuration_names_inbox_and_rules(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Given, or lying where the command is called; without one, and without a folder, it cannot be done."""
    assert run(["learn"]) == 2
    assert "whose inbox?" in capsys.readouterr().err
    project = make_project(elsewhere)
    config = {"rules": "rules", "ledger": {"url": "sqlite:///ledger.db"}, "auth": {"mode": "none"},
              "upstreams": {"m": {"vendor": "acme", "base_url": "http://127.0.0.1:1/v1", "api_key": "${NO_SUCH_KEY}"}},
              "models": {"a": [{"upstream": "m", "model": "b"}]}}  # fmt: skip
    (elsewhere / "sluice.yaml").write_text(json.dumps(config))
    project.keep(ALIKE)
    project.inbox.rename(elsewhere / "ledger.db-inbox")
    assert run(["learn", "--accept"]) == 0
    assert "acme.daily-limit-reached" in project.rule_file.read_text()
    assert not list((elsewhere / "ledger.db-inbox").glob("*/*"))


def test_the_shipped_rules_are_not_touched(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a rules folder of one's own: looked at, yes; written, no."""
    project = replace(make_project(elsewhere, "openai"), vendor="openai")
    project.keep(STRANGE)
    assert run(["learn", "--inbox", str(project.inbox)]) == 1
    assert run(["learn", "--inbox", str(project.inbox), "--accept"]) == 2
    assert "there is no rules folder of your own: name one with --rules" in capsys.readouterr().err


def test_evidence_stays_in_its_folder_whatever_a_file_of_the_inbox_says(project: Project) -> None:
    """The name inside a file is only its word."""
    project.keep(ALIKE)
    (kept,) = project.kept()
    head, body = kept.recording.path.read_text().splitlines()
    told = {**json.loads(head), "name": "../../../../گریخته"}
    kept.recording.path.write_text(f"{json.dumps(told)}\n{body}\n")
    assert learn(project, "--accept").return_value == 0
    (written,) = project.recordings.rglob("learned-*")
    assert written == project.recordings / "acme" / "errors" / f"learned-{kept.recording.path.name}"
    assert not list(project.folder.parent.rglob("*گریخته*"))


def test_a_day_that_is_none_is_told_with_its_place(project: Project) -> None:
    """Exit 2, as for any broken file."""
    project.keep(ALIKE)
    (kept,) = project.kept()
    kept.recording.path.write_text(kept.recording.path.read_text().replace('"at": "2026-11-30"', '"at": "دیروز"'))
    result = learn(project, "--accept")
    assert isinstance(result.exception, SluiceError)
    assert str(result.exception) == f"{kept.recording.path}:1: at: 'دیروز' is no day; write it as 2026-11-30"


def test_a_broken_file_in_the_inbox_is_told_with_its_place(project: Project) -> None:
    """Exit 2, before anything is done."""
    project.keep(ALIKE)
    (kept,) = project.kept()
    kept.recording.path.write_text("{")
    result = learn(project, "--accept")
    assert isinstance(result.exception, SluiceError)
    assert str(result.exception).startswith(f"{kept.recording.path}:1: is not JSON")
