"""The command `sluice`: exit codes, one line for what a person can mend, and nothing loaded in vain (contract C3)."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from proxy.__main__ import run
from proxy.cli import COMMANDS, LazyGroup, sluice
from proxy.errors import RuleError

pytestmark = pytest.mark.clause("C3")

CONFIG = """\
auth: {mode: none}
rules: rules
upstreams: {main: {vendor: openai, base_url: "http://127.0.0.1:9/v1"}}
models: {m: [{upstream: main, model: m}]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "openai.yaml").touch()
    file = tmp_path / "sluice.yaml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """A command `try` that returns or raises the one thing put into the list."""
    outcome: list[object] = []

    @click.command("try")
    def attempt() -> object:
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]

    find = LazyGroup.get_command
    monkeypatch.setattr(
        LazyGroup, "get_command", lambda self, ctx, name: attempt if name == "try" else find(self, ctx, name)
    )
    yield outcome


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (2, 2)])
def test_what_a_command_returns_is_the_exit_code(command: list[object], returned: int | None, code: int) -> None:
    """Done, done and something is wrong, could not be done."""
    command.append(returned)
    assert run(["try"]) == code


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (RuleError("rules/openai.yaml", 3, "کد ناشناخته"), "sluice: rules/openai.yaml:3: کد ناشناخته\n"),
        (click.ClickException("no"), "Error: no\n"),
        (click.FileError("x.jsonl", "not there"), "Error: Could not open file 'x.jsonl': not there\n"),
    ],
)
def test_what_a_person_can_mend_is_one_line_and_2(
    command: list[object], capsys: pytest.CaptureFixture[str], raised: Exception, said: str
) -> None:
    """No traceback, nothing on standard output."""
    command.append(raised)
    assert run(["try"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", said)


def test_a_bug_keeps_its_traceback(command: list[object]) -> None:
    """What nobody at the keyboard can mend is not dressed up as a wrong input."""
    command.append(ZeroDivisionError("bug"))
    with pytest.raises(ZeroDivisionError):
        run(["try"])


def test_ctrl_c_is_130(command: list[object]) -> None:
    """As a shell counts it."""
    command.append(KeyboardInterrupt())
    assert run(["try"]) == 130


def test_help_and_version_load_no_command() -> None:
    """`--help` names every command and `--version` the version, without the server or the tokenizer being imported."""
    probe = (
        "import sys; from proxy.__main__ import run; code = run(sys.argv[1:]); "
        "heavy = {'aiohttp', 'quicktok', 'tiktoken', 'sqlalchemy', 'pydantic'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else code)"
    )
    shown = {
        option: subprocess.run([sys.executable, "-c", probe, option], capture_output=True, text=True, check=True).stdout
        for option in ("--help", "--version")
    }
    assert all(f"  {name} " in shown["--help"] for name in COMMANDS)
    assert shown["--version"] == "sluice, version 0.1.0\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_help_names_is_there(name: str) -> None:
    """And is called by the name it stands under."""
    command = sluice.get_command(click.Context(sluice), name)
    assert command is not None
    assert command.name == name
    assert command.help


def test_an_unknown_command_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    """With the name that was not known."""
    assert run(["sevre"]) == 2
    assert "No such command 'sevre'" in capsys.readouterr().err


@pytest.mark.clause("C1")
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_port_in_use_is_2(config: Path, capsys: pytest.CaptureFixture[str], workers: str, shared: bool) -> None:
    """Also when the one who has it would share it, as another Sluice with workers does."""
    with socket.socket() as taken:
        if shared:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["serve", "--config", str(config), "--port", str(port), "--workers", workers]) == 2
    assert capsys.readouterr().err == f"sluice: cannot listen on 127.0.0.1 port {port}: the port is in use\n"


@pytest.mark.clause("C1")
def test_an_address_of_another_host_is_2(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A documentation address is no address of this machine."""
    assert run(["serve", "--config", str(config), "--host", "192.0.2.1", "--port", "0"]) == 2
    assert "this host does not have that address" in capsys.readouterr().err


@pytest.mark.clause("C4")
def test_a_wrong_configuration_is_2(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The complaint begins with the file as it was given, and the line."""
    config.write_text(CONFIG.replace("upstreams", "upstraems"))
    assert run(["serve", "--config", str(config)]) == 2
    said = capsys.readouterr().err
    assert said == f"sluice: {config}:3: upstraems: unknown key; did you mean upstreams? (and 1 more)\n"


def test_serve_without_a_configuration_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`sluice.yaml` in the current folder is what it looks for."""
    monkeypatch.chdir(tmp_path)
    assert run(["serve"]) == 2
    assert capsys.readouterr().err == "sluice: sluice.yaml: cannot be read: No such file or directory\n"
