"""What is shipped beside the program fits the program: examples, containers, lock files, the wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel

from proxy.cli import sluice
from proxy.cli.supervisor import GRACE_S
from proxy.config import Settings, load_config
from proxy.config.schema import File

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
LOCKS = {"requirements.lock": (), "requirements-dev.lock": ("dev",), "requirements-toon.lock": ("toon",)}
VARIABLE = re.compile(r"\$\{(\w+)")


def variables_of(file: Path) -> set[str]:
    """The environment variables that a configuration names."""
    return set(VARIABLE.findall(file.read_text()))


def load_example(file: Path) -> Settings:
    env = dict.fromkeys(variables_of(file), "key") | {
        "SHOP_KEY_SHA256": "0a" * 32,
        "SIMULATOR_URL": "http://127.0.0.1:9",
        "TOON_URL": "http://127.0.0.1:9",
        "TOON_REGISTRY": "toon/models.yaml",
    }
    return load_config(file, env)


@pytest.mark.clause("C4")
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_every_example_loads(file: Path) -> None:
    """With its variables set and nothing else."""
    settings = load_example(file)
    assert settings.models


@pytest.mark.clause("C4")
def test_the_full_example_names_every_key() -> None:
    """So that it can be read as the reference it is."""
    text = (ROOT / "examples" / "full.yaml").read_text()
    assert [key for key in keys_of(File) if not re.search(rf"\b{key}:", text)] == []


def keys_of(model: type[BaseModel]) -> Iterator[str]:
    """All keys of a section and of the sections inside it."""
    for name, field in model.model_fields.items():
        yield field.alias or name
        for section in sections_in(field.annotation):
            yield from keys_of(section)


def sections_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from sections_in(part)


def test_the_demo_plays_recordings_that_exist() -> None:
    """Each model of `make run` is a recording of the vendor whose rules it gets."""
    settings = load_example(ROOT / "examples" / "demo.yaml")
    for (target,) in settings.models.values():
        assert (ROOT / "recordings" / f"{target.model}.jsonl").is_file(), target
        assert target.model.split("/")[0] == settings.upstreams[target.upstream].vendor


# -- containers -------------------------------------------------------------------------------------------------------

SERVICE_KEYS = {"build", "command", "depends_on", "environment", "healthcheck", "image", "ports", "profiles", "restart"}
SERVICE_KEYS |= {"stop_grace_period", "volumes"}


@pytest.fixture(scope="module")
def compose() -> Mapping[str, Any]:
    parsed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert isinstance(parsed, dict)
    return parsed


def parse_command(words: Sequence[str]) -> None:
    """Lets the command line take the words of a container's command, without running it."""
    command = sluice.get_command(click.Context(sluice), words[0])
    assert command is not None, words
    command.make_context(words[0], list(words[1:]))


def instructions(word: str) -> list[str]:
    """What follows an instruction's name in the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return re.findall(rf"^{word} +(.*)$", text, re.MULTILINE)


def test_compose_services_are_whole(compose: Mapping[str, Any]) -> None:
    """Keys that the compose format knows, an image each, and nothing depends on or mounts what is not there."""
    assert set(compose) == {"services", "volumes"}
    for name, service in compose["services"].items():
        assert set(service) <= SERVICE_KEYS, name
        assert "image" in service
        for other, condition in service.get("depends_on", {}).items():
            assert condition == {"condition": "service_healthy"}
            assert "healthcheck" in compose["services"][other]
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith("./") else source in compose["volumes"], volume


def test_compose_commands_are_commands_of_ours(compose: Mapping[str, Any]) -> None:
    """Every option that a container's command uses exists."""
    for service in compose["services"].values():
        if service["image"].startswith("sluice-proxy"):
            parse_command(service["command"])


def test_compose_gives_the_configuration_what_it_names(compose: Mapping[str, Any]) -> None:
    """The mounted configuration gets its variables, its database and its upstream under the names it uses."""
    service = compose["services"]["sluice"]
    mounts = [volume.split(":") for volume in service["volumes"]]
    sources = {target: source for source, target, *_ in mounts}
    targets = {source: target for source, target, *_ in mounts}
    mounted = ROOT / sources[service["command"][service["command"].index("--config") + 1]]
    assert variables_of(mounted) == set(service["environment"])
    settings = load_example(mounted)
    database = compose["services"]["postgres"]["environment"]
    user, name = database["POSTGRES_USER"], database["POSTGRES_DB"]
    assert settings.ledger.url == f"postgresql://{user}:key@postgres/{name}"
    assert str(settings.ledger.journal_dir).startswith(f"{targets['sluice']}/")
    port = compose["services"]["simulator"]["command"][-1]
    assert settings.upstreams["simulator"].base_url == f"http://simulator:{port}/v1"
    assert float(service["stop_grace_period"].removesuffix("s")) > settings.shutdown_s + GRACE_S


