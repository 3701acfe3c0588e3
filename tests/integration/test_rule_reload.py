"""Rule files edited while they are watched: in force within a second, and never a bad one (contract R2)."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.semantics.ruleset import RuleSet
from proxy.stores.rules import FolderWatcher, default_rules_dir, load_rules

pytestmark = pytest.mark.clause("R2")

# R2 promises a second; the machine that tests run on may be busy with others.
WITHIN_S = 3.0

DEFAULT = "fallback:\n  - {status: any, class: model_unavailable}\n"
ACME = """\
vendor: acme
rules:
  - id: acme.rate
    when: {status: 429}
    then: {class: rate_limited, code: rate_limited}
    evidence: x
    seen: 2026-11-30
    proof: composed
"""


class Watched:
    """A folder under watch: what is in force, and what was refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.in_force = load_rules(folder)
        self.changes = 0
        self.refused: list[ConfigError] = []

    def on_change(self, rules: RuleSet) -> None:
        self.in_force = rules
        self.changes += 1

    @property
    def code(self) -> str:
        return self.in_force.profile("acme").rules[0].then.code

    async def write(self, name: str, text: str) -> None:
        """In a thread: the event loop of these tests refuses to touch the disk, as the product's must."""
        await asyncio.to_thread((self.folder / name).write_text, text)

    async def until(self, is_so: Callable[[], object]) -> None:
        """Waits until it is so."""
        began = time.monotonic()
        while not is_so():
            assert time.monotonic() - began < WITHIN_S, f"not within {WITHIN_S} s"
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def watching(state: Watched) -> AsyncIterator[Watched]:
    watcher = FolderWatcher(load_rules, state.in_force.version)
    task = asyncio.get_running_loop().create_task(watcher.watch(state.folder, state.on_change, state.refused.append))
    yield state
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@pytest.fixture
def loaded(tmp_path: Path) -> Watched:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "_default.yaml").write_text(DEFAULT)
    (folder / "acme.yaml").write_text(ACME)
    return Watched(folder)


@pytest.fixture
async def watched(loaded: Watched) -> AsyncIterator[Watched]:
    async with watching(loaded):
        await asyncio.sleep(0.2)
        yield loaded


async def test_an_edit_is_in_force_within_a_second(watched: Watched) -> None:
    """Written in place; the new set is handed over once."""
    await watched.write("acme.yaml", ACME.replace("code: rate_limited", "code: slow_down"))
    await watched.until(lambda: watched.changes == 1)
    assert watched.code == "slow_down"
    assert watched.refused == []


async def test_an_editor_that_writes_by_rename_is_noticed(watched: Watched) -> None:
    """A new file under the old name, as vim and most deployment tools write."""
    await watched.write(".acme.yaml.swp", ACME.replace("code: rate_limited", "code: renamed"))
    await asyncio.to_thread((watched.folder / ".acme.yaml.swp").rename, watched.folder / "acme.yaml")
    await watched.until(lambda: watched.changes == 1)
    assert watched.code == "renamed"


async def test_a_bad_file_is_refused_and_the_last_good_set_stays(watched: Watched) -> None:
    """File, line and reason are told once; mending the file puts it in force."""
    before = watched.in_force
    await watched.write("acme.yaml", ACME.replace("status: 429", "statuz: 429"))
    await watched.until(lambda: watched.refused)
    fault = watched.refused[0]
    assert (Path(fault.file).name, fault.line) == ("acme.yaml", 4)
    assert fault.reason.startswith("rules.when.statuz: unknown key; the nearest valid one is 'status'")
    assert watched.in_force is before
    await asyncio.sleep(1.2)
    assert len(watched.refused) == 1
    await watched.write("acme.yaml", ACME.replace("code: rate_limited", "code: mended"))
    await watched.until(lambda: watched.changes == 1)
    assert watched.code == "mended"


