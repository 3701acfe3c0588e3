"""Mistakes in a rule file, as operators make them: refused with file, line, the wrong word and what was meant.

Each is one edit of a good file, tried with the loader that the proxy uses and with the command (contracts R2 and C3).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.__main__ import run
from proxy.errors import RuleError
from proxy.stores.rules import load_rules

DEFAULT = """\
rules:
  - id: default.rate
    when: {status: 429}
    then: {class: rate_limited, code: rate_limited}
fallback:
  - {status: 4xx, class: invalid_request}
  - {status: any, class: model_unavailable}
"""
INFRA = """\
rules:
  - id: infra.page
    when: {body: '<html'}
    then: {class: model_unavailable, code: bad_gateway}
"""
ACME = """\
# Anbieter für Prüfungen; 余额 means balance.
vendor: acme
dialects: [openai, anthropic]
end_mark_trusted: false
key_header: api-key
request_fields: {max_tokens: max_completion_tokens, top_k: false}
finish_reasons: {fertig: stop}
heartbeats: ['^PROCESSING']
use: [_infra]
rules:
  - id: acme.balance
    when:
      status: [402, 5xx]
      header: {X-Error: quota}
      json: {error.code: [30001]}
      match: {$message: ['余额', balance]}
      phase: [head, first]
    then:
      class: auth_failure
      code: insufficient_balance
      message: Top the account up.
    evidence: [recordings/acme/balance.jsonl]
    seen: 2026-11-30
    proof: captured