def test_the_image_copies_what_exists_and_runs_what_exists(compose: Mapping[str, Any]) -> None:
    """COPY sources are in the checkout and not ignored; CMD begins as the command in compose does."""
    copied = [source for line in instructions("COPY") if "--from" not in line for source in line.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text().split()
    for source in copied:
        assert (ROOT / source).exists()
        assert f"!{source}" in ignored
    commands = [yaml.safe_load(words) for words in instructions("CMD")]
    for command in commands:
        parse_command(command)
    command = commands[-1]  # what is built without a target
    assert command == compose["services"]["sluice"]["command"][: len(command)]
    assert yaml.safe_load(instructions("ENTRYPOINT")[0]) == ["sluice"]
    assert instructions("USER") == ["sluice"]


# -- the distribution -------------------------------------------------------------------------------------------------


def locked(name: str) -> dict[str, str]:
    pins = [line.split("==") for line in (ROOT / name).read_text().split()]
    return {canonicalize_name(package): version for package, version in pins}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_is_a_list_of_exact_versions(name: str) -> None:
    """No index, no host, no path, no option: it installs from wherever the machine gets its packages."""
    for line in (ROOT / name).read_text().split("\n"):
        assert re.fullmatch(r"([A-Za-z0-9._-]+==[A-Za-z0-9.!]+)?", line)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_fits_what_the_project_asks_for(name: str) -> None:
    """Each direct dependency is locked, in its range, and no two lock files disagree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(word for extra in LOCKS[name] for word in project["optional-dependencies"][extra]),
    ]
    pins = locked(name)
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement
    base = locked("requirements.lock")
    assert {package: pins[package] for package in base} == base


def test_the_tests_have_what_the_token_route_needs_as_it_is_shipped() -> None:
    """The versions that are tested are those that the extra `toon` brings."""
    toon, dev = locked("requirements-toon.lock"), locked("requirements-dev.lock")
    assert {package: dev.get(package) for package in toon} == toon


@pytest.mark.parametrize("name", LOCKS)
def test_no_lock_file_brings_cuda(name: str) -> None:
    """The CPU build of torch is enough for the demo, and gigabytes smaller; who has a GPU installs a torch for it."""
    assert [package for package in locked(name) if package.startswith(("nvidia-", "triton", "cuda-"))] == []


def test_the_proxy_itself_loads_no_model_library() -> None:
    """`sluice serve` starts without torch and transformers: importing them takes seconds, and the extra is optional."""
    script = (
        "import sys, proxy.app, proxy.cli.serve\n"
        "print(*sorted({'torch', 'transformers', 'tokenizers', 'llguidance', 'gguf'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr[-2000:]


def test_the_wheel_holds_the_rules_with_their_evidence_and_no_tests(tmp_path: Path) -> None:
    """What `pip install` brings: the package, its rules with the recordings that prove them, type marker, licence."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("proxy", "rules", "recordings", "prices"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    (wheel,) = tmp_path.glob("sluice_proxy-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    rules = {f"proxy/_rules/{path.name}" for path in (ROOT / "rules").glob("*.yaml")}
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "proxy").rglob("*.py")}
    evidence = {
        f"proxy/_recordings/{path.relative_to(ROOT / 'recordings')}" for path in (ROOT / "recordings").rglob("*.jsonl")
    }
    prices = {f"proxy/_prices/{path.name}" for path in (ROOT / "prices").glob("*.yaml")}
    beside = {
        str(path.relative_to(ROOT)) for kind in ("txt", "mjs", "json") for path in (ROOT / "proxy").rglob(f"*.{kind}")
    }
    assert rules | prices | sources | evidence | beside | {"proxy/py.typed", "proxy/_rules/verdicts.lock"} <= names
    assert not any(name.startswith("tests") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