async def test_taking_a_bad_edit_back_changes_nothing(watched: Watched) -> None:
    """The set in force is the same, so nobody is told."""
    await watched.write("acme.yaml", "vendor: [")
    await watched.until(lambda: watched.refused)
    await watched.write("acme.yaml", ACME)
    await asyncio.sleep(1.0)
    assert watched.changes == 0


async def test_the_accepted_verdicts_are_no_rules(watched: Watched) -> None:
    """`verdicts.lock` stands beside the rules; written anew, whatever it says, it changes and refuses nothing."""
    before = watched.in_force
    await watched.write("verdicts.lock", "vendor: [\n")
    await watched.write("acme.yaml", ACME.replace("code: rate_limited", "code: slow_down"))
    await watched.until(lambda: watched.changes)
    assert (watched.changes, watched.refused) == (1, [])
    await watched.write("acme.yaml", ACME)
    await watched.until(lambda: watched.changes == 2)
    assert (watched.in_force.version, watched.refused) == (before.version, [])


async def test_a_file_is_added_and_removed(watched: Watched) -> None:
    """A vendor comes and goes without a restart."""
    await watched.write("beta.yaml", "vendor: beta\n")
    await watched.until(lambda: "beta" in watched.in_force.vendors)
    await asyncio.to_thread((watched.folder / "beta.yaml").unlink)
    await watched.until(lambda: "beta" not in watched.in_force.vendors)
    await asyncio.to_thread((watched.folder / "_default.yaml").unlink)
    await watched.until(lambda: watched.refused)
    assert watched.refused[0].reason.startswith("is missing")
    assert "acme" in watched.in_force.vendors


async def test_several_files_saved_at_once_are_one_whole_set(watched: Watched) -> None:
    """A vendor that uses a shared file written in the same moment."""
    await watched.write("acme.yaml", ACME.replace("rules:", "use: [_shared]\nrules:", 1))
    await watched.write("_shared.yaml", ACME.replace("vendor: acme\n", "").replace("acme.rate", "shared.rate"))
    await watched.until(lambda: len(watched.in_force.profile("acme").rules) == 2)


async def test_a_folder_that_is_replaced_is_still_watched(watched: Watched) -> None:
    """A deployment moves a new folder into the old one's place."""

    def replace_folder() -> None:
        fresh = watched.folder.with_name("fresh")
        shutil.copytree(watched.folder, fresh)
        (fresh / "acme.yaml").write_text(ACME.replace("code: rate_limited", "code: replaced"))
        watched.folder.rename(watched.folder.with_name("old"))
        fresh.rename(watched.folder)

    await asyncio.to_thread(replace_folder)
    await watched.until(lambda: watched.changes == 1)
    assert watched.code == "replaced"
    await watched.write("acme.yaml", ACME.replace("code: rate_limited", "code: and_edited"))
    await watched.until(lambda: watched.changes == 2)
    assert watched.code == "and_edited"


async def test_an_edit_between_loading_and_watching_is_not_missed(loaded: Watched) -> None:
    """The first look compares with the set in force."""
    await loaded.write("acme.yaml", ACME.replace("code: rate_limited", "code: early"))
    async with watching(loaded):
        await loaded.until(lambda: loaded.changes == 1)
        assert loaded.code == "early"


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """No folder, or a file that is no UTF-8: a ConfigError with its place."""
    with pytest.raises(ConfigError, match=r"nowhere: the rules folder cannot be read"):
        load_rules(tmp_path / "nowhere")
    (tmp_path / "_default.yaml").write_bytes(b"rules: []\n# \xff\n")
    with pytest.raises(ConfigError, match=r"_default\.yaml:2: is not UTF-8"):
        load_rules(tmp_path)


def test_the_shipped_set_is_valid() -> None:
    """And every vendor that the product names is in it."""
    wanted = (
        "openai azure_openai deepseek moonshot zhipu qwen_compat openrouter groq together fireworks mistral xai "
        "siliconflow vllm sglang llamacpp lmstudio litellm one_api new_api openai_compatible"
    )
    assert set(wanted.split()) <= set(load_rules(default_rules_dir()).vendors)