"""
#: What is edited, into what, the line that must be told, and what must be said of it.
MISTAKES: dict[str, tuple[str, str, int, str]] = {
    # a word that is not quite right
    "a key at the top": ("heartbeats:", "hartbeats:", 8, "hartbeats: unknown key; the nearest valid one is 'heart"),
    "the key rules": ("\nrules:", "\nrule:", 10, "rule: unknown key; the nearest valid one is 'rules'"),
    "a key of a rule": ("when:", "wenn:", 12, "rules.wenn: unknown key; the nearest valid one is 'when'"),
    "a key of when": ("match:", "matches:", 16, "rules.when.matches: unknown key; the nearest valid one is 'match'"),
    "a key of then": ("class:", "clas:", 19, "rules.then.clas: unknown key; the nearest valid one is 'class'"),
    "the key evidence": ("evidence:", "evidense:", 22, "unknown key; the nearest valid one is 'evidence'"),
    "a key of retry_after": (
        "message: Top",
        "retry_after: {jsn: error.wait}\n      message: Top",
        21,
        "rules.then.retry_after: jsn: unknown key; the nearest valid one is 'json'",
    ),
    "a key of another place": ("    then:\n", "", 18, "unknown key; 'class' stands under `then`"),
    "a class": ("auth_failure", "auth_failiure", 19, "'auth_failiure' is not known; the nearest valid one is 'auth_"),
    "a class of nobody": ("auth_failure", "quota", 19, "'quota' is not known; valid are auth_failure, rate_limited"),
    "a phase": ("[head, first]", "[heads]", 17, "'heads' is not known; the nearest valid one is 'head'"),
    "a proof": ("captured", "capture", 24, "'capture' is not known; the nearest valid one is 'captured'"),
    "a finish reason": ("fertig: stop", "fertig: stopp", 7, "'stopp' is not known; the nearest valid one is 'stop'"),
    "a dialect": ("[openai, anthropic]", "[opnai]", 3, "dialects: 'opnai' is not known; the nearest valid one is 'o"),
    "the one dialect": (
        "dialects: [openai, anthropic]",
        "dialect: antropic",
        3,
        "dialect: 'antropic' is not known; the nearest valid one is 'anthropic'",
    ),
    "a file to use": ("[_infra]", "[_infa]", 9, "use: there is no shared file _infa; did you mean _infra?"),
    "a name of a path": ("$message", "$mesage", 16, "unknown name '$mesage'; known are $message, $code, $status and $"),
    "the vendor": ("vendor: acme", "vendor: acmee", 2, "vendor: must be 'acme', as the file is called"),
    "a status": ("5xx", "4x", 13, "'4x' is not a status: write 429, [500, 502], '5xx' or any; did you mean '4xx'?"),
    "a status in quotes": ("402", "'402'", 13, "'402' is not a status: write 429, [500, 502], '5xx' or any; did you"),
    "a status range": ("[402, 5xx]", "400-403", 13, "'400-403' is not a status"),
    "a text mode": ("use: [", "text_mode: cumulativ\nuse: [", 9, "'cumulativ' is not known; the nearest valid one is"),
    "an end mark": ("use: [", "end_mark: sometimes\nuse: [", 9, "'sometimes' is not known; valid are sent, never"),
    "a deadline": ("use: [", "deadlines: {fist_byte: 9}\nuse: [", 9, "the nearest valid one is 'first_byte'"),
    "a key of usage": ("use: [", "usage: {scop: final}\nuse: [", 9, "usage.scop: unknown key; the nearest"),
    # a value that does not do
    "a regular expression": ("balance]", "'(balance']", 16, "bad regular expression '(balance': missing )"),
    "a list of expressions with flags": ("'余额'", "'(?s)余.额'", 16, "do not go together: global flags"),
    "a number as an expression": ("['余额', balance]", "30001", 16, "must be a regular expression in quotes"),
    "a path": ("error.code", "error..code", 15, "'error..code' is not a path such as error.code"),
    "an empty list": ("[30001]", "[]", 15, "an empty list never holds"),
    "a code of two words": ("insufficient_balance", "No Balance", 20, "'No Balance' is not a word of small letters"),
    "a wait in words": ("message: Top", "retry_after: soon\n      message: Top", 21, "must be seconds"),
    "a deadline in words": ("use: [", "deadlines: {idle: 30s}\nuse: [", 9, "deadlines.idle: must be a number"),
    "a date in words": ("2026-11-30", "yesterday", 23, "rules.seen: must be a date such as 2026-11-30"),
    "a date that is none": ("2026-11-30", "2026-02-30", 23, "'2026-02-30' cannot be read: day is out of range"),
    "no for false": ("false\nkey", "nein\nkey", 4, "end_mark_trusted: must be true or false"),
    "a header's name": ("api-key", "Api Key", 5, "'Api Key' is not a header's name in small letters"),
    "true for a field": ("top_k: false", "top_k: true", 6, "True must be this vendor's name of the field, or false"),
    "no as a key": ("{fertig: stop}", "{no: stop}", 7, "finish_reasons: False must be text: put it in quotes"),
    "a status of its own": ("message: Top", "status: 418\n      message: Top", 18, "status: auth_failure has a status"),
    "half of the proof": ("    proof: captured\n", "", 11, "proof missing: evidence, seen and proof stand together"),
    # a value of another kind
    "a mapping for a list": ("  - id: acme.balance", "    id: acme.balance", 10, "rules: must be a list"),
    "a text for a list": ("['^PROCESSING']", "'^PROCESSING'", 8, "heartbeats: must be a list"),
    "a list for a mapping": ("{$message: ['余额', balance]}", "['余额']", 16, "rules.when.match: must be a mapping"),
    "a text for a mapping": ("{error.code: [30001]}", "30001", 15, "rules.when.json: must be a mapping"),
    "a list for a text": ("Top the account up.", "[Top, up]", 21, "['Top', 'up'] must be text"),
    "a number for a text": ("[recordings/acme/balance.jsonl]", "17", 22, "17 must be text: put it in quotes"),
    # what stands twice
    "an id of another file": ("acme.balance", "default.rate", 11, "the id 'default.rate' stands already at _default.y"),
    "a key twice": ("      header:", "      status: 500\n      header:", 14, "the key 'status' stands twice"),
    # what YAML does not take
    "a tab before a key": ("    when:", "\twhen:", 12, "indent with blanks, not with a tab"),
    "a tab in a section": ("      header:", "\theader:", 14, "indent with blanks, not with a tab"),
    "an odd indentation": ("      phase:", "     phase:", 17, "this line is not indented as its neighbours are"),
    "no blank behind a colon": ("phase: [", "phase:[", 18, "a key needs `: ` behind it"),
    "a colon in a text": ("Top the", "Hint: top the", 21, "a text that has `: ` in it must stand in quotes"),
    "a text that begins with %": ("Top the", "% of the", 21, "a text that begins with % must stand in quotes"),
    "a text that begins with *": ("Top the", "*Top the", 21, "a text that begins with * must stand in quotes"),
    "a backslash in double quotes": ("'余额'", '"\\d"', 16, "write regular expressions in single quotes"),
    "a bracket left open": ("[30001]", "[30001", 15, "a bracket or a quote is not closed"),
    "a quote left open": ("'^PROCESSING'", "'^PROCESSING", 16, "a bracket or a quote is opened on line 8 and not"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("acme", ACME), ("_infra", INFRA), ("_default", DEFAULT)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def told_by_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that `sluice check-rules` prints for a folder that is not valid."""
    assert run(["check-rules", "--rules", str(folder)]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    return captured.err


@pytest.mark.clause("R2")
def test_the_file_that_the_mistakes_are_made_in_is_good(folder: Path) -> None:
    """Else nothing below would be about the mistake."""
    assert load_rules(folder).profile("acme").rules[0].id == "acme.balance"


@pytest.mark.clause("R2", "C3")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_by_file_line_and_what_was_meant(
    folder: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    """By the loader and by the command alike."""
    old, new, line, words = MISTAKES[mistake]
    assert ACME.count(old) >= 1
    (folder / "acme.yaml").write_text(ACME.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RuleError) as raised:
        load_rules(folder)
    assert (raised.value.file, raised.value.line) == (str(folder / "acme.yaml"), line)
    assert words in raised.value.reason
    assert told_by_the_command(folder, capsys) == f"sluice: {raised.value}\n"


@pytest.mark.clause("R2", "C3")
@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("acme.yaml", ACME.encode("utf-16"), "acme.yaml:1: is not UTF-8"),
        ("acme.yaml", ACME.replace("Top", "Überweisen", 1).encode("latin-1", "ignore"), "acme.yaml:1: is not UTF-8"),
        ("acme.yaml", b"", "acme.yaml:1: is empty"),
        ("acme.yaml", b"- acme\n", "acme.yaml:1: must be a mapping"),
        ("acme.yaml", b"rules: []\n", "acme.yaml:1: vendor is missing; write `vendor: acme`"),
        ("acme2.yaml", ACME.encode(), "acme2.yaml:2: vendor: must be 'acme2', as the file is called"),
        ("_infra.yaml", b"vendor: infra\n", "_infra.yaml:1: vendor: a shared file"),
        ("_default.yaml", b"rules: []\n", "_default.yaml: has no `fallback:` table"),
        (
            "_default.yaml",
            DEFAULT.replace("invalid_request", "invalid").encode(),
            "_default.yaml:6: fallback.class: 'invalid' is not known; the nearest valid one is 'invalid_request'",
        ),
    ],
    ids=[
        "UTF-16",
        "Latin-1",
        "empty",
        "a list",
        "no vendor",
        "copied",
        "vendor shared",
        "no fallback",
        "fallback class",
    ],
)
def test_a_file_that_is_wrong_as_a_whole_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, told: str
) -> None:
    """Another encoding, nothing in it, another vendor's name, the shared files."""
    (folder / name).write_bytes(data)
    assert told_by_the_command(folder, capsys).startswith(f"sluice: {folder}/{told}")


