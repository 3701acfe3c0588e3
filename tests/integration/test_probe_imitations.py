"""`sluice probe` on servers that imitate vendors and that nobody here wrote (contract R1, R3, C3).

Each is taken for a vendor of which nothing is known but its API family: what is learned is what the server says. That
it is no simulator of ours, it shows by lacking our header, so its recordings are `captured`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from proxy.semantics.rule import VendorProfile
from proxy.stores.recordings import Recording, find_recordings
from proxy.stores.rules import load_rules
from tests.support.commands import Done, sluice
from tests.support.proxy import ROOT, write_config
from tests.support.servers import KATAN_KEY, katan, llmock

pytestmark = [pytest.mark.clause("R1", "C3"), pytest.mark.timeout(180)]

VENDOR: Final = "imitated"
#: Server, path of the API, dialect.
SUBJECTS: Final = {
    "katan-openai": ("katan", "/v1", "openai"),
    "katan-anthropic": ("katan", "/v1", "anthropic"),
    "llmock-gemini": ("llmock", "/gemini/v1beta", "gemini"),
    "llmock-cohere": ("llmock", "/cohere/v2", "cohere"),
}
#: Tokens beyond which llmock refuses, by its own count; the probe asks for more.
WINDOW, LONG_TOKENS = 2000, 4000
#: The class that a refusal must have, by the probe that asked for it. What a server lets pass is no refusal.
WANTED: Final[Mapping[str, str]] = {
    "broken-json": "invalid_request",
    "missing-field": "invalid_request",
    "wrong-type": "invalid_request",
    "too-long": "invalid_request",
    "unknown-model": "model_unavailable",
    "no-key": "auth_failure",
    "wrong-key": "auth_failure",
}


@dataclass(frozen=True, slots=True)
class Probed:
    """A server after two probes with `--write`. `files` are rules and recordings with their bytes, after each."""

    folder: Path
    config: Path
    first: dict[str, Any]
    again: dict[str, Any]
    files: tuple[dict[str, bytes], dict[str, bytes]]
    server: str

    @property
    def recordings(self) -> list[Recording]:
        return find_recordings([self.folder / "recordings"])

    @property
    def profile(self) -> VendorProfile:
        return load_rules(self.folder / "rules").profile(VENDOR)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    first, second = tmp_path_factory.mktemp("katan"), tmp_path_factory.mktemp("llmock")
    with katan(first) as echoing, llmock(second, "--context-window", str(WINDOW)) as mocked:
        yield {"katan": echoing, "llmock": mocked}


@pytest.fixture(scope="module", params=sorted(SUBJECTS))
def probed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, urls: dict[str, str]) -> Probed:
    server, place, dialect = SUBJECTS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    config = configure(folder, urls[server] + place, dialect)
    first = probe(folder, config, "--write")
    files = files_in(folder)
    again = probe(folder, config, "--write")
    assert (first.code, again.code) == (0, 0), first.err + again.err
    return Probed(folder, config, first.json, again.json, (files, files_in(folder)), server)


def configure(folder: Path, base_url: str, dialect: str) -> Path:
    """A configuration, and rules that know the family alone."""
    rules = folder / "rules"
    rules.mkdir()
    for file in (ROOT / "rules").glob("_*.yaml"):
        shutil.copy(file, rules)
    (rules / f"{VENDOR}.yaml").write_text(f"vendor: {VENDOR}\ndialect: {dialect}\nuse: [_infra]\n")
    return write_config(folder, base_url, vendor=VENDOR, rules="rules", upstream={"api_key": KATAN_KEY})


def probe(folder: Path, config: Path, *words: str) -> Done:
    how = ["--yes", "--pause", "0", "--json", "--long-tokens", str(LONG_TOKENS)]
    return sluice(folder, "probe", "main", "--config", str(config), *how, *words)


def files_in(folder: Path) -> dict[str, bytes]:
    places = [*(folder / "rules").rglob("*"), *(folder / "recordings").rglob("*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in places if path.is_file()}


def test_each_refusal_means_what_was_asked_for(probed: Probed) -> None:
    """By the rules as the probe leaves them; and every server refuses some of it."""
    refused = [one for one in probed.first["outcomes"] if one["error_class"] and one["probe"] in WANTED]
    assert {one["probe"] for one in refused} >= {"broken-json", "missing-field", "wrong-type"}
    assert {(one["probe"], one["error_class"]) for one in refused} <= set(WANTED.items())
    assert all(one["rule"] for one in refused)


def test_keys_are_refused_where_they_are_checked(probed: Probed) -> None:
    """llm-katan checks them; what it tells of the right one stands in no recording."""
    outcomes = [one for one in probed.first["outcomes"] if one["probe"] in ("no-key", "wrong-key")]
    is_refused = {one["error_class"] == "auth_failure" for one in outcomes}
    assert is_refused == {probed.server == "katan"}
    assert not any(KATAN_KEY.encode() in text for name, text in probed.files[0].items() if "recordings" in name)


def test_what_is_recorded_is_captured(probed: Probed) -> None:
    """One exchange in each file, under the vendor's name; requests without a key."""
    assert len(probed.recordings) > 25
    assert {one.obtained for one in probed.recordings} == {"captured"}
    assert {one.vendor for one in probed.recordings} == {VENDOR}
    assert all(re.fullmatch(r"probe-[a-z-]+-\d+", one.name) for one in probed.recordings)


def test_the_streams_show_the_vendors_ways(probed: Probed) -> None:
    """Whole answers, and how they end; what is proposed is in the file, and evidence for it lies there."""
    streams = [one for one in probed.first["outcomes"] if one["probe"] in ("stream", "long-stream", "plain")]
    assert {one["ending"] for one in streams} == {"completed"}
    assert len(streams) > 10
    for rule in probed.profile.rules:
        if rule.file.endswith(f"{VENDOR}.yaml"):
            assert rule.proof == "captured"
            assert all((probed.folder / place).is_file() for place in rule.evidence)


@pytest.mark.clause("R3")
def test_a_second_probe_of_an_unchanged_vendor_changes_nothing(probed: Probed) -> None:
    """No byte of a rule file or a recording."""
    assert probed.files[0] == probed.files[1]
    assert probed.again["proposal"]["diff"] == ""
    assert probed.again["recordings"]["new"] == probed.again["recordings"]["changed"] == []


def test_an_unchanged_vendor_has_not_drifted(probed: Probed) -> None:
    """Every recording is compared with what the server says now, and nothing is written."""
    watched = probe(probed.folder, probed.config, "--watch", "--only", "missing-field,wrong-type,length")
    assert (watched.code, watched.json["drift"]) == (0, [])
    assert watched.json["compared"] >= 6
    assert files_in(probed.folder) == probed.files[1]