_LEVELS = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12))


@pytest.mark.clause("R2", "C3")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"vendor: acme\nl0: &l0 [हा, ha]\n{_LEVELS}\n", ":8: holds more than 1000000 values, aliases written out"),
        ("vendor: &a [*a]\n", ":1: holds itself"),
        ("vendor: acme\nrules: " + "[" * 200 + "]" * 200, ":2: stands more than 100 brackets or indents deep"),
        ("vendor: " + "[" * 9000, ":1: is not YAML"),
        ("vendor: acme\nuse: [a\0b]\n", ":2: is not YAML: the character U+0000 must not stand here"),
        ("vendor: acme\nuse: !!timestamp fardā\n", ":2: 'fardā' cannot be read as a timestamp"),
        ("vendor: acme\nend_mark_trusted: !!bool 也许\n", ":2: '也许' cannot be read as a bool"),
        ("vendor: acme\nheartbeats: ['a{99999999999999}']\n", ":2: heartbeats: bad regular expression"),
        (f"vendor: acme\nheartbeats: ['{'(' * 5000}{')' * 5000}']\n", ":2: heartbeats: bad regular expression"),
        (f"vendor: acme\nend_mark: {'x' * 5000}\n", f":2: end_mark: '{'x' * 79}… is not known"),
    ],
    ids=["bomb", "itself", "deep", "deeper", "NUL", "timestamp", "bool", "repeat", "groups", "long"],
)
def test_a_file_made_to_break_the_reader_is_one_short_line(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    """Aliases that multiply, nesting, scalars that their tag does not fit: never a traceback, always a place."""
    (folder / "acme.yaml").write_text(text, encoding="utf-8")
    line = told_by_the_command(folder, capsys)
    assert line.startswith(f"sluice: {folder}/acme.yaml{told}")
    assert len(line) < 400 + len(str(folder)) and line.count("\n") == 1
